"""One side of the Spark benchmarks: a process with one session that works on request.

Requests and answers are lines of JSON. Whatever Spark and the JVM print goes to standard error,
so that it cannot come between them.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.worker import peak_mb

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from benchmarks.spark_sides import Engine

#: The build of Delta Spark for Spark 4.1.
DELTA_PACKAGE: Final = "io.delta:delta-spark_4.1_2.13:4.4.0"
SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
    "spark.driver.memory": "2g",
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.shuffle.partitions": "4",
}
"""The same on both sides; everything else is Spark's default."""
SIDE_SETTINGS: Final[dict[str, dict[str, str]]] = {
    # Comparisons are of the same tables, so nothing is upgraded on the way.
    "twinlake": {"spark.twinlake.upgradePolicy": "minimal"},
    "Delta Spark": {
        "spark.jars.packages": DELTA_PACKAGE,
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # Fifty tasks a snapshot by default, which two cores are busy with for a while.
        "spark.databricks.delta.snapshotPartitions": "2",
    },
}


class Meter:
    """CPU time of the whole side: this process, the JVM and the Python workers below it."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._pid = int(jvm.java.lang.ProcessHandle.current().pid())

    def cpu(self) -> dict[str, float]:
        """Seconds by part."""
        return {
            "python": time.process_time(),
            "jvm": _ticks(self._pid),
            "workers": sum(_ticks(pid) for pid in _below(self._pid)),
        }

    def memory(self) -> dict[str, float]:
        """Megabytes: the heap after collections, and the highest that Python ever was."""
        bean = self._jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
        for _ in range(3):
            self._jvm.java.lang.System.gc()
            time.sleep(0.3)
        heap = bean.getHeapMemoryUsage().getUsed() / 2**20
        workers = sum(_peak_of(pid) for pid in _below(self._pid))
        return {"heap": heap, "python": peak_mb(), "workers": workers}


def _below(root: int) -> list[int]:
    """The processes that a process started, and those that they did; none without /proc."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(entry.parent.name)] = int(fields[1])
    found, waiting = [], [root]
    while waiting:
        current = waiting.pop()
        children = [pid for pid, parent in parents.items() if parent == current]
        found += children
        waiting += children
    return found


def _peak_of(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))


def _ticks(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    # User and system time, of itself and of children that are gone.
    return sum(int(value) for value in fields[11:15]) / os.sysconf("SC_CLK_TCK")


class Side:
    """A session, its engines, and what it is asked to do."""

    def __init__(self, name: str, folder: Path) -> None:
        from benchmarks.spark_sides import ENGINES

        self._spark = _session({**SETTINGS, **SIDE_SETTINGS[name]}, folder)
        self._engines: dict[str, Engine] = {
            engine: make(self._spark) for engine, make in ENGINES.items()
        }
        self._meter = Meter(self._spark)

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do what one request asks."""
        match request["do"]:
            case "work":
                return self._work(request)
            case "make":
                from benchmarks.spark_tables import make

                make(self._spark, Path(request["folder"]), request["recipe"])
                return {}
            case "memory":
                return self._meter.memory()
            case other:
                raise ValueError(f"nobody knows how to do {other!r}")

    def _work(self, request: dict[str, Any]) -> dict[str, Any]:
        from benchmarks.spark_work import WORKS

        work = WORKS[request["work"]](self._engines[request["engine"]], request["spec"])
        work.prepare(Path(request["folder"]))
        work.engine.ready()
        profile = _Profile(self._spark) if request["profile"] else None
        before = self._meter.cpu()
        clock = time.perf_counter()
        if profile is not None:
            profile.start()
        result = work.run()
        if profile is not None:
            profile.stop()
        wall = time.perf_counter() - clock
        after = self._meter.cpu()
        spent = {f"cpu_{part}": after[part] - before[part] for part in after}
        return {
            "wall": wall,
            "cpu": sum(spent.values()),
            "peak_mb": peak_mb(),
            "base_mb": 0.0,
            "imports": 0.0,
            "late_imports": [],
            "facts": work.check(result) if request["check"] else {},
            "notes": {},
            "metrics": {**spent, **work.metrics},
            "breakdown": None if profile is None else profile.found(wall),
        }

    def stop(self) -> None:
        """End the session, and the JVM with it."""
        self._spark.stop()


class _Profile:
    """Where a run spends its time: by module of ours, in Spark's jobs, in calls to the JVM."""

    def __init__(self, spark: SparkSession) -> None:
        import cProfile

        context: Any = spark.sparkContext._jsc.sc()
        self._context = context
        self._profile = cProfile.Profile()
        self._first = self._jobs_known()

    def start(self) -> None:
        self._profile.enable()

    def stop(self) -> None:
        self._profile.disable()

    def _jobs_known(self) -> int:
        self._context.listenerBus().waitUntilEmpty()
        return int(self._context.statusStore().jobsList(None).size())

    def found(self, wall: float) -> dict[str, Any]:
        import pstats

        from benchmarks.breakdown import attribute_time

        spans = []
        known = self._jobs_known()
        jobs = self._context.statusStore().jobsList(None)
        # The newest job comes first.
        for place in range(known - self._first):
            job = jobs.apply(place)
            if job.submissionTime().isDefined() and job.completionTime().isDefined():
                times = (job.submissionTime().get(), job.completionTime().get())
                spans.append(tuple(moment.getTime() / 1000 for moment in times))
        stats: dict[Any, Any] = pstats.Stats(self._profile).stats  # type: ignore[attr-defined]
        calls = sum(int(row[1]) for name, row in stats.items() if name[2] == "send_command")
        found = attribute_time(self._profile, "spark")
        return {
            **found,
            "wall": wall,
            "jobs": len(spans),
            "job_seconds": _covered(spans),
            # Every call passes through two functions of this name.
            "jvm_calls": calls // 2,
        }


def _covered(spans: list[tuple[float, ...]]) -> float:
    """Seconds during which a job was running."""
    total, end = 0.0, 0.0
    for start, stop in sorted(spans):
        total += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return total


def _session(settings: dict[str, str], folder: Path) -> SparkSession:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder: Any = SparkSession.builder.master("local[2]").appName("twinlake-benchmarks")
    builder = builder.config("spark.sql.warehouse.dir", str(folder / "warehouse"))
    for key, value in settings.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    return session


def main(name: str, folder: Path) -> None:
    """Answer requests until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    side = Side(name, folder)
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        try:
            answer = side.answer(json.loads(line))
        except Exception:
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)
    side.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
