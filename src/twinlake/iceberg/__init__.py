"""The Iceberg side: metadata derived from the Delta log, zero copy."""

from twinlake.iceberg.sync.conversion_run import SyncResult, sync_table, synced_version
from twinlake.iceberg.sync.hook import (
    HOOKS,
    SYNC_HOOK,
    SYNC_PROPERTY,
    Lag,
    lag_of,
    sync_and_record,
    syncs_with_commit,
)
from twinlake.iceberg.sync.integrity import Check

__all__ = [
    "HOOKS",
    "SYNC_HOOK",
    "SYNC_PROPERTY",
    "Check",
    "Lag",
    "SyncResult",
    "lag_of",
    "sync_and_record",
    "sync_table",
    "synced_version",
    "syncs_with_commit",
]
