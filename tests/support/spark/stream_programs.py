"""What a driver does that keeps streams running until it is killed: two sources, three sinks."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.spark.stream_format import TableStreams

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SINKS", "run_streams"]

SINKS = ("appended", "merged", "by_workers")
"""The tables, by what writes them: ``into`` in two ways, and the writer of the data source."""


def run_streams(spark: SparkSession, folder: Path, is_over: Callable[[], bool]) -> None:
    """From the table ``source`` into all sinks, one file a batch."""
    spark.dataSource.register(TableStreams)
    starts = {"native": _native, "by_workers": _by_workers}
    queries: dict[str, Any] = {}
    while not is_over():
        for name, start in starts.items():
            query = queries.get(name)
            if query is None or not query.isActive:
                if query is not None and query.exception() is not None:
                    # A commit of a process that outlived its driver may still have won.
                    sys.stderr.write(f"{name}: {query.exception()}\n")
                queries[name] = start(spark, folder)
        time.sleep(0.05)


def _native(spark: SparkSession, folder: Path) -> Any:
    from twinlake.spark import follow, into

    appended = into(folder / "appended")
    merged = into(folder / "merged", merge="id")

    def both(frame: DataFrame, batch_id: int) -> None:
        appended(frame, batch_id)
        merged(frame, batch_id)

    return follow(
        spark,
        folder / "source",
        both,
        checkpoint=folder / "checkpoint-native",
        maxFilesPerTrigger=1,
    )


def _by_workers(spark: SparkSession, folder: Path) -> Any:
    checkpoint = str(folder / "checkpoint-workers")
    rows = (
        spark.readStream.format("tablestreams")
        .option("maxFilesPerTrigger", 1)
        .option("checkpointLocation", checkpoint)
        .load(str(folder / "source"))
    )
    writer = rows.writeStream.format("tablestreams").option("checkpointLocation", checkpoint)
    return writer.start(str(folder / "by_workers"))
