"""Schemas and types of Arrow as those of a table.

Every Arrow type that holds the same values is taken for the Delta type, however it stores them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake._lazy_exports import lazy_module
from twinlake.errors import Code, UserError, listed
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
    Map,
    Struct,
    StructField,
)

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = lazy_module("pyarrow")

__all__ = ["VARIANT_EXTENSION", "from_arrow"]

VARIANT_EXTENSION: Final = "arrow.parquet.variant"
"""The canonical extension type of Arrow for variants."""
_EXTENSION_NAME: Final = b"ARROW:extension:name"

#: By the text of the type. Unsigned numbers take the next wider type; of the widest, what fits.
_SIMPLE: Final = {
    "int8": BYTE,
    "int16": SHORT,
    "int32": INTEGER,
    "int64": LONG,
    "uint8": SHORT,
    "uint16": INTEGER,
    "uint32": LONG,
    "uint64": LONG,
    "halffloat": FLOAT,
    "float": FLOAT,
    "double": DOUBLE,
    "bool": BOOLEAN,
    "string": STRING,
    "large_string": STRING,
    "string_view": STRING,
    "binary": BINARY,
    "large_binary": BINARY,
    "binary_view": BINARY,
    "date32[day]": DATE,
    "date64[ms]": DATE,
    "null": VOID,
}


def from_arrow(schema: pa.Schema) -> Struct:
    """The schema; raises with every column whose type no Delta table has.

    >>> import pyarrow as pa
    >>> str(from_arrow(pa.schema([("id", pa.uint16()), ("at", pa.timestamp("ns", "UTC"))])))
    'struct<id: integer, at: timestamp>'
    """
    problems: list[str] = []
    found = _struct(list(schema), (), problems)
    if problems:
        raise UserError(
            Code.SCHEMA_INVALID,
            f"The data has columns that a Delta table cannot hold: {listed(problems, ', ')}.",
            why="Delta has no type for their values.",
            fix="Cast or drop the columns.",
            fields={"columns": problems},
        )
    return found


def _struct(fields: list[pa.Field], path: ColumnPath, problems: list[str]) -> Struct:
    return Struct(
        tuple(
            StructField(field.name, _type(field, (*path, field.name), problems), field.nullable)
            for field in fields
        )
    )


def _type(field: pa.Field, path: ColumnPath, problems: list[str]) -> DataType:
    kind = field.type
    if (field.metadata or {}).get(_EXTENSION_NAME) == VARIANT_EXTENSION.encode():
        return VARIANT
    kinds = pa.types
    simple = _SIMPLE.get(str(kind))
    if simple is not None:
        return simple
    if kinds.is_timestamp(kind):
        return TIMESTAMP_NTZ if kind.tz is None else TIMESTAMP
    if kinds.is_decimal(kind) and kind.precision <= 38 and 0 <= kind.scale <= kind.precision:
        return Decimal(kind.precision, kind.scale)
    if kinds.is_fixed_size_binary(kind):
        return BINARY
    if kinds.is_dictionary(kind) or kinds.is_run_end_encoded(kind):
        return _type(field.with_type(kind.value_type), path, problems)
    if kinds.is_struct(kind):
        return _struct(list(kind), path, problems)
    if kinds.is_map(kind):
        key = _type(kind.key_field, (*path, "key"), problems)
        value = _type(kind.item_field, (*path, "value"), problems)
        return Map(key, value, kind.item_field.nullable)
    lists = (
        kinds.is_list,
        kinds.is_large_list,
        kinds.is_fixed_size_list,
        kinds.is_list_view,
        kinds.is_large_list_view,
    )
    if any(test(kind) for test in lists):
        element = _type(kind.value_field, (*path, "element"), problems)
        return Array(element, kind.value_field.nullable)
    problems.append(f"{render_path(path)} ({kind})")
    return VOID
