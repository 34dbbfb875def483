"""Table state in the columns of a checkpoint.

The types are those Delta Spark expects: one nullable struct a kind of action, one row an action.
File actions go from the raw layout to the checkpoint's by moving columns, never row by row.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from twinlake.log.checkpoint.reader import ADD_FIELDS, DV_FIELDS, REMOVE_FIELDS
from twinlake.log.columns import ADD_SCHEMA, DV_TYPE, REMOVE_SCHEMA
from twinlake.log.file_view import partition_values, stats_shape
from twinlake.protocol import keys, property_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from twinlake.protocol import Metadata

__all__ = [
    "FileRows",
    "StatsLayout",
    "distribute",
    "encode_parquet",
    "file_rows",
]

_STRINGS: Final = pa.map_(pa.string(), pa.string())
_ROWS_PER_GROUP: Final = 1 << 16
_DV_OUT: Final = pa.struct(
    [pa.field(name, f.type) for name, f in zip(DV_FIELDS, DV_TYPE, strict=True)]
)

STATE_TYPES: Final[dict[str, pa.DataType]] = {
    "txn": pa.struct(
        [("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]
    ),
    "metaData": pa.struct(
        [
            ("id", pa.string()),
            ("name", pa.string()),
            ("description", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", _STRINGS)])),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("configuration", _STRINGS),
            ("createdTime", pa.int64()),
        ]
    ),
    "protocol": pa.struct(
        [
            ("minReaderVersion", pa.int32()),
            ("minWriterVersion", pa.int32()),
            ("readerFeatures", pa.list_(pa.string())),
            ("writerFeatures", pa.list_(pa.string())),
        ]
    ),
    "domainMetadata": pa.struct(
        [("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]
    ),
}
V2_TYPES: Final[dict[str, pa.DataType]] = {
    "checkpointMetadata": pa.struct([("version", pa.int64()), ("tags", _STRINGS)]),
    "sidecar": pa.struct(
        [
            ("path", pa.string()),
            ("sizeInBytes", pa.int64()),
            ("modificationTime", pa.int64()),
            ("tags", _STRINGS),
        ]
    ),
}


@dataclass(frozen=True, slots=True)
class StatsLayout:
    """Which forms of the statistics a checkpoint holds."""

    as_json: bool = True
    as_struct: bool = False

    @staticmethod
    def of(metadata: Metadata) -> StatsLayout:
        """What the table asks for; both by default, as Delta Spark does, so that scans are fast."""
        return StatsLayout(
            bool(property_value(metadata, keys.CHECKPOINT_WRITE_STATS_AS_JSON)),
            bool(property_value(metadata, keys.CHECKPOINT_WRITE_STATS_AS_STRUCT)),
        )


@dataclass(frozen=True, slots=True)
class FileRows:
    """The file actions of a checkpoint, or of one part of it, as struct columns."""

    adds: pa.ChunkedArray
    removes: pa.ChunkedArray

    @property
    def num_actions(self) -> int:
        """Adds and removes together."""
        return len(self.adds) + len(self.removes)

    def pick(self, adds: pa.Array, removes: pa.Array) -> FileRows:
        """Some of the rows, by position."""
        return FileRows(self.adds.take(adds), self.removes.take(removes))


def file_rows(
    adds: pa.Table, removes: pa.Table, metadata: Metadata, layout: StatsLayout
) -> FileRows:
    """Live files and tombstones (raw layout) as checkpoint rows."""
    add_columns = _renamed(adds, ADD_SCHEMA, ADD_FIELDS)
    # A checkpoint changes no data; Delta Spark writes it so as well.
    add_columns["dataChange"] = _falses(len(adds))
    if layout.as_struct:
        add_columns |= _typed_columns(adds, metadata)
    if not layout.as_json:
        del add_columns["stats"]
    remove_columns = _renamed(removes, REMOVE_SCHEMA, REMOVE_FIELDS)
    remove_columns["dataChange"] = _falses(len(removes))
    return FileRows(_structs(add_columns), _structs(remove_columns))


def _renamed(
    table: pa.Table, schema: pa.Schema, names: Mapping[str, str]
) -> dict[str, pa.ChunkedArray]:
    given = {f.name for f in schema}
    columns = {out: table[raw] for out, raw in names.items() if raw in given}
    vectors = columns["deletionVector"]
    columns["deletionVector"] = pa.chunked_array([_vectors(c) for c in vectors.chunks], _DV_OUT)
    return columns


def _vectors(chunk: pa.StructArray) -> pa.StructArray:
    if chunk.null_count == len(chunk):
        return pa.nulls(len(chunk), _DV_OUT)
    return pa.StructArray.from_arrays(
        [chunk.field(i) for i in range(chunk.type.num_fields)],
        fields=list(_DV_OUT),
        mask=chunk.is_null(),
    )


def _falses(rows: int) -> pa.ChunkedArray:
    return pa.chunked_array([pa.repeat(False, rows)], pa.bool_())


def _typed_columns(adds: pa.Table, metadata: Metadata) -> dict[str, pa.ChunkedArray]:
    columns: dict[str, pa.ChunkedArray] = {}
    if metadata.partition_columns:
        columns["partitionValues_parsed"] = partition_values(
            adds["partition_values"], metadata, physical=True
        )
    shape = stats_shape(metadata)
    kind = _writable(shape.arrow)
    chunks = []
    for batch in _parse_batches(adds):
        given = batch.column("stats_parsed") if "stats_parsed" in batch.schema.names else None
        text = batch.column("stats")
        # A file without statistics has no struct, rather than one full of nulls.
        absent = text.is_null() if given is None else pc.and_(text.is_null(), given.is_null())
        parsed = _pruned(shape.parse(text, given, len(batch)), kind)
        chunks.append(pc.if_else(absent, pa.scalar(None, kind), parsed))
    columns["stats_parsed"] = pa.chunked_array(chunks, kind)
    return columns


def _parse_batches(adds: pa.Table) -> Iterator[pa.RecordBatch]:
    """What an earlier checkpoint parsed as it lies; the commits since, many and small, joined."""
    parsed = "stats_parsed" in adds.schema.names

    def is_parsed(batch: pa.RecordBatch) -> bool:
        return parsed and batch.column("stats_parsed").null_count == 0

    for ready, group in groupby(adds.to_batches(max_chunksize=_ROWS_PER_GROUP), is_parsed):
        if ready:
            yield from group
        else:
            joined = pa.Table.from_batches(list(group)).combine_chunks()
            yield from joined.to_batches(max_chunksize=_ROWS_PER_GROUP)


def _writable(kind: pa.StructType) -> pa.StructType:
    """The type without what Parquet cannot hold: structs with no field at all."""
    fields = []
    for child in kind:
        inner = _writable(child.type) if pa.types.is_struct(child.type) else child.type
        if not pa.types.is_struct(inner) or inner.num_fields:
            fields.append(pa.field(child.name, inner))
    return pa.struct(fields)


def _pruned(array: pa.StructArray, kind: pa.StructType) -> pa.StructArray:
    if array.type == kind:
        return array
    children = []
    for child in kind:
        given = array.field(child.name)
        children.append(_pruned(given, child.type) if pa.types.is_struct(child.type) else given)
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)


def _structs(columns: dict[str, pa.ChunkedArray]) -> pa.ChunkedArray:
    # One commit is one chunk; gathered first, so that row groups are not as small as commits.
    table = pa.table(columns).combine_chunks()
    chunks = [
        pa.StructArray.from_arrays(batch.columns, fields=list(table.schema))
        for batch in table.to_batches(max_chunksize=_ROWS_PER_GROUP)
    ]
    return pa.chunked_array(chunks, pa.struct(list(table.schema)))


def distribute(rows: FileRows, parts: int) -> list[FileRows]:
    """The rows by a hash of their path: racing writers come to the same parts."""
    if parts == 1:
        return [rows]
    adds, removes = _buckets(rows.adds, parts), _buckets(rows.removes, parts)
    return [rows.pick(a, r) for a, r in zip(adds, removes, strict=True)]


def _buckets(files: pa.ChunkedArray, parts: int) -> list[pa.Array]:
    # CRC-32 is the same for every release, platform and engine; Arrow's own hashes are not.
    numbers: list[int] = []
    for chunk in files.chunks:
        paths = chunk.field("path").to_pylist()
        numbers += [zlib.crc32(path.encode()) % parts for path in paths]
    bucket = pa.array(numbers, pa.int64())
    return [pc.indices_nonzero(pc.equal(bucket, part)) for part in range(parts)]


def encode_parquet(
    state: Sequence[tuple[str, dict[str, Any]]], rows: FileRows, *, types: Mapping[str, pa.DataType]
) -> bytes:
    """One checkpoint file: the few state actions in a row group of their own, then the files.

    ``types`` names the state columns; with none of them the file is a sidecar.
    """
    schema = pa.schema([*types.items(), ("add", rows.adds.type), ("remove", rows.removes.type)])
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        schema,
        compression="snappy",
        # Dictionaries of unique paths and statistics cost time and save nothing.
        use_dictionary=_repeating(schema),
        store_schema=False,
    ) as writer:
        for batch in _batches(schema, state, rows):
            writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _repeating(schema: pa.Schema) -> list[str]:
    unique = {"path", "stats"}
    return [
        name
        for name in _leaf_names(schema)
        if name.partition(".")[2] not in unique and not name.startswith("add.stats_parsed")
    ]


def _leaf_names(schema: pa.Schema) -> Iterator[str]:
    # Parquet's own names of nested columns, as the writer's settings spell them.
    sink = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), sink)
    columns = pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema
    return (columns.column(i).path for i in range(len(columns)))


def _batches(
    schema: pa.Schema, state: Sequence[tuple[str, dict[str, Any]]], rows: FileRows
) -> Iterator[pa.RecordBatch]:
    if state:
        columns = [
            pa.array([action if kind == f.name else None for kind, action in state], f.type)
            for f in schema
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
    for name, files in (("add", rows.adds), ("remove", rows.removes)):
        for chunk in files.chunks:
            if len(chunk):
                columns = [
                    chunk if f.name == name else pa.nulls(len(chunk), f.type) for f in schema
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)
