"""The second face: Iceberg metadata derived from the Delta log, zero copy."""

from twinlake.iceberg.sync.conversion_run import Synced, face_version, sync_table
from twinlake.iceberg.sync.hook import (
    HOOKS,
    SYNC_HOOK,
    SYNC_PROPERTY,
    Lag,
    keep_up,
    lag_of,
    wants_sync,
)
from twinlake.iceberg.sync.integrity import Check

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
    "sync_table",
    "wants_sync",
]
