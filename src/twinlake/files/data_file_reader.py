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

from twinlake.files.column_projection import ColumnProjection, FileColumn, narrowed
from twinlake.files.file_calendar import FileCalendar
from twinlake.files.file_part import FilePart, without_columns
from twinlake.files.parquet_input import ParquetInput
from twinlake.files.row_group_filter import matching_row_groups
from twinlake.files.row_ids import RowIds
from twinlake.files.unreadable import NeedsSpark, refusal
from twinlake.files.view_types import plain_batch
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
    select_fields,
    to_arrow,
)
from twinlake.schema.predicates import evaluate_on

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow.parquet as pq
    from pyroaring import AbstractBitMap64 as Positions

    from twinlake.actions import AddFile
    from twinlake.files.column_projection import Shape
    from twinlake.protocol import Metadata
    from twinlake.schema import ColumnPath
    from twinlake.schema.predicates import Expr
    from twinlake.storage import Store

__all__ = ["ROW_COMMIT_VERSION", "ROW_ID", "ROW_INDEX", "DataFileReader", "positions_array"]

ROW_INDEX: Final = "__twinlake_row"
ROW_ID: Final = "__twinlake_row_id"
ROW_COMMIT_VERSION: Final = "__twinlake_row_version"

_VARIANT: Final = {"ARROW:extension:name": VARIANT_EXTENSION, "ARROW:extension:metadata": ""}


@dataclass(frozen=True, kw_only=True)
class DataFileReader:
    """How the rows of a table's files are read: which columns of which version, and which rows."""

    store: Store
    metadata: Metadata
    columns: tuple[ColumnPath, ...] | None = None
    """The columns wanted, or fields of them, in their order; None for all of the table."""
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
    def _paths(self) -> tuple[ColumnPath, ...]:
        if self.columns is not None:
            return self.columns
        return tuple((one.name,) for one in self.metadata.schema)

    @cached_property
    def _shown(self) -> tuple[StructField, ...]:
        return (*select_fields(self.metadata.schema, self._paths), *self.extra)

    @cached_property
    def _fields(self) -> tuple[StructField, ...]:
        """The columns wanted, then those that only the predicate looks at, as they are read."""
        needed = [] if self.where is None else sorted(self.where.columns())
        read = select_fields(self.metadata.schema, (*self._paths, *needed))
        own = len(self._shown) - len(self.extra)
        return (*read[:own], *self.extra, *read[own:])

    @cached_property
    def shapes(self) -> tuple[Shape | None, ...]:
        """What takes from the columns again what only the predicate looks at."""
        kinds = zip(to_arrow(Struct(self._fields)), to_arrow(Struct(self._shown)), strict=False)
        return tuple(narrowed(read.type, shown.type) for read, shown in kinds)

    @cached_property
    def read_names(self) -> tuple[str, ...]:
        """The names of the columns that are read, those wanted first."""
        return tuple(one.name for one in self._fields)

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
        shown = zip(self._shown, to_arrow(Struct(self._shown)), strict=True)
        fields = [
            field.with_metadata(_VARIANT) if one.type == VARIANT else field for one, field in shown
        ]
        if self.row_ids is not None:
            fields += [pa.field(name, pa.int64()) for name in (ROW_ID, ROW_COMMIT_VERSION)]
        if self.positions:
            fields.append(pa.field(ROW_INDEX, pa.int64()))
        return pa.schema(fields)

    def batches(self, add: AddFile) -> Iterator[pa.RecordBatch]:
        """The rows that no deletion vector hides, in the order of the file."""
        for part in self.parts(add):
            yield from part.batches()

    def parts(self, add: AddFile) -> list[FilePart]:
        """The row groups that may hold such rows; each can be read without the others."""
        file = ParquetInput.of(self.store, add)
        columns = self._columns(file, add)
        ids = RowIds.of(file.schema, add, self.row_ids)
        wanted = {name for c in columns if isinstance(c, FileColumn) for name in c.read}
        names = tuple(dict.fromkeys((*sorted(wanted), *ids.names)))
        dictionaries = tuple(file.dictionaries(names))
        assembly = _Assembly(self, columns, ids, self._hidden(add))
        sizes = [file.footer.row_group(i).num_rows for i in range(file.footer.num_row_groups)]
        starts = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))).tolist()
        groups = self._groups(file.footer, columns)
        return [FilePart(file, n, starts[n], names, dictionaries, assembly) for n in groups]

    def readable_parts(self, add: AddFile) -> list[FilePart]:
        """The same where there is no Spark: a file that takes it is an error for users."""
        try:
            return self.parts(add)
        except NeedsSpark as reason:
            raise refusal(add, reason) from reason

    def readable_batches(self, add: AddFile) -> Iterator[pa.RecordBatch]:
        """The same where there is no Spark: a file that takes it is an error for users."""
        try:
            yield from self.batches(add)
        except NeedsSpark as reason:
            raise refusal(add, reason) from reason

    def _columns(self, file: ParquetInput, add: AddFile) -> list[FileColumn | pa.Scalar]:
        """In the order of ``_fields``: how to make a column, or its value in the whole file."""
        stored = iter(self._stored.columns(file.schema, FileCalendar.of(file.footer)))
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

    def _groups(
        self, footer: pq.FileMetaData, columns: list[FileColumn | pa.Scalar]
    ) -> Sequence[int]:
        if self.where is None:
            return range(footer.num_row_groups)
        named = {
            f.name: c
            for f, c in zip(self._fields, columns, strict=True)
            if isinstance(c, FileColumn)
        }
        return matching_row_groups(footer, self.where, named)

    def _hidden(self, add: AddFile) -> Any:
        if add.deletion_vector is None:
            return None
        return positions_array(read_dv(self.store, add.deletion_vector))


@dataclass(frozen=True, slots=True)
class _Assembly:
    """Makes the rows wanted of the batches of one file."""

    reader: DataFileReader
    columns: list[FileColumn | pa.Scalar]
    ids: RowIds
    hidden: Any
    """Positions that a deletion vector hides, sorted; None without one."""

    def __call__(self, batch: pa.RecordBatch, start: int) -> pa.RecordBatch:
        """The rows that are wanted; chosen first, so that no value of the others is made."""
        reader, rows = self.reader, _Rows(plain_batch(batch), start)
        if self.hidden is not None:
            rows = rows.kept(_visible(self.hidden, start, batch.num_rows))
        if reader.where is not None:
            rows = rows.kept(self._matches(rows.batch, reader.where))
        arrays = [
            _values(column, rows.batch) if shape is None else shape(_values(column, rows.batch))
            for column, shape in zip(self.columns, reader.shapes, strict=False)
        ]
        if reader.row_ids is not None:
            arrays += self.ids.arrays(rows.batch, rows.positions)
        if reader.positions:
            arrays.append(pa.array(rows.positions))
        if not arrays:
            return without_columns(rows.batch.num_rows)
        return pa.RecordBatch.from_arrays(arrays, schema=reader.schema)

    def _matches(self, batch: pa.RecordBatch, where: Expr) -> pa.BooleanArray:
        columns = dict(zip(self.reader.read_names, self.columns, strict=True))
        arrays = {path[0]: _values(columns[path[0]], batch) for path in where.columns()}
        values = {path: _at(arrays[path[0]], path[1:]) for path in where.columns()}
        return pc.fill_null(evaluate_on(where, values, batch.num_rows), False)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of a file as they are stored in it, and where they are."""

    batch: pa.RecordBatch
    start: int
    masks: tuple[pa.BooleanArray, ...] = ()
    """Which rows stayed, of those that were read and then of those left."""

    def kept(self, mask: pa.BooleanArray | None) -> _Rows:
        """The rows for which the mask is true; None keeps all."""
        if mask is None or mask.true_count == len(mask):
            return self
        return _Rows(_filtered(self.batch, mask), self.start, (*self.masks, mask))

    @property
    def positions(self) -> Any:
        """The position of each row in the file."""
        count = len(self.masks[0]) if self.masks else self.batch.num_rows
        found = np.arange(self.start, self.start + count, dtype=np.int64)
        for mask in self.masks:
            found = found[mask.to_numpy(zero_copy_only=False)]
        return found


def _filtered(batch: pa.RecordBatch, mask: pa.BooleanArray) -> pa.RecordBatch:
    if batch.num_columns == 0:
        return without_columns(mask.true_count)
    # Each by itself: for a whole batch Arrow takes row by row, at twice the time.
    return pa.RecordBatch.from_arrays(
        [column.filter(mask) for column in batch.columns], schema=batch.schema
    )


def _values(column: FileColumn | pa.Scalar, batch: pa.RecordBatch) -> pa.Array:
    if isinstance(column, FileColumn):
        return column.values(batch)
    return pa.repeat(column, batch.num_rows)


def positions_array(rows: Positions) -> Any:
    """Positions of a bitmap as a sorted array."""
    return np.frombuffer(rows.to_array(), dtype=np.uint64).astype(np.int64)


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
