"""Texts and bytes that Arrow reads as views, as the plain types that it computes with.

delta-rs and polars note such types in their Parquet files. Lists as views are left as they are:
Arrow's cast of them loses values.
"""

from __future__ import annotations

import pyarrow as pa

__all__ = ["plain_batch", "plain_type"]


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type with no views of texts or bytes in it, at any depth.

    >>> str(plain_type(pa.list_(pa.string_view())))
    'list<item: string>'
    """
    if not _has_view(kind):
        return kind
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([member.with_type(plain_type(member.type)) for member in kind])
    if pa.types.is_map(kind):
        key, item = kind.key_field, kind.item_field
        return pa.map_(key.with_type(plain_type(key.type)), item.with_type(plain_type(item.type)))
    element = kind.value_field.with_type(plain_type(kind.value_type))
    return pa.large_list(element) if pa.types.is_large_list(kind) else pa.list_(element)


def plain_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows without views."""
    if not any(_has_view(field.type) for field in batch.schema):
        return batch
    fields = [field.with_type(plain_type(field.type)) for field in batch.schema]
    return batch.cast(pa.schema(fields))


def _has_view(kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_string_view(kind) or types.is_binary_view(kind):
        return True
    if types.is_struct(kind):
        return any(_has_view(member.type) for member in kind)
    if types.is_map(kind):
        return _has_view(kind.key_type) or _has_view(kind.item_type)
    return (types.is_list(kind) or types.is_large_list(kind)) and _has_view(kind.value_type)
