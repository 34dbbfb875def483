"""Conditions of users, as Spark runs them and as files are skipped by them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from pyspark.sql import Column
from pyspark.sql import functions as F

from twinlake.errors import Code, TwinlakeError, UserError
from twinlake.schema import Struct
from twinlake.schema.predicates import Opaque, parse_predicate
from twinlake.spark.read.columns import visible_field
from twinlake.spark.read.expression_ids import with_expression_ids
from twinlake.spark.read.table_scan import frame_of_plan
from twinlake.spark.spark_types import java_class, jvm_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from twinlake.protocol import Metadata
    from twinlake.schema.predicates import Expr
    from twinlake.table import Table

__all__ = ["Condition", "check_condition", "empty_frame", "skipping_expression", "template_of"]


def check_condition(condition: object) -> None:
    """SQL text, a Column, or nothing; Python's error for anything else, as in Delta."""
    if condition is not None and not isinstance(condition, (str, Column)):
        raise TypeError(f"'condition' must be a str or a Column, found {type(condition).__name__}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A condition on the rows of one table, checked against its columns."""

    column: Column
    sql: str
    """The resolved condition as SQL."""
    shown: str
    """As the history shows it."""
    expr: Expr
    """What of it can skip files."""
    alias: str | None = None
    """The name that it uses for the table."""
    like: DataFrame | None = None
    """A frame whose columns it may name."""

    def named(self, frame: DataFrame) -> DataFrame:
        """A frame of the table under the names that the condition uses."""
        if self.like is not None:
            frame = with_expression_ids(frame.sparkSession, frame, self.like)
        return frame if self.alias is None else frame.alias(self.alias)

    @staticmethod
    def of(
        spark: SparkSession,
        table: Table,
        condition: str | Column,
        operation: str,
        *,
        alias: str | None = None,
        target: DataFrame | None = None,
    ) -> Condition:
        """Resolve a condition; unknown columns and wrong types are errors of Spark's own.

        ``target``: the frame of the table that it may have taken columns from.
        """
        column = F.expr(condition) if isinstance(condition, str) else condition
        frame = empty_frame(spark, table.metadata)
        like = None if target is None else template_of(target)
        if like is not None and like.dtypes == frame.dtypes:
            frame = like
        else:
            like = None
        if alias is not None:
            frame = frame.alias(alias)
        filtered: Any = frame.where(column)._jdf.queryExecution().analyzed()
        resolved = filtered.condition()
        if not resolved.deterministic():
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"The condition of {operation} is not deterministic.",
                why=f"{resolved.sql()} may give another answer each time it is asked",
                fix="Write the values to a column first, then compare with it.",
                delta_class="DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
                fields={"operation": operation, "condition": resolved.sql()},
            )
        text = resolved.sql()
        return Condition(
            column=column,
            sql=text,
            shown=_as_shown(spark, filtered),
            expr=skipping_expression(spark, text, table.metadata),
            alias=alias,
            like=like,
        )


def template_of(frame: DataFrame) -> DataFrame:
    """A frame with the same columns, for resolving only.

    A frame of ``toDF()`` lists its files when it is looked at; its template does not.
    """
    found: DataFrame = getattr(frame, "_template", frame)
    return found


def _as_shown(spark: SparkSession, filtered: Any) -> str:
    """A condition as Delta puts it into the history: constants folded, columns numbered."""
    folding = java_class(spark, "org.apache.spark.sql.catalyst.optimizer.ConstantFolding")
    folded = folding.apply(filtered)
    return str(folded.condition().toString())


def skipping_expression(spark: SparkSession, sql: str, metadata: Metadata) -> Expr:
    """What of a condition can be answered from statistics; all the rest keeps every file."""
    try:
        zone = ZoneInfo(spark.conf.get("spark.sql.session.timeZone") or "UTC")
        return parse_predicate(sql, metadata.schema, timezone=zone)
    except (TwinlakeError, LookupError, ValueError):
        return Opaque(sql)


def empty_frame(spark: SparkSession, metadata: Metadata) -> DataFrame:
    """A frame with the table's columns and no rows, for resolving expressions against."""
    jsession: Any = spark._jsparkSession
    schema = Struct(tuple(visible_field(field) for field in metadata.schema))
    # An RDD, because the optimiser folds an empty local relation away with all filters on it.
    rows: Any = spark.sparkContext._jsc.emptyRDD()
    frame = jsession.createDataFrame(rows, jvm_type(spark, schema))
    return frame_of_plan(spark, frame.queryExecution().analyzed())
