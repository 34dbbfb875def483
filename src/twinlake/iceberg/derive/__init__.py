"""From Delta commits to Iceberg snapshots, as functions of values.

Pure: what has to be read or written comes in through a port. Reading the log and storing what comes
out belong to ``sync``.
"""

from twinlake.iceberg.derive.iceberg_state import IcebergState
from twinlake.iceberg.derive.metadata_update import next_metadata
from twinlake.iceberg.derive.operation import FileChanges
from twinlake.iceberg.derive.snapshot_id import (
    SNAPSHOT_TAG,
    recorded_id,
    snapshot_id,
    snapshot_tag,
    version_of,
)
from twinlake.iceberg.derive.table_layout import DeltaCommit, file_location, layout_of

__all__ = [
    "SNAPSHOT_TAG",
    "DeltaCommit",
    "FileChanges",
    "IcebergState",
    "file_location",
    "layout_of",
    "next_metadata",
    "recorded_id",
    "snapshot_id",
    "snapshot_tag",
    "version_of",
]
