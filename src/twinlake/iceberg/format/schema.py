"""A Delta schema as Iceberg's metadata spells it.

Ids are Delta's, at every depth: data files carry them already. What Iceberg has no type for is
refused as a whole, with every column named.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.compat import collations_of
from twinlake.errors import Code, CompatViolation, CorruptTable, listed
from twinlake.iceberg.format.content_id import content_id
from twinlake.iceberg.format.default_value import write_default
from twinlake.schema import (
    BINARY,
    BOOLEAN,
    BYTE,
    COMMENT_KEY,
    CURRENT_DEFAULT_KEY,
    DATE,
    DOUBLE,
    EXISTS_DEFAULT_KEY,
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
    char_type,
    field_id,
    nested_ids,
    physical_name,
    render_path,
    unsupported_type_changes,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from twinlake.protocol import Metadata
    from twinlake.schema import ColumnPath

__all__ = [
    "IcebergSchema",
    "Leaf",
    "delta_type",
    "highest_field_id",
    "highest_id",
    "iceberg_schema",
    "iceberg_type",
    "leaves",
]

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
_SHORT: Final[Mapping[DataType, str]] = {Geometry(): "geometry", Geography(): "geography"}
_FROM_ICEBERG: Final = {"variant": VARIANT, **{n: kind for kind, n in _PRIMITIVES.items()}}
_SINCE_V3: Final = 3
_ID_KEYS: Final = ("id", "element-id", "key-id", "value-id")
#: Ids above are Iceberg's own, of columns such as ``_row_id``.
_HIGHEST_ID: Final = 2147483447


@dataclass(frozen=True, slots=True)
class IcebergSchema:
    """A schema; two are equal when they are the same to Iceberg."""

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
    writer.look_at_history(metadata.schema)
    if writer.problems:
        # The lag of the table shows this line only: it has to name a column.
        first, *others = writer.problems
        more = f", and {len(others)} more" if others else ""
        raise CompatViolation(
            Code.COMPAT,
            f"The schema of table {metadata.label} has no Iceberg form: {first}{more}.",
            why=listed(writer.problems) + ".",
            fix="Run `twinlake check PATH` to see the columns, then `twinlake upgrade PATH --yes`.",
            fields={"table": metadata.label, "problems": writer.problems},
        )
    return IcebergSchema(msgspec.json.encode(fields, order="sorted"))


def delta_type(name: str) -> DataType:
    """The Delta type of a primitive Iceberg type; of several, the widest."""
    if name.startswith("decimal("):
        precision, scale = name[len("decimal(") : -1].split(",")
        return Decimal(int(precision), int(scale))
    return _FROM_ICEBERG[name]


def iceberg_type(kind: DataType) -> str | None:
    """The Iceberg type of a primitive Delta type; None where every format has none."""
    if isinstance(kind, Decimal):
        return f"decimal({kind.precision}, {kind.scale})"
    if kind == VARIANT or isinstance(kind, Geometry | Geography):
        # What is so by default is left out: not every reader knows how to parse it.
        return _SHORT.get(kind, str(kind))
    return _PRIMITIVES.get(kind)


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


def highest_id(schema: IcebergSchema) -> int:
    """The highest id that a schema holds, at any depth."""
    return _highest_id(schema.fields)


def highest_field_id(document: Mapping[str, Any]) -> int:
    """The highest id in a schema as JSON has it."""
    return max(_ids(document), default=0)


@lru_cache(maxsize=32)
def _highest_id(fields: bytes) -> int:
    return max((number for number in _ids(msgspec.json.decode(fields))), default=0)


def _ids(node: Any) -> Iterator[int]:
    match node:
        case list():
            for inner in node:
                yield from _ids(inner)
        case dict():
            yield from (node[key] for key in _ID_KEYS if isinstance(node.get(key), int))
            for key in ("fields", "type", "element", "key", "value"):
                yield from _ids(node.get(key))


class _Writer:
    """One walk over a schema; ``problems`` collects what cannot be said."""

    def __init__(self, format_version: int) -> None:
        self._is_v3 = format_version >= _SINCE_V3
        self.problems: list[str] = []
        self._names: set[str] = set()
        self._ids: set[int] = set()

    def struct_fields(self, struct: Struct, path: ColumnPath) -> list[dict[str, Any]]:
        return [self._field(column, (*path, column.name)) for column in struct]

    def look_at_history(self, schema: Struct) -> None:
        """Old files hold the old types, which Iceberg may not be able to widen."""
        try:
            for path, change in unsupported_type_changes(schema, iceberg=True):
                kinds = f"{change.from_type} to {change.to_type}"
                self._problem(path, f"was widened from {kinds}, which Iceberg cannot do")
        except CorruptTable as error:
            self.problems.append(error.why or error.what)

    def _field(self, column: StructField, path: ColumnPath) -> dict[str, Any]:
        own = field_id(column)
        if own is None:
            self._problem(path, "has no column id")
        self._numbered(own, path)
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
        self._add_default(column, path, found)
        self._look_at_text(column, path)
        return found

    def _add_default(self, column: StructField, path: ColumnPath, found: dict[str, Any]) -> None:
        if EXISTS_DEFAULT_KEY in column.metadata:
            self._problem(path, "has a value for files that lack it, where Iceberg reads null")
        # Format 2 needs none: writers of Delta store the value, and files that are older than the
        # column read as null on both sides.
        if CURRENT_DEFAULT_KEY not in column.metadata or not self._is_v3:
            return
        default = write_default(column.metadata[CURRENT_DEFAULT_KEY], column.type)
        if default is not None:
            found["write-default"] = default

    def _look_at_text(self, column: StructField, path: ColumnPath) -> None:
        """Iceberg reads texts as files hold them, and compares them by their bytes."""
        if (spelled := char_type(column)) is not None:
            self._problem(
                path, f"is {spelled}, which Spark pads when it reads and Iceberg does not"
            )
        for where, name in collations_of(column.metadata).items():
            below = where.removeprefix(column.name).strip(".")
            inner = (*path, *(below.split(".") if below else ()))
            self._problem(inner, f"is compared by collation {name}, which Iceberg does not have")

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
        found = iceberg_type(kind)
        needs_v3 = kind == VARIANT or isinstance(kind, Geometry | Geography)
        if found is not None and (self._is_v3 or not needs_v3):
            return found
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
        self._numbered(found, path)
        return found

    def _numbered(self, own: int | None, path: ColumnPath) -> None:
        """Readers know a column by its id."""
        if own is None:
            return
        if own in self._ids:
            self._problem(path, f"has id {own} like another column")
        if not 0 < own <= _HIGHEST_ID:
            self._problem(path, f"has id {own}, and Iceberg allows 1 to {_HIGHEST_ID}")
        self._ids.add(own)

    def _problem(self, path: ColumnPath, text: str) -> None:
        self.problems.append(f"{render_path(path)} {text}")
