"""A writer of Iceberg commits that is bound to nothing: files, manifests and requests by hand.

Iceberg's libraries write what is right, and PyIceberg none of format 3. This one writes whatever a
test wants to be in a manifest, by fastavro, and sends the request to the commit path.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema

from tests.support.iceberg.both_sides import as_text, iceberg_rows
from twinlake import Table, verify_twin
from twinlake.errors import CompatViolation, ConflictError, TwinlakeError, UserError
from twinlake.iceberg.format.puffin import Blob, write_puffin
from twinlake.log import CACHE
from twinlake.log.deletion_vectors import encode_bitmap
from twinlake.storage import LocalStore
from twinlake.table.iceberg_commits import IcebergCommits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from twinlake.table.iceberg_commits import TwinState

__all__ = [
    "ADDED",
    "DELETED",
    "EXISTING",
    "OutsideWriter",
    "column",
    "entry",
    "entry_schema",
    "evolved",
    "hold_together",
    "log_of",
    "refused",
]

EXISTING, ADDED, DELETED = 0, 1, 2

Record = dict[str, Any]
Row = dict[str, Any]

_IDS = count(1_000_000_001)
_OPTIONAL_FIELDS = {
    "null_value_counts": (110, "long", 121),
    "nan_value_counts": (137, "long", 138),
    "lower_bounds": (125, "bytes", 126),
    "upper_bounds": (128, "bytes", 129),
}


def column(number: int, name: str, kind: Any, *, required: bool = False, **rest: Any) -> Record:
    """A field of an Iceberg schema."""
    return {"id": number, "name": name, "type": kind, "required": required, **rest}


def log_of(folder: Path) -> dict[str, bytes]:
    """The commits of a table."""
    found = sorted((folder / "_delta_log").glob("*.json"))
    return {path.name: path.read_bytes() for path in found}


def refused(
    writer: OutsideWriter, updates: Sequence[Any], why: str, *requirements: Any
) -> TwinlakeError:
    """Send updates that have to be refused: for this reason, and without a trace."""
    before, files = log_of(writer.folder), set(writer.folder.rglob("*"))
    with pytest.raises(TwinlakeError) as caught:
        writer.send(updates, requirements)
    assert isinstance(caught.value, UserError | CompatViolation | ConflictError), caught.value
    assert why in f"{caught.value.what} {caught.value.why}"
    assert log_of(writer.folder) == before
    assert set(writer.folder.rglob("*")) == files
    return caught.value


def evolved(*columns: Record, **rest: Any) -> list[Record]:
    """The updates that make these the columns of a table."""
    document = {"type": "struct", "schema-id": 0, "fields": list(columns), **rest}
    return [
        {"action": "add-schema", "schema": document},
        {"action": "set-current-schema", "schema-id": -1},
    ]


def hold_together(folder: Path) -> list[Row]:
    """The rows of a table, which twinlake and PyIceberg return alike, as the log has them."""
    table = Table.open(folder)
    rows: list[Row] = table.to_arrow().to_pylist()
    assert as_text(iceberg_rows(folder)) == as_text(rows)
    report = verify_twin(table, rows=True)
    assert report.agrees, str(report)
    return rows


@dataclass
class OutsideWriter:
    """One table, and a client of it."""

    folder: Path
    commits: IcebergCommits = field(default_factory=IcebergCommits)

    @property
    def store(self) -> LocalStore:
        return LocalStore(self.folder)

    def create(
        self,
        *columns: Record,
        version: int = 2,
        partition_by: Sequence[int] = (),
        **properties: str,
    ) -> OutsideWriter:
        """Make the table; ``partition_by`` are ids of columns."""
        names = {one["id"]: one["name"] for one in columns}
        parts = [
            {"source-id": n, "field-id": 1000 + i, "name": names[n], "transform": "identity"}
            for i, n in enumerate(partition_by)
        ]
        body = {
            "name": self.folder.name,
            "schema": {"type": "struct", "schema-id": 0, "fields": list(columns)},
            "partition-spec": {"spec-id": 0, "fields": parts},
            "properties": {"format-version": str(version), **properties},
        }
        self.commits.create(self.store, json.dumps(body).encode())
        return self

    @property
    def state(self) -> TwinState:
        CACHE.forget(self.store.url)
        return self.commits.load(self.store)

    @property
    def metadata(self) -> Record:
        found: Record = json.loads(self.state.metadata())
        return found

    @property
    def schema(self) -> Record:
        """The current schema."""
        metadata = self.metadata
        number = metadata["current-schema-id"]
        return next(s for s in metadata["schemas"] if s["schema-id"] == number)

    @property
    def main(self) -> int | None:
        """The current snapshot."""
        found = self.metadata.get("refs", {}).get("main")
        return None if found is None else int(found["snapshot-id"])

    # Files

    def write(
        self,
        rows: Sequence[Row],
        *,
        schema: pa.Schema | None = None,
        name: str = "",
        partition: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        **changes: Any,
    ) -> Record:
        """Write a Parquet file; returns its record in a manifest, with ``changes``."""
        found = schema
        if found is None:
            found = schema_to_pyarrow(Schema.model_validate(self.schema))
        key = name or f"data/{uuid4()}.parquet"
        path = self.folder / key
        path.parent.mkdir(exist_ok=True, parents=True)
        pq.write_table(pa.Table.from_pylist(list(rows), schema=found), path, **(options or {}))
        return self.record(
            key, path.stat().st_size, len(rows), partition=dict(partition or {}), **changes
        )

    def record(self, key: str, size: int, rows: int, **changes: Any) -> Record:
        """A file as a manifest has it."""
        return {
            "content": 0,
            "file_path": f"file://{self.folder}/{key}",
            "file_format": "PARQUET",
            "partition": {},
            "record_count": rows,
            "file_size_in_bytes": size,
            **changes,
        }

    def positions(self, pairs: Iterable[tuple[Record | str, Any]], **changes: Any) -> Record:
        """Write a file of deleted positions."""
        found = [(f if isinstance(f, str) else f["file_path"], position) for f, position in pairs]
        table = pa.table({"file_path": [f for f, _ in found], "pos": [p for _, p in found]})
        key = f"data/{uuid4()}-deletes.parquet"
        path = self.folder / key
        path.parent.mkdir(exist_ok=True, parents=True)
        pq.write_table(table, path)
        record = self.record(key, path.stat().st_size, len(found), content=1)
        return {**record, **changes}

    def vectors(self, *hidden: tuple[Record, Iterable[int]], **changes: Any) -> list[Record]:
        """Write the deletion vectors of files into one Puffin file."""
        from pyroaring import BitMap64

        maps = [(target["file_path"], BitMap64(rows)) for target, rows in hidden]
        data, ranges = write_puffin(
            [
                Blob(referenced_data_file=path, cardinality=len(rows), payload=encode_bitmap(rows))
                for path, rows in maps
            ]
        )
        key = f"data/{uuid4()}.puffin"
        (self.folder / key).parent.mkdir(exist_ok=True, parents=True)
        (self.folder / key).write_bytes(data)
        return [
            {
                **self.record(key, len(data), len(rows), content=1, file_format="PUFFIN"),
                "referenced_data_file": path,
                "content_offset": offset,
                "content_size_in_bytes": size,
                **changes,
            }
            for (path, rows), (offset, size) in zip(maps, ranges, strict=True)
        ]

    def live(self, content: int = 0) -> list[Record]:
        """The entries of live files, as the manifests of the table have them."""
        return [
            entry
            for row in self.listed()
            if row["content"] == content
            for entry in _read(row["manifest_path"])
            if entry["status"] != DELETED
        ]

    def listed(self) -> list[Record]:
        """The rows of the current manifest list."""
        metadata = self.metadata
        main = self.main
        found = next((s for s in metadata.get("snapshots", ()) if s["snapshot-id"] == main), None)
        return [] if found is None else _read(found["manifest-list"])

    def manifest(
        self,
        entries: Iterable[Record],
        *,
        content: int = 0,
        schema: Any = None,
        codec: str = "deflate",
        **changes: Any,
    ) -> Record:
        """Write a manifest; returns its row in a manifest list."""
        metadata = self.metadata
        spec = metadata["default-spec-id"]
        name = f"_iceberg/metadata/{uuid4()}-m0.avro"
        types = {f["id"]: f["type"] for f in self.schema["fields"]}
        parts = next(s for s in metadata["partition-specs"] if s["spec-id"] == spec)["fields"]
        kinds = {part["name"]: types[part["source-id"]] for part in parts}
        found = list(entries)
        length = _write(
            self.folder / name,
            schema or entry_schema(kinds),
            found,
            {"partition-spec-id": str(spec), "format-version": str(metadata["format-version"])},
            codec,
        )
        states = [one.get("status") for one in found]
        return {
            "manifest_path": f"file://{self.folder}/{name}",
            "manifest_length": length,
            "partition_spec_id": spec,
            "content": content,
            "sequence_number": metadata["last-sequence-number"] + 1,
            "min_sequence_number": 0,
            "added_snapshot_id": 0,
            "added_files_count": states.count(ADDED),
            "existing_files_count": states.count(EXISTING),
            "deleted_files_count": states.count(DELETED),
            "added_rows_count": 0,
            "existing_rows_count": 0,
            "deleted_rows_count": 0,
            **changes,
        }

    def manifest_list(self, rows: Iterable[Record], *, codec: str = "deflate") -> str:
        """Write a manifest list; returns its location."""
        name = f"_iceberg/metadata/snap-{uuid4()}.avro"
        _write(self.folder / name, LIST_SCHEMA, list(rows), {}, codec)
        return f"file://{self.folder}/{name}"

    # Requests

    def snapshot(self, manifest_list: str, operation: str = "append", **changes: Any) -> Record:
        """An ``add-snapshot`` update."""
        metadata = self.metadata
        made = {
            "snapshot-id": next(_IDS),
            "parent-snapshot-id": self.main,
            "sequence-number": metadata["last-sequence-number"] + 1,
            "timestamp-ms": metadata["last-updated-ms"] + 1,
            "manifest-list": manifest_list,
            "summary": {"operation": operation},
            "schema-id": metadata["current-schema-id"],
        }
        made |= {key.replace("_", "-"): value for key, value in changes.items()}
        return {"action": "add-snapshot", "snapshot": made}

    def to_main(self, *updates: Record) -> list[Record]:
        """Snapshots, and ``main`` at the last of them."""
        last = updates[-1]["snapshot"]["snapshot-id"]
        ref = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch"}
        return [*updates, {**ref, "snapshot-id": last}]

    def rewritten(self, *gone: Record) -> list[Record]:
        """The manifests of the table without some of its files: rewritten where touched."""
        names = {_identity(one) for one in gone}
        rows = []
        for row in self.listed():
            entries = [e for e in _read(row["manifest_path"]) if e["status"] != DELETED]
            if not names & {_identity(e["data_file"]) for e in entries}:
                rows.append(row)
                continue
            for one in entries:
                is_gone = _identity(one["data_file"]) in names
                one["status"] = DELETED if is_gone else EXISTING
                one["snapshot_id"] = None if is_gone else one["snapshot_id"]
            rows.append(self.manifest(entries, content=row["content"]))
        return rows

    def change(
        self,
        added: Iterable[Record] = (),
        removed: Iterable[Record] = (),
        deletes: Iterable[Record] = (),
        operation: str = "append",
        **changes: Any,
    ) -> list[Record]:
        """The updates of a snapshot that adds and removes files."""
        rows = self.rewritten(*removed)
        for content, files in ((0, list(added)), (1, list(deletes))):
            if files:
                rows.append(self.manifest([entry(one) for one in files], content=content))
        return self.to_main(self.snapshot(self.manifest_list(rows), operation, **changes))

    def send(
        self, updates: Sequence[Any], requirements: Sequence[Any] = (), key: str | None = None
    ) -> TwinState:
        """Commit updates."""
        body = {"requirements": list(requirements), "updates": list(updates)}
        return self.send_body(json.dumps(body).encode(), key)

    def send_body(self, body: bytes, key: str | None = None) -> TwinState:
        return self.commits.commit(self.store, body, key)

    def append(self, rows: Sequence[Row], **changes: Any) -> Record:
        """Commit one file of rows; returns its record."""
        found = self.write(rows, **changes)
        self.send(self.change(added=[found]))
        return found


def entry(file: Record, status: int = ADDED, **changes: Any) -> Record:
    """An entry of a manifest."""
    return {"status": status, "data_file": file, **changes}


def _identity(file: Record) -> tuple[str, int | None]:
    return file["file_path"], file.get("content_offset")


def _read(location: str) -> list[Record]:
    from pathlib import Path

    data = Path(location.removeprefix("file://")).read_bytes()
    return [dict(one) for one in fastavro.reader(io.BytesIO(data))]  # type: ignore[arg-type]


def _write(
    path: Path, schema: Any, records: list[Record], metadata: dict[str, str], codec: str
) -> int:
    buffer = io.BytesIO()
    parsed = fastavro.parse_schema(schema)
    fastavro.writer(buffer, parsed, records, codec=codec, metadata=metadata)
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_bytes(buffer.getvalue())
    return len(buffer.getvalue())


def _field(name: str, kind: Any, number: int) -> Record:
    return {"name": name, "type": kind, "field-id": number}


def _optional(name: str, kind: Any, number: int) -> Record:
    return {"name": name, "type": ["null", kind], "default": None, "field-id": number}


def _map(value: str, number: int) -> Record:
    fields = [_field("key", "int", number), _field("value", value, number + 1)]
    item = {"type": "record", "name": f"k{number}_v{number + 1}", "fields": fields}
    return {"type": "array", "items": item, "logicalType": "map"}


def entry_schema(partition: Mapping[str, str] | None = None) -> Record:
    """The Avro schema of manifest entries; ``partition`` are the fields of the tuple."""
    parts = [_optional(n, kind, 1000 + i) for i, (n, kind) in enumerate((partition or {}).items())]
    data_file = [
        _field("content", "int", 134),
        _field("file_path", "string", 100),
        _field("file_format", "string", 101),
        _field("partition", {"type": "record", "name": "r102", "fields": parts}, 102),
        _field("record_count", "long", 103),
        _field("file_size_in_bytes", "long", 104),
        *(_optional(n, _map(v, i), number) for n, (number, v, i) in _OPTIONAL_FIELDS.items()),
        _optional("key_metadata", "bytes", 131),
        _optional("first_row_id", "long", 142),
        _optional("referenced_data_file", "string", 143),
        _optional("content_offset", "long", 144),
        _optional("content_size_in_bytes", "long", 145),
    ]
    fields = [
        _field("status", "int", 0),
        _optional("snapshot_id", "long", 1),
        _optional("sequence_number", "long", 3),
        _optional("file_sequence_number", "long", 4),
        _field("data_file", {"type": "record", "name": "r2", "fields": data_file}, 2),
    ]
    return {"type": "record", "name": "manifest_entry", "fields": fields}


LIST_SCHEMA: Record = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        _field("manifest_path", "string", 500),
        _field("manifest_length", "long", 501),
        _field("partition_spec_id", "int", 502),
        _field("content", "int", 517),
        _field("sequence_number", "long", 515),
        _field("min_sequence_number", "long", 516),
        _field("added_snapshot_id", "long", 503),
        _field("added_files_count", "int", 504),
        _field("existing_files_count", "int", 505),
        _field("deleted_files_count", "int", 506),
        _field("added_rows_count", "long", 512),
        _field("existing_rows_count", "long", 513),
        _field("deleted_rows_count", "long", 514),
    ],
}
