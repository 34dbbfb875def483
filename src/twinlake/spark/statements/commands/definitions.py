"""Statements that make tables and views, and take them away: CREATE, REPLACE and DROP."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from twinlake.errors import Code, UnsupportedFeature, UserError
from twinlake.schema import (
    COMMENT_KEY,
    CURRENT_DEFAULT_KEY,
    GENERATION_EXPRESSION_KEY,
    IDENTITY_EXPLICIT_KEY,
    IDENTITY_START_KEY,
    IDENTITY_STEP_KEY,
)
from twinlake.spark.api.catalog import managed_location
from twinlake.spark.api.column_definition import ColumnDefinition, columns_from_schema
from twinlake.spark.api.create_table import CreateMode, TableDefinition
from twinlake.spark.session import session_conf
from twinlake.spark.spark_types import from_spark, java_class, spark_type
from twinlake.spark.statements.commands.alterations import string_map
from twinlake.spark.statements.queries.file_conditions import with_tables
from twinlake.spark.statements.queries.names import FORMATS, is_path, shown_name
from twinlake.spark.statements.queries.select import query_frame, run_command
from twinlake.spark.statements.queries.views import SqlView
from twinlake.spark.statements.syntax.plan_tree import items, option, texts
from twinlake.table.rows import first_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from twinlake.spark.statements.queries.statement import SparkStatement
    from twinlake.spark.statements.syntax.cursor import NameParts

__all__ = [
    "create_lasting_view",
    "create_table",
    "create_table_as_select",
    "create_view",
    "drop_table",
    "replace_table",
    "replace_table_as_select",
]

_IDENTITY: Final = "identity"
_CLUSTERING: Final = frozenset({"cluster_by", "temp_cluster_by"})


def create_table(statement: SparkStatement, plan: Any) -> DataFrame | None:
    """``CREATE TABLE [IF NOT EXISTS] table (columns) USING delta ...``."""
    mode = CreateMode.IF_NOT_EXISTS if plan.ignoreIfExists() else CreateMode.CREATE
    return _defined(statement, plan, mode)


def replace_table(statement: SparkStatement, plan: Any) -> DataFrame | None:
    """``[CREATE OR] REPLACE TABLE table (columns) USING delta ...``."""
    mode = CreateMode.CREATE_OR_REPLACE if plan.orCreate() else CreateMode.REPLACE
    return _defined(statement, plan, mode)


def create_table_as_select(statement: SparkStatement, plan: Any) -> DataFrame | None:
    """``CREATE TABLE [IF NOT EXISTS] table USING delta ... AS query``."""
    mode = CreateMode.IF_NOT_EXISTS if plan.ignoreIfExists() else CreateMode.CREATE
    return _selected(statement, plan, mode)


def replace_table_as_select(statement: SparkStatement, plan: Any) -> DataFrame | None:
    """``[CREATE OR] REPLACE TABLE table USING delta ... AS query``."""
    mode = CreateMode.CREATE_OR_REPLACE if plan.orCreate() else CreateMode.REPLACE
    return _selected(statement, plan, mode)


def _defined(statement: SparkStatement, plan: Any, mode: CreateMode) -> DataFrame | None:
    parts = texts(plan.name().nameParts())
    if not _is_ours(statement, parts, plan.tableSpec()):
        return None
    columns = tuple(_column(each) for each in items(plan.columns()))
    mode.run(statement.spark, _definition(statement, plan, parts, columns))
    return statement.nothing()


def _selected(statement: SparkStatement, plan: Any, mode: CreateMode) -> DataFrame | None:
    parts = texts(plan.name().nameParts())
    if not _is_ours(statement, parts, plan.tableSpec()):
        return run_command(statement, plan)
    if mode is CreateMode.IF_NOT_EXISTS and _is_there(statement, parts):
        return statement.nothing()
    rows = query_frame(statement, plan.query())
    # As in Delta Spark the columns of a query may be null, whatever Spark knows of its rows.
    columns = columns_from_schema(spark_type(first_schema(from_spark(rows.schema))))
    definition = _definition(statement, plan, parts, columns)
    mode.run(statement.spark, definition.changed(rows=rows))
    return statement.nothing()


def _is_there(statement: SparkStatement, parts: NameParts) -> bool:
    try:
        return statement.names.find(parts) is not None
    except UserError:
        return False


def _is_ours(statement: SparkStatement, parts: NameParts, spec: Any) -> bool:
    """Whether a new table is to be ours: by its format, or by its path."""
    provider = option(spec.provider())
    if is_path(parts):
        return True
    if provider is None:
        provider = session_conf(statement.spark, "spark.sql.sources.default", "parquet")
    return str(provider).lower() in FORMATS


def _definition(
    statement: SparkStatement, plan: Any, parts: NameParts, columns: tuple[ColumnDefinition, ...]
) -> TableDefinition:
    spec = plan.tableSpec()
    _refuse_constraints(parts, spec)
    partition_by, cluster_by = _layout(plan.partitioning())
    options = _options(spec)
    properties = {
        **string_map(spec.properties()),
        **options,
        **{f"option.{key}": value for key, value in options.items()},
    }
    location = option(spec.location())
    if is_path(parts):
        name, location = None, location or parts[1]
    else:
        name = statement.names.text(parts)
    return TableDefinition(
        name=name,
        location=location,
        comment=option(spec.comment()),
        columns=columns,
        partition_by=partition_by,
        cluster_by=cluster_by,
        properties=properties,
    )


def _options(spec: Any) -> dict[str, str]:
    """OPTIONS, whose values are literals."""
    pairs = items(spec.optionExpression().options())
    return {str(pair._1()): str(pair._2().value()) for pair in pairs}


def _refuse_constraints(parts: NameParts, spec: Any) -> None:
    constraints = items(spec.constraints())
    if constraints:
        raise UnsupportedFeature(
            Code.NOT_YET,
            f"{shown_name(parts)} cannot be created with constraints in its definition.",
            why="a CHECK is added to a table that is there, and keys are not enforced",
            fix="Create the table, then run `ALTER TABLE ... ADD CONSTRAINT NAME CHECK "
            "(EXPRESSION)`.",
            delta_class="UNSUPPORTED_FEATURE.TABLE_OPERATION",
            fields={"table": shown_name(parts)},
        )


def _layout(transforms: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns to partition by, and those to cluster by."""
    partition_by: list[str] = []
    cluster_by: list[str] = []
    for transform in items(transforms):
        name = str(transform.name())
        columns = [".".join(each.fieldNames()) for each in transform.references()]
        if name == _IDENTITY:
            partition_by += columns
        elif name in _CLUSTERING:
            cluster_by += columns
        else:
            raise UnsupportedFeature(
                Code.NOT_YET,
                f"A table cannot be partitioned by {transform.describe()}.",
                why="Delta partitions by columns only",
                fix="Add a generated column with that expression and partition by it.",
                delta_class="DELTA_OPERATION_NOT_ALLOWED",
                fields={
                    "operation": "Partitioning by expressions",
                    "transform": str(transform.describe()),
                },
            )
    return tuple(partition_by), tuple(cluster_by)


def _column(column: Any) -> ColumnDefinition:
    metadata: dict[str, Any] = {}
    comment, default = option(column.comment()), option(column.defaultValue())
    generated, identity = option(column.generationExpression()), option(column.identityColumnSpec())
    if comment is not None:
        metadata[COMMENT_KEY] = str(comment)
    if default is not None:
        metadata[CURRENT_DEFAULT_KEY] = str(default.originalSQL())
    if generated is not None:
        metadata[GENERATION_EXPRESSION_KEY] = str(generated)
    if identity is not None:
        metadata[IDENTITY_START_KEY] = int(identity.getStart())
        metadata[IDENTITY_STEP_KEY] = int(identity.getStep())
        metadata[IDENTITY_EXPLICIT_KEY] = bool(identity.isAllowExplicitInsert())
    return ColumnDefinition(
        name=str(column.name()),
        type=json.loads(column.dataType().json()),
        nullable=bool(column.nullable()),
        metadata=metadata,
    )


def drop_table(statement: SparkStatement, plan: Any) -> DataFrame | None:
    """``DROP TABLE [IF EXISTS] table``; the rows of a managed table go with it."""
    parts = texts(plan.child().nameParts())
    names, spark = statement.names, statement.spark
    if is_path(parts):
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{shown_name(parts)} cannot be dropped.",
            why="DROP TABLE takes a name out of a catalog, and a path has none",
            fix="Delete the rows with `DELETE FROM TABLE`, or delete the folder.",
            fields={"table": shown_name(parts)},
        )
    if names.temporary_view(parts) is not None or not names.is_taken(parts):
        return None
    name = names.text(parts)
    location = names.catalog.locate(name)
    managed = location == managed_location(spark, names.catalog.parse(name))
    names.catalog.drop(name)
    if managed:
        jsession: Any = spark._jsparkSession
        path = java_class(spark, "org.apache.hadoop.fs.Path")(location)
        path.getFileSystem(jsession.sessionState().newHadoopConf()).delete(path, True)
    return statement.nothing()


def create_view(statement: SparkStatement, plan: Any) -> DataFrame | None:
    """``CREATE [OR REPLACE] TEMPORARY VIEW view AS query``, where the query reads our tables."""
    query = plan.plan()
    found = with_tables(statement, query)
    if found is None:
        return None
    name = str(plan.name().table())
    if str(plan.viewType().toString()) != "LocalTempView":
        raise _not_temporary(name)
    columns = tuple(str(pair._1()) for pair in items(plan.userSpecifiedColumns()))
    if columns:
        found = statement.tree.with_column_names(found, columns)
    frame = statement.frame(found)
    if plan.replace():
        frame.createOrReplaceTempView(name)
    elif plan.allowExisting() and statement.names.temporary_view((name,)) is not None:
        return statement.nothing()
    else:
        frame.createTempView(name)
    text = option(plan.originalText())
    if text is not None:
        view = statement.names.temporary_view((name,))
        statement.views.add(SqlView(name=name, query=str(text), columns=columns, spark_view=view))
    return statement.nothing()


def create_lasting_view(statement: SparkStatement, plan: Any) -> DataFrame | None:
    """``CREATE VIEW view AS query``: refused where the query reads our tables."""
    if with_tables(statement, plan.query()) is not None:
        raise _not_temporary(shown_name(texts(plan.child().nameParts())))
    return None


def _not_temporary(name: str) -> UserError:
    return UserError(
        Code.INVALID_ARGUMENT,
        f"The view {name} cannot be kept.",
        why="Spark's catalog would hold its query, and Spark alone cannot read the tables in it",
        fix="Write `CREATE TEMPORARY VIEW NAME AS ...` in each session.",
        fields={"view": name},
    )
