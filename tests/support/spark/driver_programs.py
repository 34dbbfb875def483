"""Programs that run as Spark drivers of their own, with sessions that a test cannot share.

Each is given its task as JSON and writes a report as JSON. They are run as ``__main__``, so that
their own functions travel to Spark's Python workers by value: those import nothing of the tests.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.spark.ivy_cache import sole_resolver

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["expected_rows"]

# Ids of rows; each batch is too large to be written by the driver itself.
FIRST = (0, 20_000)
SECOND = (20_000, 40_000)
MERGED = (15_000, 45_000)
DELETED = 10
"""Ids divisible by this are deleted, which leaves deletion vectors that OPTIMIZE gets rid of."""
TRIMMED = 100
"""Ids below this are deleted in the end, and their deletion vectors stay."""

_PARTS = 2

_SETTINGS = {
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": (
        "-Duser.timezone=UTC -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    ),
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Figures of executors are up to date at once.
    "spark.ui.liveUpdate.period": "0",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
}


def expected_rows() -> dict[int, int]:
    """The rows, id to value, that the program leaves."""
    rows = dict.fromkeys(range(*FIRST), 1) | dict.fromkeys(range(*SECOND), 2)
    rows = {number: value for number, value in rows.items() if number % DELETED}
    for number in range(*MERGED):
        rows[number] = rows.get(number, 0) + 10
    return {number: value for number, value in rows.items() if number >= TRIMMED}


def _session(task: Mapping[str, Any]) -> SparkSession:
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder.appName("twinlake-driver")
    settings = {"spark.sql.warehouse.dir": str(Path(task["folder"], "warehouse")), **_SETTINGS}
    for key, value in {**settings, **task["settings"]}.items():
        builder = builder.config(key, value)
    with sole_resolver() if "spark.jars.packages" in task["settings"] else nullcontext():
        session: SparkSession = builder.getOrCreate()
    return session


@dataclass(slots=True)
class _Work:
    """A life of one table, each step with the tasks it made executors run."""

    spark: SparkSession
    path: str
    steps: dict[str, dict[str, Any]] = field(default_factory=dict)

    def step(self, action: Callable[[], Any]) -> None:
        before, started = self._tasks(), time.monotonic()
        result = action()
        after = self._tasks()
        self.steps[action.__name__] = {
            "seconds": round(time.monotonic() - started, 2),
            "tasks": {key: after[key] - before.get(key, 0) for key in sorted(after)},
            "result": result,
        }

    def _tasks(self) -> dict[str, int]:
        """How many tasks each executor has finished so far."""
        context: Any = self.spark.sparkContext
        scala: Any = context._jsc.sc()
        scala.listenerBus().waitUntilEmpty()
        found = scala.statusStore().executorList(False).iterator()
        counts: dict[str, int] = {}
        while found.hasNext():
            executor = found.next()
            counts[str(executor.id())] = int(executor.completedTasks())
        return counts

    def _rows(self, ids: tuple[int, int], value: int) -> DataFrame:
        from pyspark.sql import functions as F

        return self.spark.range(*ids, 1, 4).select(
            "id",
            F.lit(value).cast("bigint").alias("value"),
            F.concat(F.lit("row "), "id").alias("name"),
            (F.col("id") % _PARTS).cast("int").alias("part"),
        )

    def _table(self) -> Any:
        from twinlake.spark import DeltaTable

        return DeltaTable.forPath(self.spark, self.path)

    def write(self) -> list[str]:
        from twinlake.spark import write

        on = {"delta.enableDeletionVectors": "true"}
        write(self._rows(FIRST, 1), self.path, partition_by="part", properties=on)
        return self._makers()

    def append(self) -> list[str]:
        from twinlake.spark import write

        write(self._rows(SECOND, 2), self.path, mode="append")
        return self._makers()

    def _makers(self) -> list[str]:
        """What the files say they were made by."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        from twinlake.storage import decode_path

        snapshot = self._opened().snapshot
        makers: set[str] = set()
        for path in snapshot.files()["path"].to_pylist():
            file = pa.BufferReader(snapshot.store.read(decode_path(path)))
            makers.add(pq.ParquetFile(file).metadata.created_by.partition(" ")[0])
        return sorted(makers)

    def delete(self) -> int:
        self._table().delete(f"id % {DELETED} = 0")
        return self._vectors()

    def trim(self) -> int:
        self._table().delete(f"id < {TRIMMED}")
        return self._vectors()

    def _vectors(self) -> int:
        """How many files have a deletion vector."""
        files = self._opened().snapshot.files()
        return len(files) - int(files["deletion_vector"].null_count)

    def merge(self) -> None:
        merging = self._table().alias("t").merge(self._rows(MERGED, 10).alias("s"), "t.id = s.id")
        merging = merging.whenMatchedUpdate(set={"value": "t.value + s.value"})
        merging.whenNotMatchedInsertAll().execute()

    def optimize(self) -> dict[str, int]:
        """The files are small, but the workers are to write them all the same."""
        from twinlake.spark.maintenance.optimize import optimize
        from twinlake.spark.maintenance.rewrite import SparkRewriter

        rewriter = SparkRewriter(self.spark, engine="arrow", small=0)
        result = optimize(self.spark, self.path, rewriter=rewriter)
        return {"added": len(result.added), "removed": len(result.removed)}

    def vacuum(self) -> int:
        """What the earlier versions alone needed goes; the workers list and delete."""
        # Whatever is not older than the store's clock, which may tick in seconds, counts as young.
        time.sleep(1.05)
        result = self._opened().vacuum(0, enforce_retention=False)
        return int(result.num_deleted)

    def scan(self) -> list[tuple[int, int]]:
        from twinlake.spark import scan

        frame = scan(self.spark, self.path)
        rows = frame.selectExpr("id", "value", "name = concat('row ', id) AND part = id % 2")
        found = [tuple(row) for row in rows.collect()]
        assert all(right for _, _, right in found)
        return [(number, value) for number, value, _ in found]

    def absent_python(self) -> dict[str, Any]:
        """What is said where the workers' Python is missing."""
        from twinlake.spark import write

        self.spark.conf.set("spark.sql.execution.pyspark.python", "/absent/bin/python")
        return _told(lambda: write(self._rows(FIRST, 1), self.path, mode="append"))

    def _opened(self) -> Any:
        """The table, with an executor that leaves everything to the workers."""
        from twinlake import Table
        from twinlake.runtime import Runtime
        from twinlake.spark.executor import SparkExecutor
        from twinlake.spark.session import settings_of

        return Table.open(
            self.path,
            options=settings_of(self.spark, self.path).options or None,
            runtime=Runtime(executor=SparkExecutor(self.spark, few=1)),
        )


def _where_tasks_run(_: int) -> tuple[str, str, bool]:
    """Seen by a Python worker: its folder, its package, and whether it could import the tests."""
    import importlib.util

    import twinlake.spark

    # Long enough for the other worker to be given a task as well.
    time.sleep(0.1)
    has_tests = importlib.util.find_spec("tests") is not None
    return str(Path.cwd()), str(twinlake.spark.__file__), has_tests


def _work(task: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that is done to a table, once."""
    started = time.monotonic()
    spark = _session(task)
    try:
        work = _Work(spark, task["table"])
        context: Any = spark.sparkContext
        seen = context.parallelize(range(8), 8).map(_where_tasks_run).distinct().collect()
        up = round(time.monotonic() - started, 2)
        work.step(work.write)
        work.step(work.append)
        work.step(work.delete)
        work.step(work.merge)
        work.step(work.optimize)
        work.step(work.vacuum)
        work.step(work.trim)
        work.step(work.scan)
        return {"seen": seen, "up": up, "steps": work.steps, "absent": work.absent_python()}
    finally:
        spark.stop()


def _connect(task: Mapping[str, Any]) -> dict[str, Any]:
    """What a Spark Connect session has, and what it is told call by call."""
    from pyspark.sql import SparkSession

    from twinlake import Table
    from twinlake.spark import DeltaTable, enable, scan, write

    builder: Any = SparkSession.builder.master("local[1]").config("spark.api.mode", "connect")
    for key, value in _SETTINGS.items():
        builder = builder.config(key, value)
    spark: SparkSession = builder.getOrCreate()
    path, absent = task["table"], f"{task['table']} that is not there"
    Table.create(path, "id BIGINT")
    frame = spark.range(3)
    assert frame.count() == 3
    calls: Mapping[str, Callable[[], object]] = {
        "takeover": lambda: enable(spark, delta=True),
        "scan": lambda: scan(spark, path),
        "scan of no table": lambda: scan(spark, absent),
        "scan on S3": lambda: scan(spark, "s3a://bucket/table"),
        "write": lambda: write(frame, path, mode="append"),
        "write of a new table": lambda: write(frame, absent),
        "forPath": lambda: DeltaTable.forPath(spark, path),
        "forName": lambda: DeltaTable.forName(spark, "t"),
        "isDeltaTable": lambda: DeltaTable.isDeltaTable(spark, path),
        "create": lambda: DeltaTable.create(spark),
        "create in the active session": DeltaTable.create,
        "vacuum": lambda: Table.open(path).vacuum(spark=spark, dry_run=True),
    }
    told = {name: _told(call) for name, call in calls.items()}
    report = {"session": type(spark).__module__, "told": told, "made": Path(absent).exists()}
    same = enable(spark) is spark
    frame.write.format("twinlake").mode("append").save(path)
    found = spark.read.format("twinlake").load(path).where("id > 0")
    rows = sorted(row["id"] for row in found.collect())
    spark.stop()
    return {**report, "source": {"same": same, "rows": rows}}


def _told(call: Callable[[], object]) -> dict[str, Any]:
    from pyspark.errors import PySparkException

    from twinlake.errors import UserError

    try:
        result = call()
    except UserError as error:
        return {**error.to_dict(), "pyspark": isinstance(error, PySparkException)}
    except Exception as error:
        return {"what": f"{type(error).__name__}: {error}"}
    return {"what": f"no error but {result!r}"}


_PROGRAMS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "work": _work,
    "connect": _connect,
}


if __name__ == "__main__":
    _given = json.loads(sys.argv[1])
    Path(_given["report"]).write_text(json.dumps(_PROGRAMS[_given["program"]](_given)))
