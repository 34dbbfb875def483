"""The Iceberg v2 model, and the fixes proposed for what it shows."""

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
    FILTERS_THE_SCAN,
    FilterDeletes,
)
from twinlake.verify.models.iceberg.fixes import FixReport, compare_fixes
from twinlake.verify.models.iceberg.model import IcebergV2
from twinlake.verify.models.iceberg.partitions import (
    EXCLUSIVE_PROJECTION,
    FILTER_OF_NEW_VALUE,
    NEW_SPEC_ON_OLD_FILES,
    Partitions,
)
from twinlake.verify.models.iceberg.reading import expected, history, scan
from twinlake.verify.models.iceberg.rewriting import (
    DROPS_AT_SCAN,
    LOSES_DELETES,
    NEW_SEQUENCE,
    DeleteFileCompaction,
)
from twinlake.verify.models.iceberg.server import (
    RESENDS,
    RETRIES_PUT,
    TWO_VECTORS,
    ThroughServer,
)
from twinlake.verify.models.iceberg.starting import COW_IGNORES_DELETES
from twinlake.verify.models.iceberg.vectors import NO_UNION, UNCHECKED_VECTOR, DeletionVectors

__all__ = [
    "BOUNDS_ARE_EXACT",
    "CLEANS_ON_UNKNOWN",
    "COW_IGNORES_DELETES",
    "DELETES_SHARED",
    "DROPS_AT_SCAN",
    "EQUAL_SEQUENCE",
    "EXCLUSIVE_PROJECTION",
    "FILTERS_THE_SCAN",
    "FILTER_OF_NEW_VALUE",
    "LOSES_DELETES",
    "NEW_SEQUENCE",
    "NEW_SPEC_ON_OLD_FILES",
    "NO_UNION",
    "RESENDS",
    "RETRIES_PUT",
    "SKIPS_VALIDATION",
    "TWO_VECTORS",
    "UNCHECKED_REWRITE",
    "UNCHECKED_VECTOR",
    "DeleteFileCompaction",
    "DeletionVectors",
    "EqualityDeletes",
    "FilterDeletes",
    "FixReport",
    "IcebergV2",
    "Partitions",
    "SnapshotExpiry",
    "ThroughServer",
    "compare_fixes",
    "expected",
    "history",
    "scan",
]
