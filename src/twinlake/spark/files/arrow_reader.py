"""Rows of one data file as Arrow batches of the table's columns, without Spark.

For operations that copy whole files: no row goes through the JVM. Files that only Spark's reader
reads right (legacy calendars, int96 timestamps) are refused with ``NeedsSpark``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from twinlake.errors import Code, CorruptTable, how_to_restore
from twinlake.log import read_dv
from twinlake.schema import PARQUET_FIELD_ID
from twinlake.storage import OS_ERRORS, OnDisk, os_error, resolve

if TYPE_CHECKING:
    from twinlake.actions import AddFile
    from twinlake.storage import Store

__all__ = ["ArrowFileReader", "NeedsSpark"]

_BATCH_ROWS: Final = 1 << 17
_WHOLE_OBJECT: Final = 64 << 20
_SPARK_VERSION: Final = b"org.apache.spark.version"
#: What Spark leaves in files whose days and instants are not those of the usual calendar.
_OLD_CALENDAR: Final = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_FIRST_NEW_CALENDAR: Final = 3

Shape = Callable[[pa.Array], pa.Array]


class NeedsSpark(Exception):
    """Why a file can only be read by Spark's own reader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowFileReader:
    """How the rows of a table's files are read: which columns, found how."""

    store: Store
    columns: pa.Schema
    """The columns to read as files spell them, with ids, in the order in which they are wanted."""
    by_id: bool
    """Whether columns are found by id; else by name."""
    row_ids: tuple[str, str] | None = None
    """The hidden columns for row ids and commit versions, where both are wanted behind the rest."""

    def batches(self, add: AddFile) -> Iterator[pa.RecordBatch]:
        """The rows that no deletion vector hides, in the order of the file."""
        file = self._open(add)
        self._check(file, add)
        shapes = [self._shape(file.schema_arrow, field) for field in self.columns]
        ids = self._row_id_shapes(file.schema_arrow, add)
        hidden = self._hidden(add)
        start = 0
        for batch in file.iter_batches(_BATCH_ROWS, use_threads=False):
            rows = batch.num_rows
            arrays = [shape(batch) for shape in shapes]
            arrays += [shape(batch, start) for shape in ids]
            made = pa.RecordBatch.from_arrays(arrays, names=[str(i) for i in range(len(arrays))])
            yield made if hidden is None else _visible(made, hidden, start)
            start += rows
        if start != file.metadata.num_rows:
            raise _damaged(add, f"{start} rows came out of {file.metadata.num_rows}")

    def _open(self, add: AddFile) -> pq.ParquetFile:
        store, key = resolve(self.store, add.path)
        try:
            if isinstance(store, OnDisk):
                return pq.ParquetFile(pa.memory_map(store.local_path(key)))
            if add.size > _WHOLE_OBJECT:
                raise NeedsSpark(f"{add.path} is too large to be held in memory")
            return pq.ParquetFile(pa.BufferReader(store.read(key)))
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.errno in OS_ERRORS:
                # The file may be sound: this process may not read it.
                what = f"Could not read {key!r} in {store.url}."
                raise os_error(error, what, {"key": key, "store": store.url}) from error
            raise _damaged(add, str(error).splitlines()[0] if str(error) else "") from error

    def _check(self, file: pq.ParquetFile, add: AddFile) -> None:
        footer = file.metadata.metadata or {}
        if any(key in footer for key in _OLD_CALENDAR):
            raise NeedsSpark(f"{add.path} counts days by the legacy calendar")
        major = footer.get(_SPARK_VERSION, b"4").split(b".")[0]
        if not major.isdigit() or int(major) < _FIRST_NEW_CALENDAR:
            raise NeedsSpark(f"{add.path} was written by an old Spark")
        schema = file.schema
        if any(schema.column(i).physical_type == "INT96" for i in range(len(schema))):
            raise NeedsSpark(f"{add.path} has int96 timestamps")
        if self.by_id and not any(_id_of(field) is not None for field in file.schema_arrow):
            raise NeedsSpark(f"{add.path} has no field ids")

    def _hidden(self, add: AddFile) -> Any:
        if add.deletion_vector is None:
            return None
        rows = read_dv(self.store, add.deletion_vector)
        return np.fromiter(rows, np.int64, len(rows))

    def _shape(self, schema: pa.Schema, wanted: pa.Field) -> Callable[[pa.RecordBatch], pa.Array]:
        position = _position(schema, wanted, by_id=self.by_id)
        if position is None:
            return lambda batch: pa.nulls(batch.num_rows, wanted.type)
        change = _changed(schema.field(position).type, wanted.type, by_id=self.by_id)
        if change is None:
            return lambda batch: batch.column(position)
        return lambda batch: change(batch.column(position))

    def _row_id_shapes(
        self, schema: pa.Schema, add: AddFile
    ) -> list[Callable[[pa.RecordBatch, int], pa.Array]]:
        if self.row_ids is None:
            return []
        first, version = add.base_row_id, add.default_row_commit_version
        if first is None or version is None:
            raise _damaged(add, "it has no row ids although row tracking is on")
        id_position, version_position = (schema.get_field_index(name) for name in self.row_ids)

        def number(batch: pa.RecordBatch, start: int) -> pa.Array:
            low = first + start
            fresh = pa.array(np.arange(low, low + batch.num_rows, dtype=np.int64))
            return fresh if id_position < 0 else pc.coalesce(batch.column(id_position), fresh)

        def made_in(batch: pa.RecordBatch, start: int) -> pa.Array:
            del start
            if version_position < 0:
                return pa.repeat(pa.scalar(version, pa.int64()), batch.num_rows)
            return pc.fill_null(batch.column(version_position), pa.scalar(version, pa.int64()))

        return [number, made_in]


def _visible(batch: pa.RecordBatch, hidden: Any, start: int) -> pa.RecordBatch:
    low, high = np.searchsorted(hidden, [start, start + batch.num_rows])
    if low == high:
        return batch
    mask = np.ones(batch.num_rows, dtype=bool)
    mask[hidden[low:high] - start] = False
    return batch.filter(pa.array(mask))


def _position(fields: Sequence[pa.Field], wanted: pa.Field, *, by_id: bool) -> int | None:
    """Where a field is among others; None if it is missing."""
    if by_id:
        number = _id_of(wanted)
        found = [i for i, field in enumerate(fields) if _id_of(field) == number]
    else:
        found = [i for i, field in enumerate(fields) if field.name == wanted.name]
        if not found:
            folded = wanted.name.casefold()
            found = [i for i, field in enumerate(fields) if field.name.casefold() == folded]
    if len(found) > 1:
        raise NeedsSpark(f"{wanted.name} is there more than once")
    return found[0] if found else None


def _id_of(field: pa.Field) -> int | None:
    value = (field.metadata or {}).get(PARQUET_FIELD_ID)
    return None if value is None else int(value)


def _changed(found: pa.DataType, wanted: pa.DataType, *, by_id: bool) -> Shape | None:
    """What gives nested values the wanted members in the wanted order; None if they have them.

    Names and the types of leaves are left to whoever writes the values.
    """
    kinds = pa.types
    if not kinds.is_nested(wanted):
        return _changed_leaf(found, wanted)
    if kinds.is_struct(wanted) and kinds.is_struct(found):
        return _changed_struct(found, wanted, by_id=by_id)
    if kinds.is_list(wanted) and kinds.is_list(found):
        inner = _changed(found.value_type, wanted.value_type, by_id=by_id)
        return None if inner is None else _in_list(inner)
    if kinds.is_map(wanted) and kinds.is_map(found):
        key = _changed(found.key_type, wanted.key_type, by_id=by_id)
        item = _changed(found.item_type, wanted.item_type, by_id=by_id)
        return None if key is None and item is None else _in_map(key, item)
    raise NeedsSpark(f"{found} where {wanted} is expected")


def _changed_leaf(found: pa.DataType, wanted: pa.DataType) -> Shape | None:
    kinds = pa.types
    if kinds.is_nested(found):
        raise NeedsSpark(f"{found} where {wanted} is expected")
    if not kinds.is_timestamp(wanted):
        return None
    if kinds.is_date32(found) and wanted.tz is None:
        # A widened column; the writer would rather not guess what a day is as an instant.
        return lambda array: array.cast(wanted)
    if not kinds.is_timestamp(found) or (found.tz is None) != (wanted.tz is None):
        raise NeedsSpark(f"{found} where {wanted} is expected")
    return None


def _changed_struct(found: pa.StructType, wanted: pa.StructType, *, by_id: bool) -> Shape | None:
    members = list(found)
    positions = [_position(members, field, by_id=by_id) for field in wanted]
    inner = [
        None if position is None else _changed(members[position].type, field.type, by_id=by_id)
        for position, field in zip(positions, wanted, strict=True)
    ]
    if positions == list(range(len(members))) and not any(inner):
        return None
    if not any(position is not None for position in positions):
        # Spark cannot tell a null struct from one of whose members none is there, nor can we.
        raise NeedsSpark(f"none of the members of {wanted} is there")

    def change(array: pa.Array) -> pa.Array:
        children = []
        for position, shape, field in zip(positions, inner, wanted, strict=True):
            child = pa.nulls(len(array), field.type) if position is None else array.field(position)
            children.append(child if shape is None else shape(child))
        names = [str(i) for i in range(len(children))]
        return pa.StructArray.from_arrays(children, names, mask=array.is_null())

    return change


def _whole(array: pa.Array) -> pa.Array:
    """The array without an offset: values below are then those of the whole buffers."""
    return pa.concat_arrays([array, array.slice(0, 0)]) if array.offset else array


def _in_list(inner: Shape) -> Shape:
    def change(array: pa.Array) -> pa.Array:
        array = _whole(array)
        values = inner(array.values)
        buffers = array.buffers()[:2]
        return pa.Array.from_buffers(
            pa.list_(values.type), len(array), buffers, array.null_count, 0, [values]
        )

    return change


def _in_map(key: Shape | None, item: Shape | None) -> Shape:
    def change(array: pa.Array) -> pa.Array:
        array = _whole(array)
        keys = array.keys if key is None else key(array.keys)
        items = array.items if item is None else item(array.items)
        kind = pa.map_(keys.type, items.type)
        pairs = pa.struct([kind.key_field, kind.item_field])
        entries = pa.Array.from_buffers(pairs, len(keys), [None], 0, 0, [keys, items])
        return pa.Array.from_buffers(
            kind, len(array), array.buffers()[:2], array.null_count, 0, [entries]
        )

    return change


def _damaged(add: AddFile, why: str) -> CorruptTable:
    return CorruptTable(
        Code.STORAGE,
        f"The data file {add.path} cannot be read.",
        why=why or "it is not a Parquet file",
        fix=f"Restore the file from a backup, or run {how_to_restore()} with an earlier version.",
        fields={"path": add.path},
    )
