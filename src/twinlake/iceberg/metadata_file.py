"""The metadata file of the Iceberg face, as a value and as JSON.

Iceberg table format, Table Metadata. Snapshots are kept as the text they were written as, because a
table has thousands of them and a conversion looks at the newest one only.
"""

from __future__ import annotations

import uuid
from typing import Any, Final

import msgspec

__all__ = [
    "LogEntry",
    "MetadataLogEntry",
    "SnapshotEntry",
    "TableMetadata",
    "decode_metadata",
    "encode_metadata",
    "table_uuid",
]

UNSORTED: Final = {"order-id": 0, "fields": []}
_NAMESPACE: Final = uuid.UUID("5f1d4a0e-3f0a-5b0c-8a51-0b9b1f2d7c66")


class SnapshotEntry(
    msgspec.Struct, frozen=True, kw_only=True, rename="kebab", omit_defaults=True, gc=False
):
    """One snapshot; its summary stays text until somebody asks."""

    snapshot_id: int
    parent_snapshot_id: int | None = None
    sequence_number: int
    timestamp_ms: int
    manifest_list: str
    summary: msgspec.Raw
    schema_id: int
    first_row_id: int | None = None
    added_rows: int | None = None

    @property
    def counts(self) -> dict[str, str]:
        """The summary."""
        found: dict[str, str] = msgspec.json.decode(self.summary, type=dict[str, str])
        return found


class LogEntry(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", gc=False):
    """When which snapshot became the current one."""

    timestamp_ms: int
    snapshot_id: int


class MetadataLogEntry(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", gc=False):
    """An earlier metadata file."""

    timestamp_ms: int
    metadata_file: str


class TableMetadata(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", omit_defaults=True):
    """The whole file."""

    format_version: int
    table_uuid: str
    location: str
    last_sequence_number: int
    last_updated_ms: int
    last_column_id: int
    current_schema_id: int
    schemas: tuple[dict[str, Any], ...]
    default_spec_id: int
    partition_specs: tuple[dict[str, Any], ...]
    last_partition_id: int
    default_sort_order_id: int
    sort_orders: tuple[dict[str, Any], ...]
    properties: dict[str, str]
    current_snapshot_id: int | None = None
    refs: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    snapshot_texts: tuple[msgspec.Raw, ...] = msgspec.field(default=(), name="snapshots")
    """The snapshots, oldest first."""
    snapshot_log: tuple[msgspec.Raw, ...] = ()
    """When each of them became the current one, as texts in the same order."""
    metadata_log: tuple[MetadataLogEntry, ...] = ()
    next_row_id: int | None = None

    @property
    def delta_version(self) -> int:
        """The Delta version this is the face of."""
        return int(self.properties["delta-version"])

    @property
    def snapshots(self) -> tuple[SnapshotEntry, ...]:
        """All snapshots, oldest first; each is parsed anew."""
        return tuple(map(_SNAPSHOT.decode, self.snapshot_texts))

    @property
    def oldest(self) -> SnapshotEntry | None:
        """The first snapshot that is kept."""
        return _SNAPSHOT.decode(self.snapshot_texts[0]) if self.snapshot_texts else None

    @property
    def current(self) -> SnapshotEntry | None:
        """The newest snapshot; a table without files may have none."""
        return _SNAPSHOT.decode(self.snapshot_texts[-1]) if self.snapshot_texts else None

    def followed_by(self, snapshot: SnapshotEntry) -> TableMetadata:
        """The metadata with one snapshot more."""
        entry = LogEntry(timestamp_ms=snapshot.timestamp_ms, snapshot_id=snapshot.snapshot_id)
        return msgspec.structs.replace(
            self,
            current_snapshot_id=snapshot.snapshot_id,
            refs={"main": {"snapshot-id": snapshot.snapshot_id, "type": "branch"}},
            snapshot_texts=(*self.snapshot_texts, _text_of(snapshot)),
            snapshot_log=(*self.snapshot_log, _text_of(entry)),
        )


_DECODER: Final = msgspec.json.Decoder(TableMetadata)
_SNAPSHOT: Final = msgspec.json.Decoder(SnapshotEntry)
_ENCODER: Final = msgspec.json.Encoder()


def _text_of(entry: SnapshotEntry | LogEntry) -> msgspec.Raw:
    return msgspec.Raw(_ENCODER.encode(entry))


def encode_metadata(metadata: TableMetadata) -> bytes:
    """The bytes of the file."""
    return _ENCODER.encode(metadata)


def decode_metadata(data: bytes) -> TableMetadata:
    """What ``encode_metadata`` wrote; anything else is a ``msgspec.DecodeError``."""
    return _DECODER.decode(data)


def table_uuid(table_id: str) -> str:
    """Iceberg's id of a table: Delta's own where it is a UUID, else one that follows from it."""
    try:
        return str(uuid.UUID(table_id))
    except ValueError:
        return str(uuid.uuid5(_NAMESPACE, table_id))
