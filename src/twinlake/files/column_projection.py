"""The columns of a table found in one file, and its values in the types of the table.

Columns are found by field id in mapping mode ``id``, else by the name that files have for them
(Delta protocol, Reader Requirements for Column Mapping). What a file lacks is null, or the value
that the column had when it was added. Types that were widened since the file was written are cast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from twinlake.files.file_calendar import FileCalendar
from twinlake.files.julian_calendar import rebased
from twinlake.files.unreadable import NeedsSpark
from twinlake.files.view_types import plain_type
from twinlake.schema import (
    EXISTS_DEFAULT_KEY,
    PARQUET_FIELD_ID,
    ColumnMappingMode,
    ColumnPath,
    Struct,
    StructField,
    char_lengths,
    char_type,
    physical_schema,
    to_arrow,
)

__all__ = ["ColumnProjection", "FileColumn", "Shape", "narrowed"]

Shape = Callable[[pa.Array], pa.Array]

_TYPED_VALUE: Final = "typed_value"
_SHREDDED: Final = "a variant is shredded, and only Spark puts the parts of its value together"


@dataclass(frozen=True, slots=True)
class FileColumn:
    """How one column of the table is made from a file."""

    name: str | None
    """The column of the file; None where it has none."""
    shape: Shape | None
    """What makes its values those of the table; None where they are."""
    kind: pa.DataType
    absent: Any = None
    """The value where the file has no such column."""
    read: tuple[str, ...] = ()
    """What to ask of the file: the column, or those of its fields that are wanted."""

    def values(self, batch: pa.RecordBatch) -> pa.Array:
        """The values of a batch of the file."""
        if self.name is None:
            if self.absent is None:
                return pa.nulls(batch.num_rows, self.kind)
            return pa.repeat(pa.scalar(self.absent, self.kind), batch.num_rows)
        found = batch.column(self.name)
        if pa.types.is_dictionary(found.type):
            found = found.dictionary_decode()
        return found if self.shape is None else self.shape(found)


@dataclass(frozen=True)
class ColumnProjection:
    """Columns of a table, to be found in files."""

    fields: tuple[StructField, ...]
    """Logical, in the order in which they are wanted."""
    mode: ColumnMappingMode
    pads_chars: bool = True
    """Whether CHAR values are filled up with spaces, as Spark's reader does."""

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns as users see them."""
        return to_arrow(Struct(self.fields))

    @cached_property
    def _stored(self) -> pa.Schema:
        has_ids = self.mode is not ColumnMappingMode.NONE
        return to_arrow(physical_schema(Struct(self.fields), self.mode), field_ids=has_ids)

    def columns(self, file: pa.Schema, calendar: FileCalendar) -> list[FileColumn]:
        """How each column is made from a file with that schema."""
        by_id = self.mode is ColumnMappingMode.ID and all(_id_of(f) is not None for f in file)
        file = pa.schema([field.with_type(plain_type(field.type)) for field in file])
        # A dot in a name would make it look like a field of a struct.
        walk = _Walk(by_id, calendar, prunes=not any("." in name for name in _names(file)))
        return [
            self._column(walk, list(file), field, stored, shown)
            for field, stored, shown in zip(self.fields, self._stored, self.schema, strict=True)
        ]

    def _column(
        self,
        walk: _Walk,
        file: Sequence[pa.Field],
        field: StructField,
        stored: pa.Field,
        shown: pa.Field,
    ) -> FileColumn:
        position = _position(file, stored, by_id=walk.by_id)
        if position is None:
            return FileColumn(None, None, shown.type, _existence_default(field))
        pads = char_lengths(field) if self.pads_chars and char_type(field) else {}
        found = file[position]
        is_encoded = pa.types.is_dictionary(found.type)
        found_type = found.type.value_type if is_encoded else found.type
        kind, below = walk.needed(found_type, stored.type)
        shape = walk.shape(kind, stored.type, shown.type, (), pads)
        read = tuple(".".join((found.name, *path)) for path in below)
        return FileColumn(found.name, shape, shown.type, read=read)


def _existence_default(field: StructField) -> Any:
    text = field.metadata.get(EXISTS_DEFAULT_KEY)
    if text is None:
        return None
    from twinlake.schema.predicates import parse_constant

    value = parse_constant(str(text), field.type)
    if value is None and str(text).strip().lower() != "null":
        raise NeedsSpark(f"the value of {field.name} in older files is the expression {text}")
    return value


def _position(fields: Sequence[pa.Field], wanted: pa.Field, *, by_id: bool) -> int | None:
    """Where a field is among others; None if it is missing."""
    number = _id_of(wanted)
    if by_id and number is not None:
        found = [i for i, field in enumerate(fields) if _id_of(field) == number]
    else:
        found = [i for i, field in enumerate(fields) if field.name == wanted.name]
        if not found:
            folded = wanted.name.casefold()
            found = [i for i, field in enumerate(fields) if field.name.casefold() == folded]
    if len(found) > 1:
        raise NeedsSpark(f"it has {wanted.name} more than once")
    return found[0] if found else None


def _names(fields: Iterable[pa.Field]) -> Iterator[str]:
    """The names of fields and of all that is in structs below them."""
    for field in fields:
        yield field.name
        if pa.types.is_struct(field.type):
            yield from _names(field.type)


def _id_of(field: pa.Field) -> int | None:
    value = (field.metadata or {}).get(PARQUET_FIELD_ID)
    return None if value is None else int(value)


@dataclass(frozen=True, slots=True)
class _Walk:
    """Goes down the types of the file, of the table as files spell it, and as users see it.

    Shapes are None wherever values are the wanted ones already, at every level.
    """

    by_id: bool
    calendar: FileCalendar
    prunes: bool = False
    """Whether fields of structs that are not wanted may be left in the file."""

    def needed(
        self, found: pa.DataType, stored: pa.DataType
    ) -> tuple[pa.DataType, list[ColumnPath]]:
        """The part of a type of the file that is wanted, and the paths to it."""
        is_struct = pa.types.is_struct(found) and pa.types.is_struct(stored)
        if not (self.prunes and is_struct) or _is_variant(stored):
            return found, [()]
        members = list(found)
        wanted = {
            place: inner.type
            for inner in stored
            if (place := _position(members, inner, by_id=self.by_id)) is not None
        }
        if not wanted:
            # Something has to be read, or nobody knows where the struct is null.
            wanted = {0: members[0].type}
        kept, paths, whole = [], list[ColumnPath](), len(wanted) == len(members)
        for place, member in enumerate(members):
            if place not in wanted:
                continue
            kind, below = self.needed(member.type, wanted[place])
            kept.append(member.with_type(kind))
            paths += [(member.name, *path) for path in below]
            whole = whole and below == [()]
        return (found, [()]) if whole else (pa.struct(kept), paths)

    def shape(
        self,
        found: pa.DataType,
        stored: pa.DataType,
        shown: pa.DataType,
        path: ColumnPath,
        pads: dict[ColumnPath, int],
    ) -> Shape | None:
        if pa.types.is_dictionary(found):
            found = found.value_type
            inner = self.shape(found, stored, shown, path, pads)
            return lambda array: _applied(inner, array.dictionary_decode())
        kinds = pa.types
        if not kinds.is_nested(shown):
            return self._leaf(found, shown, pads.get(path))
        if kinds.is_struct(shown) and kinds.is_struct(found):
            return self._struct(found, stored, shown, path, pads)
        if kinds.is_map(shown) and kinds.is_map(found):
            key = self.shape(found.key_type, stored.key_type, shown.key_type, (*path, "key"), pads)
            item = self.shape(
                found.item_type, stored.item_type, shown.item_type, (*path, "value"), pads
            )
            unchanged = key is None and item is None and found == shown
            return None if unchanged else lambda array: _as_map(array, shown, key, item)
        if kinds.is_list(shown) and (kinds.is_list(found) or kinds.is_large_list(found)):
            inner = self.shape(
                found.value_type, stored.value_type, shown.value_type, (*path, "element"), pads
            )
            unchanged = inner is None and found == shown
            return None if unchanged else lambda array: _as_list(array, shown, inner)
        raise _mismatch(found, shown)

    def _struct(
        self,
        found: pa.StructType,
        stored: pa.StructType,
        shown: pa.StructType,
        path: ColumnPath,
        pads: dict[ColumnPath, int],
    ) -> Shape | None:
        members = list(found)
        if _is_variant(stored) and any(field.name == _TYPED_VALUE for field in members):
            raise NeedsSpark(_SHREDDED)
        positions = [_position(members, field, by_id=self.by_id) for field in stored]
        shapes = [
            None
            if place is None
            else self.shape(members[place].type, inner.type, outer.type, (*path, outer.name), pads)
            for place, inner, outer in zip(positions, stored, shown, strict=True)
        ]
        if found == shown and positions == list(range(len(members))) and not any(shapes):
            return None

        def change(array: pa.Array) -> pa.Array:
            children = [
                pa.nulls(len(array), field.type)
                if place is None
                else _applied(shape, array.field(place))
                for place, shape, field in zip(positions, shapes, shown, strict=True)
            ]
            mask = array.is_null() if array.null_count else None
            if not children:
                return pa.array([{} if valid else None for valid in array.is_valid()], shown)
            return pa.StructArray.from_arrays(children, fields=list(shown), mask=mask)

        return change

    def _leaf(self, found: pa.DataType, shown: pa.DataType, pad: int | None) -> Shape | None:
        kinds = pa.types
        if kinds.is_timestamp(shown):
            return self._instant(found, shown)
        if kinds.is_date32(shown):
            if not kinds.is_date32(found):
                raise _mismatch(found, shown)
            return rebased if self.calendar.dates else None
        if pad is not None:
            return lambda array: pc.utf8_rpad(array.cast(shown), width=pad, padding=" ")
        if found == shown:
            return None
        if not _may_cast(found, shown):
            raise _mismatch(found, shown)
        return lambda array: array.cast(shown)

    def _instant(self, found: pa.DataType, shown: pa.DataType) -> Shape | None:
        kinds = pa.types
        if kinds.is_date32(found) and shown.tz is None:
            # A widened column: the day at midnight.
            if self.calendar.dates:
                return lambda array: rebased(array).cast(shown)
            return lambda array: array.cast(shown)
        if not kinds.is_timestamp(found) or (found.tz is not None and shown.tz is None):
            raise _mismatch(found, shown)
        # INT96 says nothing of a zone: its instants are those of UTC.
        is_legacy = self.calendar.int96 if found.tz is None else self.calendar.instants
        moves = shown.tz is not None and is_legacy
        if found == shown and not moves:
            return None

        def change(array: pa.Array) -> pa.Array:
            if found.unit == "ns":
                array = pc.floor_temporal(array.view(pa.timestamp("ns")), unit="microsecond")
            # A view: a cast from one zone to another would look at clocks.
            micros = array.cast(pa.timestamp("us", array.type.tz)).view(shown)
            return self.calendar.moved(micros) if moves else micros

        return change


def narrowed(read: pa.DataType, shown: pa.DataType) -> Shape | None:
    """What takes from values the fields that are not wanted after all; None if there are none."""
    return None if read == shown else _Walk(False, FileCalendar()).shape(read, shown, shown, (), {})


def _applied(shape: Shape | None, array: pa.Array) -> pa.Array:
    return array if shape is None else shape(array)


_INTEGERS: Final = (pa.types.is_integer,)
_FLOATS: Final = (pa.types.is_floating,)
_DECIMALS: Final = (pa.types.is_decimal,)
_TEXTS: Final = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
)
#: Which values are values of another type too: it was widened, or files are annotated otherwise.
_CASTS: Final = (
    (_INTEGERS, (*_INTEGERS, *_FLOATS, *_DECIMALS)),
    (_FLOATS, _FLOATS),
    (_DECIMALS, _DECIMALS),
    ((*_TEXTS, pa.types.is_fixed_size_binary), _TEXTS),
    ((pa.types.is_null,), (lambda _kind: True,)),
)


def _may_cast(found: pa.DataType, shown: pa.DataType) -> bool:
    return any(
        any(test(found) for test in given) and any(test(shown) for test in wanted)
        for given, wanted in _CASTS
    )


def _is_variant(kind: pa.StructType) -> bool:
    return [field.name for field in kind] == ["metadata", "value"] and all(
        pa.types.is_binary(field.type) and not field.nullable for field in kind
    )


def _mismatch(found: pa.DataType, shown: pa.DataType) -> NeedsSpark:
    return NeedsSpark(f"it has {found} where the table has {shown}")


def _whole(array: pa.Array) -> pa.Array:
    """The array without an offset: values below are then those of the whole buffers."""
    return pa.concat_arrays([array, array.slice(0, 0)]) if array.offset else array


def _as_list(array: pa.Array, kind: pa.DataType, inner: Shape | None) -> pa.Array:
    if pa.types.is_large_list(array.type):
        array = array.cast(pa.list_(array.type.value_type))
    array = _whole(array)
    values = _applied(inner, array.values)
    return pa.Array.from_buffers(
        kind, len(array), array.buffers()[:2], array.null_count, 0, [values]
    )


def _as_map(array: pa.Array, kind: pa.MapType, key: Shape | None, item: Shape | None) -> pa.Array:
    array = _whole(array)
    keys, items = _applied(key, array.keys), _applied(item, array.items)
    pairs = pa.struct([kind.key_field, kind.item_field])
    entries = pa.Array.from_buffers(pairs, len(keys), [None], 0, 0, [keys, items])
    return pa.Array.from_buffers(
        kind, len(array), array.buffers()[:2], array.null_count, 0, [entries]
    )
