"""Existing Iceberg tables, read so that a Delta log can be written for them.

Reads metadata files and manifests of other writers. Writing the log belongs to ``table.importing``.
"""

from twinlake.iceberg.importing.history import ImportStep, SourceHistory, read_history
from twinlake.iceberg.importing.metadata import find_metadata, key_or_url, plain_location

__all__ = [
    "ImportStep",
    "SourceHistory",
    "find_metadata",
    "key_or_url",
    "plain_location",
    "read_history",
]
