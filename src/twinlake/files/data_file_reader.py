"""Rows of one data file as Arrow batches of the table's columns, without Spark.

Files that only Spark's reader reads right are refused with ``NeedsSpark``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from twinlake.files.column_projection import ColumnProjection, FileColumn
from twinlake.files.file_calendar import FileCalendar
from twinlake.files.parquet_input import open_parquet
from twinlake.files.row_group_filter import matching_row_groups
from twinlake.files.unreadable import NeedsSpark, damaged_file, refusal
from twinlake.log import read_dv
from twinlake.protocol import partition_zone
from twinlake.schema import (
    VARIANT,
    VARIANT_EXTENSION,
    ColumnMappingMode,
    Struct,
    StructField,
    char_length,
    partition_array,
    physical_name,
    to_arrow,
)
from twinlake.schema.predicates import evaluate_on

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow.parquet as pq
    from pyroaring import AbstractBitMap64 as Positions

    from twinlake.actions import AddFile
    from twinlake.protocol import Metadata
    from twinlake.schema import ColumnPath
    from twinlake.schema.predicates import Expr
    from twinlake.storage import Store

__all__ = ["ROW_COMMIT_VERSION", "ROW_ID", "ROW_INDEX", "DataFileReader", "positions_array"]

ROW_INDEX: Final = "__twinlake_row"
ROW_ID: Final = "__twinlake_row_id"
ROW_COMMIT_VERSION: Final = "__twinlake_row_version"

BATCH_ROWS: Final = 1 << 17
_VARIANT: Final = {"ARROW:extension:name": VARIANT_EXTENSION, "ARROW:extension:metadata": ""}


@dataclass(frozen=True, kw_only=True)
class DataFileReader:
    """How the rows of a table's files are read: which columns of which version, and which rows."""

    store: Store
    metadata: Metadata
    names: tuple[str, ...] | None = None
    """The columns wanted, in their order; None for all of the table."""
    where: Expr | None = None
    """Only rows for which it is true; nothing in it may be opaque."""
    row_ids: tuple[str, str] | None = None
    """The hidden columns for row ids and commit versions, where both are wanted behind the rest."""
    positions: bool = False
    """Whether the position of each row in its file is wanted behind the rest."""
    pads_chars: bool = True
    extra: tuple[StructField, ...] = field(default=())
    """Columns that only files have, named as there; wanted behind those of the table."""

    @cached_property
    def _fields(self) -> tuple[StructField, ...]:
        """The columns wanted, and then those that only the predicate looks at."""
        schema = self.metadata.schema
        by_name = {one.name: one for one in schema}
        wanted = [by_name[name] for name in self.names] if self.names is not None else list(schema)
        wanted += self.extra
        named = {one.name for one in wanted}
        needed = {path[0] for path in self.where.columns()} if self.where is not None else set()
        return (*wanted, *(by_name[name] for name in sorted(needed - named)))

    @cached_property
    def _width(self) -> int:
        own = len(self.metadata.schema) if self.names is None else len(self.names)
        return own + len(self.extra)

    @cached_property
    def _partitions(self) -> frozenset[str]:
        return frozenset(name.casefold() for name in self.metadata.partition_columns)

    @cached_property
    def _stored(self) -> ColumnProjection:
        own = tuple(f for f in self._fields if f.name.casefold() not in self._partitions)
        return ColumnProjection(own, self.metadata.column_mapping_mode, self.pads_chars)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the batches."""
        shown = self._fields[: self._width]
        fields = [
            field.with_metadata(_VARIANT) if one.type == VARIANT else field
            for one, field in zip(shown, to_arrow(Struct(shown)), strict=True)
        ]
        if self.row_ids is not None:
            fields += [pa.field(name, pa.int64()) for name in (ROW_ID, ROW_COMMIT_VERSION)]
        if self.positions:
            fields.append(pa.field(ROW_INDEX, pa.int64()))
        return pa.schema(fields)

    def batches(self, add: AddFile) -> Iterator[pa.RecordBatch]:
        """The rows that no deletion vector hides, in the order of the file."""
        file = open_parquet(self.store, add)
        columns = self._columns(file, add)
        groups = self._groups(file, columns)
        hidden = self._hidden(add)
        ids = _RowIds.of(file, add, self.row_ids)
        names = {c.name for c in columns if isinstance(c, FileColumn) and c.name is not None}
        wanted = list(dict.fromkeys((*sorted(names), *ids.names)))
        for start, batch in _read(file, groups, wanted, add):
            arrays = [
                column.values(batch)
                if isinstance(column, FileColumn)
                else pa.repeat(column, batch.num_rows)
                for column in columns
            ]
            kept = self._kept(arrays, hidden, start, batch.num_rows)
            arrays = arrays[: self._width] + ids.arrays(batch, start)
            if self.positions:
                arrays.append(pa.array(np.arange(start, start + batch.num_rows, dtype=np.int64)))
            if not arrays:
                rows = batch.num_rows if kept is None else pc.sum(kept).as_py() or 0
                yield _without_columns(rows)
                continue
            made = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
            yield made if kept is None else made.filter(kept)

    def readable_batches(self, add: AddFile) -> Iterator[pa.RecordBatch]:
        """The same where there is no Spark: a file that takes it is an error for users."""
        try:
            yield from self.batches(add)
        except NeedsSpark as reason:
            raise refusal(add, reason) from reason

    def _columns(self, file: pq.ParquetFile, add: AddFile) -> list[FileColumn | pa.Scalar]:
        """In the order of ``_fields``: how to make a column, or its value in the whole file."""
        stored = iter(self._stored.columns(file.schema_arrow, FileCalendar.of(file.metadata)))
        mode, zone = self.metadata.column_mapping_mode, partition_zone(self.metadata)
        found: list[FileColumn | pa.Scalar] = []
        for one in self._fields:
            if one.name.casefold() not in self._partitions:
                found.append(next(stored))
                continue
            key = one.name if mode is ColumnMappingMode.NONE else physical_name(one)
            text = pa.array([add.partition_values.get(key)], pa.string())
            value = partition_array(text, one.type, zone=zone)
            length = char_length(one) if self.pads_chars else None
            if length is not None:
                value = pc.utf8_rpad(value, width=length, padding=" ")
            found.append(value[0])
        return found

    def _groups(self, file: pq.ParquetFile, columns: list[FileColumn | pa.Scalar]) -> Sequence[int]:
        if self.where is None:
            return range(file.metadata.num_row_groups)
        named = {
            f.name: c
            for f, c in zip(self._fields, columns, strict=True)
            if isinstance(c, FileColumn)
        }
        return matching_row_groups(file.metadata, self.where, named)

    def _hidden(self, add: AddFile) -> Any:
        if add.deletion_vector is None:
            return None
        return positions_array(read_dv(self.store, add.deletion_vector))

    def _kept(self, arrays: list[pa.Array], hidden: Any, start: int, rows: int) -> pa.Array | None:
        """Which rows stay; None for all of them."""
        mask = None if hidden is None else _visible(hidden, start, rows)
        if self.where is None:
            return mask
        named = dict(zip((f.name for f in self._fields), arrays, strict=True))
        values = {path: _at(named[path[0]], path[1:]) for path in self.where.columns()}
        matched = pc.fill_null(evaluate_on(self.where, values, rows), False)
        return matched if mask is None else pc.and_(matched, mask)


def positions_array(rows: Positions) -> Any:
    """Positions of a bitmap as a sorted array."""
    return np.frombuffer(rows.to_array(), dtype=np.uint64).astype(np.int64)


def _read(
    file: pq.ParquetFile, groups: Sequence[int], columns: list[str], add: AddFile
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches of row groups, each with the position of its first row in the file."""
    sizes = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
    starts = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))).tolist()
    if not columns:
        for group in groups:
            yield starts[group], _without_columns(sizes[group])
        return
    try:
        for group in groups:
            at = starts[group]
            for batch in file.iter_batches(
                BATCH_ROWS, row_groups=[group], columns=columns, use_threads=False
            ):
                yield at, batch
                at += batch.num_rows
            if at != starts[group + 1]:
                raise damaged_file(add, f"row group {group} does not have the rows it says")
    except (pa.ArrowException, OSError) as error:
        raise damaged_file(add, str(error).splitlines()[0] if str(error) else "") from error


def _without_columns(rows: int) -> pa.RecordBatch:
    """Rows of which nothing is read but that they are there."""
    one = pa.RecordBatch.from_arrays([pa.nulls(rows)], names=[""])
    return one.select([])


def _visible(hidden: Any, start: int, rows: int) -> pa.Array | None:
    low, high = np.searchsorted(hidden, [start, start + rows])
    if low == high:
        return None
    mask = np.ones(rows, dtype=bool)
    mask[hidden[low:high] - start] = False
    return pa.array(mask)


def _at(array: pa.Array, path: ColumnPath) -> pa.Array:
    for name in path:
        # Null where the struct is, whatever is written below it.
        array = pc.struct_field(array, name)
    return array


@dataclass(frozen=True, slots=True)
class _RowIds:
    """Row ids and commit versions: those that rows carry, else those that follow from the file."""

    makers: tuple[Callable[[pa.RecordBatch, int], pa.Array], ...] = ()
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, file: pq.ParquetFile, add: AddFile, columns: tuple[str, str] | None) -> _RowIds:
        if columns is None:
            return cls()
        first, version = add.base_row_id, add.default_row_commit_version
        if first is None or version is None:
            raise damaged_file(add, "it has no row ids although row tracking is on")
        there = set(file.schema_arrow.names)
        id_name, version_name = (name if name in there else None for name in columns)

        def number(batch: pa.RecordBatch, start: int) -> pa.Array:
            low = first + start
            fresh = pa.array(np.arange(low, low + batch.num_rows, dtype=np.int64))
            return fresh if id_name is None else pc.coalesce(batch.column(id_name), fresh)

        def made_in(batch: pa.RecordBatch, start: int) -> pa.Array:
            del start
            default = pa.scalar(version, pa.int64())
            if version_name is None:
                return pa.repeat(default, batch.num_rows)
            return pc.fill_null(batch.column(version_name), default)

        names = tuple(name for name in (id_name, version_name) if name is not None)
        return cls((number, made_in), names)

    def arrays(self, batch: pa.RecordBatch, start: int) -> list[pa.Array]:
        """The two columns of a batch that begins at a position; none where they are not wanted."""
        return [make(batch, start) for make in self.makers]
