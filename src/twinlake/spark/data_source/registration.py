"""Registering the data source with a session, and the setting that its readers take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from weakref import WeakSet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["FILTER_SETTING", "FORMAT", "register"]

FORMAT: Final = "twinlake"

FILTER_SETTING: Final = "spark.sql.python.filterPushdown.enabled"
"""Without it Spark refuses a reader that can take filters, and names the setting."""

# Spark warns of a name that is registered again.
_REGISTERED: Final[WeakSet[SparkSession]] = WeakSet()


def register(spark: SparkSession) -> None:
    """Make ``format("twinlake")`` known to the session, and let filters reach it."""
    spark.conf.set(FILTER_SETTING, "true")
    if spark in _REGISTERED:
        return
    from twinlake.spark.data_source.source import TwinlakeDataSource

    spark.dataSource.register(TwinlakeDataSource)
    _REGISTERED.add(spark)
