"""The Delta type system as immutable values.

Names follow the schema JSON of the protocol. Char and varchar lengths and collations are not
types there: they hide in the metadata of the nearest struct field, so they stay in it here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = [
    "BINARY",
    "BOOLEAN",
    "BYTE",
    "DATE",
    "DOUBLE",
    "FLOAT",
    "INTEGER",
    "LONG",
    "MAX_DEPTH",
    "PRIMITIVE_NAMES",
    "SHORT",
    "STRING",
    "TIMESTAMP",
    "TIMESTAMP_NTZ",
    "VARIANT",
    "VOID",
    "Array",
    "ColumnPath",
    "DataType",
    "Decimal",
    "Geography",
    "Geometry",
    "Interval",
    "Map",
    "Primitive",
    "Struct",
    "StructField",
    "UserDefined",
    "map_fields",
    "walk_fields",
    "walk_types",
]

ColumnPath = tuple[str, ...]
"""Logical names from the root; ``element``, ``key`` and ``value`` name what has no name."""

MAX_DEPTH: Final = 100
"""How deep types may nest; every parser refuses deeper input instead of exhausting the stack."""


class DataType:
    """Any type. ``str()`` is the type as the schema JSON spells it, or DDL for nested types."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Primitive(DataType):
    """A type without parameters."""

    name: str

    def __str__(self) -> str:
        return self.name


STRING: Final = Primitive("string")
LONG: Final = Primitive("long")
INTEGER: Final = Primitive("integer")
SHORT: Final = Primitive("short")
BYTE: Final = Primitive("byte")
FLOAT: Final = Primitive("float")
DOUBLE: Final = Primitive("double")
BOOLEAN: Final = Primitive("boolean")
BINARY: Final = Primitive("binary")
DATE: Final = Primitive("date")
TIMESTAMP: Final = Primitive("timestamp")
TIMESTAMP_NTZ: Final = Primitive("timestamp_ntz")
VARIANT: Final = Primitive("variant")
VOID: Final = Primitive("void")

PRIMITIVE_NAMES: Final = frozenset(
    kind.name
    for kind in (
        STRING, LONG, INTEGER, SHORT, BYTE, FLOAT, DOUBLE, BOOLEAN, BINARY, DATE, TIMESTAMP,
        TIMESTAMP_NTZ, VARIANT, VOID,
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Decimal(DataType):
    """An exact number of ``precision`` digits, ``scale`` of them after the point."""

    precision: int = 10
    scale: int = 0

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class Interval(DataType):
    """An ANSI interval such as ``interval day to second``; no feature gates it."""

    start: str
    end: str

    def __str__(self) -> str:
        return f"interval {self.start}" + ("" if self.start == self.end else f" to {self.end}")


@dataclass(frozen=True, slots=True)
class Geometry(DataType):
    """A planar shape in a coordinate reference system."""

    crs: str = "OGC:CRS84"

    def __str__(self) -> str:
        return f"geometry({self.crs})"


@dataclass(frozen=True, slots=True)
class Geography(DataType):
    """A shape on the globe."""

    crs: str = "OGC:CRS84"
    algorithm: str = "spherical"

    def __str__(self) -> str:
        return f"geography({self.crs}, {self.algorithm})"


@dataclass(frozen=True, slots=True)
class UserDefined(DataType):
    """A Spark user-defined type: stored as ``sql_type``, its class names kept as found."""

    sql_type: DataType
    definition: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "definition", MappingProxyType(dict(self.definition)))

    def __str__(self) -> str:
        return str(self.sql_type)

    def __reduce__(self) -> tuple[Any, ...]:
        return (UserDefined, (self.sql_type, dict(self.definition)))


@dataclass(frozen=True, slots=True)
class Array(DataType):
    """A list of elements."""

    element: DataType
    contains_null: bool = True

    def __str__(self) -> str:
        return f"array<{self.element}>"


@dataclass(frozen=True, slots=True)
class Map(DataType):
    """Keys to values; keys are never null."""

    key: DataType
    value: DataType
    value_contains_null: bool = True

    def __str__(self) -> str:
        return f"map<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class StructField:
    """A named column, at the top or inside a struct; all its metadata is kept."""

    name: str
    type: DataType
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "metadata", MappingProxyType(dict(self.metadata)))

    def with_metadata(self, **changes: object) -> StructField:
        """A copy with keys of the metadata set, or removed where the value is None.

        Keys hold dots, so they usually arrive as ``**{"delta.columnMapping.id": 1}``.
        """
        merged = {**self.metadata, **changes}
        return replace(self, metadata={k: v for k, v in merged.items() if v is not None})

    def __reduce__(self) -> tuple[Any, ...]:
        # A mappingproxy cannot be pickled; executors ship schemas to other processes.
        return (StructField, (self.name, self.type, self.nullable, dict(self.metadata)))


@dataclass(frozen=True, slots=True, repr=False)
class Struct(DataType):
    """An ordered list of fields; the schema of a table is one."""

    fields: tuple[StructField, ...] = ()

    def __str__(self) -> str:
        return "struct<" + ", ".join(f"{f.name}: {f.type}" for f in self.fields) + ">"

    def __repr__(self) -> str:
        from twinlake.schema.schema_tree import render_tree

        return render_tree(self)

    def _repr_html_(self) -> str:
        from twinlake.schema.schema_tree import render_tree_html

        return render_tree_html(self)

    def __iter__(self) -> Iterator[StructField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def names(self) -> tuple[str, ...]:
        """The names of the direct fields."""
        return tuple(f.name for f in self.fields)

    def get(self, name: str) -> StructField | None:
        """The direct field of that name: exact first, then ignoring case as Delta does."""
        for candidate in self.fields:
            if candidate.name == name:
                return candidate
        folded = name.casefold()
        return next((f for f in self.fields if f.name.casefold() == folded), None)


def walk_types(kind: DataType, path: ColumnPath = ()) -> Iterator[tuple[ColumnPath, DataType]]:
    """Every type in ``kind`` with its path, parents before children, keys before values."""
    yield path, kind
    match kind:
        case Struct(fields):
            for child in fields:
                yield from walk_types(child.type, (*path, child.name))
        case Array(element):
            yield from walk_types(element, (*path, "element"))
        case Map(key, value):
            yield from walk_types(key, (*path, "key"))
            yield from walk_types(value, (*path, "value"))
        case _:
            pass


def walk_fields(kind: DataType, path: ColumnPath = ()) -> Iterator[tuple[ColumnPath, StructField]]:
    """Every struct field in ``kind``, at any depth, parents before children."""
    match kind:
        case Struct(fields):
            for child in fields:
                here = (*path, child.name)
                yield here, child
                yield from walk_fields(child.type, here)
        case Array(element):
            yield from walk_fields(element, (*path, "element"))
        case Map(key, value):
            yield from walk_fields(key, (*path, "key"))
            yield from walk_fields(value, (*path, "value"))
        case _:
            pass


def map_fields(
    kind: DataType,
    change: Callable[[ColumnPath, StructField], StructField],
    path: ColumnPath = (),
) -> DataType:
    """``kind`` with ``change`` applied to every struct field, children first."""
    match kind:
        case Struct(fields):
            changed = []
            for child in fields:
                here = (*path, child.name)
                inner = map_fields(child.type, change, here)
                changed.append(change(here, replace(child, type=inner)))
            return Struct(tuple(changed))
        case Array(element):
            return replace(kind, element=map_fields(element, change, (*path, "element")))
        case Map(key, value):
            return replace(
                kind,
                key=map_fields(key, change, (*path, "key")),
                value=map_fields(value, change, (*path, "value")),
            )
        case _:
            return kind
