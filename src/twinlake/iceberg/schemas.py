"""A Delta schema as Iceberg's metadata spells it.

Ids are Delta's, at every depth: data files carry them already. What Iceberg has no type for is
refused as a whole, with every column named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.errors import Code, CompatViolation
from twinlake.iceberg.content_ids import content_id
from twinlake.schema import (
    BINARY,
    BOOLEAN,
    BYTE,
    COMMENT_KEY,
    CURRENT_DEFAULT_KEY,
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
    Array,
    DataType,
    Decimal,
    Geography,
    Geometry,
    Map,
    Struct,
    StructField,
    field_id,
    nested_ids,
    physical_name,
    render_path,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from twinlake.protocol import Metadata
    from twinlake.schema import ColumnPath

__all__ = ["IcebergSchema", "Leaf", "delta_type", "iceberg_schema", "leaves", "name_mapping"]

_PRIMITIVES: Final[Mapping[DataType, str]] = {
    BYTE: "int",
    SHORT: "int",
    INTEGER: "int",
    LONG: "long",
    FLOAT: "float",
    DOUBLE: "double",
    STRING: "string",
    BINARY: "binary",
    BOOLEAN: "boolean",
    DATE: "date",
    TIMESTAMP: "timestamptz",
    TIMESTAMP_NTZ: "timestamp",
}
_FROM_ICEBERG: Final = {name: kind for kind, name in _PRIMITIVES.items()}
_SINCE_V3: Final = 3


@dataclass(frozen=True, slots=True)
class IcebergSchema:
    """A schema; two are equal when Iceberg could not tell them apart."""

    fields: bytes
    """The ``fields`` of the schema as canonical JSON."""

    @property
    def id(self) -> int:
        """The id of the schema, computed from it: it does not hang on how much history is known."""
        return content_id(self.fields)

    def to_dict(self) -> dict[str, Any]:
        """The schema as the metadata file lists it."""
        fields = msgspec.json.decode(self.fields)
        return {"type": "struct", "schema-id": self.id, "fields": fields}


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column that may have statistics: no list, no map, and not inside one."""

    path: ColumnPath
    """Physical names from the root, as the statistics of a file spell it."""
    id: int
    type: DataType


def iceberg_schema(metadata: Metadata, *, format_version: int = 2) -> IcebergSchema:
    """The Iceberg schema of a table; raises with every column Iceberg cannot have."""
    writer = _Writer(format_version)
    fields = writer.struct_fields(metadata.schema, ())
    if writer.problems:
        raise CompatViolation(
            Code.COMPAT,
            f"The schema of table {metadata.label} has no Iceberg form.",
            why="; ".join(writer.problems) + ".",
            fix="Bring the table in line with `twinlake check` and `twinlake upgrade`.",
            fields={"table": metadata.label, "problems": writer.problems},
        )
    return IcebergSchema(msgspec.json.encode(fields, order="sorted"))


def delta_type(name: str) -> DataType:
    """The Delta type of a primitive Iceberg type; of several, the widest."""
    if name.startswith("decimal("):
        precision, scale = name[len("decimal(") : -1].split(",")
        return Decimal(int(precision), int(scale))
    return _FROM_ICEBERG[name]


def leaves(schema: Struct, path: ColumnPath = ()) -> Iterator[Leaf]:
    """Every column that Delta's statistics and Iceberg's bounds can both speak of."""
    for column in schema:
        here = (*path, physical_name(column))
        if isinstance(column.type, Struct):
            yield from leaves(column.type, here)
        elif not isinstance(column.type, Array | Map):
            own = field_id(column)
            if own is not None:
                yield Leaf(here, own, column.type)


def name_mapping(schema: Struct) -> str:
    """``schema.name-mapping.default``: how to read files that carry no ids, by either name."""
    return msgspec.json.encode(_mapped_struct(schema)).decode()


def _mapped_struct(schema: Struct) -> list[dict[str, Any]]:
    found = []
    for column in schema:
        names = list(dict.fromkeys((column.name, physical_name(column))))
        entry: dict[str, Any] = {"field-id": field_id(column), "names": names}
        inner = _mapped_inner(column.type, nested_ids(column), physical_name(column))
        found.append({**entry, "fields": inner} if inner else entry)
    return found


def _mapped_inner(kind: DataType, ids: Mapping[str, int], path: str) -> list[dict[str, Any]]:
    match kind:
        case Struct():
            return _mapped_struct(kind)
        case Array(element):
            parts = [("element", element)]
        case Map(key, value):
            parts = [("key", key), ("value", value)]
        case _:
            return []
    found = []
    for name, inner_type in parts:
        here = f"{path}.{name}"
        inner = _mapped_inner(inner_type, ids, here)
        entry: dict[str, Any] = {"field-id": ids.get(here), "names": [name]}
        found.append({**entry, "fields": inner} if inner else entry)
    return found


class _Writer:
    """One walk over a schema; ``problems`` collects what cannot be said."""

    def __init__(self, format_version: int) -> None:
        self._is_v3 = format_version >= _SINCE_V3
        self.problems: list[str] = []
        self._names: set[str] = set()

    def struct_fields(self, struct: Struct, path: ColumnPath) -> list[dict[str, Any]]:
        return [self._field(column, (*path, column.name)) for column in struct]

    def _field(self, column: StructField, path: ColumnPath) -> dict[str, Any]:
        own = field_id(column)
        if own is None:
            self._problem(path, "has no column id")
        self._named(path)
        found: dict[str, Any] = {
            "id": own,
            "name": column.name,
            "required": not column.nullable,
            "type": self._type(column.type, path, nested_ids(column), physical_name(column)),
        }
        comment = column.metadata.get(COMMENT_KEY)
        if isinstance(comment, str):
            found["doc"] = comment
        if CURRENT_DEFAULT_KEY in column.metadata and not self._is_v3:
            self._problem(path, "has a default value, which needs icebergCompatV3")
        return found

    def _type(self, kind: DataType, path: ColumnPath, ids: Mapping[str, int], at: str) -> Any:
        match kind:
            case Struct():
                return {"type": "struct", "fields": self.struct_fields(kind, path)}
            case Array(element, contains_null):
                here = f"{at}.element"
                return {
                    "type": "list",
                    "element-id": self._nested(ids, here, (*path, "element")),
                    "element": self._type(element, (*path, "element"), ids, here),
                    "element-required": not contains_null,
                }
            case Map(key, value, value_contains_null):
                keys, values = f"{at}.key", f"{at}.value"
                return {
                    "type": "map",
                    "key-id": self._nested(ids, keys, (*path, "key")),
                    "key": self._type(key, (*path, "key"), ids, keys),
                    "value-id": self._nested(ids, values, (*path, "value")),
                    "value": self._type(value, (*path, "value"), ids, values),
                    "value-required": not value_contains_null,
                }
            case _:
                return self._leaf(kind, path)

    def _leaf(self, kind: DataType, path: ColumnPath) -> str:
        if kind in _PRIMITIVES:
            return _PRIMITIVES[kind]
        if isinstance(kind, Decimal):
            return f"decimal({kind.precision}, {kind.scale})"
        if self._is_v3 and (kind == VARIANT or isinstance(kind, Geometry | Geography)):
            return str(kind)
        self._problem(path, f"has type {kind}, which Iceberg does not have")
        return ""

    def _named(self, path: ColumnPath) -> None:
        """Readers know a column by its path with dots, so that no two may come out the same."""
        if (name := ".".join(path)) in self._names:
            self._problem(path, f"is called {name} like another column, as Iceberg spells paths")
        self._names.add(name)

    def _nested(self, ids: Mapping[str, int], at: str, path: ColumnPath) -> int | None:
        self._named(path)
        found = ids.get(at)
        if found is None:
            self._problem(path, "has no id")
        return found

    def _problem(self, path: ColumnPath, text: str) -> None:
        self.problems.append(f"{render_path(path)} {text}")
