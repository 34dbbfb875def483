"""The Iceberg side: metadata derived from the Delta log, zero copy."""

from twinlake.iceberg.sync.conversion_run import SyncResult, sync_table, synced_version
from twinlake.iceberg.sync.hook import (
    HOOKS,
    SYNC_HOOK,
    Lag,
    lag_of,
    sync_and_record,
    syncs_with_commit,
)
from twinlake.iceberg.sync.integrity import IntegrityCheck

__all__ = [
    "HOOKS",
    "SYNC_HOOK",
    "IntegrityCheck",
    "Lag",
    "SyncResult",
    "lag_of",
    "sync_and_record",
    "sync_table",
    "synced_version",
    "syncs_with_commit",
]
