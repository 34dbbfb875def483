"""What a driver does whose locale, time zone and working directory are not what one expects."""

from __future__ import annotations

import datetime as dt
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.spark.child_drivers import start_session, step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

__all__ = ["MOMENTS", "surroundings"]

WRITERS = {"small": ("auto", 4), "arrow": ("arrow", 20_000), "native": ("native", 20_000)}
MOMENTS = (
    "2024-03-10 07:30:00",
    "2024-11-03 05:30:00",
    "2024-11-03 06:30:00",
    "1969-12-31 20:00:00",
)
"""In UTC; on the clocks of New York the second and the third are one time."""


def surroundings(task: Mapping[str, Any]) -> dict[str, Any]:
    """Tables by every writer, under names that the locale cannot spell and without such."""
    folder = Path(task["folder"])
    spark = start_session(task)
    gone = folder / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    found: dict[str, Any] = {"encoding": _encoding(spark)}
    for writer, (setting, rows) in WRITERS.items():
        spark.conf.set("spark.twinlake.writer", setting)
        found[writer] = {
            "times": step(partial(_times, spark, str(folder / f"times-{writer}"), rows)),
            "letters": step(partial(_letters, spark, str(folder / f"letters-{writer}"), rows)),
            "read letters": step(partial(_count, spark, str(folder / f"letters-{writer}"))),
        }
    found["relative"] = step(partial(_times, spark, "relative", 4))
    spark.stop()
    return found


def _encoding(spark: SparkSession) -> str:
    context: Any = spark.sparkContext
    return str(context._jvm.java.lang.System.getProperty("sun.jnu.encoding"))


def _times(spark: SparkSession, path: str, rows: int) -> dict[str, Any]:
    """Timestamps as values and as partition values, and time travel by text."""
    from twinlake import Table
    from twinlake.spark import scan, write

    moments = ", ".join(f"TIMESTAMP'{moment}Z'" for moment in MOMENTS)
    frame = spark.range(0, rows, 1, 2).selectExpr(
        "id", f"array({moments})[id % {len(MOMENTS)}] AS at"
    )
    write(frame.selectExpr("*", "at AS part"), path, partition_by="part")
    write(frame.selectExpr("id - 1000000 AS id", "at", "at AS part"), path, mode="append")
    first, last = reversed(Table.open(path).history())
    assert first.timestamp < last.timestamp
    zone = dt.UTC
    text = dt.datetime.fromtimestamp(first.timestamp / 1000, zone).isoformat()
    seconds = ("CAST(at AS DOUBLE)", "CAST(part AS DOUBLE)")
    return {
        "values": sorted({tuple(row) for row in scan(spark, path).selectExpr(*seconds).collect()}),
        "partitions": sorted(
            {str(add.partition_values) for add in Table.open(path).snapshot.adds()}
        ),
        "counts": [scan(spark, path).count(), scan(spark, path, timestamp=text).count()],
        "where": scan(spark, path).where(f"part = TIMESTAMP'{MOMENTS[1]}Z'").count(),
    }


def _letters(spark: SparkSession, path: str, rows: int) -> int:
    from twinlake.spark import write

    letter = "CASE id % 3 WHEN 0 THEN '\u2603' WHEN 1 THEN '\u00fc' ELSE '\U0001d4b3' END"
    frame = spark.range(0, rows, 1, 2).selectExpr("id", f"{letter} AS `t\u00e4`")
    return write(frame, path, partition_by="t\u00e4").version


def _count(spark: SparkSession, path: str) -> int:
    from twinlake.spark import scan

    return scan(spark, path).count()
