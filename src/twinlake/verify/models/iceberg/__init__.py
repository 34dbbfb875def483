"""Models of Iceberg: the v2 table of the source document, and what that document leaves out.

Here belong the variables, actions and properties of writers, compaction, expiry and cleanup on an
Iceberg table alone. Configurations and expected results belong in ``catalogue``; Iceberg commits
that become Delta commits in ``server``.
"""

from twinlake.verify.models.iceberg.delete_compaction import DeleteFileCompaction
from twinlake.verify.models.iceberg.deletion_vectors import DeletionVectors
from twinlake.verify.models.iceberg.equality import EqualityDeletes
from twinlake.verify.models.iceberg.expiry import SnapshotExpiry
from twinlake.verify.models.iceberg.filters import DeletesByFilter
from twinlake.verify.models.iceberg.fix_comparison import FixReport, compare_fixes
from twinlake.verify.models.iceberg.manifests import ManifestRewriting
from twinlake.verify.models.iceberg.model import IcebergV2
from twinlake.verify.models.iceberg.orphan_files import OrphanCleanup, safe_grace
from twinlake.verify.models.iceberg.partitions import PartitionedTable
from twinlake.verify.models.iceberg.retention import SnapshotRetention, safe_expiry
from twinlake.verify.models.iceberg.retries import RetryBudget
from twinlake.verify.models.iceberg.transactions import MultiTableTransaction

__all__ = [
    "DeleteFileCompaction",
    "DeletesByFilter",
    "DeletionVectors",
    "EqualityDeletes",
    "FixReport",
    "IcebergV2",
    "ManifestRewriting",
    "MultiTableTransaction",
    "OrphanCleanup",
    "PartitionedTable",
    "RetryBudget",
    "SnapshotExpiry",
    "SnapshotRetention",
    "compare_fixes",
    "safe_expiry",
    "safe_grace",
]
