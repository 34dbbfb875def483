"""Statements that change rows where they are: DELETE, UPDATE, MERGE and TRUNCATE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from twinlake.errors import Code, UserError
from twinlake.schema import render_path
from twinlake.spark.dml.delete import delete, truncate
from twinlake.spark.statements.queries.names import NO_ROWS, not_a_table
from twinlake.spark.statements.queries.select import query_frame
from twinlake.spark.statements.syntax.default_values import default_of, is_default
from twinlake.spark.statements.syntax.plan_tree import items, option, texts

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from twinlake.schema import Struct
    from twinlake.spark.dml.merge.builder import DeltaMergeBuilder
    from twinlake.spark.statements.queries.names import SqlTable
    from twinlake.spark.statements.queries.statement import SparkStatement

__all__ = ["delete_rows", "merge_rows", "truncate_table", "update_rows"]

_COUNT: Final = "num_affected_rows BIGINT"


def delete_rows(statement: SparkStatement, plan: Any) -> DataFrame | None:
    """``DELETE FROM table [alias] [WHERE condition]``."""
    found = changed_table(statement, plan.table(), "DELETE")
    if found is None:
        return None
    target, alias = found
    condition = plan.condition()
    table = target.open(statement.spark)
    deleted = delete(
        statement.spark,
        table,
        None if _is_true(condition) else one_row_column(statement, condition, "DELETE"),
        alias=alias,
        options=statement.options(table),
    )
    return statement.rows([(-1 if deleted is None else deleted,)], _COUNT)


def _is_true(condition: Any) -> bool:
    """Whether every row is meant, as without a WHERE."""
    return str(condition.nodeName()) == "Literal" and condition.value() is True


def update_rows(statement: SparkStatement, plan: Any) -> DataFrame | None:
    """``UPDATE table [alias] SET column = value, ... [WHERE condition]``."""
    found = changed_table(statement, plan.table(), "UPDATE")
    if found is None:
        return None
    target, alias = found
    handle = statement.delta_table(target, alias)
    schema = statement.snapshot(target).metadata.schema
    condition = option(plan.condition())
    count = handle._updated(
        None if condition is None else one_row_column(statement, condition, "UPDATE"),
        assignments(statement, plan.assignments(), schema, alias),
        shown=[] if condition is None else None,
    )
    return statement.rows([(count,)], _COUNT)


def one_row_column(statement: SparkStatement, expression: Any, what: str) -> Column:
    """An expression on one row as a column; a query in it would be another statement."""
    if statement.tree.has_queries(expression):
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"Sub-queries cannot be used in {what}.",
            why=f"{statement.text_of(expression)} needs more than the row that is looked at",
            fix="Write a MERGE with the sub-query as its source.",
            delta_class="DELTA_UNSUPPORTED_SUBQUERY",
            fields={"statement": what},
        )
    return statement.tree.column(expression)


def assignments(
    statement: SparkStatement, parsed: Any, schema: Struct, alias: str | None
) -> dict[str, str | Column]:
    """The values of a SET by the name of their column."""
    values: dict[str, str | Column] = {}
    for each in items(parsed):
        path = texts(each.key().nameParts())
        qualified = alias is not None and path[0].casefold() == alias.casefold()
        if qualified and len(path) > 1 and schema.get(path[0]) is None:
            path = path[1:]
        name = render_path(path)
        if name in values:
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"{name} is set twice.",
                why="a column gets one value",
                fix="Leave one of the two out.",
                delta_class="DELTA_CONFLICT_SET_COLUMN",
                fields={"column": name},
            )
        value = each.value()
        if is_default(value):
            value = default_of(statement.tree, schema, path[-1])
        values[name] = one_row_column(statement, value, "SET")
    return values


def merge_rows(statement: SparkStatement, plan: Any) -> DataFrame | None:
    """``MERGE [WITH SCHEMA EVOLUTION] INTO table USING source ON condition WHEN ...``."""
    found = changed_table(statement, plan.targetTable(), "MERGE")
    if found is None:
        return None
    target, alias = found
    source = query_frame(statement, plan.sourceTable())
    condition = one_row_column(statement, plan.mergeCondition(), "the condition of MERGE")
    schema = statement.snapshot(target).metadata.schema
    builder = statement.delta_table(target, alias).merge(source, condition)
    for clause in items(plan.matchedActions()):
        builder = _matched(statement, builder, clause, schema)
    for clause in items(plan.notMatchedActions()):
        builder = _not_matched(statement, builder, clause, schema)
    for clause in items(plan.notMatchedBySourceActions()):
        builder = _not_matched_by_source(statement, builder, clause, schema)
    if plan.withSchemaEvolution():
        builder = builder.withSchemaEvolution()
    return builder.execute()


def _when(statement: SparkStatement, clause: Any) -> tuple[str, Column | None]:
    """What a clause does, and under which condition."""
    condition = option(clause.condition())
    kind = str(clause.getClass().getSimpleName())
    if condition is None:
        return kind, None
    return kind, one_row_column(statement, condition, "a clause of MERGE")


def _matched(
    statement: SparkStatement, builder: DeltaMergeBuilder, clause: Any, schema: Struct
) -> DeltaMergeBuilder:
    kind, condition = _when(statement, clause)
    match kind:
        case "DeleteAction":
            return builder.whenMatchedDelete(condition)
        case "UpdateStarAction":
            return builder.whenMatchedUpdateAll(condition)
        case _:
            return builder.whenMatchedUpdate(
                condition, assignments(statement, clause.assignments(), schema, None)
            )


def _not_matched(
    statement: SparkStatement, builder: DeltaMergeBuilder, clause: Any, schema: Struct
) -> DeltaMergeBuilder:
    kind, condition = _when(statement, clause)
    if kind == "InsertStarAction":
        return builder.whenNotMatchedInsertAll(condition)
    return builder.whenNotMatchedInsert(
        condition, assignments(statement, clause.assignments(), schema, None)
    )


def _not_matched_by_source(
    statement: SparkStatement, builder: DeltaMergeBuilder, clause: Any, schema: Struct
) -> DeltaMergeBuilder:
    kind, condition = _when(statement, clause)
    if kind == "DeleteAction":
        return builder.whenNotMatchedBySourceDelete(condition)
    return builder.whenNotMatchedBySourceUpdate(
        condition, assignments(statement, clause.assignments(), schema, None)
    )


def truncate_table(statement: SparkStatement, plan: Any) -> DataFrame | None:
    """``TRUNCATE TABLE table``."""
    parts = texts(plan.table().multipartIdentifier())
    target = statement.names.find(parts)
    if target is None:
        return None
    table = target.open(statement.spark)
    truncate(statement.spark, table, options=statement.options(table))
    return statement.nothing()


def changed_table(
    statement: SparkStatement, relation: Any, what: str
) -> tuple[SqlTable, str | None] | None:
    """The table of ours that a statement changes, and its alias; None if it is Spark's."""
    alias = None
    if str(relation.nodeName()) == "SubqueryAlias":
        alias, relation = str(relation.alias()), relation.child()
    if str(relation.nodeName()) != "UnresolvedRelation":
        return None
    parts = texts(relation.multipartIdentifier())
    if statement.views.find(statement.names, parts) is not None:
        raise not_a_table(parts, what)
    found = statement.names.find(parts, missing=NO_ROWS)
    if found is None:
        return None
    own_name = None if len(parts) == 2 and "/" in parts[1] else parts[-1]
    return found, alias or own_name
