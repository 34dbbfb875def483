"""From Delta commits to Iceberg snapshots, as functions of values.

Pure: what has to be read or written comes in through a port. Reading the log and storing what comes
out belong to ``sync``.
"""

from twinlake.iceberg.derive.snapshot_id import SNAPSHOT_TAG, recorded_id, snapshot_id, version_of
from twinlake.iceberg.derive.table_layout import file_location

__all__ = [
    "SNAPSHOT_TAG",
    "file_location",
    "recorded_id",
    "snapshot_id",
    "version_of",
]
