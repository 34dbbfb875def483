"""The files of an Iceberg client: what it scans, and what it writes for a commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from twinlake.iceberg.derive import layout_of
from twinlake.iceberg.format import (
    Blob,
    DataFile,
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestHeader,
    manifest_file,
    read_manifest,
    read_manifest_list,
    write_manifest,
    write_manifest_list,
    write_puffin,
)
from twinlake.log import decode_payload, encode_bitmap
from twinlake.schema import field_id
from twinlake.verify.code.client_data import write_parquet_rows
from twinlake.verify.code.row_engine import COLUMNS, decode_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from twinlake.iceberg.format import ManifestFile
    from twinlake.table.iceberg_commits import TwinState
    from twinlake.verify.code.row_engine import Row
    from twinlake.verify.code.server.iceberg_client import IcebergClient

__all__ = ["ScannedFile", "SnapshotFiles"]

_METADATA: Final = "_iceberg/metadata"
_LENGTH: Final = 4
"""Before and after the payload of a vector there are as many bytes: its size, its checksum."""


@dataclass(frozen=True, slots=True)
class ScannedFile:
    """A data file with its rows, and the positions that are deleted."""

    path: str
    rows: tuple[Row, ...]
    hidden: frozenset[int]

    def matching(self, wanted: Callable[[Row], bool]) -> frozenset[int]:
        """The positions of rows that are not deleted and match."""
        found = (n for n, row in enumerate(self.rows) if n not in self.hidden and wanted(row))
        return frozenset(found)


@dataclass(frozen=True, slots=True)
class SnapshotFiles:
    """The files of one state of a table, in the hands of a client."""

    client: IcebergClient
    state: TwinState

    # Scan

    def scan(self) -> tuple[ScannedFile, ...]:
        """All rows, file by file."""
        entries = [entry for row in self._listed() for entry in self._entries(row)]
        live = [e.file for e in entries if e.status is not EntryStatus.DELETED]
        hidden = {f.key: self._positions(f) for f in live if f.content is ManifestContent.DELETES}
        return tuple(
            ScannedFile(
                one.path,
                tuple(decode_rows(self.client.store.read(self._key(one.path)))),
                hidden.get(one.path, frozenset()),
            )
            for one in live
            if one.content is ManifestContent.DATA
        )

    def _positions(self, file: DataFile) -> frozenset[int]:
        start, size = file.content_offset or 0, file.content_size or 0
        blob = self.client.store.read_range(self._key(file.path), start, size)
        return frozenset(decode_payload(blob[_LENGTH:-_LENGTH]))

    def _listed(self) -> Sequence[ManifestFile]:
        current = self.state.table_metadata.current
        if current is None:
            return ()
        return read_manifest_list(self.client.store.read(self._key(current.manifest_list)))

    def _entries(self, row: ManifestFile) -> list[ManifestEntry]:
        return read_manifest(self.client.store.read(self._key(row.path)))

    def _key(self, location: str) -> str:
        return location.removeprefix(f"{self.client.location}/")

    # Write

    def write_data(self, rows: Sequence[Row]) -> DataFile:
        """A data file with the ids that the columns have."""
        schema = self.state.snapshot.metadata.schema
        ids = {column.name: field_id(column) or 0 for column in schema}
        data = write_parquet_rows(tuple((name, ids[name]) for name in COLUMNS), tuple(rows))
        key = f"data/{self.client.engine.runtime.ids.uuid()}.parquet"
        self.client.store.put(key, data)
        return DataFile(
            path=f"{self.client.location}/{key}", record_count=len(rows), size=len(data)
        )

    def write_vectors(self, hidden: Mapping[str, Sequence[frozenset[int]]]) -> list[DataFile]:
        """One Puffin file with the vectors of data files, of which one may have several."""
        blobs = [
            Blob(
                referenced_data_file=path,
                cardinality=len(positions),
                payload=encode_bitmap(sorted(positions)),
            )
            for path, vectors in hidden.items()
            for positions in vectors
        ]
        content, ranges = write_puffin(blobs)
        path = self._put("puffin", content)
        return [
            DataFile(
                path=path,
                record_count=blob.cardinality,
                size=len(content),
                referenced_data_file=blob.referenced_data_file,
                content_offset=offset,
                content_size=size,
            )
            for blob, (offset, size) in zip(blobs, ranges, strict=True)
        ]

    def write_manifest(self, files: Iterable[DataFile]) -> ManifestFile:
        """A manifest of files that the snapshot adds."""
        snapshot_id = self.client.snapshot_id
        entries = [
            ManifestEntry(status=EntryStatus.ADDED, snapshot_id=snapshot_id, file=file)
            for file in files
        ]
        return self._manifest(entries, entries[0].file.content)

    def kept(self, gone: frozenset[str]) -> list[ManifestFile]:
        """The manifests of the table; those that list a file which goes are written again.

        A file and its vector have one key, so that both go.
        """
        return [self._without(row, gone) for row in self._listed()]

    def kept_but_vectors(self, changed: frozenset[str]) -> list[ManifestFile]:
        """The manifests of the table, without the vectors of some data files."""
        return [
            self._without(row, changed) if row.content is ManifestContent.DELETES else row
            for row in self._listed()
        ]

    def _without(self, row: ManifestFile, gone: frozenset[str]) -> ManifestFile:
        entries = [e for e in self._entries(row) if e.status is not EntryStatus.DELETED]
        if not any(entry.file.key in gone for entry in entries):
            return row
        number, snapshot_id = row.sequence_number, self.client.snapshot_id
        left = [
            entry.deleted(number, snapshot_id) if entry.file.key in gone else entry.carried(number)
            for entry in entries
        ]
        return self._manifest(left, row.content)

    def write_list(self, rows: Sequence[ManifestFile]) -> str:
        """The manifest list of the snapshot; returns where it is."""
        table = self.state.table_metadata
        data = write_manifest_list(
            rows,
            snapshot_id=self.client.snapshot_id,
            parent_id=table.current_snapshot_id,
            sequence_number=table.last_sequence_number + 1,
            format_version=table.format_version,
        )
        return self._put("avro", data)

    def listed(self) -> list[ManifestFile]:
        """The manifests of the table."""
        return list(self._listed())

    def _manifest(self, entries: Sequence[ManifestEntry], content: ManifestContent) -> ManifestFile:
        table = self.state.table_metadata
        layout = layout_of(self.state.snapshot.metadata, table.location)
        header = ManifestHeader(
            schema=layout.schema,
            spec=layout.spec,
            content=content,
            format_version=table.format_version,
        )
        data = write_manifest(entries, header)
        return manifest_file(
            entries,
            header,
            path=self._put("avro", data),
            length=len(data),
            sequence_number=table.last_sequence_number + 1,
            snapshot_id=self.client.snapshot_id,
        )

    def _put(self, suffix: str, data: bytes) -> str:
        key = f"{_METADATA}/{self.client.engine.runtime.ids.uuid()}.{suffix}"
        self.client.store.put(key, data)
        return f"{self.client.location}/{key}"
