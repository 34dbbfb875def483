"""Schemas and types to Arrow.

Timestamps are microseconds, in UTC where Delta's type is an instant. A variant is stored as a
struct of two required binaries, an interval as months or microseconds, a shape as bytes.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from twinlake._lazy_exports import lazy_module
from twinlake.errors import Code, UserError
from twinlake.schema.mapping import field_id, nested_ids, physical_name
from twinlake.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    Array,
    DataType,
    Decimal,
    Geography,
    Geometry,
    Interval,
    Map,
    Primitive,
    Struct,
    StructField,
    UserDefined,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
else:
    pa = lazy_module("pyarrow")

__all__ = ["PARQUET_FIELD_ID", "field_to_arrow", "to_arrow", "type_to_arrow"]

PARQUET_FIELD_ID: Final = b"PARQUET:field_id"
"""The key under which Arrow keeps a Parquet field id."""


def to_arrow(schema: Struct, *, field_ids: bool = False) -> pa.Schema:
    """The Arrow schema; with ``field_ids`` columns, elements, keys and values carry their ids.

    >>> to_arrow(Struct((StructField("id", LONG, nullable=False),))).field("id").nullable
    False
    """
    return pa.schema([field_to_arrow(field, field_ids=field_ids) for field in schema])


def field_to_arrow(field: StructField, *, field_ids: bool = False) -> pa.Field:
    """The Arrow field."""
    ids = nested_ids(field) if field_ids else None
    kind = _to_arrow(field.type, ids, physical_name(field))
    return _field(field.name, kind, field.nullable, field_id(field) if field_ids else None)


def type_to_arrow(kind: DataType) -> pa.DataType:
    """The Arrow type."""
    return _to_arrow(kind, None, "")


@cache
def _simple() -> Mapping[DataType, pa.DataType]:
    return {
        STRING: pa.string(),
        LONG: pa.int64(),
        INTEGER: pa.int32(),
        SHORT: pa.int16(),
        BYTE: pa.int8(),
        FLOAT: pa.float32(),
        DOUBLE: pa.float64(),
        BOOLEAN: pa.bool_(),
        BINARY: pa.binary(),
        DATE: pa.date32(),
        TIMESTAMP: pa.timestamp("us", tz="UTC"),
        TIMESTAMP_NTZ: pa.timestamp("us"),
        VARIANT: pa.struct(
            [
                pa.field("metadata", pa.binary(), nullable=False),
                pa.field("value", pa.binary(), nullable=False),
            ]
        ),
        VOID: pa.null(),
    }


def _to_arrow(kind: DataType, ids: Mapping[str, int] | None, path: str) -> pa.DataType:
    """``ids`` are those of the nearest field, or None if no ids are wanted at all."""

    def child(name: str, inner: DataType, nullable: bool) -> pa.Field:
        here = f"{path}.{name}"
        return _field(name, _to_arrow(inner, ids, here), nullable, ids.get(here) if ids else None)

    match kind:
        case Primitive():
            return _simple()[kind]
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case Struct(fields):
            return pa.struct([field_to_arrow(f, field_ids=ids is not None) for f in fields])
        case Array(element, contains_null):
            return pa.list_(child("element", element, contains_null))
        case Map(key, value, value_contains_null):
            return pa.map_(child("key", key, False), child("value", value, value_contains_null))
        case UserDefined(sql_type):
            return _to_arrow(sql_type, ids, path)
        case Interval(start):
            return pa.int32() if start in ("year", "month") else pa.int64()
        case Geometry() | Geography():
            return pa.binary()
        case _:
            raise UserError(
                Code.SCHEMA_INVALID,
                f"{kind!r} is not a Delta type.",
                fix="Use the classes of `twinlake.schema`.",
            )


def _field(name: str, kind: pa.DataType, nullable: bool, number: int | None) -> pa.Field:
    metadata = None if number is None else {PARQUET_FIELD_ID: str(number).encode()}
    return pa.field(name, kind, nullable=nullable, metadata=metadata)
