"""Column mapping: ids and physical names that survive renames.

Delta protocol, Column Mapping. Struct fields get their ids first, in pre-order; then the elements,
keys and values get theirs depth-first, kept in the nearest struct field's metadata. All ids share
one space and the highest one ever used never comes down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from twinlake.errors import Code, UserError
from twinlake.schema.metadata_keys import MAX_COLUMN_ID
from twinlake.schema.paths import render_path, resolve_path
from twinlake.schema.types import (
    Array,
    ColumnPath,
    DataType,
    Map,
    Struct,
    StructField,
    map_fields,
    walk_fields,
)

__all__ = [
    "ID_KEY",
    "MAPPING_KEYS",
    "NESTED_IDS_KEY",
    "PHYSICAL_NAME_KEY",
    "ColumnMappingMode",
    "assign_mapping",
    "field_id",
    "highest_id",
    "id_name",
    "keep_mapping",
    "mapping_problems",
    "nested_ids",
    "physical_name",
    "physical_path",
    "physical_schema",
    "strip_mapping",
    "with_id_names",
]

ID_KEY: Final = "delta.columnMapping.id"
PHYSICAL_NAME_KEY: Final = "delta.columnMapping.physicalName"
NESTED_IDS_KEY: Final = "delta.columnMapping.nested.ids"
MAPPING_KEYS: Final = (ID_KEY, PHYSICAL_NAME_KEY, NESTED_IDS_KEY)
"""What column mapping keeps with a field."""

# Spark engines carry ids to Parquet under these keys; left behind they would outlive the mapping.
_PARQUET_KEYS: Final = ("parquet.field.id", "parquet.field.nested.ids")
_MAX_ID: Final = 2**31 - 1


class ColumnMappingMode(StrEnum):
    """How the columns of data files are found."""

    NONE = "none"
    NAME = "name"
    ID = "id"


def field_id(field: StructField) -> int | None:
    """The column id, if the field has one."""
    value = field.metadata.get(ID_KEY)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def physical_name(field: StructField) -> str:
    """The name in data files, partition values and statistics; the display name if unmapped."""
    value = field.metadata.get(PHYSICAL_NAME_KEY)
    return value if isinstance(value, str) else field.name


def nested_ids(field: StructField) -> dict[str, int]:
    """The ids of elements, keys and values below the field, by physical path."""
    value = field.metadata.get(NESTED_IDS_KEY)
    if not isinstance(value, Mapping):
        return {}
    return {k: v for k, v in value.items() if isinstance(v, int) and not isinstance(v, bool)}


def physical_schema(schema: Struct, mode: ColumnMappingMode) -> Struct:
    """The schema as data files spell it; metadata, ids included, stays on the fields."""
    if mode is ColumnMappingMode.NONE:
        return schema
    return _struct(map_fields(schema, lambda _, f: replace(f, name=physical_name(f))))


def physical_path(schema: Struct, path: ColumnPath, mode: ColumnMappingMode) -> ColumnPath:
    """The path as data files, statistics and partition values spell it.

    >>> mapped = StructField("a", Struct(), metadata={PHYSICAL_NAME_KEY: "col-1"})
    >>> physical_path(Struct((mapped,)), ("A",), ColumnMappingMode.ID)
    ('col-1',)
    """
    resolved = resolve_path(schema, path)
    if mode is ColumnMappingMode.NONE:
        return resolved
    parts: list[str] = []
    kind: DataType = schema
    for part in resolved:
        match kind:
            case Struct():
                child = kind.get(part)
                parts.append(physical_name(child) if child is not None else part)
                kind = child.type if child is not None else kind
            case Array(element):
                parts.append(part)
                kind = element
            case Map(key, value):
                parts.append(part)
                kind = key if part == "key" else value
            case _:
                parts.append(part)
    return tuple(parts)


def highest_id(schema: Struct) -> int:
    """The highest column id or nested id in the schema, 0 if there is none."""
    found = 0
    for _, field in walk_fields(schema):
        found = max(found, field_id(field) or 0, *nested_ids(field).values(), 0)
    return found


def assign_mapping(
    schema: Struct,
    *,
    max_id: int = 0,
    name_for: Callable[[int], str],
    nested_ids: bool = False,
    keep_names: bool = False,
) -> tuple[Struct, int]:
    """The schema with an id and a physical name on every field, and the new highest id.

    What a field already has is kept, so doing it twice changes nothing. ``name_for`` makes the
    physical name of a new field from its id; with ``keep_names`` it is the display name instead,
    as when mapping is switched on for a table that already has files.

    >>> from twinlake.schema.types import LONG
    >>> mapped, top = assign_mapping(
    ...     Struct((StructField("a", LONG),)), max_id=4, name_for=lambda i: f"col-{i}"
    ... )
    >>> physical_name(mapped.fields[0]), top
    ('col-5', 5)
    """
    counter = _Counter(max(max_id, highest_id(schema)))
    mapped = _assign_fields(schema, counter, name_for, keep_names)
    if nested_ids:
        mapped = _assign_nested(mapped, counter, None, "")
    return _struct(mapped), counter.last


def strip_mapping(schema: Struct) -> Struct:
    """The schema without any trace of column mapping, for tables in mode ``none``."""
    removed = dict.fromkeys((*MAPPING_KEYS, *_PARQUET_KEYS))
    return _struct(map_fields(schema, lambda _, field: field.with_metadata(**removed)))


def id_name(number: int) -> str:
    """The physical name that is made from an id, as tables for Iceberg writers have it."""
    return f"col-{number}"


def with_id_names(schema: Struct) -> Struct:
    """The schema with the physical name of every field made from its id."""
    return _struct(map_fields(schema, lambda _, field: _with_id_name(field)))


def _with_id_name(field: StructField) -> StructField:
    old, number = physical_name(field), field_id(field)
    if number is None or old == id_name(number):
        return field
    changes: dict[str, Any] = {PHYSICAL_NAME_KEY: id_name(number)}
    if NESTED_IDS_KEY in field.metadata:
        # Nested ids are keyed by the physical name.
        changes[NESTED_IDS_KEY] = {
            id_name(number) + path[len(old) :] if path.startswith(f"{old}.") else path: value
            for path, value in nested_ids(field).items()
        }
    return field.with_metadata(**changes)


def keep_mapping(new: DataType, old: DataType) -> DataType:
    """Ids and physical names of fields that keep name and type, as Delta's overwrite keeps them."""
    match new, old:
        case Struct(), Struct():
            fields = []
            for field in new:
                own = old.get(field.name)
                if own is not None:
                    field = replace(field, type=keep_mapping(field.type, own.type))
                    if _shape(field.type) == _shape(own.type):
                        known = {k: own.metadata[k] for k in MAPPING_KEYS if k in own.metadata}
                        field = field.with_metadata(**known)
                fields.append(field)
            return Struct(tuple(fields))
        case Array(), Array():
            return replace(new, element=keep_mapping(new.element, old.element))
        case Map(), Map():
            key = keep_mapping(new.key, old.key)
            return replace(new, key=key, value=keep_mapping(new.value, old.value))
        case _:
            return new


def _shape(kind: DataType) -> DataType:
    """The type without nullability and metadata, names folded."""
    match kind:
        case Struct(fields):
            return Struct(tuple(StructField(f.name.casefold(), _shape(f.type)) for f in fields))
        case Array(element):
            return Array(_shape(element))
        case Map(key, value):
            return Map(_shape(key), _shape(value))
        case _:
            return kind


def mapping_problems(schema: Struct, *, max_id: int | None = None) -> Iterator[tuple[str, str]]:
    """What breaks column mapping, as (dotted path, sentence): ids and names missing or doubled."""
    owners: dict[int, str] = {}
    physical: dict[tuple[str, ...], str] = {}
    for path, parent, field in _with_physical_parents(schema, (), ()):
        shown = render_path(path)
        own = field_id(field)
        if own is None:
            yield shown, f"has no {ID_KEY}"
        if PHYSICAL_NAME_KEY not in field.metadata:
            yield shown, f"has no {PHYSICAL_NAME_KEY}"
        claims = [] if own is None else [(own, shown)]
        claims += [(value, f"{shown} ({where})") for where, value in nested_ids(field).items()]
        for value, claimant in claims:
            if value in owners:
                yield shown, f"id {value} of {claimant} is also the id of {owners[value]}"
            owners.setdefault(value, claimant)
            if max_id is not None and value > max_id:
                yield (
                    shown,
                    f"id {value} of {claimant} is above {MAX_COLUMN_ID} = {max_id}",
                )
            if not 0 < value <= _MAX_ID:
                yield shown, f"id {value} of {claimant} is not a positive 32-bit number"
        # Data files tell columns apart by these names, and some of their readers ignore case.
        place = (*parent, physical_name(field).casefold())
        if place in physical:
            yield shown, f"physical name {physical_name(field)} is also that of {physical[place]}"
        physical.setdefault(place, shown)


@dataclass(slots=True)
class _Counter:
    last: int

    def take(self) -> int:
        if self.last >= _MAX_ID:
            raise UserError(
                Code.SCHEMA_INVALID,
                "The table has run out of column ids.",
                why=f"Column ids are 32-bit numbers and {self.last} is taken.",
                fix="Create a new table; ids of dropped columns are never given out again.",
            )
        self.last += 1
        return self.last


def _assign_fields(
    kind: DataType, counter: _Counter, name_for: Callable[[int], str], keep_names: bool
) -> DataType:
    def deeper(inner: DataType) -> DataType:
        return _assign_fields(inner, counter, name_for, keep_names)

    match kind:
        case Struct(fields):
            done = []
            for child in fields:
                additions: dict[str, Any] = {}
                own = field_id(child)
                if own is None:
                    own = additions[ID_KEY] = counter.take()
                if not isinstance(child.metadata.get(PHYSICAL_NAME_KEY), str):
                    additions[PHYSICAL_NAME_KEY] = child.name if keep_names else name_for(own)
                named = child.with_metadata(**additions) if additions else child
                done.append(replace(named, type=deeper(child.type)))
            return Struct(tuple(done))
        case Array(element):
            return replace(kind, element=deeper(element))
        case Map(key, value):
            return replace(kind, key=deeper(key), value=deeper(value))
        case _:
            return kind


def _assign_nested(
    kind: DataType, counter: _Counter, ids: dict[str, int] | None, path: str
) -> DataType:
    """One depth-first walk; ``ids`` collects what belongs to the nearest struct field above."""

    def step(inner: DataType, name: str) -> DataType:
        here = f"{path}.{name}"
        if ids is not None and here not in ids:
            ids[here] = counter.take()
        return _assign_nested(inner, counter, ids, here)

    match kind:
        case Struct(fields):
            done = []
            for child in fields:
                own = nested_ids(child)
                before = len(own)
                inner = _assign_nested(child.type, counter, own, physical_name(child))
                named = child.with_metadata(**{NESTED_IDS_KEY: own}) if len(own) > before else child
                done.append(replace(named, type=inner))
            return Struct(tuple(done))
        case Array(element):
            return replace(kind, element=step(element, "element"))
        case Map(key, value):
            # Keyword arguments are evaluated in order: the key's ids come before the value's.
            return replace(kind, key=step(key, "key"), value=step(value, "value"))
        case _:
            return kind


def _with_physical_parents(
    kind: DataType, path: ColumnPath, parent: tuple[str, ...]
) -> Iterator[tuple[ColumnPath, tuple[str, ...], StructField]]:
    match kind:
        case Struct(fields):
            for child in fields:
                here = (*path, child.name)
                yield here, parent, child
                place = (*parent, physical_name(child).casefold())
                yield from _with_physical_parents(child.type, here, place)
        case Array(element):
            yield from _with_physical_parents(element, (*path, "element"), (*parent, "element"))
        case Map(key, value):
            yield from _with_physical_parents(key, (*path, "key"), (*parent, "key"))
            yield from _with_physical_parents(value, (*path, "value"), (*parent, "value"))
        case _:
            pass


def _struct(kind: DataType) -> Struct:
    """What the walkers make of a struct is a struct; this tells the type checker."""
    return kind if isinstance(kind, Struct) else Struct()
