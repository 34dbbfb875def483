"""The second face: Iceberg metadata derived from the Delta log, zero copy."""

from twinlake.iceberg.keeping_up import (
    HOOKS,
    SYNC_HOOK,
    SYNC_PROPERTY,
    Lag,
    keep_up,
    lag_of,
    wants_sync,
)
from twinlake.iceberg.soundness import Check
from twinlake.iceberg.syncing import Synced, face_version, sync

__all__ = [
    "HOOKS",
    "SYNC_HOOK",
    "SYNC_PROPERTY",
    "Check",
    "Lag",
    "Synced",
    "face_version",
    "keep_up",
    "lag_of",
    "sync",
    "wants_sync",
]
