"""Which snapshots stay: those whose files VACUUM cannot have deleted.

A file that was removed goes a retention later. The newest snapshot before that time still names
live files alone, and so does every later one; what came before it may name a file that is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from twinlake.protocol import property_value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from twinlake.actions import CommitInfo
    from twinlake.iceberg.metadata_file import SnapshotEntry, TableMetadata
    from twinlake.protocol import Metadata

__all__ = ["expire", "oldest_kept", "retention_ms", "vacuum_horizon"]

_VACUUM: Final = "VACUUM START"
_PROPERTIES: Final = ("delta.deletedFileRetentionDuration", "delta.logRetentionDuration")


def retention_ms(metadata: Metadata) -> int:
    """How long the files of a version are promised to stay, and the version in the log."""
    return min(int(property_value(metadata, name)) for name in _PROPERTIES)


def vacuum_horizon(info: CommitInfo | None, timestamp_ms: int) -> int | None:
    """The time before which a VACUUM may have deleted what was removed; None for other commits."""
    if info is None or info.operation != _VACUUM:
        return None
    parameters = info.operation_parameters or {}
    for name in ("specifiedRetentionMillis", "defaultRetentionMillis"):
        text = str(parameters.get(name, "")).strip('"')
        if text.isdigit():
            return timestamp_ms - int(text)
    return timestamp_ms


def oldest_kept(snapshots: Iterable[SnapshotEntry], horizon_ms: int) -> int:
    """The place of the oldest snapshot that stays."""
    place = 0
    for index, snapshot in enumerate(snapshots):
        if snapshot.timestamp_ms > horizon_ms:
            break
        place = index
    return place


def expire(metadata: TableMetadata, horizon_ms: int) -> TableMetadata:
    """The metadata without what is too old."""
    place = oldest_kept(metadata.snapshots(), horizon_ms)
    if place == 0:
        return metadata
    kept = metadata.without_first(place)
    if len(metadata.schemas) == 1:
        return kept
    schemas = {metadata.current_schema_id, *(one.schema_id for one in kept.snapshots())}
    return msgspec.structs.replace(
        kept, schemas=tuple(one for one in metadata.schemas if one["schema-id"] in schemas)
    )
