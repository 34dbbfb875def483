"""Frames that are known to be small are written by the driver, without a Spark job.

Whether a frame is small is read off its plan, never found out by running it. Rows that the plan
holds are taken out as they are; only what has yet to be computed runs, once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa

from twinlake.spark.spark_types import java_class

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SMALL_BYTES", "small_batches"]

SMALL_BYTES: Final = 1 << 20
"""Frames estimated at less than this are small."""

_RANGE_ROWS_BYTES: Final = 1 << 17
_BATCH_ROWS: Final = 1 << 16
_BATCH_BYTES: Final = 64 << 20
_LEAVES: Final = frozenset({"LocalRelation", "Range", "OneRowRelation"})
# Nodes that give no more rows than they take, and whose cost is that of their expressions.
_INNER: Final = frozenset({"Project", "Filter", "LocalLimit", "GlobalLimit", "Union"})
_MAX_NODES: Final = 12
_CATALYST: Final = "org.apache.spark.sql.catalyst"


def small_batches(frame: DataFrame) -> Iterator[pa.RecordBatch] | None:
    """The rows of a small frame; None if it is not known to be small.

    With None nothing has been evaluated. Otherwise the frame is evaluated here and now.
    """
    execution = cast("Any", frame)._jdf.queryExecution()
    plan = execution.optimizedPlan()
    names = _names(plan)
    if names is None or plan.stats().sizeInBytes() >= SMALL_BYTES:
        return None
    spark = frame.sparkSession
    if names == ["LocalRelation"]:
        rows = plan.data().iterator()
    elif names == ["Project", "OneRowRelation"] and not plan.containsPattern(
        java_class(spark, f"{_CATALYST}.trees.TreePattern").PLAN_EXPRESSION()
    ):
        expressions = plan.projectList()
        interpreted = java_class(spark, f"{_CATALYST}.expressions.InterpretedUnsafeProjection")
        projection = interpreted.createProjection(expressions)
        projection.initialize(0)
        one = java_class(spark, "java.util.ArrayList")()
        one.add(projection.apply(java_class(spark, f"{_CATALYST}.InternalRow").empty()))
        rows = java_class(spark, "scala.jdk.javaapi.CollectionConverters").asScala(one.iterator())
    else:
        rows = execution.executedPlan().executeCollectIterator()._2()
    return iter(_to_arrow(spark, rows, execution.analyzed().schema()))


def _names(plan: Any) -> list[str] | None:
    """The nodes of the plan, top down; None if one of them may hide many rows."""
    names: list[str] = []
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        name = node.nodeName()
        names.append(name)
        if name in _LEAVES:
            if name == "Range" and node.stats().sizeInBytes() >= _RANGE_ROWS_BYTES:
                return None
            continue
        if name not in _INNER or len(names) > _MAX_NODES:
            return None
        children = node.children()
        waiting.extend(children.apply(i) for i in range(children.size()))
    return names


def _to_arrow(spark: SparkSession, rows: Any, schema: Any) -> list[pa.RecordBatch]:
    """Rows of Spark's own kind as Arrow, by the code that feeds Python workers too."""
    found = java_class(spark, "org.apache.spark.sql.execution.arrow.ArrowConverters$")
    converters = getattr(found, "MODULE$")
    # The zone is only a label on instants; large types are cast anyway.
    streams = converters.toBatchWithSchemaIterator(
        rows, schema, _BATCH_ROWS, _BATCH_BYTES, "UTC", False, False
    )
    batches: list[pa.RecordBatch] = []
    while streams.hasNext():
        with pa.ipc.open_stream(streams.next()) as reader:
            batches.extend(reader)
    return batches
