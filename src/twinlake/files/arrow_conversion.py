"""Arrow columns as Spark hands them over, made into the exact types of a file without copying.

Only names, ids, nullability and time zones differ, at any depth, so buffers are taken over as
they are; whatever else differs is cast, or refused where the cast could lose something.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from twinlake.errors import Code, UserError

__all__ = ["conform_array"]


def conform_array(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The array as that type; members of structs are taken by position.

    >>> inner = pa.array([{"x": 1}], pa.struct([("x", pa.int64())]))
    >>> conform_array(inner, pa.struct([("col-1", pa.int64())])).to_pylist()
    [{'col-1': 1}]
    """
    if not pa.types.is_nested(kind):
        return array if array.type == kind else _leaf(array, kind)
    if not len(array):
        # Without elements the JVM leaves out the offsets too, and pyarrow dies of it when it is
        # asked for the size of what is around them. So no type is taken over unseen.
        return pa.array([], kind)
    if array.offset:
        # Children below are those of the whole buffers; a copy starts at the beginning again.
        array = pa.concat_arrays([array, array.slice(0, 0)])
    if pa.types.is_struct(kind) and pa.types.is_struct(array.type):
        return _struct(array, kind)
    if pa.types.is_map(kind) and pa.types.is_map(array.type):
        return _map(array, kind)
    if pa.types.is_list(kind) and pa.types.is_list(array.type):
        values = conform_array(array.values, kind.value_type)
        return _rebuilt(array, kind, array.buffers()[:2], [values])
    raise _misfit(array.type, kind)


def _leaf(array: pa.Array, kind: pa.DataType) -> pa.Array:
    given = array.type
    if pa.types.is_timestamp(kind) and (
        not pa.types.is_timestamp(given) or (given.tz is None) != (kind.tz is None)
    ):
        # Arrow would take the wall clock for an instant, or the other way round.
        raise _misfit(given, kind)
    try:
        return array.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise _misfit(given, kind) from error


def _struct(array: pa.StructArray, kind: pa.StructType) -> pa.Array:
    if array.type.num_fields != kind.num_fields:
        raise _misfit(array.type, kind)
    positions = list(range(kind.num_fields))
    if _is_variant(kind):
        # Spark has the two parts of a variant in another order than files.
        positions = [array.type.get_field_index(field.name) for field in kind]
        if min(positions) < 0:
            raise _misfit(array.type, kind)
    children = [conform_array(array.field(i), kind.field(n).type) for n, i in enumerate(positions)]
    # A null variant has null parts, which are never null in files.
    children = [
        child if field.nullable or not child.null_count else child.fill_null(b"")
        for child, field in zip(children, kind, strict=True)
    ]
    return _rebuilt(array, kind, array.buffers()[:1], children)


def _map(array: pa.MapArray, kind: pa.MapType) -> pa.Array:
    keys = conform_array(array.keys, kind.key_type)
    items = conform_array(array.items, kind.item_type)
    entries = pa.Array.from_buffers(
        pa.struct([kind.key_field, kind.item_field]), len(keys), [None], 0, 0, [keys, items]
    )
    return _rebuilt(array, kind, array.buffers()[:2], [entries])


def _rebuilt(
    array: pa.Array, kind: pa.DataType, buffers: list[Any], children: list[pa.Array]
) -> pa.Array:
    return pa.Array.from_buffers(kind, len(array), buffers, array.null_count, 0, children)


def _is_variant(kind: pa.StructType) -> bool:
    return [(f.name, f.nullable) for f in kind] == [("metadata", False), ("value", False)]


def _misfit(given: pa.DataType, wanted: pa.DataType) -> UserError:
    return UserError(
        Code.SCHEMA_INVALID,
        f"Values of type {given} cannot be written as {wanted}.",
        why="the frame does not have the types of the table",
        fix="Cast the columns of the frame to the types of the table.",
        delta_class="DELTA_FAILED_TO_MERGE_FIELDS",
        fields={"given": str(given), "wanted": str(wanted)},
    )
