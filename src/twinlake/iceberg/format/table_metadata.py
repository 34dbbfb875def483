"""The metadata file of the Iceberg side, as a value and as JSON.

Iceberg table format, Table Metadata. Snapshots and their log are the last two keys of what we
write, so that they are found without a look at what is in them: a table has thousands, and a
conversion adds one.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.iceberg.format.unparsed_list import NO_ENTRIES, RawEntries

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "LogEntry",
    "MetadataLogEntry",
    "SnapshotEntry",
    "TableMetadata",
    "decode_metadata",
    "encode_metadata",
    "table_uuid",
    "with_referenced_snapshots",
]

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
    statistics: tuple[dict[str, Any], ...] = ()
    partition_statistics: tuple[dict[str, Any], ...] = ()
    metadata_log: tuple[MetadataLogEntry, ...] = ()
    next_row_id: int | None = None
    snapshot_texts: RawEntries = NO_ENTRIES
    """The snapshots, oldest first."""
    snapshot_log: RawEntries = NO_ENTRIES
    """When each of them became the current one, in the same order."""

    @property
    def delta_version(self) -> int:
        """The Delta version this is the metadata of."""
        return int(self.properties["delta-version"])

    def snapshots(self) -> Iterator[SnapshotEntry]:
        """All snapshots, oldest first, each parsed when its turn comes."""
        return map(_SNAPSHOT.decode, self.snapshot_texts)

    @property
    def oldest(self) -> SnapshotEntry | None:
        """The first snapshot that is kept."""
        return next(self.snapshots(), None)

    @property
    def current(self) -> SnapshotEntry | None:
        """The newest snapshot; a table without files may have none."""
        return _SNAPSHOT.decode(self.snapshot_texts.last) if self.snapshot_texts else None

    def has_snapshot(self, snapshot_id: int) -> bool:
        """Whether a snapshot with an id is there."""
        return self.snapshot_texts.holds(b'"snapshot-id":%d,' % snapshot_id)

    def followed_by(self, snapshot: SnapshotEntry) -> TableMetadata:
        """The metadata with one snapshot more."""
        entry = LogEntry(timestamp_ms=snapshot.timestamp_ms, snapshot_id=snapshot.snapshot_id)
        return msgspec.structs.replace(
            self,
            current_snapshot_id=snapshot.snapshot_id,
            refs={
                **self.refs,
                "main": {"snapshot-id": snapshot.snapshot_id, "type": "branch"},
            },
            snapshot_texts=self.snapshot_texts.followed_by(_ENCODER.encode(snapshot)),
            snapshot_log=self.snapshot_log.followed_by(_ENCODER.encode(entry)),
        )

    def without_first(self, count: int) -> TableMetadata:
        """The metadata without its oldest snapshots."""
        return msgspec.structs.replace(
            self,
            snapshot_texts=self.snapshot_texts.without_first(count),
            snapshot_log=self.snapshot_log.without_first(count),
        )


_DECODER: Final = msgspec.json.Decoder(TableMetadata)
_SNAPSHOT: Final = msgspec.json.Decoder(SnapshotEntry)
_ENCODER: Final = msgspec.json.Encoder()
_SNAPSHOTS: Final = b',"snapshots":['
_LOG: Final = b'],"snapshot-log":['
_END: Final = b"]}"


def with_referenced_snapshots(metadata: TableMetadata) -> TableMetadata:
    """The metadata with only those snapshots that a branch or tag points to."""
    named = {ref["snapshot-id"] for ref in metadata.refs.values()}
    current, texts = metadata.current, NO_ENTRIES
    if current is not None and named == {current.snapshot_id}:
        # The newest one, which is found without a look at the others.
        texts = texts.followed_by(bytes(metadata.snapshot_texts.last))
    else:
        for one in metadata.snapshots():
            if one.snapshot_id in named:
                texts = texts.followed_by(_ENCODER.encode(one))
    return msgspec.structs.replace(metadata, snapshot_texts=texts)


def encode_metadata(metadata: TableMetadata) -> tuple[bytes | memoryview, ...]:
    """The bytes of the file, in pieces: the long lists are not copied."""
    head = _ENCODER.encode(
        msgspec.structs.replace(metadata, snapshot_texts=NO_ENTRIES, snapshot_log=NO_ENTRIES)
    )
    return (
        head[:-1] + _SNAPSHOTS,
        *metadata.snapshot_texts.pieces(),
        _LOG,
        *metadata.snapshot_log.pieces(),
        _END,
    )


def decode_metadata(data: bytes) -> TableMetadata:
    """A metadata file; what is none is a ``msgspec.DecodeError``.

    In one that we wrote, snapshots are not looked at before somebody asks for them.
    """
    found = _parted(data) or _parted(_in_our_order(data))
    if found is None:
        raise msgspec.DecodeError("no lists of snapshots")
    return found


def _parted(data: bytes) -> TableMetadata | None:
    """The metadata in a file with snapshots and their log at its end; None if it is another."""
    start, middle = data.find(_SNAPSHOTS), data.rfind(_LOG)
    first, entries, end = start + len(_SNAPSHOTS), middle + len(_LOG), len(data) - len(_END)
    # A key after the log would follow the end of a list.
    if start < 0 or middle < first or not data.endswith(_END) or data.find(b'],"', entries) >= 0:
        return None
    return msgspec.structs.replace(
        _DECODER.decode(data[:start] + b"}"),
        snapshot_texts=RawEntries.within(data, first, middle),
        snapshot_log=RawEntries.within(data, entries, end),
    )


def _in_our_order(data: bytes) -> bytes:
    """A file of another writer, as we would have written it."""
    keys = msgspec.json.decode(msgspec.json.format(data, indent=-1), type=dict[str, msgspec.Raw])
    for last in ("snapshots", "snapshot-log"):
        keys[last] = keys.pop(last, msgspec.Raw(b"[]"))
    return _ENCODER.encode(keys)


def table_uuid(table_id: str) -> str:
    """Iceberg's id of a table: Delta's own where it is a UUID, else one that follows from it."""
    try:
        return str(uuid.UUID(table_id))
    except ValueError:
        return str(uuid.uuid5(_NAMESPACE, table_id))
