"""File actions as Arrow columns, and back.

The raw layout mirrors the log: paths and statistics as they were written, partition values by
physical name. ``stats_parsed`` is there only if a checkpoint brought it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from twinlake.actions import AddFile, DeletionVectorDescriptor, RemoveFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from twinlake.log.paths.canonical import CanonicalPaths

__all__ = [
    "ADD_SCHEMA",
    "DV_TYPE",
    "REMOVE_SCHEMA",
    "add_batch",
    "adds_from",
    "file_keys",
    "remove_batch",
    "removes_from",
]

_STRING_MAP: Final = pa.map_(pa.string(), pa.string())
DV_TYPE: Final = pa.struct(
    [
        ("storage_type", pa.string()),
        ("path_or_inline_dv", pa.string()),
        ("offset", pa.int32()),
        ("size_in_bytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
ADD_SCHEMA: Final = pa.schema(
    [
        ("path", pa.string()),
        ("partition_values", _STRING_MAP),
        ("size", pa.int64()),
        ("modification_time", pa.int64()),
        ("data_change", pa.bool_()),
        ("stats", pa.string()),
        ("tags", _STRING_MAP),
        ("deletion_vector", DV_TYPE),
        ("base_row_id", pa.int64()),
        ("default_row_commit_version", pa.int64()),
        ("clustering_provider", pa.string()),
    ]
)
REMOVE_SCHEMA: Final = pa.schema(
    [
        ("path", pa.string()),
        ("data_change", pa.bool_()),
        ("deletion_timestamp", pa.int64()),
        ("extended_file_metadata", pa.bool_()),
        ("partition_values", _STRING_MAP),
        ("size", pa.int64()),
        ("deletion_vector", DV_TYPE),
        ("base_row_id", pa.int64()),
        ("default_row_commit_version", pa.int64()),
    ]
)


def _dv_cell(dv: DeletionVectorDescriptor | None) -> tuple[Any, ...] | None:
    if dv is None:
        return None
    return dv.storage_type, dv.path_or_inline_dv, dv.offset, dv.size_in_bytes, dv.cardinality


def _column(kind: pa.DataType, cells: list[Any]) -> pa.Array:
    # Most optional columns are empty in most logs; an all-null array costs nothing to build.
    if cells.count(None) == len(cells):
        return pa.nulls(len(cells), kind)
    return _map_column(cells) if kind == _STRING_MAP else pa.array(cells, kind)


def _map_column(cells: list[dict[str, str | None] | None]) -> pa.MapArray:
    # From flat keys and items: several times faster than a list of pairs for every row.
    uniform = _uniform_maps(cells)
    if uniform is not None:
        return uniform
    offsets: list[int | None] = [0]
    total = 0
    for cell in cells:
        if cell is None:
            offsets[-1], following = None, total
        else:
            following = total = total + len(cell)
        offsets.append(following)
    keys = [key for cell in cells if cell for key in cell]
    items = [item for cell in cells if cell for item in cell.values()]
    return pa.MapArray.from_arrays(
        pa.array(offsets, pa.int32()), pa.array(keys, pa.string()), pa.array(items, pa.string())
    )


def _uniform_maps(cells: list[Any]) -> pa.MapArray | None:
    """Maps that all have the same keys, as the partition values of a table do; else None."""
    names = list(cells[0] or ())
    try:
        if sum(map(len, cells)) != len(cells) * len(names):
            return None
        items = [cell[name] for cell in cells for name in names]
    except (TypeError, KeyError):
        return None
    ends = pc.multiply(pa.arange(0, len(cells) + 1), len(names))
    return pa.MapArray.from_arrays(
        ends.cast(pa.int32()),
        pa.array(names * len(cells), pa.string()),
        pa.array(items, pa.string()),
    )


def add_batch(adds: Sequence[AddFile]) -> pa.RecordBatch:
    """The adds as one batch of the raw layout."""
    cells: list[list[Any]] = [
        [a.path for a in adds],
        [a.partition_values for a in adds],
        [a.size for a in adds],
        [a.modification_time for a in adds],
        [a.data_change for a in adds],
        [a.stats for a in adds],
        [a.tags for a in adds],
        [_dv_cell(a.deletion_vector) for a in adds],
        [a.base_row_id for a in adds],
        [a.default_row_commit_version for a in adds],
        [a.clustering_provider for a in adds],
    ]
    arrays = [_column(f.type, column) for f, column in zip(ADD_SCHEMA, cells, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ADD_SCHEMA)


def remove_batch(removes: Sequence[RemoveFile]) -> pa.RecordBatch:
    """The removes as one batch; statistics and tags are not kept, as in checkpoints."""
    cells: list[list[Any]] = [
        [r.path for r in removes],
        [r.data_change for r in removes],
        [r.deletion_timestamp for r in removes],
        [r.extended_file_metadata for r in removes],
        [r.partition_values for r in removes],
        [r.size for r in removes],
        [_dv_cell(r.deletion_vector) for r in removes],
        [r.base_row_id for r in removes],
        [r.default_row_commit_version for r in removes],
    ]
    arrays = [_column(f.type, column) for f, column in zip(REMOVE_SCHEMA, cells, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=REMOVE_SCHEMA)


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    # A few thousand rows at a time: whole tables never become Python objects at once.
    for batch in table.to_batches(max_chunksize=4096):
        names = batch.schema.names
        # Column by column: Arrow takes several times as long to make the same rows itself.
        for cells in zip(*map(_cells, batch.columns), strict=True):
            row = dict(zip(names, cells, strict=True))
            dv = row.get("deletion_vector")
            if dv is not None:
                row["deletion_vector"] = DeletionVectorDescriptor(**dv)
            yield row


def _cells(column: pa.Array) -> list[Any]:
    if column.null_count == len(column):
        return [None] * len(column)
    return _map_cells(column) if column.type == _STRING_MAP else column.to_pylist()


def _map_cells(column: pa.MapArray) -> list[dict[str, str | None] | None]:
    offsets = column.offsets.to_pylist()
    start, end = offsets[0], offsets[-1]
    keys = column.keys.slice(start, end - start).to_pylist()
    items = column.items.slice(start, end - start).to_pylist()
    pairs = list(zip(keys, items, strict=True))
    present = column.is_valid().to_pylist()
    return [
        dict(pairs[first - start : last - start]) if there else None
        for first, last, there in zip(offsets[:-1], offsets[1:], present, strict=True)
    ]


def adds_from(table: pa.Table, *, data_change: bool | None = None) -> Iterator[AddFile]:
    """The rows of the raw layout as actions, optionally with another ``dataChange``."""
    for row in _rows(table.select(ADD_SCHEMA.names)):
        row["partition_values"] = row["partition_values"] or {}
        row["data_change"] = bool(row["data_change"]) if data_change is None else data_change
        yield AddFile(**row)


def removes_from(table: pa.Table) -> Iterator[RemoveFile]:
    """The tombstones as actions."""
    for row in _rows(table.select(REMOVE_SCHEMA.names)):
        row["data_change"] = bool(row["data_change"])
        yield RemoveFile(**row)


def file_keys(table: pa.Table, paths: CanonicalPaths | None) -> pa.ChunkedArray:
    """Path and deletion-vector id as one string a row, comparable between adds and removes.

    Without ``paths`` every path is known to be its own canonical form.
    """
    names = table["path"] if paths is None else paths.keys(table["path"])
    vectors = table["deletion_vector"]
    if vectors.null_count == len(vectors):
        return names
    kind = pc.struct_field(vectors, "storage_type")
    body = pc.struct_field(vectors, "path_or_inline_dv")
    if paths is not None and pc.any(pc.equal(kind, "p")).as_py():
        body = pc.if_else(pc.equal(kind, "p"), paths.keys(body), body)
    offset = pc.cast(pc.struct_field(vectors, "offset"), pa.string())
    located = pc.binary_join_element_wise(kind, body, "")
    # A NUL can be in neither a path nor an id, so keys of different shape never meet.
    unique = pc.coalesce(pc.binary_join_element_wise(located, offset, "@"), located)
    return pc.coalesce(pc.binary_join_element_wise(names, unique, "\x00"), names)
