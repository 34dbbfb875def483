"""Queries, and Spark's own commands that have a query of our tables in them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from twinlake.errors import Code, TwinlakeError, UnsupportedFeature
from twinlake.schema import ColumnMappingMode
from twinlake.spark.read.scan import without_field_ids
from twinlake.spark.statements.queries.file_conditions import with_tables
from twinlake.spark.statements.queries.names import shown_name
from twinlake.spark.statements.syntax.plan_tree import items, texts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from twinlake.spark.statements.queries.statement import SparkStatement
    from twinlake.spark.statements.syntax.cursor import NameParts

__all__ = ["explain_query", "query_frame", "refuse_script", "run_command", "run_query"]

_TARGETS: Final = frozenset(
    {"UnresolvedTable", "UnresolvedTableOrView", "UnresolvedRelation", "UnresolvedIdentifier"}
)
_CHANGES: Final = frozenset(
    {
        "DeleteFromTable",
        "InsertIntoStatement",
        "MergeIntoTable",
        "OverwriteByExpression",
        "UpdateTable",
    }
)


def run_query(statement: SparkStatement, plan: Any) -> DataFrame | None:
    """A query; None if it reads no table of ours."""
    found = with_tables(statement, plan)
    return None if found is None else _shown(statement, statement.frame(found))


def query_frame(statement: SparkStatement, plan: Any) -> DataFrame:
    """The rows of a query within a statement, whatever tables it reads."""
    found = with_tables(statement, plan)
    return _shown(statement, statement.frame(plan if found is None else found))


def _shown(statement: SparkStatement, frame: DataFrame) -> DataFrame:
    """The frame without the ids that columns of mapped tables carry."""
    mapped = any(
        snapshot.metadata.column_mapping_mode is not ColumnMappingMode.NONE
        for snapshot in statement.read
    )
    if not mapped:
        return frame
    # A result may have types that no table can have, and then nothing is left out of it.
    with contextlib.suppress(TwinlakeError):
        return without_field_ids(frame)
    return frame


def explain_query(statement: SparkStatement, plan: Any) -> DataFrame | None:
    """``EXPLAIN query``; what changes a table of ours has no plan to show."""
    inner = plan.logicalPlan()
    if str(inner.nodeName()) not in _CHANGES:
        return run_command(statement, plan)
    parts = target_name(inner)
    if parts is None or statement.names.find(parts) is None:
        return None
    raise UnsupportedFeature(
        Code.NOT_YET,
        "EXPLAIN shows queries only.",
        why="a statement that changes a table runs as several jobs, not as one plan",
        fix="Write `EXPLAIN SELECT ...` for the query in it.",
        fields={"statement": str(inner.nodeName())},
    )


def run_command(statement: SparkStatement, plan: Any) -> DataFrame | None:
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


def refuse_script(statement: SparkStatement, plan: Any) -> DataFrame | None:
    """``BEGIN ... END``: refused where a table of ours is named in it."""
    if with_tables(statement, plan) is None:
        return None
    raise UnsupportedFeature(
        Code.NOT_YET,
        "A script with tables of twinlake in it cannot be run.",
        why="each of its statements would have to be looked at as it is reached",
        fix="Run its statements one by one: `twinlake.spark.sql(spark, STATEMENT)`.",
        fields={"statement": "BEGIN"},
    )


def target_name(plan: Any) -> NameParts | None:
    """The table that a statement changes."""
    target = plan.targetTable() if str(plan.nodeName()) == "MergeIntoTable" else plan.table()
    if str(target.nodeName()) == "SubqueryAlias":
        target = target.child()
    if str(target.nodeName()) != "UnresolvedRelation":
        return None
    return texts(target.multipartIdentifier())


def _refuse_ours(statement: SparkStatement, plan: Any, target: Any) -> None:
    by_identifier = str(target.nodeName()) == "UnresolvedIdentifier"
    parts = texts(target.nameParts() if by_identifier else target.multipartIdentifier())
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
