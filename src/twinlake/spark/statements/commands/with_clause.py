"""``WITH name AS (...)`` before a statement that changes rows: it belongs to the query in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from twinlake.spark.statements.commands.inserts import insert_rows, overwrite_by_expression
from twinlake.spark.statements.commands.row_changes import delete_rows, merge_rows, update_rows
from twinlake.spark.statements.queries.select import run_query
from twinlake.spark.statements.syntax.plan_tree import items

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame

    from twinlake.spark.statements.queries.statement import SparkStatement

__all__ = ["run_with_clause"]

_CHANGES: Final[Mapping[str, Callable[[SparkStatement, Any], DataFrame | None]]] = {
    "DeleteFromTable": delete_rows,
    "InsertIntoStatement": insert_rows,
    "MergeIntoTable": merge_rows,
    "OverwriteByExpression": overwrite_by_expression,
    "UpdateTable": update_rows,
}
_WITHOUT_QUERY: Final = frozenset({"DeleteFromTable", "UpdateTable"})


def run_with_clause(statement: SparkStatement, plan: Any) -> DataFrame | None:
    """A query with its WITH clause, or a change of rows whose query gets the clause."""
    inner = plan.child()
    name = str(inner.nodeName())
    change = _CHANGES.get(name)
    if change is None:
        return run_query(statement, plan)
    if name in _WITHOUT_QUERY:
        return change(statement, inner)
    # The query is the last child; before it a MERGE has its target.
    *before, query = items(inner.children())
    whole = plan.copy(query, plan.cteRelations(), plan.allowRecursion())
    return change(statement, inner.withNewChildren(statement.tree.sequence([*before, whole])))
