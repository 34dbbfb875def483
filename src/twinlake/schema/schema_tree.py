"""A schema as a tree: lines at a terminal, nested lists in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake._html import Node, page, tree, visible
from twinlake.schema.ddl.text import render_definition
from twinlake.schema.types import Array, DataType, Map, Struct, StructField, walk_types

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["render_tree", "render_tree_html", "schema_nodes"]


def schema_nodes(kind: DataType) -> tuple[Node, ...]:
    """What is below a type. Arrays and maps without a struct inside are one line."""
    match kind:
        case Struct(fields):
            return tuple(map(_node, fields))
        case Array(element, contains_null):
            return (_node(StructField("element", element, contains_null)),)
        case Map(key, value, contains_null):
            return (
                _node(StructField("key", key)),
                _node(StructField("value", value, contains_null)),
            )
        case _:
            return ()


def _node(field: StructField) -> Node:
    if not any(isinstance(kind, Struct) for _, kind in walk_types(field.type)):
        return Node(field.name, render_definition(field))
    kind = type(field.type).__name__.upper()
    return Node(field.name, render_definition(field, kind=kind), schema_nodes(field.type))


def render_tree(schema: Struct) -> str:
    """The lines for a terminal.

    >>> from twinlake.schema.types import INTEGER, STRING
    >>> entry = Struct((StructField("n", INTEGER),))
    >>> print(render_tree(Struct((StructField("tags", Map(STRING, entry), nullable=False),))))
    Struct
    └── tags MAP NOT NULL
        ├── key STRING
        └── value STRUCT
            └── n INT
    """
    return "\n".join(["Struct", *_lines(schema_nodes(schema))])


def _lines(nodes: Sequence[Node]) -> Iterator[str]:
    for place, node in enumerate(nodes, 1):
        mark, below = ("└── ", "    ") if place == len(nodes) else ("├── ", "│   ")
        yield visible(f"{mark}{node.name} {node.text}")
        yield from (below + line for line in _lines(node.children))


def render_tree_html(schema: Struct) -> str:
    """For a notebook."""
    return page(
        f"{len(schema)} column{'' if len(schema) == 1 else 's'}", tree(schema_nodes(schema))
    )
