"""Existing Iceberg tables, read so that a Delta log can be written for them.

Reads metadata files and manifests of other writers. Writing the log belongs to ``table.importing``.
"""

from twinlake.iceberg.importing.data_files import add_action
from twinlake.iceberg.importing.history import ImportStep, SourceHistory, read_history
from twinlake.iceberg.importing.metadata import find_metadata

__all__ = [
    "ImportStep",
    "SourceHistory",
    "add_action",
    "find_metadata",
    "read_history",
]
