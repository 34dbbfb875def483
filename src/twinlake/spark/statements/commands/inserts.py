"""INSERT: into all or some columns, by position or by name, and in place of other rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from twinlake.errors import Code, UserError
from twinlake.spark.delta_settings import user_metadata
from twinlake.spark.dml.merge.execution import AUTO_MERGE
from twinlake.spark.dml.write import WriteOptions, write_table
from twinlake.spark.session import session_conf
from twinlake.spark.spark_types import quoted, spark_data_type
from twinlake.spark.statements.commands.row_changes import changed_table
from twinlake.spark.statements.queries.names import shown_name
from twinlake.spark.statements.queries.select import query_frame, run_command, run_query
from twinlake.spark.statements.syntax.default_values import with_defaults
from twinlake.spark.statements.syntax.plan_tree import items, option, texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from twinlake.schema import Struct
    from twinlake.spark.statements.queries.names import SqlTable
    from twinlake.spark.statements.queries.statement import SparkStatement

__all__ = ["insert_rows", "overwrite_by_expression", "several_inserts"]

_ARITY: Final = "DELTA_INSERT_COLUMN_ARITY_MISMATCH"
_LISTED_ARITY: Final = "INSERT_COLUMN_ARITY_MISMATCH"


def insert_rows(statement: SparkStatement, plan: Any) -> DataFrame | None:
    """``INSERT INTO | OVERWRITE table [PARTITION (...)] [(columns) | BY NAME] query``."""
    found = changed_table(statement, plan.table(), "INSERT")
    if found is None:
        return run_command(statement, plan)
    target, _ = found
    schema = statement.snapshot(target).metadata.schema
    fixed = _fixed_partitions(plan, schema)
    listed = texts(plan.userSpecifiedCols())
    by_name = bool(plan.byName())
    columns = listed or tuple(name for name in schema.names() if name not in fixed)
    query = with_defaults(statement.tree, plan.query(), columns, schema)
    frame = query_frame(statement, query)
    if not by_name:
        frame = _in_columns(frame, columns, target, schema, listed=bool(listed))
    for name, value in fixed.items():
        kind = spark_data_type(_type_of(schema, name))
        frame = frame.withColumn(name, F.lit(value).cast(kind))
    options = WriteOptions(mode="overwrite" if plan.overwrite() else "append")
    dynamic = session_conf(statement.spark, "spark.sql.sources.partitionOverwriteMode", "static")
    if plan.overwrite() and dynamic.lower() == "dynamic":
        options = replace(options, dynamic=True)
    elif plan.overwrite() and fixed:
        parts = [_is_value(name, fixed[name], frame) for name in fixed]
        options = replace(options, replace_where=" AND ".join(parts))
    return _written(statement, frame, target, options)


def overwrite_by_expression(statement: SparkStatement, plan: Any) -> DataFrame | None:
    """``INSERT INTO table REPLACE WHERE condition query``."""
    found = changed_table(statement, plan.table(), "INSERT")
    if found is None:
        return run_command(statement, plan)
    target, _ = found
    schema = statement.snapshot(target).metadata.schema
    frame = query_frame(
        statement, with_defaults(statement.tree, plan.query(), schema.names(), schema)
    )
    if plan.isByName():
        named = frame
    else:
        named = _in_columns(frame, schema.names(), target, schema, listed=False)
    condition = plan.deleteExpr()
    options = WriteOptions(
        mode="overwrite",
        replace_where=statement.text_of(condition),
        replace_where_shown=str(condition.sql()),
    )
    return _written(statement, named, target, options)


def several_inserts(statement: SparkStatement, plan: Any) -> DataFrame | None:
    """A union, or ``FROM ... INSERT INTO a ... INSERT INTO b ...``, refused for tables of ours."""
    children = items(plan.children())
    if not all(str(child.nodeName()) == "InsertIntoStatement" for child in children):
        return run_query(statement, plan)
    for child in children:
        found = changed_table(statement, child.table(), "INSERT")
        if found is not None:
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"Several INSERTs in one statement cannot write {shown_name(found[0].parts)}.",
                why="each of them is a commit, and they would not succeed or fail together",
                fix="Write one `INSERT INTO TABLE SELECT ...` for each table.",
                fields={"table": shown_name(found[0].parts)},
            )
    return None


def _written(
    statement: SparkStatement, frame: DataFrame, target: SqlTable, options: WriteOptions
) -> DataFrame:
    spark = statement.spark
    whole = replace(
        options,
        implicit_casts=True,
        merge_schema=session_conf(spark, AUTO_MERGE, "false").lower() == "true",
        user_metadata=user_metadata(spark),
    )
    write_table(frame, target.location, whole)
    return statement.nothing()


def _fixed_partitions(plan: Any, schema: Struct) -> dict[str, str | None]:
    """The partition columns with a value in the statement."""
    fixed = {}
    for pair in items(plan.partitionSpec().toSeq()):
        given = schema.get(str(pair._1()))
        if given is None:
            raise _no_column(str(pair._1()), schema)
        if pair._2().isDefined():
            value = option(pair._2())
            fixed[given.name] = None if value is None else str(value)
    return fixed


def _is_value(name: str, value: str | None, frame: DataFrame) -> str:
    """The condition on a partition column, as Delta's history shows it."""
    kind = dict(frame.dtypes)[name]
    if value is None:
        return f"({quoted_if_needed(name)} IS NULL)"
    text = (
        value if kind in _NUMBERS else "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    )
    return f"({quoted_if_needed(name)} <=> {text})"


_NUMBERS: Final = frozenset({"tinyint", "smallint", "int", "bigint", "boolean"})


def quoted_if_needed(name: str) -> str:
    """A column's name as Spark prints it in conditions."""
    return name if name.isidentifier() else quoted(name)


def _type_of(schema: Struct, name: str) -> Any:
    field = schema.get(name)
    assert field is not None
    return field.type


def _in_columns(
    frame: DataFrame,
    columns: Sequence[str],
    target: SqlTable,
    schema: Struct,
    *,
    listed: bool,
) -> DataFrame:
    """The frame with its columns named by position."""
    given = len(frame.columns)
    for name in columns:
        if schema.get(name) is None:
            raise _no_column(name, schema)
    if given != len(columns):
        few = given < len(columns)
        what = "NOT_ENOUGH_DATA_COLUMNS" if few else "TOO_MANY_DATA_COLUMNS"
        delta_class = f"{_LISTED_ARITY}.{what}" if listed else _ARITY
        raise UserError(
            Code.SCHEMA_EVOLUTION,
            f"{given} columns cannot be inserted into {len(columns)} of "
            f"{shown_name(target.parts)}.",
            why=f"the columns are {', '.join(columns)}",
            fix="Select as many columns, or name those that there are: `INSERT INTO TABLE "
            "(COLUMNS) SELECT ...`.",
            delta_class=delta_class if few or listed else "DELTA_METADATA_MISMATCH",
            fields={"columns": list(columns), "given": given},
        )
    return frame.toDF(*(_own_name(schema, name) for name in columns))


def _own_name(schema: Struct, name: str) -> str:
    field = schema.get(name)
    return name if field is None else field.name


def _no_column(name: str, schema: Struct) -> UserError:
    return UserError(
        Code.COLUMN_NOT_FOUND,
        f"The table has no column {name}.",
        why=f"its columns are {', '.join(schema.names())}",
        fix="Correct the name, or add the column with `ALTER TABLE ... ADD COLUMN`.",
        delta_class="UNRESOLVED_COLUMN.WITH_SUGGESTION",
        fields={"column": name},
    )
