"""The beginning and the end of a takeover."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from twinlake.errors import Code, UserError
from twinlake.spark.session import session_conf
from twinlake.spark.takeover import delta_modules, patches
from twinlake.spark.takeover.state import TAKEOVER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["begin", "end"]

_LOGGER: Final = logging.getLogger("twinlake.spark")
_DELTA_CLASSES: Final = (
    "io.delta.sql.DeltaSparkSessionExtension",
    "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "io.delta.tables.DeltaTable",
)
_DEFAULT_SOURCE: Final = "spark.sql.sources.default"


def begin(spark: SparkSession) -> None:
    """Hand PySpark's calls over; says so once."""
    _refuse_jar(spark)
    default = session_conf(spark, _DEFAULT_SOURCE, "parquet")
    with TAKEOVER.lock:
        was_on = TAKEOVER.is_on
        TAKEOVER.default_format = default
        TAKEOVER.add(spark)
        patches.install()
        delta_modules.install()
    if not was_on:
        # A warning, because it changes what calls of other code in this process do.
        _LOGGER.warning(
            "twinlake takes over format('delta'), spark.sql, names of tables and delta.tables in "
            "this process; twinlake.spark.disable(spark) ends it."
        )


def end(spark: SparkSession) -> None:
    """Give PySpark's calls back; a session that asked for nothing changes nothing."""
    with TAKEOVER.lock:
        if not TAKEOVER.is_on:
            return
        if TAKEOVER.remove(spark):
            patches.restore()
            delta_modules.restore()


def _refuse_jar(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    utils = jvm.org.apache.spark.util.Utils
    found = next((name for name in _DELTA_CLASSES if utils.classIsLoadable(name)), None)
    if found is None:
        return
    raise UserError(
        Code.INVALID_ARGUMENT,
        "The takeover cannot begin in a session that has Delta Spark.",
        why=f"its jar is on the class path ({found}), so that statements would go to both",
        fix="Start the session without `io.delta:delta-spark` in `spark.jars.packages` and "
        "`spark.jars`, and without its `spark.sql.extensions`; or run "
        "`twinlake.spark.enable(spark)` alone.",
        fields={"class": found},
    )
