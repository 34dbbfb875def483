"""The word DEFAULT, where a statement gives a column its default value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from twinlake.schema import CURRENT_DEFAULT_KEY
from twinlake.spark.statements.syntax.plan_tree import items, texts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from twinlake.schema import Struct
    from twinlake.spark.statements.syntax.plan_tree import PlanTree

__all__ = ["default_of", "is_default", "with_defaults"]

_DEFAULT: Final = "DEFAULT"


def with_defaults(tree: PlanTree, query: Any, columns: Sequence[str], schema: Struct) -> Any:
    """VALUES with the defaults of their columns where DEFAULT is written."""
    if str(query.nodeName()) != "UnresolvedInlineTable":
        return query
    defaults = [default_of(tree, schema, name) for name in columns]
    rows, changed = [], False
    for row in items(query.rows()):
        cells = items(row)
        for position, cell in enumerate(cells):
            if position < len(defaults) and is_default(cell):
                cells[position] = defaults[position]
                changed = True
        rows.append(tree.sequence(cells))
    return query.copy(query.names(), tree.sequence(rows)) if changed else query


def is_default(expression: Any) -> bool:
    """Whether an expression is the word DEFAULT."""
    if str(expression.nodeName()) != "UnresolvedAttribute":
        return False
    return tuple(part.upper() for part in texts(expression.nameParts())) == (_DEFAULT,)


def default_of(tree: PlanTree, schema: Struct, name: str) -> Any:
    """The default of a column as a parsed expression; null where it has none."""
    field = schema.get(name)
    metadata: Mapping[str, Any] = {} if field is None else field.metadata
    return tree.expression(str(metadata.get(CURRENT_DEFAULT_KEY, "NULL")))
