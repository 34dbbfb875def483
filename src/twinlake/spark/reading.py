"""``scan``: a table, or a version of it, as a DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twinlake.spark.scan import ROW_COMMIT_VERSION, ROW_ID, Scan
from twinlake.spark.session import open_table
from twinlake.spark.spark_types import quoted

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
    return frame
