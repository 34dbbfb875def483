"""What the rules look up in a schema, found in one walk and kept as long as the schema.

A table of thousands of columns is checked at every commit that changes it, so no rule walks the
schema by itself: the index leaves out plain columns, and a rule looks only at the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from twinlake.errors import TwinlakeError
from twinlake.schema import (
    CHAR_VARCHAR_KEY,
    COLLATIONS_KEY,
    CURRENT_DEFAULT_KEY,
    EXISTS_DEFAULT_KEY,
    GENERATION_EXPRESSION_KEY,
    IDENTITY_EXPLICIT_KEY,
    IDENTITY_HIGH_WATER_MARK_KEY,
    IDENTITY_START_KEY,
    IDENTITY_STEP_KEY,
    INVARIANTS_KEY,
    PHYSICAL_NAME_KEY,
    TYPE_CHANGES_KEY,
    Array,
    ColumnPath,
    DataType,
    Decimal,
    Map,
    Primitive,
    Struct,
    StructField,
    TypeChange,
    field_id,
    id_name,
    nested_ids,
    type_changes,
    walk_types,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.protocol import Metadata

__all__ = ["IDENTITY_KEYS", "Claim", "History", "IndexedField", "SchemaIndex", "index_schema"]

IDENTITY_KEYS: Final = (
    IDENTITY_START_KEY,
    IDENTITY_STEP_KEY,
    IDENTITY_HIGH_WATER_MARK_KEY,
    IDENTITY_EXPLICIT_KEY,
)
_KEYS: Final = frozenset(
    (
        *IDENTITY_KEYS,
        INVARIANTS_KEY,
        GENERATION_EXPRESSION_KEY,
        CURRENT_DEFAULT_KEY,
        EXISTS_DEFAULT_KEY,
        CHAR_VARCHAR_KEY,
        COLLATIONS_KEY,
        TYPE_CHANGES_KEY,
    )
)
#: Types that every compat feature allows everywhere.
_PLAIN: Final = frozenset(
    (
        "integer", "long", "float", "double", "string", "binary", "boolean", "date", "timestamp",
        "timestamp_ntz",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class IndexedField:
    """A struct field that some rule looks at, and its path."""

    path: ColumnPath
    field: StructField
    in_collection: bool
    """Whether an array or a map is on the way to it."""


class Claim(NamedTuple):
    """An id, and the column, element, key or value that has it."""

    path: ColumnPath
    id: int


@dataclass(frozen=True, slots=True)
class History:
    """One recorded change of a type, or why the record of a field cannot be read."""

    path: ColumnPath
    change: TypeChange | None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaIndex:
    """The columns that some rule may mind."""

    types: tuple[tuple[ColumnPath, DataType], ...]
    """Every array, map and unusual type, parents before children."""
    keyed: Mapping[str, tuple[IndexedField, ...]]
    """The fields that carry a key of the metadata, for the keys that rules ask for."""
    misnamed: tuple[IndexedField, ...]
    """The fields whose physical name is not made from their id."""
    without_id: tuple[ColumnPath, ...]
    """Columns, elements, keys and values that have no id."""
    claims: tuple[Claim, ...]
    """Every id of the schema."""
    history: tuple[History, ...]

    @property
    def has_struct_key(self) -> bool:
        """Whether some map has a struct in its key, at any depth."""
        return any(
            isinstance(inner, Struct)
            for _, kind in self.types
            if isinstance(kind, Map)
            for _, inner in walk_types(kind.key)
        )

    def fields_with(self, *keys: str) -> tuple[IndexedField, ...]:
        """The fields that carry any of the keys, each once."""
        if len(keys) == 1:
            return self.keyed.get(keys[0], ())
        found = {entry.path: entry for key in keys for entry in self.keyed.get(key, ())}
        return tuple(found.values())


def index_schema(metadata: Metadata) -> SchemaIndex:
    """The index of the table's schema."""
    return metadata.derived("compat schema index", _index)


def _index(schema: Struct) -> SchemaIndex:
    walk = _Walk()
    walk.struct(schema, (), False)
    return SchemaIndex(
        types=tuple(walk.types),
        keyed={key: tuple(found) for key, found in walk.keyed.items()},
        misnamed=tuple(walk.misnamed),
        without_id=tuple(walk.without_id),
        claims=tuple(walk.claims),
        history=tuple(walk.history),
    )


class _Walk:
    """One depth-first walk; the lists fill in the order of the schema."""

    __slots__ = ("claims", "history", "keyed", "misnamed", "types", "without_id")

    def __init__(self) -> None:
        self.types: list[tuple[ColumnPath, DataType]] = []
        self.keyed: dict[str, list[IndexedField]] = {}
        self.misnamed: list[IndexedField] = []
        self.without_id: list[ColumnPath] = []
        self.claims: list[Claim] = []
        self.history: list[History] = []

    def struct(self, kind: Struct, path: ColumnPath, in_collection: bool) -> None:
        for field in kind.fields:
            here = (*path, field.name)
            metadata = field.metadata
            own = field_id(field)
            if own is None:
                self.without_id.append(here)
            else:
                self.claims.append(Claim(here, own))
            name = metadata.get(PHYSICAL_NAME_KEY)
            if own is None or name != id_name(own):
                self.misnamed.append(IndexedField(here, field, in_collection))
            if not _KEYS.isdisjoint(metadata):
                self.notable(IndexedField(here, field, in_collection))
            # Most columns of a wide table end here.
            if isinstance(field.type, Primitive) and field.type.name in _PLAIN:
                continue
            where = name if isinstance(name, str) else field.name
            self.type(field.type, here, in_collection, nested_ids(field), where)

    def type(
        self,
        kind: DataType,
        path: ColumnPath,
        in_collection: bool,
        ids: Mapping[str, int],
        where: str,
    ) -> None:
        """A type; ``ids`` and ``where`` belong to the nearest struct field above."""
        match kind:
            case Struct():
                self.struct(kind, path, in_collection)
            case Array(element):
                self.types.append((path, kind))
                self.part(element, "element", path, ids, where)
            case Map(key, value):
                self.types.append((path, kind))
                self.part(key, "key", path, ids, where)
                self.part(value, "value", path, ids, where)
            case Primitive(name) if name in _PLAIN:
                pass
            case Decimal():
                pass
            case _:
                self.types.append((path, kind))

    def part(
        self, kind: DataType, name: str, path: ColumnPath, ids: Mapping[str, int], where: str
    ) -> None:
        """An element, key or value."""
        here, place = (*path, name), f"{where}.{name}"
        own = ids.get(place)
        if own is None:
            self.without_id.append(here)
        else:
            self.claims.append(Claim(here, own))
        self.type(kind, here, True, ids, place)

    def notable(self, entry: IndexedField) -> None:
        for key in entry.field.metadata:
            if key in _KEYS:
                self.keyed.setdefault(key, []).append(entry)
        if TYPE_CHANGES_KEY not in entry.field.metadata:
            return
        try:
            for change in type_changes(entry.field):
                self.history.append(History((*entry.path, *change.field_path), change))
        except TwinlakeError as error:
            self.history.append(History(entry.path, None, error.why or error.what))
