"""Variants as Spark's Arrow has them: a struct with a mark, its parts in another order than files.

A batch of another layout is not refused by Spark; it fails within the JVM.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["with_variants"]


def with_variants(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with the layout of ``schema``, which is that of Spark for the same columns."""
    if not any(_has_variant(field.type) for field in schema):
        return batch
    arrays = [
        _in_layout(array, field.type) if _has_variant(field.type) else array
        for array, field in zip(batch.columns, schema, strict=True)
    ]
    names = [field.name for field in schema]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def _is_variant(kind: pa.DataType) -> bool:
    return pa.types.is_struct(kind) and any(
        (field.metadata or {}).get(b"variant") == b"true" for field in kind
    )


def _has_variant(kind: pa.DataType) -> bool:
    if _is_variant(kind):
        return True
    return pa.types.is_nested(kind) and any(
        _has_variant(kind.field(number).type) for number in range(kind.num_fields)
    )


def _in_layout(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if not _has_variant(kind):
        return array
    if pa.types.is_struct(kind):
        # By name: only the parts of a variant change their places.
        children = [_in_layout(pc.struct_field(array, f.name), f.type) for f in kind]
        children = [
            child if field.nullable or not child.null_count else child.fill_null(b"")
            for child, field in zip(children, kind, strict=True)
        ]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=array.is_null())
    if array.offset:
        array = pa.concat_arrays([array, array.slice(0, 0)])
    if pa.types.is_map(kind):
        entries = pa.StructArray.from_arrays(
            [_in_layout(array.keys, kind.key_type), _in_layout(array.items, kind.item_type)],
            fields=[kind.key_field, kind.item_field],
        )
    else:
        entries = _in_layout(array.values, kind.value_type)
    return pa.Array.from_buffers(
        kind, len(array), array.buffers()[:2], array.null_count, 0, [entries]
    )
