"""What child drivers do under the takeover: their session has no jar of Delta's."""

from __future__ import annotations

import re
import sys
import threading
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.spark.child_drivers import start_session, step
from tests.support.spark.delta_programs import PROGRAMS
from tests.support.spark.run_delta_programs import run_programs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["delta_programs", "page", "server_names", "takeover"]

_THREADS = 6


def delta_programs(task: Mapping[str, Any]) -> dict[str, Any]:
    """The programs for Delta Spark, as they are."""
    from twinlake.spark import enable

    settings = {
        "spark.twinlake.upgradePolicy": "minimal",
        "spark.sql.session.timeZone": "UTC",
    }
    spark = start_session({**task, "settings": settings})
    warnings.simplefilter("ignore")
    enable(spark, delta=True)
    folder = Path(task["folder"])
    chosen = {name: PROGRAMS[name] for name in task["names"]}
    found = run_programs(spark, chosen, Path(task["base"]), folder / "runs", folder / "warehouse")
    spark.stop()
    return found


def takeover(task: Mapping[str, Any]) -> dict[str, Any]:
    """Its beginning and end, what it changes, and what it leaves as it is."""
    spark = start_session(task)
    folder = Path(task["folder"])
    found = _Observations(spark, folder).made()
    spark.stop()
    return found


def page(task: Mapping[str, Any]) -> dict[str, Any]:
    """The page of the documentation that is about this, from top to bottom."""
    from tests.support.documents import WITHOUT_DELTA, run_page

    spark = start_session(task)
    names = run_page(WITHOUT_DELTA)
    found = {"frames": sorted(name for name, value in names.items() if hasattr(value, "columns"))}
    spark.stop()
    return found


def server_names(task: Mapping[str, Any]) -> dict[str, Any]:
    """Tables by name where the names are those of a catalog server."""
    from twinlake.spark import DeltaTable, enable

    spark = start_session(task)
    enable(spark, delta=True)
    new = spark.range(3).write.format("delta").option("path", task["place"])
    new = new.option("delta.columnMapping.mode", "name")
    new.option("delta.enableIcebergCompatV2", "true").saveAsTable("orders")
    spark.range(3, 5).writeTo("orders").append()
    spark.range(5, 6).write.insertInto("default.orders")
    found = {
        "rows": spark.table("orders").count(),
        "handle": DeltaTable.forName(spark, "orders").toDF().count(),
        "exists": [spark.catalog.tableExists(name) for name in ("orders", "others")],
        "other": step(lambda: spark.read.table("others").count()),
    }
    spark.stop()
    return found


class _Observations:
    """What one session sees before, during and after."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.table = str(folder / "table")
        self.plain = str(folder / "plain")
        spark.range(40).selectExpr("id", "id % 2 AS p").write.parquet(self.plain)

    def made(self) -> dict[str, Any]:
        from delta.tables import DeltaTable as early

        from twinlake.spark import disable, enable, write

        spark, opening = self.spark, vars(early)["forPath"]
        write(spark.range(10).selectExpr("id", "id % 2 AS p"), self.table, partition_by="p")
        found: dict[str, Any] = {"before": self.others(), "attributes": [_attributes()]}
        found["delta before"] = step(lambda: self.rows(spark))
        with _log_lines() as said:
            enable(spark, delta=True)
            enable(spark, delta=True)
        found["said"] = said
        found["attributes"].append(_attributes())
        found["during"] = self.others()
        found["delta during"] = step(lambda: self.rows(spark))
        found["calls"] = self.calls()
        found["modules"] = step(self.modules)
        found["imported before"] = step(lambda: early.forPath(spark, self.table).toDF().count())
        found["unknown option"] = self.unknown_option()
        found["threads"] = step(self.threads)
        found["sessions"] = self.sessions()
        found["batches"] = step(self.batches)
        disable(spark)
        disable(spark)
        found["after"] = self.others()
        found["attributes"].append(_attributes())
        found["delta after"] = step(lambda: self.rows(spark))
        found["modules after"] = {
            "tables": sys.modules["delta.tables"].DeltaTable is early,
            "exceptions": "delta.exceptions" in sys.modules
            and not hasattr(sys.modules["delta.exceptions"], "__file__"),
            "methods": vars(early)["forPath"] is opening,
        }
        return found

    def rows(self, spark: SparkSession) -> list[int]:
        frame = spark.read.format("delta").load(self.table)
        return sorted(row["id"] for row in frame.where("p = 1").collect())

    # What is not ours

    def others(self) -> dict[str, dict[str, Any]]:
        """Plans of formats of Spark's own, and how many calls to the JVM each takes."""
        return {name: self._planned(make) for name, make in self._frames().items()}

    def _planned(self, make: Callable[[], DataFrame | None]) -> dict[str, Any]:
        with _jvm_calls(self.spark) as counted:
            frame = make()
        calls = counted[0]
        if frame is None:
            return {"calls": calls}
        execution: Any = frame._jdf.queryExecution()
        plan = str(execution.toString())
        return {"plan": re.sub(r"#\d+L?|\[plan_id=\d+\]|@[0-9a-f]+", "", plan), "calls": calls}

    def _frames(self) -> dict[str, Callable[[], DataFrame | None]]:
        spark, plain, out = self.spark, self.plain, str(self.folder / "out")
        rows = spark.range(3)
        rows.createOrReplaceTempView("numbers")
        return {
            "parquet": lambda: spark.read.parquet(plain).where("id > 3"),
            "format": lambda: spark.read.format("parquet").option("mergeSchema", True).load(plain),
            "default format": lambda: spark.read.load(plain),
            "options": lambda: spark.read.options(header=True, sep=";").schema("a INT").csv(plain),
            "json": lambda: spark.read.schema("a INT").format("json").load(plain),
            "text": lambda: spark.read.text(plain, wholetext=True),
            "write parquet": lambda: rows.write.mode("overwrite").parquet(out),
            "write with options": lambda: (
                rows.write.format("json").option("compression", "gzip").mode("overwrite").save(out)
            ),
            "write partitions": lambda: (
                rows.selectExpr("id", "id AS p").write.partitionBy("p").mode("overwrite").save(out)
            ),
            "stream": lambda: spark.readStream.schema("id BIGINT").parquet(plain),
            "rate": lambda: spark.readStream.format("rate").option("rowsPerSecond", 1).load(),
        }

    # What is ours

    def calls(self) -> dict[str, dict[str, int]]:
        """Calls to the JVM and to the store of what is handed over, and of the same without it."""
        from twinlake.spark import DeltaTable, scan, write

        spark, table = self.spark, self.table
        rows = spark.range(2).selectExpr("id", "id AS p")
        pairs: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
            "read": (
                lambda: spark.read.format("delta").load(table).where("p = 1").collect(),
                lambda: DeltaTable.forPath(spark, table).toDF().where("p = 1").collect(),
            ),
            "scan": (
                lambda: spark.read.format("delta").load(table).where("p = 1").collect(),
                lambda: scan(spark, table, where="p = 1").collect(),
            ),
            "append": (
                lambda: rows.write.format("delta").mode("append").save(table),
                lambda: write(rows, table, "append"),
            ),
        }
        found = {}
        for name, (taken, own) in pairs.items():
            own()
            taken()
            with _jvm_calls(spark) as jvm_taken, _store_calls() as store_taken:
                taken()
            with _jvm_calls(spark) as jvm_own, _store_calls() as store_own:
                own()
            found[name] = {
                "jvm": jvm_taken[0],
                "jvm of our own": jvm_own[0],
                "store": store_taken[0],
                "store of our own": store_own[0],
            }
        return found

    def modules(self) -> list[str]:
        names: dict[str, Any] = {}
        exec(
            "from delta.tables import DeltaTable\n"
            "from delta.exceptions import ConcurrentAppendException as conflict\n"
            "from delta import DeltaTable as same\n"
            "rows = DeltaTable.forPath(spark, path).toDF().count()",
            {"spark": self.spark, "path": self.table},
            names,
        )
        assert names["same"] is names["DeltaTable"]
        assert names["rows"] > 0
        return [names["DeltaTable"].__module__, names["conflict"].__module__]

    def unknown_option(self) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                reader = self.spark.read.format("delta").option("mergeSchemas", "true")
                reader.option("versionAsOf", 0).load(self.table)
        return [str(one.message) for one in caught]

    def threads(self) -> list[bool]:
        """Readers of both kinds at once; each gets its own rows."""
        right: list[bool] = []

        def read() -> None:
            mine = self.rows(self.spark) == [1, 3, 5, 7, 9] or len(self.rows(self.spark)) > 5
            theirs = self.spark.read.parquet(self.plain).count() == 40
            right.append(mine and theirs)

        threads = [threading.Thread(target=read) for _ in range(_THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return right

    def sessions(self) -> dict[str, Any]:
        """A second session that asks for it too, while the first one leaves."""
        from twinlake.spark import disable, enable

        other = self.spark.newSession()
        unnamed = step(lambda: len(self.rows(other)))
        enable(other, delta=True)
        disable(self.spark)
        found = {
            "unnamed": unnamed,
            "left": step(lambda: len(self.rows(self.spark))),
            "other": step(lambda: len(self.rows(other))),
        }
        enable(self.spark, delta=True)
        disable(other)
        found["back"] = step(lambda: len(self.rows(self.spark)))
        found["other left"] = step(lambda: len(self.rows(other)))
        return found

    def batches(self) -> int:
        """Frames of micro-batches belong to a session that nobody named."""
        target = str(self.folder / "batches")

        def write(batch: DataFrame, _: int) -> None:
            batch.write.format("delta").mode("append").save(target)

        source = self.spark.readStream.schema("id BIGINT, p BIGINT").parquet(self.plain)
        query = source.writeStream.foreachBatch(write).trigger(availableNow=True)
        query.option("checkpointLocation", f"{target}-checkpoint").start().awaitTermination()
        return self.spark.read.format("delta").load(target).count()


def _attributes() -> list[str]:
    """Where the attributes of PySpark's classes come from."""
    from pyspark.sql import SparkSession
    from pyspark.sql.classic.dataframe import DataFrame

    owners = ((SparkSession, ("sql", "table", "read", "readStream")),
              (DataFrame, ("write", "writeTo", "writeStream")))  # fmt: skip
    found = []
    for owner, names in owners:
        for name in names:
            value = vars(owner)[name]
            code: Any = value.fget if isinstance(value, property) else value
            found.append(code.__code__.co_filename.rpartition("site-packages")[2])
    return ["pyspark" if name.startswith("/pyspark") else Path(name).name for name in found]


@contextmanager
def _log_lines() -> Iterator[list[str]]:
    import logging

    lines: list[str] = []

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    handler, logger = Lines(), logging.getLogger("twinlake")
    logger.addHandler(handler)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)


@contextmanager
def _jvm_calls(spark: SparkSession) -> Iterator[list[int]]:
    """How many commands Python sends to the JVM, those of its garbage collector left out."""
    context: Any = spark.sparkContext
    client = context._gateway._gateway_client
    counted, send = [0], client.send_command

    def counting(command: str, *args: Any, **kwargs: Any) -> Any:
        if not command.startswith("m\n"):
            counted[0] += 1
        return send(command, *args, **kwargs)

    client.send_command = counting
    try:
        yield counted
    finally:
        del client.send_command


@contextmanager
def _store_calls() -> Iterator[list[int]]:
    """How often the local store is asked for anything."""
    from twinlake.storage import local

    store = local.LocalStore
    counted = [0]
    names = ("create", "read", "put", "head", "list_from", "delete")
    originals = {name: vars(store)[name] for name in names if name in vars(store)}

    def counting(original: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            counted[0] += 1
            return original(*args, **kwargs)

        return call

    for name, original in originals.items():
        setattr(store, name, counting(original))
    try:
        yield counted
    finally:
        for name, original in originals.items():
            setattr(store, name, original)
