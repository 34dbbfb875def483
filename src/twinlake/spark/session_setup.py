"""``enable`` and ``disable``: what a session is told once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.spark import data_source, takeover
from twinlake.spark.errors import raises_spark_errors
from twinlake.spark.session import PINNED, check_classic, check_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["disable", "enable"]


@raises_spark_errors
def enable(spark: SparkSession, delta: bool = False) -> SparkSession:
    """Prepare a session: the data source ``twinlake``, and settings; returns the session.

    ``scan`` and ``write`` need none of it. With ``delta=True`` code that was written for Delta
    Spark runs as it is, in this process and until ``disable``: ``format("delta")``,
    ``spark.sql``, names of tables and ``delta.tables`` are then twinlake's. A Spark Connect session
    gets the data source alone.
    """
    if delta:
        check_classic(spark)
    if hasattr(spark, "_jsparkSession"):
        check_session(spark)
    for key, value in PINNED.items():
        spark.conf.set(key, value)
    data_source.register(spark)
    if delta:
        takeover.begin(spark)
    return spark


@raises_spark_errors
def disable(spark: SparkSession) -> SparkSession:
    """End what ``enable(spark, delta=True)`` began; returns the session.

    The data source and the settings stay.
    """
    takeover.end(spark)
    return spark
