"""Schemas and types to Arrow and back; pyarrow is imported when first used.

Timestamps are microseconds, in UTC where Delta's type is an instant. A variant is stored as a
struct of two required binaries, an interval as months or microseconds, a shape as bytes.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from twinlake.errors import Code, UserError, listed
from twinlake.schema.json_codec import MAX_PRECISION
from twinlake.schema.mapping import ID_KEY, field_id, nested_ids, physical_name
from twinlake.schema.paths import render_path
from twinlake.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    MAX_DEPTH,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    Array,
    ColumnPath,
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
    from collections.abc import Callable, Mapping

    import pyarrow as pa

__all__ = ["PARQUET_FIELD_ID", "field_to_arrow", "from_arrow", "to_arrow", "type_to_arrow"]

PARQUET_FIELD_ID: Final = b"PARQUET:field_id"
"""The key under which Arrow keeps a Parquet field id."""


def to_arrow(schema: Struct, *, field_ids: bool = False) -> pa.Schema:
    """The Arrow schema; with ``field_ids`` columns, elements, keys and values carry their ids.

    >>> to_arrow(Struct((StructField("id", LONG, nullable=False),))).field("id").nullable
    False
    """
    import pyarrow as pa

    return pa.schema([field_to_arrow(field, field_ids=field_ids) for field in schema])


def field_to_arrow(field: StructField, *, field_ids: bool = False) -> pa.Field:
    """The Arrow field."""
    ids = nested_ids(field) if field_ids else None
    kind = _to_arrow(field.type, ids, physical_name(field))
    return _field(field.name, kind, field.nullable, field_id(field) if field_ids else None)


def type_to_arrow(kind: DataType) -> pa.DataType:
    """The Arrow type."""
    return _to_arrow(kind, None, "")


def from_arrow(schema: pa.Schema, *, field_ids: bool = False) -> Struct:
    """The schema of Arrow data; with ``field_ids`` Parquet ids become column ids.

    Unsigned integers take the next wider type; dictionaries, run-end encoding and extension types
    count as what they hold. Types Delta lacks are reported all at once.
    """
    reader = _Reader(field_ids=field_ids)
    fields = tuple(reader.field(field, ()) for field in schema)
    if reader.misfits:
        raise UserError(
            Code.SCHEMA_INVALID,
            "Some Arrow types have no Delta type.",
            why=listed(f"{path}: {kind}" for path, kind in reader.misfits),
            fix="Cast these columns, for example times to strings or large decimals to doubles.",
            delta_class="DELTA_UNSUPPORTED_DATA_TYPES",
            fields={"columns": [{"path": path, "type": kind} for path, kind in reader.misfits]},
        )
    return Struct(fields)


@cache
def _simple() -> Mapping[DataType, pa.DataType]:
    import pyarrow as pa

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
    import pyarrow as pa

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
    import pyarrow as pa

    metadata = None if number is None else {PARQUET_FIELD_ID: str(number).encode()}
    return pa.field(name, kind, nullable=nullable, metadata=metadata)


@cache
def _known() -> Mapping[int, DataType]:
    """Arrow type ids without parameters that matter."""
    from pyarrow import lib

    names: Mapping[str, DataType] = {
        "STRING": STRING,
        "LARGE_STRING": STRING,
        "STRING_VIEW": STRING,
        "INT64": LONG,
        "UINT32": LONG,
        "INT32": INTEGER,
        "UINT16": INTEGER,
        "INT16": SHORT,
        "UINT8": SHORT,
        "INT8": BYTE,
        "UINT64": Decimal(20, 0),
        "HALF_FLOAT": FLOAT,
        "FLOAT": FLOAT,
        "DOUBLE": DOUBLE,
        "BOOL": BOOLEAN,
        "BINARY": BINARY,
        "LARGE_BINARY": BINARY,
        "BINARY_VIEW": BINARY,
        "FIXED_SIZE_BINARY": BINARY,
        "DATE32": DATE,
        "DATE64": DATE,
        "NA": VOID,
    }
    return {getattr(lib, f"Type_{name}"): kind for name, kind in names.items()}


@cache
def _readers() -> Mapping[int, Callable[[_Reader, Any, ColumnPath], DataType]]:
    from pyarrow import lib

    names: Mapping[str, Callable[[_Reader, Any, ColumnPath], DataType]] = {
        "TIMESTAMP": lambda _, kind, __: TIMESTAMP if kind.tz else TIMESTAMP_NTZ,
        "STRUCT": _Reader.struct,
        "MAP": _Reader.map,
        **dict.fromkeys(("LIST", "LARGE_LIST", "FIXED_SIZE_LIST", "LIST_VIEW"), _Reader.list),
        "LARGE_LIST_VIEW": _Reader.list,
        **dict.fromkeys(("DECIMAL32", "DECIMAL64", "DECIMAL128", "DECIMAL256"), _Reader.decimal),
        "DICTIONARY": lambda reader, kind, path: reader.type(kind.value_type, path),
        "RUN_END_ENCODED": lambda reader, kind, path: reader.type(kind.value_type, path),
    }
    return {getattr(lib, f"Type_{name}"): read for name, read in names.items()}


class _Reader:
    def __init__(self, *, field_ids: bool) -> None:
        self.field_ids = field_ids
        self.misfits: list[tuple[str, str]] = []

    def field(self, field: pa.Field, path: ColumnPath) -> StructField:
        metadata: dict[str, Any] = {}
        raw = (field.metadata or {}).get(PARQUET_FIELD_ID) if self.field_ids else None
        if raw is not None and raw.isdigit():
            metadata[ID_KEY] = int(raw)
        kind = self.type(field.type, (*path, field.name))
        return StructField(field.name, kind, field.nullable, metadata)

    def type(self, kind: pa.DataType, path: ColumnPath) -> DataType:
        if len(path) > MAX_DEPTH:
            return self.misfit(path[:3], f"nests deeper than {MAX_DEPTH} levels")
        if (found := _known().get(kind.id)) is not None:
            return found
        if (read := _readers().get(kind.id)) is not None:
            return read(self, kind, path)
        storage = getattr(kind, "storage_type", None)
        return self.type(storage, path) if storage is not None else self.misfit(path, str(kind))

    def struct(self, kind: pa.StructType, path: ColumnPath) -> DataType:
        if kind == _simple()[VARIANT]:
            return VARIANT
        return Struct(tuple(self.field(child, path) for child in kind))

    def list(self, kind: pa.ListType, path: ColumnPath) -> DataType:
        return Array(self.type(kind.value_type, (*path, "element")), kind.value_field.nullable)

    def map(self, kind: pa.MapType, path: ColumnPath) -> DataType:
        key = self.type(kind.key_type, (*path, "key"))
        return Map(key, self.type(kind.item_type, (*path, "value")), kind.item_field.nullable)

    def decimal(self, kind: pa.Decimal128Type, path: ColumnPath) -> DataType:
        if kind.precision > MAX_PRECISION or not 0 <= kind.scale <= kind.precision:
            return self.misfit(path, str(kind))
        return Decimal(kind.precision, kind.scale)

    def misfit(self, path: ColumnPath, message: str) -> DataType:
        self.misfits.append((render_path(path), message))
        return VOID
