"""The Delta log model, and models of what it leaves out."""

from twinlake.verify.models.delta.applications import (
    IGNORES_LAST_BATCH,
    NOTES_ID_LATER,
    UNCHECKED_APPLICATION,
    ApplicationIds,
)
from twinlake.verify.models.delta.checkpoints import (
    ACCEPTS_INCOMPLETE,
    CLEANS_TO_NEWEST,
    CLEANS_TOO_EARLY,
    DROPS_TOMBSTONES,
    TRUSTS_HINT,
    Checkpoints,
)
from twinlake.verify.models.delta.isolation import (
    COMMIT_ORDER,
    COMPACTION_ASKS,
    COMPACTION_CHANGES_DATA,
    HIDES_READS,
    IGNORES_ADDED,
    IGNORES_REMOVED,
    RELAXED,
    SERIALIZABLE,
    SOME_ORDER,
    WRITE_SERIALIZABLE,
    Isolation,
)
from twinlake.verify.models.delta.model import DeltaLog
from twinlake.verify.models.delta.row_tracking import (
    KEEPS_BASE_IDS,
    NEW_IDS_ON_REWRITE,
    RowTracking,
)
from twinlake.verify.models.delta.storage import (
    BLIND_OVERWRITE,
    GIVE_UP,
    NON_ATOMIC,
    RETRY_BLINDLY,
    LogStore,
)
from twinlake.verify.models.delta.vacuum import NO_GRACE, Vacuum, safe_retention
from twinlake.verify.models.delta.vectors import PATH_ONLY, REPLACES_VECTOR, ConcurrentVectors

__all__ = [
    "ACCEPTS_INCOMPLETE",
    "BLIND_OVERWRITE",
    "CLEANS_TOO_EARLY",
    "CLEANS_TO_NEWEST",
    "COMMIT_ORDER",
    "COMPACTION_ASKS",
    "COMPACTION_CHANGES_DATA",
    "DROPS_TOMBSTONES",
    "GIVE_UP",
    "HIDES_READS",
    "IGNORES_ADDED",
    "IGNORES_LAST_BATCH",
    "IGNORES_REMOVED",
    "KEEPS_BASE_IDS",
    "NEW_IDS_ON_REWRITE",
    "NON_ATOMIC",
    "NOTES_ID_LATER",
    "NO_GRACE",
    "PATH_ONLY",
    "RELAXED",
    "REPLACES_VECTOR",
    "RETRY_BLINDLY",
    "SERIALIZABLE",
    "SOME_ORDER",
    "TRUSTS_HINT",
    "UNCHECKED_APPLICATION",
    "WRITE_SERIALIZABLE",
    "ApplicationIds",
    "Checkpoints",
    "ConcurrentVectors",
    "DeltaLog",
    "Isolation",
    "LogStore",
    "RowTracking",
    "Vacuum",
    "safe_retention",
]
