"""Iceberg schemas as Delta's, with Iceberg's ids.

Column ids are Iceberg's field ids and physical names are made from them, so that data files are
found by what they carry already.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from twinlake.iceberg.format.schema import delta_type
from twinlake.schema import (
    COMMENT_KEY,
    ID_KEY,
    NESTED_IDS_KEY,
    PHYSICAL_NAME_KEY,
    Array,
    Map,
    Struct,
    StructField,
    TypeChange,
    can_widen,
    id_name,
    render_type,
    with_type_change,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from twinlake.schema import DataType

__all__ = ["ImportedSchema", "import_schema"]

_NAMES: Final = frozenset(
    {"boolean", "int", "long", "float", "double", "date", "string", "binary"}
    | {"timestamp", "timestamptz"}
)


@dataclass(frozen=True, slots=True)
class ImportedSchema:
    """A schema, and what of it Delta cannot say."""

    schema: Struct
    problems: tuple[str, ...]
    is_widened: bool = False
    """Whether a column once had a narrower type, which old files may still have."""


def import_schema(
    document: Mapping[str, Any], earlier: Iterable[Mapping[str, Any]] = ()
) -> ImportedSchema:
    """The Delta schema; ``earlier`` are the schemas before it, oldest first."""
    reader = _Reader(_histories([*earlier, document]))
    schema = reader.struct(document, "")
    return ImportedSchema(schema, tuple(reader.problems), reader.is_widened)


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
        physical = id_name(number)
        nested: dict[str, int] = {}
        changes: list[TypeChange] = []
        kind = self._type(one["type"], path, physical, nested, (number, ()), changes)
        metadata: dict[str, Any] = {ID_KEY: number, PHYSICAL_NAME_KEY: physical}
        if nested:
            metadata[NESTED_IDS_KEY] = nested
        if one.get("doc"):
            metadata[COMMENT_KEY] = one["doc"]
        if one.get("initial-default") is not None or one.get("write-default") is not None:
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
        if not _is_known(kind):
            self.problems.append(f"column {path} has type {kind}")
            return delta_type("binary")
        types = self.histories.get(here[0], [kind])
        known = [delta_type(one) for one in types if _is_known(one)]
        for before, after in pairwise(known):
            if not can_widen(before, after, iceberg=True):
                change = f"{render_type(before)} to {render_type(after)}"
                self.problems.append(f"column {path} went from {change}")
                continue
            changes.append(TypeChange(from_type=before, to_type=after, field_path=here[1]))
            self.is_widened = True
        return delta_type(kind)


def _is_known(kind: str) -> bool:
    return kind in _NAMES or kind.startswith("decimal(")
