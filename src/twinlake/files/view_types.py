"""Texts, bytes and lists that Arrow holds as views or as runs, as the types that it computes with.

delta-rs notes such types in its Parquet files, polars hands its texts over as views. Arrow has no
kernels to filter or to take them, and its cast of lists as views makes arrays that end the process.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["plain_array", "plain_batch", "plain_type"]


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type with no views or runs in it, at any depth.

    >>> str(plain_type(pa.list_view(pa.string_view())))
    'list<item: string>'
    """
    if not _has_view(kind):
        return kind
    types = pa.types
    if types.is_string_view(kind):
        return pa.string()
    if types.is_binary_view(kind):
        return pa.binary()
    if types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, plain_type(kind.value_type), kind.ordered)
    if types.is_struct(kind):
        return pa.struct([_plain_field(member) for member in kind])
    if types.is_map(kind):
        return pa.map_(_plain_field(kind.key_field), _plain_field(kind.item_field))
    element = _plain_field(kind.value_field)
    is_large = types.is_large_list(kind) or types.is_large_list_view(kind)
    return pa.large_list(element) if is_large else pa.list_(element)


def plain_array(array: pa.Array) -> pa.Array:
    """The same values in the plain type.

    >>> plain_array(pa.array([["a"], None], pa.list_view(pa.string_view()))).to_pylist()
    [['a'], None]
    """
    if not _has_view(array.type):
        return array
    kind, types = plain_type(array.type), pa.types
    if types.is_string_view(array.type) or types.is_binary_view(array.type):
        return array.cast(kind)
    if types.is_run_end_encoded(array.type):
        return plain_array(array.values).take(_runs(array))
    if types.is_dictionary(array.type):
        dictionary = plain_array(array.dictionary)
        return pa.DictionaryArray.from_arrays(array.indices, dictionary, ordered=kind.ordered)
    mask = array.is_null() if array.null_count else None
    if types.is_struct(kind):
        members = [plain_array(member) for member in _members(array)]
        return pa.StructArray.from_arrays(members, fields=list(kind), mask=mask)
    if types.is_map(kind):
        pairs = array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))
        keys, items = (plain_array(member) for member in _members(pairs.flatten()))
        return pa.MapArray.from_arrays(_offsets(pairs), keys, items, type=kind, mask=mask)
    offsets, values = _offsets(array), plain_array(array.flatten())
    if types.is_large_list(kind):
        return pa.LargeListArray.from_arrays(offsets.cast("int64"), values, type=kind, mask=mask)
    return pa.ListArray.from_arrays(offsets, values, type=kind, mask=mask)


def plain_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows without views and runs."""
    if not any(_has_view(field.type) for field in batch.schema):
        return batch
    schema = pa.schema([_plain_field(field) for field in batch.schema])
    return pa.RecordBatch.from_arrays([plain_array(one) for one in batch.columns], schema=schema)


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(plain_type(field.type))


def _members(array: pa.StructArray) -> list[pa.Array]:
    return [array.field(place) for place in range(array.type.num_fields)]


def _offsets(array: pa.Array) -> pa.Array:
    """Where the values of each list begin once the array is flattened: null lists are empty."""
    lengths = pc.if_else(array.is_valid(), pc.list_value_length(array), 0)
    ends = pc.cumulative_sum(lengths.cast(pa.int64()))
    return pa.concat_arrays([pa.array([0], pa.int64()), ends]).cast(pa.int32())


def _runs(array: Any) -> pa.Array:
    """For each place in an array of runs, which of its values is there."""
    numbers = pa.array(np.arange(len(array.values), dtype=np.int64))
    whole = pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(array.run_ends, numbers))
    return whole.slice(array.offset, len(array))


def _has_view(kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_struct(kind):
        return any(_has_view(member.type) for member in kind)
    if types.is_map(kind):
        return _has_view(kind.key_type) or _has_view(kind.item_type)
    if any(test(kind) for test in (types.is_list, types.is_large_list, types.is_fixed_size_list)):
        return _has_view(kind.value_type)
    if types.is_dictionary(kind):
        return _has_view(kind.value_type)
    views = (
        types.is_string_view,
        types.is_binary_view,
        types.is_list_view,
        types.is_large_list_view,
        types.is_run_end_encoded,
    )
    return any(test(kind) for test in views)
