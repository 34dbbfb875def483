"""The Delta log model, and models of what it leaves out."""

from twinlake.verify.models.delta.checkpoints import (
    ACCEPTS_INCOMPLETE,
    CLEANS_TO_NEWEST,
    CLEANS_TOO_EARLY,
    Checkpoints,
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
    "GIVE_UP",
    "KEEPS_BASE_IDS",
    "NEW_IDS_ON_REWRITE",
    "NON_ATOMIC",
    "NO_GRACE",
    "PATH_ONLY",
    "REPLACES_VECTOR",
    "RETRY_BLINDLY",
    "Checkpoints",
    "ConcurrentVectors",
    "DeltaLog",
    "LogStore",
    "RowTracking",
    "Vacuum",
    "safe_retention",
]
