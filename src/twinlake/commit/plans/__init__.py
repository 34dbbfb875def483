"""Plans: which actions a row-changing operation makes, and which files a VACUUM may delete.

Pure: an engine finds the matching rows and writes the files, a plan decides. The same plans are
driven by Spark and by the model checker.
"""

from twinlake.commit.plans.change_feed import (
    ChangeFeedPlan,
    FeedFile,
    VectorChange,
    plan_change_feed,
)
from twinlake.commit.plans.change_feed_range import check_change_feed
from twinlake.commit.plans.file_statistics import total_size
from twinlake.commit.plans.merge import (
    MergeClause,
    Then,
    When,
    ambiguous_rows,
    check_clauses,
    only_matched,
    plan_merge,
    refuse_ambiguous,
)
from twinlake.commit.plans.model import (
    ChangeType,
    Mode,
    Outcome,
    TableRules,
    TouchedFile,
    Written,
    positions,
    touched,
)
from twinlake.commit.plans.optimize import (
    Bin,
    CompactionPlan,
    OptimizeOptions,
    plan_optimize,
    plan_reorg_purge,
)
from twinlake.commit.plans.restore import RestorePlan, plan_restore
from twinlake.commit.plans.rows import (
    ChangeRows,
    DropFile,
    RewriteFile,
    RowPlan,
    Step,
    WriteDeletionVector,
    plan_delete,
    plan_delete_files,
    plan_update,
)
from twinlake.commit.plans.vacuum import (
    RESERVED_FOLDERS,
    STAGING_PREFIX,
    VacuumMode,
    VacuumPlan,
    VacuumRules,
    plan_vacuum,
)

__all__ = [
    "RESERVED_FOLDERS",
    "STAGING_PREFIX",
    "Bin",
    "ChangeFeedPlan",
    "ChangeRows",
    "ChangeType",
    "CompactionPlan",
    "DropFile",
    "FeedFile",
    "MergeClause",
    "Mode",
    "OptimizeOptions",
    "Outcome",
    "RestorePlan",
    "RewriteFile",
    "RowPlan",
    "Step",
    "TableRules",
    "Then",
    "TouchedFile",
    "VacuumMode",
    "VacuumPlan",
    "VacuumRules",
    "VectorChange",
    "When",
    "WriteDeletionVector",
    "Written",
    "ambiguous_rows",
    "check_change_feed",
    "check_clauses",
    "only_matched",
    "plan_change_feed",
    "plan_delete",
    "plan_delete_files",
    "plan_merge",
    "plan_optimize",
    "plan_reorg_purge",
    "plan_restore",
    "plan_update",
    "plan_vacuum",
    "positions",
    "refuse_ambiguous",
    "total_size",
    "touched",
]
