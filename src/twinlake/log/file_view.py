"""The files of a snapshot as people and planners want them: logical names, typed values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from twinlake.errors import Code, CorruptTable, how_to_restore
from twinlake.log.stats.parsed import StatsShape
from twinlake.protocol import partition_zone
from twinlake.schema import Struct, partition_array, physical_name, physical_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from twinlake.protocol import Metadata
    from twinlake.schema import ColumnPath, StructField
    from twinlake.schema.predicates import FileStats

__all__ = ["file_stats", "partition_values", "stats_shape", "view_files"]


def view_files(typed: pa.Table, metadata: Metadata) -> pa.Table:
    """The friendly layout of typed files (see ``Snapshot.files``); nothing is copied."""
    stats = typed["stats_parsed"]
    return pa.table(
        {
            "path": typed["path"],
            "size": typed["size"],
            "modification_time": typed["modification_time"],
            "partition_values": partition_values(typed["partition_values"], metadata),
            "num_records": pc.struct_field(stats, "numRecords"),
            "stats": _logical_stats(stats, _data_columns(metadata), _naming(metadata)),
            "deletion_vector": typed["deletion_vector"],
            "base_row_id": typed["base_row_id"],
            "default_row_commit_version": typed["default_row_commit_version"],
            "tags": typed["tags"],
            "clustering_provider": typed["clustering_provider"],
        }
    )


def _data_columns(metadata: Metadata) -> Struct:
    # There are no statistics of partition columns, materialised or not.
    partition_names = {name.casefold() for name in metadata.partition_columns}
    return Struct(tuple(f for f in metadata.schema if f.name.casefold() not in partition_names))


def stats_shape(metadata: Metadata) -> StatsShape:
    """How the statistics of the table's files look in the log."""
    return StatsShape(physical_schema(_data_columns(metadata), metadata.column_mapping_mode))


def partition_values(
    values: pa.ChunkedArray, metadata: Metadata, *, physical: bool = False
) -> pa.ChunkedArray:
    """The partition values, typed; by logical name, or by the name the log uses."""
    name_of, zone = _naming(metadata), partition_zone(metadata)
    fields, typed = [], []
    for name in metadata.partition_columns:
        field = metadata.schema.get(name)
        if field is None:
            raise _no_column(name, metadata)
        array = partition_array(_looked_up(values, name_of(field)), field.type, zone=zone)
        fields.append(pa.field(name_of(field) if physical else field.name, array.type))
        typed.append(array)
    if not fields:
        empty = pa.StructArray.from_buffers(pa.struct([]), len(values), [None])
        return pa.chunked_array([empty])
    return pa.chunked_array([pa.StructArray.from_arrays(typed, fields=fields)])


def _looked_up(values: pa.ChunkedArray, key: str) -> pa.Array:
    """The value under one key of every map."""
    chunks = [_only_items(chunk, key) for chunk in values.chunks]
    ready = [items for items in chunks if items is not None]
    if len(ready) < len(chunks):
        found = pc.map_lookup(values, key, "first")
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    return pa.concat_arrays(ready) if ready else pa.array([], pa.string())


def _only_items(maps: pa.MapArray, key: str) -> pa.Array | None:
    """The items as they lie, if every map holds this key and no other; else None."""
    if maps.null_count or not len(maps):
        return None
    offsets = maps.offsets
    lengths = pc.subtract(offsets.slice(1), offsets.slice(0, len(maps)))
    first = offsets[0].as_py()
    keys = maps.keys.slice(first, len(maps))
    alone = pc.all(pc.equal(lengths, 1)).as_py() and pc.all(pc.equal(keys, key)).as_py()
    return maps.items.slice(first, len(maps)) if alone else None


def _no_column(name: str, metadata: Metadata) -> CorruptTable:
    return CorruptTable(
        Code.SCHEMA_INVALID,
        f"Table {metadata.label} is partitioned by {name!r}, which is not one of its columns.",
        why=f"its schema has {', '.join(field.name for field in metadata.schema) or 'none'}",
        fix=f"Run {how_to_restore()} with an earlier version.",
        fields={"table": metadata.label, "column": name},
    )


def _naming(metadata: Metadata) -> Callable[[StructField], str]:
    """How the log names a column: leftover physical names mean nothing in mode none."""
    if metadata.column_mapping_mode == "none":
        return lambda field: field.name
    return physical_name


def _logical_stats(
    stats: pa.ChunkedArray, data: Struct, name_of: Callable[[StructField], str]
) -> pa.ChunkedArray:
    chunks = stats.chunks or [pa.nulls(0, stats.type)]
    return pa.chunked_array([_logical_chunk(chunk, data, name_of) for chunk in chunks])


def _logical_chunk(
    chunk: pa.StructArray, data: Struct, name_of: Callable[[StructField], str]
) -> pa.StructArray:
    names = ("min_values", "max_values", "null_count")
    children = [
        _renamed(chunk.field(source), data, name_of)
        for source in ("minValues", "maxValues", "nullCount")
    ]
    mask = chunk.is_null() if chunk.null_count else None
    return pa.StructArray.from_arrays(
        [*children, chunk.field("tightBounds")], names=[*names, "tight_bounds"], mask=mask
    )


def _renamed(
    array: pa.StructArray, schema: Struct, name_of: Callable[[StructField], str]
) -> pa.StructArray:
    """The log's names in a statistics struct back to the logical ones, zero copy."""
    by_physical = {name_of(f): f for f in schema}
    fields, children = [], []
    for position, given in enumerate(array.type):
        field = by_physical[given.name]
        child = array.field(position)
        if isinstance(field.type, Struct) and pa.types.is_struct(child.type):
            child = _renamed(child, field.type, name_of)
        fields.append(pa.field(field.name, child.type))
        children.append(child)
    if not children:
        return array
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def file_stats(files: pa.Table) -> FileStats:
    """What file skipping looks at, from the friendly layout."""
    from twinlake.schema.predicates import FileStats

    stats = _flat(files["stats"])
    return FileStats(
        num_rows=len(files),
        partition=_leaves(_flat(files["partition_values"])),
        min=_leaves(stats.field("min_values")),
        max=_leaves(stats.field("max_values")),
        null_count=_leaves(stats.field("null_count")),
        num_records=_flat(files["num_records"]),
        tight_bounds=stats.field("tight_bounds"),
    )


def _flat(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined


def _leaves(array: pa.StructArray, path: ColumnPath = ()) -> Mapping[ColumnPath, pa.Array]:
    found: dict[ColumnPath, pa.Array] = {}
    # Flattening pushes a null struct down into its children, where it means "unknown".
    for given, child in zip(array.type, array.flatten(), strict=True):
        here = (*path, given.name)
        found |= _leaves(child, here) if pa.types.is_struct(child.type) else {here: child}
    return found
