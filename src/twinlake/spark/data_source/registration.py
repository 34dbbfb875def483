"""Registering the data source with a session, and the setting that its readers take."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from pyspark.errors import AnalysisException

from twinlake.spark.python_workers import worker_interpreter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["FILTER_SETTING", "register"]

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

    # A server of Spark Connect chooses the interpreter of its processes itself.
    classic = hasattr(spark, "_jsparkSession")
    if classic:
        _make_active(spark)
    try:
        with worker_interpreter(spark) if classic else nullcontext():
            spark.dataSource.register(TwinlakeDataSource)
    except AnalysisException as error:
        # Sessions that were made from one that has it have it too.
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
    _REGISTERED.add(spark)


def _make_active(spark: SparkSession) -> None:
    """Let Spark look in this session whether the name is taken.

    It looks in the active session of the thread, and where that one has the source it is not
    registered with this one.
    """
    session_class: Any = spark._get_j_spark_session_class(spark._jvm)
    session_class.setActiveSession(spark._jsparkSession)
