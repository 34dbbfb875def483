"""Spark behind the ports of the control plane: executor, rewriter, content reader, row checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

from pyspark.sql import SparkSession

from twinlake.spark.delta_settings import show_values
from twinlake.spark.executor import SparkExecutor
from twinlake.spark.maintenance.rewrite import SparkRewriter
from twinlake.spark.read.content_hash import SparkContentReader
from twinlake.spark.read.table_scan import Scan
from twinlake.spark.rows.constraints import offending_rows
from twinlake.spark.session import check_session

if TYPE_CHECKING:
    from twinlake.log import Snapshot
    from twinlake.runtime import ContentReader, OffendingRows, Rewriter

__all__ = ["SparkEngine", "spark_engine"]


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """What a session can do for the control plane."""

    spark: SparkSession
    executor: SparkExecutor

    @property
    def rewriter(self) -> Rewriter:
        """Rewrites files."""
        return SparkRewriter(self.spark)

    @property
    def contents(self) -> ContentReader:
        """Hashes the rows of files, by whatever readers the session has."""
        return SparkContentReader(self.spark)

    def offending_rows(self, snapshot: Snapshot, expression: str, limit: int) -> OffendingRows:
        """The rows for which the expression is not true; some of them where values are shown."""
        frame = Scan(snapshot=snapshot, files=snapshot.files()).frame(self.spark)
        return offending_rows(frame, expression, limit if show_values(self.spark) else 0)


@overload
def spark_engine(spark: SparkSession) -> SparkEngine: ...
@overload
def spark_engine(spark: object) -> SparkEngine | None: ...
def spark_engine(spark: object) -> SparkEngine | None:
    """The engine of a Spark session; None for what is not one."""
    if not isinstance(spark, SparkSession) and not _is_connect(spark):
        return None
    session: SparkSession = spark  # type: ignore[assignment]
    check_session(session)
    return SparkEngine(session, SparkExecutor(session))


def _is_connect(spark: object) -> bool:
    """Whether it is a Spark Connect session, which gets an error that explains it."""
    kind = type(spark)
    return kind.__name__ == "SparkSession" and kind.__module__.startswith("pyspark.")
