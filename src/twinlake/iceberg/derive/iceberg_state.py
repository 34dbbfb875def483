"""The Iceberg side of one Delta version, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twinlake.iceberg.format.manifest_list import ManifestFile
    from twinlake.iceberg.format.table_metadata import TableMetadata

__all__ = ["IcebergState"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergState:
    """The metadata of a version and what its current snapshot lists."""

    metadata: TableMetadata
    rows: tuple[ManifestFile, ...] = ()
    """The manifests of the current snapshot."""
