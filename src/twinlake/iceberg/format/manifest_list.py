"""Manifest lists: what a snapshot reaches, one row a manifest.

Iceberg table format, Manifest Lists. A list names all manifests again, most of which were in the
one before: a row keeps the bytes it is written as.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.iceberg.format.avro_encoder import container, long, optional_long, text
from twinlake.iceberg.format.avro_schema import manifest_list_schema
from twinlake.iceberg.format.manifest import (
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestHeader,
    marker_for,
)
from twinlake.iceberg.format.partition_spec import PartitionFieldSummary, summarize_partitions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["ManifestFile", "manifest_file", "read_manifest_list", "write_manifest_list"]

_V2: Final = 2
_NULL: Final = b"\x00"
_SOME: Final = b"\x02"
_TRUTH: Final = {False: b"\x00", True: b"\x01"}
#: The order of the counts in a row.
_COUNTED: Final = (
    EntryStatus.ADDED,
    EntryStatus.EXISTING,
    EntryStatus.DELETED,
)


@dataclass(frozen=True, kw_only=True)
class ManifestFile:
    """One row of a manifest list: a manifest, and what it says in sum."""

    path: str
    length: int
    spec_id: int
    content: ManifestContent
    sequence_number: int
    min_sequence_number: int
    snapshot_id: int
    files: Mapping[EntryStatus, int]
    rows: Mapping[EntryStatus, int]
    partitions: tuple[PartitionFieldSummary, ...] = ()
    first_row_id: int | None = None

    @property
    def live_files(self) -> int:
        """How many files of it are in the table."""
        return self.files[EntryStatus.EXISTING] + self.files[EntryStatus.ADDED]

    @cached_property
    def encoded(self) -> bytes:
        """The row in the order of ``manifest_list_schema``, up to what version 3 adds."""
        numbers = (
            self.length,
            self.spec_id,
            self.content,
            self.sequence_number,
            self.min_sequence_number,
            self.snapshot_id,
            *(self.files[status] for status in _COUNTED),
            *(self.rows[status] for status in _COUNTED),
        )
        summaries = b"".join(_encoded_summary(part) for part in self.partitions)
        # An array is blocks, each with the number of its items, and an end.
        block = long(len(self.partitions)) + summaries if self.partitions else b""
        return b"".join((text(self.path), *map(long, numbers), _SOME, block, _NULL))


def manifest_file(
    entries: Sequence[ManifestEntry],
    header: ManifestHeader,
    *,
    path: str,
    length: int,
    sequence_number: int,
    snapshot_id: int,
    first_row_id: int | None = None,
) -> ManifestFile:
    """The row of a manifest that was just written."""
    files, rows = dict.fromkeys(EntryStatus, 0), dict.fromkeys(EntryStatus, 0)
    lowest = sequence_number
    for entry in entries:
        files[entry.status] += 1
        rows[entry.status] += entry.file.record_count
        if entry.status is not EntryStatus.DELETED and entry.sequence_number is not None:
            lowest = min(lowest, entry.sequence_number)
    return ManifestFile(
        path=path,
        length=length,
        spec_id=header.spec.id,
        content=header.content,
        sequence_number=sequence_number,
        min_sequence_number=lowest,
        snapshot_id=snapshot_id,
        files=files,
        rows=rows,
        partitions=summarize_partitions((e.file.partition for e in entries), header.spec),
        first_row_id=first_row_id,
    )


def write_manifest_list(
    rows: Sequence[ManifestFile],
    *,
    snapshot_id: int,
    parent_id: int | None,
    sequence_number: int,
    format_version: int = 2,
) -> bytes:
    """The bytes of the manifest list of a snapshot."""
    metadata = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null" if parent_id is None else str(parent_id),
        "sequence-number": str(sequence_number),
        "format-version": str(format_version),
    }
    records = (
        row.encoded if format_version <= _V2 else row.encoded + optional_long(row.first_row_id)
        for row in rows
    )
    return container(_schema_text(format_version), metadata, records, marker_for(metadata))


def read_manifest_list(data: bytes) -> list[ManifestFile]:
    """The rows of a manifest list."""
    import fastavro

    return [_row(record) for record in fastavro.reader(io.BytesIO(data))]


@lru_cache(maxsize=4)
def _schema_text(format_version: int) -> bytes:
    return msgspec.json.encode(manifest_list_schema(format_version=format_version))


def _encoded_summary(part: PartitionFieldSummary) -> bytes:
    return b"".join(
        (
            _TRUTH[part.contains_null],
            _SOME,
            _TRUTH[part.contains_nan],
            *(
                _NULL if bound is None else _SOME + long(len(bound)) + bound
                for bound in (part.lower, part.upper)
            ),
        )
    )


def _row(record: Any) -> ManifestFile:
    return ManifestFile(
        path=record["manifest_path"],
        length=record["manifest_length"],
        spec_id=record["partition_spec_id"],
        content=ManifestContent(record["content"]),
        sequence_number=record["sequence_number"],
        min_sequence_number=record["min_sequence_number"],
        snapshot_id=record["added_snapshot_id"],
        files={
            EntryStatus.EXISTING: record["existing_files_count"],
            EntryStatus.ADDED: record["added_files_count"],
            EntryStatus.DELETED: record["deleted_files_count"],
        },
        rows={
            EntryStatus.EXISTING: record["existing_rows_count"],
            EntryStatus.ADDED: record["added_rows_count"],
            EntryStatus.DELETED: record["deleted_rows_count"],
        },
        partitions=tuple(
            PartitionFieldSummary(
                contains_null=part["contains_null"],
                contains_nan=bool(part["contains_nan"]),
                lower=part["lower_bound"],
                upper=part["upper_bound"],
            )
            for part in record["partitions"] or ()
        ),
        first_row_id=record.get("first_row_id"),
    )
