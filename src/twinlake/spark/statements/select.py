"""Queries, and Spark's own commands that have a query of our tables in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from twinlake.errors import Code, UnsupportedFeature
from twinlake.spark.statements.names import shown_name
from twinlake.spark.statements.plan_tree import items, texts
from twinlake.spark.statements.query import with_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from twinlake.spark.statements.statement import Statement

__all__ = ["query_frame", "run_command", "run_query"]

_TARGETS: Final = frozenset(
    {"UnresolvedTable", "UnresolvedTableOrView", "UnresolvedRelation", "UnresolvedIdentifier"}
)


def run_query(statement: Statement, plan: Any) -> DataFrame | None:
    """A query; None if it reads no table of ours."""
    found = with_tables(statement, plan)
    return None if found is None else statement.frame(found)


def query_frame(statement: Statement, plan: Any) -> DataFrame:
    """The rows of a query within a statement, whatever tables it reads."""
    found = with_tables(statement, plan)
    return statement.frame(plan if found is None else found)


def run_command(statement: Statement, plan: Any) -> DataFrame | None:
    """A command of Spark's that reads our tables; it cannot change them or be about them."""
    for child in (plan, *items(plan.children())):
        if str(child.nodeName()) in _TARGETS:
            _refuse_ours(statement, plan, child)
    changed = False

    def over_tables(part: Any) -> Any:
        nonlocal changed
        if not statement.tree.is_plan(part) or str(part.nodeName()) in _TARGETS:
            return part
        found = with_tables(statement, part)
        changed = changed or found is not None
        return part if found is None else found

    rebuilt = statement.tree.rebuilt(plan, over_tables, whole=True)
    return statement.frame(rebuilt) if changed else None


def _refuse_ours(statement: Statement, plan: Any, target: Any) -> None:
    naming = getattr(target, "multipartIdentifier", None) or target.nameParts
    try:
        parts = texts(naming())
    except TypeError:
        parts = texts(target.nameParts())
    if statement.names.find(parts) is None:
        return
    name = str(plan.nodeName())
    raise UnsupportedFeature(
        Code.NOT_YET,
        f"{name} is not supported on {shown_name(parts)}.",
        why="it is a table of twinlake, and Spark's own command knows nothing of it",
        fix="Use `DeltaTable.forName(spark, NAME)` or `twinlake.Table.open(PATH)`.",
        fields={"statement": name},
    )
