"""Frames with the expression ids (``exprId``) of the columns of other frames.

A column that was taken from a frame (``df.id``) means the column with that id. What is to
understand it has to have columns with the same ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twinlake.spark.read.table_scan import frame_of_plan
from twinlake.spark.spark_types import java_class

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["empty_copy", "with_expression_ids"]

_CATALYST = "org.apache.spark.sql.catalyst"


def empty_copy(spark: SparkSession, frame: DataFrame) -> DataFrame:
    """A frame without rows that has the columns of another, with their ids and qualifiers."""
    jdf: Any = frame._jdf
    jsession: Any = spark._jsparkSession
    rows: Any = spark.sparkContext._jsc.emptyRDD()
    empty = jsession.createDataFrame(rows, jdf.schema())
    plan = empty.queryExecution().analyzed()
    return _project(spark, plan, jdf.queryExecution().analyzed().output())


def with_expression_ids(spark: SparkSession, frame: DataFrame, like: DataFrame) -> DataFrame:
    """The frame with the column ids of ``like``, column by column; what it has beyond stays."""
    jdf: Any = frame._jdf
    wanted: Any = like._jdf
    output = wanted.queryExecution().analyzed().output()
    return _project(spark, jdf.queryExecution().analyzed(), output)


def _project(spark: SparkSession, child: Any, wanted: Any) -> DataFrame:
    alias = java_class(spark, f"{_CATALYST}.expressions.Alias")
    some = java_class(spark, "scala.Some")
    to_seq = java_class(spark, "org.apache.spark.api.python.PythonUtils").toSeq
    nothing, output = to_seq([]), child.output()
    columns = []
    for position in range(wanted.size()):
        attribute = wanted.apply(position)
        columns.append(
            alias(
                output.apply(position),
                attribute.name(),
                attribute.exprId(),
                attribute.qualifier(),
                some(attribute.metadata()),
                nothing,
            )
        )
    columns += [output.apply(position) for position in range(wanted.size(), output.size())]
    project = java_class(spark, f"{_CATALYST}.plans.logical.Project")
    return frame_of_plan(spark, project(to_seq(columns), child))
