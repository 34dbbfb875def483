"""Manifests: entries in, bytes out, and back.

Iceberg table format, Manifests. The bytes are a function of what is written: even the markers
between Avro blocks are derived from it, so that two syncs of the same commit write the
same files under the same names.
"""

from __future__ import annotations

import hashlib
import io
import sys
import uuid
from array import array
from base64 import b64encode
from bisect import bisect_left
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.iceberg.format.avro_encoder import (
    column_map,
    container,
    long,
    optional_long,
    partition_encoder,
    repeated_long,
    text,
)
from twinlake.iceberg.format.avro_schema import entry_schema
from twinlake.iceberg.format.metrics import FileMetrics
from twinlake.iceberg.format.single_value import plain_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from twinlake.iceberg.format.partition_spec import PartitionSpec
    from twinlake.iceberg.format.schema import IcebergSchema
    from twinlake.schema import DataType

__all__ = [
    "DamagedFile",
    "DataFile",
    "EntryStatus",
    "ManifestContent",
    "ManifestEntry",
    "ManifestHeader",
    "read_manifest",
    "write_manifest",
]

PATHS_KEY: Final = "twinlake.path-hashes"
#: So many bytes are eight letters of base64.
_HASH_BYTES: Final = 6
_HASH_SIZE: Final = 8
_BEFORE_HASHES: Final = 64
_V2: Final = 2
_PARQUET: Final = text("PARQUET")
_PUFFIN: Final = text("PUFFIN")
_NOTHING: Final = optional_long(None)
_NAMESPACE: Final = uuid.UUID("8d1f6f0e-6f0b-5a8e-9c43-3d6b8c1f5a27")


class DamagedFile(Exception):
    """A file of the Iceberg side is not what was written there."""


class EntryStatus(IntEnum):
    """What a snapshot did to a file of a manifest."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


class ManifestContent(IntEnum):
    """What the files of a manifest hold."""

    DATA = 0
    DELETES = 1


# Entries come by the hundred thousand and hold no cycles: the garbage collector need not look.


class DataFile(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A data file, or (``referenced_data_file``) the deletion vector of one."""

    path: str
    partition: tuple[Any, ...] = ()
    record_count: int
    size: int
    metrics: FileMetrics = FileMetrics()
    first_row_id: int | None = None
    referenced_data_file: str | None = None
    content_offset: int | None = None
    content_size: int | None = None

    @property
    def content(self) -> ManifestContent:
        """Whether it holds rows or hides some."""
        return (
            ManifestContent.DATA if self.referenced_data_file is None else ManifestContent.DELETES
        )

    @property
    def key(self) -> str:
        """What it is found by: its path, or for a vector that of the file it belongs to."""
        return self.referenced_data_file or self.path


class ManifestEntry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A file in a manifest. A sequence number of None is that of the snapshot that adds it."""

    status: EntryStatus
    snapshot_id: int
    sequence_number: int | None = None
    file: DataFile

    def carried(self, sequence_number: int) -> ManifestEntry:
        """The entry in a later manifest: there already, with the number it was added under."""
        number = sequence_number if self.sequence_number is None else self.sequence_number
        return msgspec.structs.replace(self, status=EntryStatus.EXISTING, sequence_number=number)

    def deleted(self, sequence_number: int, snapshot_id: int) -> ManifestEntry:
        """The entry in the manifest of the snapshot that takes the file away."""
        kept = self.carried(sequence_number)
        return msgspec.structs.replace(kept, status=EntryStatus.DELETED, snapshot_id=snapshot_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestHeader:
    """What all entries of a manifest have in common."""

    schema: IcebergSchema
    """The schema at the time."""
    spec: PartitionSpec
    content: ManifestContent = ManifestContent.DATA
    format_version: int = 2


def write_manifest(entries: Sequence[ManifestEntry], header: ManifestHeader) -> bytes:
    """The bytes of a manifest."""
    metadata = {
        PATHS_KEY: path_hashes(entries).to_text(),
        "schema": msgspec.json.encode(header.schema.to_dict()).decode(),
        "schema-id": str(header.schema.id),
        "partition-spec": msgspec.json.encode(header.spec.to_dict()["fields"]).decode(),
        "partition-spec-id": str(header.spec.id),
        "format-version": str(header.format_version),
        "content": "data" if header.content is ManifestContent.DATA else "deletes",
    }
    partition = partition_encoder(part.type for part in header.spec.fields)
    is_v3 = header.format_version > _V2
    return container(
        _entry_schema_text(header.spec, header.format_version),
        metadata,
        (_encoded(entry, partition(entry.file.partition), is_v3=is_v3) for entry in entries),
        marker_for(metadata),
    )


def read_manifest(data: bytes) -> list[ManifestEntry]:
    """The entries of a manifest of ours."""
    import fastavro

    # By position and not by name: a column may have been renamed.
    return [_entry(record) for record in fastavro.reader(io.BytesIO(data))]


def path_hash(path: str) -> bytes:
    """Eight letters that stand for a path."""
    return b64encode(hashlib.blake2b(path.encode(), digest_size=_HASH_BYTES).digest())


def path_hashes(entries: Iterable[ManifestEntry]) -> PathHashes:
    """The hashes of the live paths among entries."""
    live = (path_hash(e.file.key) for e in entries if e.status is not EntryStatus.DELETED)
    return PathHashes(b"".join(sorted(live)))


class PathHashes:
    """Which paths a manifest may hold; never says no to one it holds.

    A table of many files has many hashes, and every commit asks for some: eight letters are kept as
    one number, which takes no more room and is compared without a call of Python.
    """

    __slots__ = ("_sorted",)

    def __init__(self, text: bytes) -> None:
        self._sorted = _swapped(array("Q", text))

    def __contains__(self, hashed: bytes) -> bool:
        wanted = int.from_bytes(hashed)
        at = bisect_left(self._sorted, wanted)
        return at < len(self._sorted) and self._sorted[at] == wanted

    def to_text(self) -> str:
        """For the header of the manifest."""
        return _swapped(self._sorted[:]).tobytes().decode()


def _swapped(numbers: array[int]) -> array[int]:
    """Numbers whose order is that of their letters, the first of which weighs most; and back."""
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers


def read_path_hashes(live_files: int, read_range: Callable[[int, int], bytes]) -> PathHashes:
    """The hashes of the live paths of a manifest, by one read of its first bytes."""
    size = live_files * _HASH_SIZE
    head = read_range(0, size + _BEFORE_HASHES)
    # The key is the first of the header; the length of the text follows in as many bytes as carry
    # the mark that more are to come, and one.
    start = head.index(PATHS_KEY.encode()) + len(PATHS_KEY)
    while head[start] & 0x80:
        start += 1
    text = head[start + 1 : start + 1 + size]
    if len(text) != size or not text.isascii():
        raise ValueError("there are other hashes than files")
    return PathHashes(text)


def content_name(data: bytes) -> str:
    """A name that files with these bytes have, and no others."""
    return str(uuid.uuid5(_NAMESPACE, hashlib.sha256(data).hexdigest()))


def _entry_schema_text(spec: PartitionSpec, format_version: int) -> bytes:
    # Specs that are alike to Iceberg may be of other types: those of another table, for one.
    return _cached_schema_text(spec, spec.types, format_version)


@lru_cache(maxsize=64)
def _cached_schema_text(
    spec: PartitionSpec, _types: tuple[DataType, ...], format_version: int
) -> bytes:
    return msgspec.json.encode(entry_schema(spec, format_version=format_version))


def marker_for(metadata: Mapping[str, str]) -> bytes:
    """What stands between blocks; a random one would make every file unlike any other."""
    return uuid.uuid5(_NAMESPACE, msgspec.json.encode(metadata).decode()).bytes


def _encoded(entry: ManifestEntry, partition: bytes, *, is_v3: bool) -> bytes:
    """The entry in the order of ``entry_schema``."""
    file, metrics = entry.file, entry.file.metrics
    number = repeated_long(entry.sequence_number)
    parts = [
        long(entry.status),
        repeated_long(entry.snapshot_id),
        number,
        # Rows may be older than the commit that lists their file; the listing is not.
        _NOTHING if entry.status is EntryStatus.ADDED else number,
        long(file.content),
        text(file.path),
        _PARQUET if file.content is ManifestContent.DATA else _PUFFIN,
        partition,
        long(file.record_count),
        long(file.size),
        column_map(metrics.value_counts),
        column_map(metrics.null_value_counts),
        column_map(metrics.lower_bounds),
        column_map(metrics.upper_bounds),
        _NOTHING,
    ]
    if is_v3:
        referenced = file.referenced_data_file
        parts += (
            optional_long(file.first_row_id),
            b"\x00" if referenced is None else b"\x02" + text(referenced),
            optional_long(file.content_offset),
            optional_long(file.content_size),
        )
    return b"".join(parts)


def _entry(record: Any) -> ManifestEntry:
    found = record["data_file"]
    metrics = FileMetrics(
        record_count=found["record_count"],
        value_counts=_mapping(found["value_counts"]),
        null_value_counts=_mapping(found["null_value_counts"]),
        lower_bounds=_mapping(found["lower_bounds"]),
        upper_bounds=_mapping(found["upper_bounds"]),
    )
    return ManifestEntry(
        status=EntryStatus(record["status"]),
        snapshot_id=record["snapshot_id"],
        sequence_number=record["sequence_number"],
        file=DataFile(
            path=found["file_path"],
            # The library makes dates of days and datetimes of microseconds.
            partition=tuple(plain_value(value) for value in found["partition"].values()),
            record_count=found["record_count"],
            size=found["file_size_in_bytes"],
            metrics=metrics,
            first_row_id=found.get("first_row_id"),
            referenced_data_file=found.get("referenced_data_file"),
            content_offset=found.get("content_offset"),
            content_size=found.get("content_size_in_bytes"),
        ),
    )


def _mapping(pairs: list[dict[str, Any]] | None) -> dict[int, Any]:
    return {pair["key"]: pair["value"] for pair in pairs or ()}
