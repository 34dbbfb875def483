"""The Iceberg side: metadata derived from the Delta log, zero copy."""

from twinlake.iceberg.sync.hook import (
    ICEBERG_HOOKS,
    SYNC_HOOK,
    Lag,
    lag_of,
    sync_and_record,
    syncs_with_commit,
)
from twinlake.iceberg.sync.integrity import IntegrityCheck
from twinlake.iceberg.sync.table_sync import SyncResult, sync_table, synced_version

__all__ = [
    "ICEBERG_HOOKS",
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
