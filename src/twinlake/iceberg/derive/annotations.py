"""Tags and statistics files of the snapshots that a metadata file lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from twinlake.iceberg.format.table_metadata import TableMetadata
    from twinlake.protocol import IcebergAnnotations

__all__ = ["annotated", "without_lost_annotations"]

_MAIN = "main"


def annotated(metadata: TableMetadata, annotations: IcebergAnnotations) -> TableMetadata:
    """The metadata with what the table says of its snapshots, in place of what it said before."""
    main = {name: ref for name, ref in metadata.refs.items() if name == _MAIN}
    return without_lost_annotations(
        msgspec.structs.replace(
            metadata,
            refs={**annotations.refs(), **main},
            statistics=annotations.statistics,
            partition_statistics=annotations.partition_statistics,
        )
    )


def without_lost_annotations(metadata: TableMetadata) -> TableMetadata:
    """The metadata without tags and statistics of snapshots that it does not list."""
    annotations = (*metadata.statistics, *metadata.partition_statistics)
    if metadata.refs.keys() <= {_MAIN} and not annotations:
        return metadata
    named = {one["snapshot-id"] for one in (*metadata.refs.values(), *annotations)}
    lost = {number for number in named if not metadata.has_snapshot(number)}
    if not lost:
        return metadata
    refs = metadata.refs.items()
    return msgspec.structs.replace(
        metadata,
        refs={name: ref for name, ref in refs if ref["snapshot-id"] not in lost},
        statistics=tuple(s for s in metadata.statistics if s["snapshot-id"] not in lost),
        partition_statistics=tuple(
            s for s in metadata.partition_statistics if s["snapshot-id"] not in lost
        ),
    )
