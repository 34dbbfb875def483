"""``schema.name-mapping.default``: how to read data files that carry no ids.

Such files were written before the table had ids, and have columns by their physical names; logical
names are listed beside them. Iceberg looks a column up by its whole path with dots, case and all,
and refuses a table in which two columns have one. So a name that is free goes to whom it is the
logical name of, and a physical name to its own column alone: that is what the files say.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.schema import Array, DataType, Map, Struct, field_id, nested_ids, physical_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["name_mapping"]

#: Readers list every way to spell a path. Each level with two names doubles them.
_LEVELS_WITH_TWO: Final = 6


@dataclass(slots=True)
class _Node:
    """A column, or a part of a list or a map."""

    id: int | None
    names: list[str]
    logical: str = ""
    """Another name it may have."""
    inner: list[_Node] = field(default_factory=list)

    def paths(self, above: Iterable[str], names: Iterable[str]) -> Iterator[str]:
        """Every spelling of its own path and of those below, by some of its names."""
        here = [f"{prefix}{name}" for prefix, name in product(above, names)]
        yield from here
        for node in self.inner:
            yield from node.paths([f"{path}." for path in here], node.names)

    def to_dict(self) -> dict[str, Any]:
        """The node as Iceberg spells it."""
        found: dict[str, Any] = {"field-id": self.id, "names": self.names}
        return found | {"fields": [node.to_dict() for node in self.inner]} if self.inner else found


def name_mapping(schema: Struct) -> str:
    """The mapping of a schema, as JSON."""
    taken: set[str] = set()
    nodes = _claimed(_columns(schema), "", taken)
    _add_logical(nodes, [""], taken, 1)
    return msgspec.json.encode([node.to_dict() for node in nodes]).decode()


def _columns(struct: Struct) -> list[_Node]:
    return [
        _Node(
            field_id(column),
            [physical_name(column)],
            column.name,
            _inner(column.type, nested_ids(column), physical_name(column)),
        )
        for column in struct
    ]


def _inner(kind: DataType, ids: Mapping[str, int], path: str) -> list[_Node]:
    match kind:
        case Struct():
            return _columns(kind)
        case Array(element):
            parts = [("element", element)]
        case Map(key, value):
            parts = [("key", key), ("value", value)]
        case _:
            return []
    return [
        _Node(ids.get(here := f"{path}.{name}"), [name], "", _inner(part, ids, here))
        for name, part in parts
    ]


def _claimed(nodes: list[_Node], above: str, taken: set[str]) -> list[_Node]:
    """The nodes, each with its path by physical names; a dot in a name may have given it away."""
    kept = []
    for node in nodes:
        if (path := f"{above}{node.names[0]}") not in taken:
            taken.add(path)
            node.inner = _claimed(node.inner, f"{path}.", taken)
            kept.append(node)
    return kept


def _add_logical(nodes: list[_Node], above: list[str], taken: set[str], level: int) -> None:
    for node in nodes:
        if node.logical and node.logical not in node.names and level <= _LEVELS_WITH_TWO:
            paths = list(node.paths(above, [node.logical]))
            if taken.isdisjoint(paths):
                taken.update(paths)
                node.names.insert(0, node.logical)
        below = [f"{prefix}{name}." for prefix, name in product(above, node.names)]
        _add_logical(node.inner, below, taken, level + 1)
