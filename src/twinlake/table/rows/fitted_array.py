"""Arrow arrays of any type as arrays of a column's type, with every value the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from twinlake.errors import Code, UserError
from twinlake.schema import render_path

if TYPE_CHECKING:
    from twinlake.schema import ColumnPath

__all__ = ["fit_array"]

_CLOCKS: Final = "one is an instant, the other a local time"
_ZONE: Final = "Give the values a time zone, or make the column a TIMESTAMP_NTZ."
_NO_ZONE: Final = "Take the time zone from the values, or make the column a TIMESTAMP."
_NUMBERS: Final = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
_TEXTS: Final = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_BYTES: Final = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
)
#: Values pass between types of one family, as long as they stay what they are.
_FAMILIES: Final = (_NUMBERS, _TEXTS, _BYTES, (pa.types.is_date,), (pa.types.is_boolean,))


#: Of the largest value of 64 bits.
_INTEGER_DIGITS: Final = 20


def fit_array(array: pa.Array, kind: pa.DataType, path: ColumnPath) -> pa.Array:
    """The values as that type: members of structs by name, numbers and times without a loss."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    given, kinds = array.type, pa.types
    if given == kind:
        return array
    if kinds.is_dictionary(given):
        return fit_array(array.dictionary_decode(), kind, path)
    if kinds.is_null(given):
        return pa.nulls(len(array), kind)
    if kinds.is_struct(kind) and kinds.is_struct(given):
        return _fit_struct(array, kind, path)
    if kinds.is_map(kind) and kinds.is_map(given):
        return _fit_map(array, kind, path)
    if kinds.is_list(kind) and not kinds.is_map(given) and hasattr(given, "value_field"):
        return _fit_list(array, kind, path)
    return _fit_leaf(array, kind, path)


def _fit_struct(array: pa.StructArray, kind: pa.StructType, path: ColumnPath) -> pa.Array:
    by_name = {array.type.field(i).name.casefold(): i for i in range(array.type.num_fields)}
    children = []
    for field in kind:
        place = by_name.get(field.name.casefold())
        children.append(
            pa.nulls(len(array), field.type)
            if place is None
            else fit_array(array.field(place), field.type, (*path, field.name))
        )
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)


def _fit_list(array: pa.Array, kind: pa.DataType, path: ColumnPath) -> pa.Array:
    if not pa.types.is_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    values = fit_array(array.flatten(), kind.value_type, (*path, "element"))
    # Flattened, so offsets count from the first value again, and null lists are empty.
    lengths = pc.fill_null(pc.list_value_length(array), 0)
    offsets = _offsets(lengths)
    mask = array.is_null() if array.null_count else None
    return pa.ListArray.from_arrays(offsets, values, type=kind, mask=mask)


def _fit_map(array: pa.MapArray, kind: pa.MapType, path: ColumnPath) -> pa.Array:
    as_list = array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))
    entries = as_list.flatten()
    keys = fit_array(entries.field(0), kind.key_type, (*path, "key"))
    items = fit_array(entries.field(1), kind.item_type, (*path, "value"))
    lengths = pc.fill_null(pc.list_value_length(as_list), 0)
    mask = array.is_null() if array.null_count else None
    return pa.MapArray.from_arrays(_offsets(lengths), keys, items, type=kind, mask=mask)


def _offsets(lengths: pa.Array) -> pa.Array:
    return pa.concat_arrays(
        [pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())]
    )


def _fit_leaf(array: pa.Array, kind: pa.DataType, path: ColumnPath) -> pa.Array:
    given, kinds = array.type, pa.types
    if kinds.is_timestamp(kind) and kinds.is_timestamp(given):
        if (given.tz is None) != (kind.tz is None):
            raise _misfit(array, kind, path, _CLOCKS, _ZONE if given.tz is None else _NO_ZONE)
        return _cast(array, pa.timestamp("us", given.tz), path).cast(kind)
    for family in _FAMILIES:
        if any(test(given) for test in family) and any(test(kind) for test in family):
            return _cast(array, kind, path)
    if kinds.is_null(kind):
        raise _misfit(array, kind, path, "a void column holds nulls only")
    raise _misfit(array, kind, path, "no value of one type is one of the other")


def _cast(array: pa.Array, kind: pa.DataType, path: ColumnPath) -> pa.Array:
    if pa.types.is_floating(array.type) and pa.types.is_floating(kind):
        return array.cast(kind, safe=False)
    given = array
    try:
        if pa.types.is_integer(array.type) and pa.types.is_decimal(kind):
            # Arrow asks for room for every value of the type; here those that there are count.
            given = array.cast(pa.decimal256(_INTEGER_DIGITS + kind.scale, kind.scale))
        return given.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise _misfit(array, kind, path, str(error).splitlines()[0]) from error


def _misfit(
    array: pa.Array,
    kind: pa.DataType,
    path: ColumnPath,
    why: str,
    fix: str = "Cast or correct the column before writing.",
) -> UserError:
    shown = render_path(path)
    return UserError(
        Code.SCHEMA_EVOLUTION,
        f"Values of type {array.type} cannot be stored in column {shown}, which is {kind}.",
        why=why,
        fix=fix,
        delta_class="DELTA_CAST_OVERFLOW_IN_TABLE_WRITE",
        fields={"column": shown, "from": str(array.type), "to": str(kind)},
    )
