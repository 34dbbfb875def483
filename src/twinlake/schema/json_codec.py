"""The schema JSON of ``metaData.schemaString``, in and out.

The text is the one Spark's ``StructType.json()`` makes, so the same two functions convert to and
from Spark without importing it. Metadata is kept whole and in order, also where its keys mean
nothing to twinlake. Input that nests too deep, names an unknown type or has the wrong shape gives
one error with the dotted path of the column.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec

from twinlake.errors import Code, CorruptTable, TwinlakeError, UserError
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

__all__ = [
    "INTERVAL_UNITS",
    "MAX_PRECISION",
    "parse_schema",
    "render_schema",
    "schema_from_dict",
    "schema_to_dict",
    "type_from_json",
    "type_to_json",
]

MAX_PRECISION: Final = 38

INTERVAL_UNITS: Final = (("year", "month"), ("day", "hour", "minute", "second"))
"""The two families of ANSI intervals, the coarser unit first."""

_NAMED: Final[Mapping[str, DataType]] = {
    **{
        kind.name: kind
        for kind in (
            STRING, LONG, INTEGER, SHORT, BYTE, FLOAT, DOUBLE, BOOLEAN, BINARY, DATE, TIMESTAMP,
            TIMESTAMP_NTZ, VARIANT, VOID,
        )
    },
    "null": VOID,
    "timestamp_ltz": TIMESTAMP,
    "decimal": Decimal(),
    "geometry": Geometry(),
    "geography": Geography(),
    **{
        str(Interval(start, end)): Interval(start, end)
        for family in INTERVAL_UNITS
        for position, start in enumerate(family)
        for end in family[position:]
    },
}  # fmt: skip

_DECIMAL: Final = re.compile(r"decimal\(\s*([0-9]{1,9})\s*,\s*(-?[0-9]{1,9})\s*\)")
_GEOMETRY: Final = re.compile(r"geometry\(\s*([^\s,()]+)\s*\)", re.IGNORECASE)
_GEOGRAPHY: Final = re.compile(r"geography\(\s*([^\s,()]+)\s*(?:,\s*(\w+)\s*)?\)", re.IGNORECASE)

_Error = type[TwinlakeError]


def parse_schema(text: str, *, error: _Error = CorruptTable) -> Struct:
    """The schema that ``text`` describes; ``error`` is the class to raise on bad text.

    >>> parse_schema('{"type":"struct","fields":[{"name":"id","type":"long"}]}').names()
    ('id',)
    """
    try:
        raw = msgspec.json.decode(text)
    except RecursionError:
        # The decoder recurses in C and gives up on its own, well before the stack ends.
        _too_deep((), error)
    except (ValueError, TypeError) as cause:
        raise error(
            Code.SCHEMA_INVALID,
            "The schema text is not JSON.",
            why=str(cause),
            fix="A schema looks like "
            '`{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}`.',
        ) from cause
    return schema_from_dict(raw, error=error)


def render_schema(schema: Struct) -> str:
    """The schema as JSON text, compact, in Spark's key order.

    >>> render_schema(Struct((StructField("id", LONG),)))
    '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'
    """
    try:
        return msgspec.json.encode(schema_to_dict(schema)).decode()
    except (TypeError, ValueError, RecursionError) as cause:
        raise UserError(
            Code.SCHEMA_INVALID,
            "The schema cannot be written as JSON.",
            why=str(cause),
            fix="Use text for names and plain JSON values in field metadata.",
        ) from cause


def schema_from_dict(raw: Any, *, error: _Error = CorruptTable) -> Struct:
    """The schema in decoded JSON."""
    kind = type_from_json(raw, error=error)
    if not isinstance(kind, Struct):
        _refuse((), f"A schema has to be a struct, not {kind}.", error)
    return kind


def schema_to_dict(schema: Struct) -> dict[str, Any]:
    """The schema as plain dicts and lists, ready for a JSON encoder."""
    return _struct_to_json(schema, 0)


def type_from_json(raw: Any, path: ColumnPath = (), *, error: _Error = CorruptTable) -> DataType:
    """The type in decoded JSON; ``path`` only serves error messages."""
    if len(path) > MAX_DEPTH:
        _too_deep(path, error)
    if isinstance(raw, str):
        return _named(raw, path, error)
    if not isinstance(raw, dict):
        _refuse(path, f"A type has to be a name or an object, not {_short(raw)}.", error)
    tag = raw.get("type")
    read = _READERS.get(tag) if isinstance(tag, str) else None
    if read is None:
        # Seen in the wild: {"type": "long"} where "long" is meant.
        if isinstance(tag, str) and len(raw) == 1:
            return _named(tag, path, error)
        _refuse(path, f"Unknown kind of type {_short(tag)}.", error)
    return read(raw, path, error)


def type_to_json(kind: DataType) -> Any:
    """The type as a name or an object, as schema JSON has it."""
    return _to_json(kind, 0)


def _named(name: str, path: ColumnPath, error: _Error) -> DataType:
    if (known := _NAMED.get(name)) is not None:
        return known
    if match := _DECIMAL.fullmatch(name):
        precision, scale = int(match[1]), int(match[2])
        if not (1 <= precision <= MAX_PRECISION and 0 <= scale <= precision):
            _refuse(
                path,
                f"The type {name} is not possible.",
                error,
                fix=f"Precision goes from 1 to {MAX_PRECISION}, scale from 0 to the precision.",
            )
        return Decimal(precision, scale)
    if match := _GEOMETRY.fullmatch(name):
        return Geometry(match[1])
    if match := _GEOGRAPHY.fullmatch(name):
        return Geography(match[1], match[2]) if match[2] else Geography(match[1])
    return _refuse(
        path,
        f"Unknown type {_short(name)}.",
        error,
        fix="Known names: " + ", ".join(sorted(n for n in _NAMED if " " not in n)) + ".",
    )


def _read_struct(raw: dict[str, Any], path: ColumnPath, error: _Error) -> Struct:
    fields = raw.get("fields")
    if not isinstance(fields, list):
        _refuse(path, "A struct needs a list of fields.", error)
    return Struct(tuple(_read_field(child, path, error) for child in fields))


def _read_field(raw: Any, path: ColumnPath, error: _Error) -> StructField:
    if not isinstance(raw, dict):
        _refuse(path, f"A field has to be an object, not {_short(raw)}.", error)
    name = raw.get("name")
    if not isinstance(name, str):
        _refuse(path, f"A field has no name: {_short(raw)}.", error)
    here = (*path, name)
    if "type" not in raw:
        _refuse(here, "The field has no type.", error)
    metadata = raw.get("metadata") or {}
    if not isinstance(metadata, dict):
        _refuse(here, f"Field metadata has to be an object, not {_short(metadata)}.", error)
    if _deeper_than(metadata, MAX_DEPTH):
        _too_deep(here, error)
    kind = type_from_json(raw["type"], here, error=error)
    return StructField(name, kind, _flag(raw, "nullable", here, error), metadata)


def _read_array(raw: dict[str, Any], path: ColumnPath, error: _Error) -> Array:
    element = type_from_json(raw.get("elementType"), (*path, "element"), error=error)
    return Array(element, _flag(raw, "containsNull", path, error))


def _read_map(raw: dict[str, Any], path: ColumnPath, error: _Error) -> Map:
    key = type_from_json(raw.get("keyType"), (*path, "key"), error=error)
    value = type_from_json(raw.get("valueType"), (*path, "value"), error=error)
    return Map(key, value, _flag(raw, "valueContainsNull", path, error))


def _read_user_defined(raw: dict[str, Any], path: ColumnPath, error: _Error) -> UserDefined:
    if _deeper_than(raw, 2 * MAX_DEPTH):
        _too_deep(path, error)
    kind = type_from_json(raw.get("sqlType"), (*path, "sqlType"), error=error)
    return UserDefined(kind, raw)


_READERS: Final[Mapping[str, Callable[[dict[str, Any], ColumnPath, _Error], DataType]]] = {
    "struct": _read_struct,
    "array": _read_array,
    "map": _read_map,
    "udt": _read_user_defined,
}


def _flag(raw: dict[str, Any], key: str, path: ColumnPath, error: _Error) -> bool:
    value = raw.get(key, True)
    if not isinstance(value, bool):
        _refuse(path, f"{key} has to be true or false, not {_short(value)}.", error)
    return value


def _to_json(kind: DataType, depth: int) -> Any:
    match kind:
        case Struct():
            return _struct_to_json(kind, depth)
        case Array(element, contains_null):
            return {
                "type": "array",
                "elementType": _to_json(element, _below(depth)),
                "containsNull": contains_null,
            }
        case Map(key, value, value_contains_null):
            return {
                "type": "map",
                "keyType": _to_json(key, _below(depth)),
                "valueType": _to_json(value, _below(depth)),
                "valueContainsNull": value_contains_null,
            }
        case UserDefined(sql_type, definition):
            inner = _to_json(sql_type, _below(depth))
            # The definition still holds sqlType, so the position of the key is kept.
            return {"type": "udt", **definition, "sqlType": inner}
        case Primitive() | Decimal() | Interval() | Geometry() | Geography():
            return str(kind)
        case _:
            raise UserError(
                Code.SCHEMA_INVALID,
                f"{kind!r} is not a Delta type.",
                fix="Build types from the classes of `twinlake.schema`.",
            )


def _struct_to_json(schema: Struct, depth: int) -> dict[str, Any]:
    return {
        "type": "struct",
        "fields": [
            {
                "name": child.name,
                "type": _to_json(child.type, _below(depth)),
                "nullable": child.nullable,
                "metadata": dict(child.metadata),
            }
            for child in schema.fields
        ],
    }


def _below(depth: int) -> int:
    if depth >= MAX_DEPTH:
        _too_deep((), UserError)
    return depth + 1


def _deeper_than(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(v for v in item.values() if isinstance(v, (dict, list)))
            elif isinstance(item, list):
                inner.extend(v for v in item if isinstance(v, (dict, list)))
        if not inner:
            return False
        level = inner
    return True


def _too_deep(path: ColumnPath, error: _Error) -> NoReturn:
    _refuse(
        path[:3],
        f"The schema nests deeper than {MAX_DEPTH} levels.",
        error,
        fix="Flatten the type; no engine reads columns that deep.",
    )


def _refuse(path: ColumnPath, what: str, error: _Error, *, fix: str = "") -> NoReturn:
    shown = render_path(path)
    raise error(
        Code.SCHEMA_INVALID,
        what,
        why=f"Found at column {shown}." if path else "Found at the root of the schema.",
        fix=fix or "Compare with the schema serialization format of the Delta protocol.",
        fields={"path": shown},
    )


def _short(value: Any) -> str:
    # A repr of something nested could itself run out of stack.
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
