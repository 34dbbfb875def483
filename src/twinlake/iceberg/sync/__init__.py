"""Bringing the Iceberg metadata of a table up to its Delta log, and keeping it there.

All reading and writing of ``_iceberg/``: the hook after a commit, lag, the cache of what was last
written, integrity checks and cleanup. What a snapshot contains is decided in ``derive``.
"""

from twinlake.iceberg.sync.manifest_reader import StoredManifests
from twinlake.iceberg.sync.metadata_cache import METADATA_CACHE
from twinlake.iceberg.sync.metadata_files import MetadataFiles, is_metadata_name

__all__ = [
    "METADATA_CACHE",
    "MetadataFiles",
    "StoredManifests",
    "is_metadata_name",
]
