"""The Iceberg v2 model, the fixes proposed for what it shows, and what it leaves out."""

from twinlake.verify.models.iceberg.cleanup import (
    AGES_AT_DELETION,
    CLEANS_ONCE,
    METADATA_FIRST,
    NO_GRACE_AGE,
    OrphanCleanup,
    safe_grace,
)
from twinlake.verify.models.iceberg.equality import (
    EQUAL_SEQUENCE,
    UNCHECKED_REWRITE,
    EqualityDeletes,
)
from twinlake.verify.models.iceberg.expiry import (
    CLEANS_ON_UNKNOWN,
    DELETES_SHARED,
    SKIPS_VALIDATION,
    SnapshotExpiry,
)
from twinlake.verify.models.iceberg.filters import (
    BOUNDS_ARE_EXACT,
    DELETE_IGNORES_DROPS,
    FILTERS_THE_SCAN,
    UPDATE_IGNORES_DROPS,
    FilterDeletes,
)
from twinlake.verify.models.iceberg.fixes import FixReport, compare_fixes
from twinlake.verify.models.iceberg.manifests import (
    FAST_APPEND,
    LOSES_SEQUENCE_NUMBERS,
    MARKS_ADDED,
    MERGING_APPEND,
    REPLACES_ALL_MANIFESTS,
    REUSES_MERGED,
    UNCHECKED_MANIFESTS,
    ManifestRewriting,
)
from twinlake.verify.models.iceberg.model import IcebergV2
from twinlake.verify.models.iceberg.partitions import (
    EXCLUSIVE_PROJECTION,
    FILTER_OF_NEW_VALUE,
    NEW_SPEC_ON_OLD_FILES,
    Partitions,
)
from twinlake.verify.models.iceberg.reading import expected, history, scan
from twinlake.verify.models.iceberg.retention import (
    BLIND_SWAP,
    COMMITTED_AGE,
    DELETES_FIRST,
    FORGETS_SHARED,
    ROLLS_BACK_BLINDLY,
    STALE_PLAN,
    SUPERSEDED_AGE,
    SnapshotRetention,
    safe_expiry,
)
from twinlake.verify.models.iceberg.retries import (
    FORCES_LAST_SWAP,
    RETRIES_FOREVER,
    VALIDATES_ONCE,
    RetryBudget,
)
from twinlake.verify.models.iceberg.rewriting import (
    DROPS_AT_SCAN,
    LOSES_DELETES,
    NEW_SEQUENCE,
    DeleteFileCompaction,
)
from twinlake.verify.models.iceberg.starting import COW_IGNORES_DELETES
from twinlake.verify.models.iceberg.transactions import (
    APPLIES_WHAT_IT_CAN,
    AT_ONCE,
    CHECKS_FIRST_TABLE,
    ONE_BY_ONE,
    RECHECKED,
    SWAPS_ONE_BY_ONE,
    TwoTables,
)
from twinlake.verify.models.iceberg.vectors import NO_UNION, UNCHECKED_VECTOR, DeletionVectors

__all__ = [
    "AGES_AT_DELETION",
    "APPLIES_WHAT_IT_CAN",
    "AT_ONCE",
    "BLIND_SWAP",
    "BOUNDS_ARE_EXACT",
    "CHECKS_FIRST_TABLE",
    "CLEANS_ONCE",
    "CLEANS_ON_UNKNOWN",
    "COMMITTED_AGE",
    "COW_IGNORES_DELETES",
    "DELETES_FIRST",
    "DELETES_SHARED",
    "DELETE_IGNORES_DROPS",
    "DROPS_AT_SCAN",
    "EQUAL_SEQUENCE",
    "EXCLUSIVE_PROJECTION",
    "FAST_APPEND",
    "FILTERS_THE_SCAN",
    "FILTER_OF_NEW_VALUE",
    "FORCES_LAST_SWAP",
    "FORGETS_SHARED",
    "LOSES_DELETES",
    "LOSES_SEQUENCE_NUMBERS",
    "MARKS_ADDED",
    "MERGING_APPEND",
    "METADATA_FIRST",
    "NEW_SEQUENCE",
    "NEW_SPEC_ON_OLD_FILES",
    "NO_GRACE_AGE",
    "NO_UNION",
    "ONE_BY_ONE",
    "RECHECKED",
    "REPLACES_ALL_MANIFESTS",
    "RETRIES_FOREVER",
    "REUSES_MERGED",
    "ROLLS_BACK_BLINDLY",
    "SKIPS_VALIDATION",
    "STALE_PLAN",
    "SUPERSEDED_AGE",
    "SWAPS_ONE_BY_ONE",
    "UNCHECKED_MANIFESTS",
    "UNCHECKED_REWRITE",
    "UNCHECKED_VECTOR",
    "UPDATE_IGNORES_DROPS",
    "VALIDATES_ONCE",
    "DeleteFileCompaction",
    "DeletionVectors",
    "EqualityDeletes",
    "FilterDeletes",
    "FixReport",
    "IcebergV2",
    "ManifestRewriting",
    "OrphanCleanup",
    "Partitions",
    "RetryBudget",
    "SnapshotExpiry",
    "SnapshotRetention",
    "TwoTables",
    "compare_fixes",
    "expected",
    "history",
    "safe_expiry",
    "safe_grace",
    "scan",
]
