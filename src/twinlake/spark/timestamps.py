"""Points in time as Spark users give them: text without a zone is in the session's zone."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from twinlake.errors import Code, UserError
from twinlake.log import parse_timestamp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["moment_of", "parsed_text"]


def moment_of(spark: SparkSession, given: str | int | dt.date) -> int:
    """Epoch milliseconds of a text, a number of them, a date or a datetime."""
    if isinstance(given, dt.datetime) and given.tzinfo is not None:
        return parse_timestamp(given)
    if isinstance(given, str | dt.date):
        return parsed_text(spark, str(given))[0]
    return parse_timestamp(given)


def parsed_text(spark: SparkSession, text: str) -> tuple[int, str]:
    """A time as Spark reads it: milliseconds, and its text as Java prints it."""
    moment = F.lit(text).try_cast("timestamp")
    one = spark.sql("SELECT 1")
    row = one.select(F.unix_millis(moment), moment.cast("string")).collect()[0]
    if row[0] is None:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{text!r} is not a timestamp.",
            fix="Write it as 2026-01-31 or 2026-01-31 12:00:00.",
            delta_class="DELTA_TIMESTAMP_INVALID",
            fields={"timestamp": text},
        )
    shown = str(row[1])
    # That is what Delta puts into the history.
    return int(row[0]), shown if "." in shown else f"{shown}.0"
