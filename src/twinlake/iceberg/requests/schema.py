"""Iceberg schemas as Delta's, with Iceberg's ids.

Column ids are Iceberg's field ids and physical names are made from them, so that data files are
found by what they carry already. A column that the table has already keeps its physical name, its
type as Delta spells it, and its metadata.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from twinlake.iceberg.format.schema import delta_type, iceberg_type
from twinlake.iceberg.requests.table_request import malformed
from twinlake.schema import (
    COMMENT_KEY,
    CURRENT_DEFAULT_KEY,
    ID_KEY,
    NESTED_IDS_KEY,
    PHYSICAL_NAME_KEY,
    Array,
    Map,
    Struct,
    StructField,
    TypeChange,
    can_widen,
    field_id,
    id_name,
    nested_ids,
    physical_name,
    render_type,
    with_type_change,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from twinlake.schema import DataType

__all__ = ["ImportedSchema", "changed_schema", "import_schema", "with_fresh_ids"]

_NAMES: Final = frozenset(
    {"boolean", "int", "long", "float", "double", "date", "string", "binary"}
    | {"timestamp", "timestamptz"}
)
_SINCE_V3: Final = frozenset({"variant"})


@dataclass(frozen=True, slots=True)
class ImportedSchema:
    """A schema, and what of it Delta cannot say."""

    schema: Struct
    problems: tuple[str, ...]
    is_widened: bool = False
    """Whether a column once had a narrower type, which old files may still have."""


def import_schema(
    document: Mapping[str, Any],
    earlier: Iterable[Mapping[str, Any]] = (),
    *,
    format_version: int = 2,
) -> ImportedSchema:
    """The Delta schema; ``earlier`` are the schemas before it, oldest first."""
    documents = [*earlier, document]
    histories = _histories(documents) if all(map(_is_schema, documents)) else {}
    return _read(_Reader(histories, names=_type_names(format_version)), document)


def _type_names(format_version: int) -> frozenset[str]:
    return _NAMES | (_SINCE_V3 if format_version > 2 else frozenset())


def changed_schema(
    current: Struct,
    current_document: Mapping[str, Any],
    document: Mapping[str, Any],
    *,
    format_version: int = 2,
) -> ImportedSchema:
    """The schema that a client asks for, in place of the table's current one.

    ``current_document`` is the current schema as the client saw it. ``UserError`` where the
    document is no schema at all.
    """
    columns = dict(_columns(current))
    reader = _Reader(
        _histories([current_document, document]) if _is_schema(document) else {},
        names=_type_names(format_version),
        columns=columns,
        types={number: kind for column in columns.values() for number, kind in _types(column)},
    )
    return _read(reader, document)


def _read(reader: _Reader, document: Mapping[str, Any]) -> ImportedSchema:
    try:
        schema = reader.struct(document, "")
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise malformed(f"the schema is none: {type(error).__name__}: {error}") from error
    return ImportedSchema(schema, tuple(reader.problems), reader.is_widened)


def _is_schema(document: Mapping[str, Any]) -> bool:
    """Whether ids and types are where they belong; what is wrong is said when it is read."""
    try:
        _histories([document])
    except (LookupError, TypeError, AttributeError, RecursionError):
        return False
    return True


def with_fresh_ids(document: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """A schema with ids from 1 on, level by level as Iceberg's libraries give them; and the last.

    >>> with_fresh_ids({"fields": [{"id": 7, "name": "a", "required": True, "type": "int"}]})
    ({'fields': [{'id': 1, 'name': 'a', 'required': True, 'type': 'int'}]}, 1)
    """
    try:
        ids = _IdAssignment()
        return ids.assigned(document), ids.last
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise malformed(f"the schema is none: {type(error).__name__}: {error}") from error


@dataclass
class _IdAssignment:
    """Fresh ids: those of a struct's own fields come before those inside them."""

    last: int = 0
    given: dict[int, int] = field(default_factory=dict)
    """The new id of each old one."""

    def assigned(self, kind: Any) -> Any:
        """A type, or a schema, with new ids."""
        if isinstance(kind, str):
            return kind
        if "fields" in kind:
            numbers = [self._next(one["id"]) for one in kind["fields"]]
            fields = [
                {**one, "id": number, "type": self.assigned(one["type"])}
                for one, number in zip(kind["fields"], numbers, strict=True)
            ]
            found = {**kind, "fields": fields}
            if "identifier-field-ids" in kind:
                found["identifier-field-ids"] = [
                    self.given[n] for n in kind["identifier-field-ids"]
                ]
            return found
        parts = [part for part in ("element", "key", "value") if f"{part}-id" in kind]
        found = {**kind, **{f"{part}-id": self._next(kind[f"{part}-id"]) for part in parts}}
        return {**found, **{part: self.assigned(kind[part]) for part in parts}}

    def _next(self, old: int) -> int:
        self.last += 1
        self.given[old] = self.last
        return self.last


def _columns(struct: Struct) -> Iterator[tuple[int, StructField]]:
    """Every field of a schema by its id, at any depth."""

    def inside(kind: DataType) -> Iterator[tuple[int, StructField]]:
        match kind:
            case Struct():
                yield from _columns(kind)
            case Array():
                yield from inside(kind.element)
            case Map():
                yield from inside(kind.key)
                yield from inside(kind.value)

    for column in struct:
        number = field_id(column)
        if number is not None:
            yield number, column
        yield from inside(column.type)


def _types(column: StructField) -> Iterator[tuple[int, DataType]]:
    """The types of a field and of its elements, keys and values, by their ids."""
    ids = nested_ids(column)

    def inside(kind: DataType, at: str) -> Iterator[tuple[int, DataType]]:
        match kind:
            case Array():
                parts = {"element": kind.element}
            case Map():
                parts = {"key": kind.key, "value": kind.value}
            case _:
                parts = {}
        for name, part in parts.items():
            if (number := ids.get(f"{at}.{name}")) is not None:
                yield number, part
            yield from inside(part, f"{at}.{name}")

    number = field_id(column)
    if number is not None:
        yield number, column.type
    yield from inside(column.type, physical_name(column))


def _histories(documents: list[Mapping[str, Any]]) -> dict[int, list[str]]:
    """The types that each id has had, oldest first, each once."""
    found: dict[int, list[str]] = {}

    def look(number: int, kind: Any) -> None:
        if isinstance(kind, str):
            types = found.setdefault(number, [])
            if not types or types[-1] != kind:
                types.append(kind)
            return
        for inner in kind.get("fields", ()):
            look(inner["id"], inner["type"])
        for part in ("element", "key", "value"):
            if f"{part}-id" in kind:
                look(kind[f"{part}-id"], kind[part])

    for document in documents:
        look(-1, document)
    return found


@dataclass
class _Reader:
    histories: Mapping[int, list[str]]
    names: frozenset[str] = _NAMES
    columns: Mapping[int, StructField] = field(default_factory=dict)
    """The columns that the table has, by id."""
    types: Mapping[int, DataType] = field(default_factory=dict)
    """Their types, and those of elements, keys and values."""
    problems: list[str] = field(default_factory=list)
    is_widened: bool = False

    def struct(self, document: Mapping[str, Any], prefix: str) -> Struct:
        fields: list[StructField] = []
        names: dict[str, str] = {}
        for one in document["fields"]:
            path = f"{prefix}{one['name']}"
            other = names.setdefault(one["name"].casefold(), path)
            if other != path:
                self.problems.append(f"columns {other} and {path} differ in case only")
            fields.append(self._field(one, path))
        return Struct(tuple(fields))

    def _field(self, one: Mapping[str, Any], path: str) -> StructField:
        number = int(one["id"])
        known = self.columns.get(number)
        physical = id_name(number) if known is None else physical_name(known)
        nested: dict[str, int] = {}
        changes: list[TypeChange] = []
        kind = self._type(one["type"], path, physical, nested, (number, ()), changes)
        metadata = {} if known is None else dict(known.metadata)
        for key in (COMMENT_KEY, NESTED_IDS_KEY):
            metadata.pop(key, None)
        metadata |= {ID_KEY: number, PHYSICAL_NAME_KEY: physical}
        if nested:
            metadata[NESTED_IDS_KEY] = nested
        if one.get("doc"):
            metadata[COMMENT_KEY] = one["doc"]
        if one.get("initial-default") is not None or (
            one.get("write-default") is not None and CURRENT_DEFAULT_KEY not in metadata
        ):
            self.problems.append(f"column {path} has a default")
        made = StructField(one["name"], kind, not one.get("required", False), metadata)
        for change in changes:
            made = with_type_change(made, change)
        return made

    def _type(
        self,
        kind: Any,
        path: str,
        at: str,
        nested: dict[str, int],
        here: tuple[int, tuple[str, ...]],
        changes: list[TypeChange],
    ) -> DataType:
        if isinstance(kind, str):
            return self._leaf(kind, path, here, changes)
        if kind["type"] == "struct":
            return self.struct(kind, f"{path}.")
        parts: dict[str, DataType] = {}
        for part in ("element", "key", "value"):
            if f"{part}-id" not in kind:
                continue
            own, number = f"{at}.{part}", int(kind[f"{part}-id"])
            nested[own] = number
            inside = (number, (*here[1], part))
            parts[part] = self._type(kind[part], f"{path}.{part}", own, nested, inside, changes)
        if kind["type"] == "list":
            return Array(parts["element"], not kind.get("element-required", False))
        return Map(parts["key"], parts["value"], not kind.get("value-required", False))

    def _leaf(
        self,
        kind: str,
        path: str,
        here: tuple[int, tuple[str, ...]],
        changes: list[TypeChange],
    ) -> DataType:
        if not self._is_known(kind):
            self.problems.append(f"column {path} has type {kind}")
            return delta_type("binary")
        own = self.types.get(here[0])
        if own is not None and iceberg_type(own) == kind:
            # Iceberg has one type for several of Delta's.
            return own
        types = self.histories.get(here[0], [kind])
        known = [delta_type(one) for one in types if self._is_known(one)]
        for before, after in pairwise(known):
            if not can_widen(before, after, iceberg=True):
                change = f"{render_type(before)} to {render_type(after)}"
                self.problems.append(f"column {path} went from {change}")
                continue
            changes.append(TypeChange(from_type=before, to_type=after, field_path=here[1]))
            self.is_widened = True
        return delta_type(kind)

    def _is_known(self, kind: str) -> bool:
        return kind in self.names or kind.startswith("decimal(")
