"""``scan``: a table, or a version of it, as a DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twinlake.schema import Struct
from twinlake.spark.columns import visible_field
from twinlake.spark.scan import ROW_COMMIT_VERSION, ROW_ID, Scan
from twinlake.spark.session import open_table
from twinlake.spark.spark_types import from_spark, quoted, spark_type

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["scan"]


def scan(
    spark: SparkSession,
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    where: str | Column | None = None,
    version: int | None = None,
    timestamp: Any = None,
    row_ids: bool = False,
) -> DataFrame:
    """The rows of a table; only files that may hold rows of ``where`` are read."""
    table = open_table(spark, path, version, timestamp)
    files = table.snapshot.files(where if isinstance(where, str) else None)
    frame = Scan(snapshot=table.snapshot, files=files, row_ids=row_ids).frame(spark)
    if where is not None:
        frame = frame.where(where)
    if columns is not None:
        extra = [ROW_ID, ROW_COMMIT_VERSION] if row_ids else []
        frame = frame.select(*[quoted(name) for name in (*columns, *extra)])
    return without_field_ids(frame)


def without_field_ids(frame: DataFrame) -> DataFrame:
    """The frame, showing a schema without the ids by which nested fields are found.

    They have to stay on the columns themselves: a cast that took them off would also keep Spark
    from reading only the fields that are used.
    """
    cached: Any = frame
    cached._schema = spark_type(_shown(from_spark(frame.schema)))
    return frame


def _shown(schema: Struct) -> Struct:
    return Struct(tuple(visible_field(field) for field in schema))
