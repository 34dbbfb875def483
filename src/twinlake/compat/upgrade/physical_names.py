"""Taking files along to other physical names without touching them. Pure.

Statistics and partition values are keyed by physical names, so a file that stays gets new ones. It
can only stay where its own field ids are those of the schema, on every node: from then on nothing
else says which column is which.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.schema import (
    Array,
    ColumnMappingMode,
    DataType,
    Map,
    Struct,
    field_id,
    nested_ids,
    physical_name,
    walk_nodes,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from twinlake.actions import AddFile
    from twinlake.protocol import Metadata
    from twinlake.schema import ParquetNode, StructField

__all__ = ["Renaming", "id_mismatches", "renaming"]

_KEYED: Final = ("minValues", "maxValues", "nullCount")


@dataclass(frozen=True, slots=True)
class Renaming:
    """New names by old ones, each with the renaming of what lies below."""

    names: Mapping[str, tuple[str, Renaming]]

    def add(self, file: AddFile) -> AddFile:
        """The file under the new names, as an action that changes no row."""
        values = {self._name(key): value for key, value in file.partition_values.items()}
        return msgspec.structs.replace(
            file, partition_values=values, stats=self.stats(file.stats), data_change=False
        )

    def stats(self, text: str | None) -> str | None:
        """Statistics under the new names; numbers are kept digit by digit."""
        if text is None:
            return None
        found = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        for key in _KEYED:
            if key in found:
                found[key] = self._moved(found[key])
        return msgspec.json.encode(found).decode()

    def path(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """A path of physical names, as clustering keeps them."""
        here, parts = self, []
        for part in path:
            name, below = here.names.get(part, (part, Renaming({})))
            parts.append(name)
            here = below
        return tuple(parts)

    def _name(self, key: str) -> str:
        return self.names[key][0] if key in self.names else key

    def _moved(self, raw: msgspec.Raw) -> msgspec.Raw:
        if not self.names or not bytes(raw).lstrip().startswith(b"{"):
            return raw
        columns = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        moved = {}
        for key, value in columns.items():
            name, below = self.names.get(key, (key, Renaming({})))
            moved[name] = below._moved(value)
        return msgspec.Raw(msgspec.json.encode(moved))


def renaming(before: Metadata, after: Metadata) -> Renaming:
    """How the physical names of one metadata become those of another with the same columns."""
    mapped = before.column_mapping_mode is not ColumnMappingMode.NONE
    return _renaming(before.schema, after.schema, mapped)


def _renaming(old: DataType, new: DataType, mapped: bool) -> Renaming:
    # Statistics know the fields of structs, and nothing below arrays and maps.
    if not isinstance(old, Struct) or not isinstance(new, Struct):
        return Renaming({})
    return Renaming(
        {
            physical_name(one) if mapped else one.name: (
                physical_name(other),
                _renaming(one.type, other.type, mapped),
            )
            for one, other in zip(old, new, strict=True)
        }
    )


def id_mismatches(root: ParquetNode, before: Metadata, after: Metadata) -> Iterator[str]:
    """Where a file does not say by its ids alone which column of ``after`` is which."""
    numbers: dict[int, str] = {}
    for path, node in walk_nodes(root):
        if node.field_id is None:
            continue
        if node.field_id in numbers:
            yield f"id {node.field_id} is on {numbers[node.field_id]} and on {'.'.join(path)}"
        numbers.setdefault(node.field_id, ".".join(path))
    finder = _Finder(before.column_mapping_mode)
    yield from finder.struct(root, before.schema, after.schema, "")


@dataclass(frozen=True, slots=True)
class _Finder:
    """Walks a footer beside the schema its file was written for and the one it is to serve."""

    mode: ColumnMappingMode

    def struct(self, group: ParquetNode, old: Struct, new: Struct, path: str) -> Iterator[str]:
        for one, other in zip(old, new, strict=True):
            node = self._find(group, one)
            # A column that came later is not in older files, and reads as null in any mode.
            if node is not None:
                shown = f"{path}.{one.name}".lstrip(".")
                yield from self._check(node, field_id(other), shown)
                ids = nested_ids(other)
                yield from self.below(
                    node, one.type, other.type, (ids, physical_name(other)), shown
                )

    def _find(self, group: ParquetNode, field: StructField) -> ParquetNode | None:
        if self.mode is ColumnMappingMode.ID:
            return next((n for n in group.children if n.field_id == field_id(field)), None)
        name = field.name if self.mode is ColumnMappingMode.NONE else physical_name(field)
        return next((n for n in group.children if n.name == name), None)

    def below(
        self,
        node: ParquetNode,
        old: DataType,
        new: DataType,
        place: tuple[Mapping[str, int], str],
        shown: str,
    ) -> Iterator[str]:
        match old, new:
            case Struct(), Struct():
                yield from self.struct(node, old, new, shown)
            case Array(), Array():
                parts = [("element", old.element, new.element)]
                yield from self._parts(node, parts, place, shown)
            case Map(), Map():
                parts = [("key", old.key, new.key), ("value", old.value, new.value)]
                yield from self._parts(node, parts, place, shown)
            case _:
                return

    def _parts(
        self,
        node: ParquetNode,
        parts: list[tuple[str, Any, Any]],
        place: tuple[Mapping[str, int], str],
        shown: str,
    ) -> Iterator[str]:
        """Elements, keys and values lie in a wrapper group that has no id, in this order."""
        ids, prefix = place
        wrapper = node.children[0] if len(node.children) == 1 else None
        if wrapper is None or len(wrapper.children) != len(parts):
            yield f"{shown} is not laid out as a list or map of three levels"
            return
        for child, (name, old, new) in zip(wrapper.children, parts, strict=True):
            here = f"{prefix}.{name}"
            yield from self._check(child, ids.get(here), f"{shown}.{name}")
            yield from self.below(child, old, new, (ids, here), f"{shown}.{name}")

    @staticmethod
    def _check(node: ParquetNode, wanted: int | None, shown: str) -> Iterator[str]:
        if wanted is None or node.field_id != wanted:
            found = "no id" if node.field_id is None else f"id {node.field_id}"
            yield f"{shown} has {found}, the schema {'none' if wanted is None else wanted}"
