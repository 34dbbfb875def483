"""What child drivers do, by name; run by ``tests.support.spark.child_drivers.run_child``."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.processes.blocked_commits import blocked_commits
from tests.support.programs.running import run_under_takeover
from tests.support.spark.blocked_writes import blocked_writes
from tests.support.spark.child_drivers import rows, start_session, step
from tests.support.spark.surroundings import surroundings
from tests.support.spark.takeover_programs import (
    delta_programs,
    page,
    server_names,
    takeover,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession


def _answer(number: int) -> int:
    return number * number


def _lacking(number: int) -> int:
    module = importlib.import_module("module_of_the_user")
    return int(module.doubled(number))


def _jobs_in_workers(spark: SparkSession, path: str) -> dict[str, Any]:
    """Every kind of job that runs in Python workers."""
    from twinlake.spark import write
    from twinlake.spark.executor import SparkExecutor
    from twinlake.spark.maintenance.optimize import optimize
    from twinlake.spark.maintenance.rewrite import SparkRewriter

    rewriter = SparkRewriter(spark, engine="arrow", small=0)
    return {
        "write": step(
            lambda: write(rows(spark, 0, 20_000), path, mode="append", partition_by="part").version
        ),
        "executor": step(lambda: list(SparkExecutor(spark, few=1).map(_answer, range(20)))),
        "optimize": step(lambda: len(optimize(spark, path, rewriter=rewriter).added)),
    }


def worker_python(task: Mapping[str, Any]) -> dict[str, Any]:
    """Jobs with no choice made, and with choices that will not do."""
    from pyspark.sql.functions import udf

    from twinlake import Table
    from twinlake.spark import scan, write
    from twinlake.spark.python_workers import worker_python

    spark = start_session({**task, "settings": {"spark.twinlake.writer": "arrow"}})
    context: Any = spark.sparkContext
    path, chosen = task["table"], "spark.sql.execution.pyspark.python"
    found: dict[str, Any] = {"unset": _jobs_in_workers(spark, path)}
    found["python"] = [worker_python(spark), context.pythonExec]
    # Written by the driver itself; OPTIMIZE has something to do from here on.
    spark.conf.set("spark.twinlake.writer", "auto")
    write(rows(spark, 0, 4), path, mode="append")
    spark.conf.set("spark.twinlake.writer", "arrow")
    for name, python in task["pythons"].items():
        spark.conf.set(chosen, python)
        found[name] = _jobs_in_workers(spark, path)
    spark.conf.unset(chosen)
    lacking = udf(_lacking, "long")
    spark.udf.register("lacking", lacking)
    context.pythonExec = sys.executable
    found["module of the user"] = step(
        lambda: write(
            rows(spark, 0, 20_000).selectExpr("lacking(id) AS id", "part"), path, mode="append"
        )
    )
    context.pythonExec = "python3"
    version, context.pythonVer = context.pythonVer, "3.6"
    found["other version"] = _jobs_in_workers(spark, path)
    context.pythonVer = version
    context._conf.set("spark.pyspark.python", task["pythons"]["bare"])
    found["context setting"] = {"write": _jobs_in_workers(spark, path)["write"]}
    table = Table.open(path)
    files = {add.path for add in table.snapshot.adds()}
    found["rows"] = scan(spark, path).count()
    found["version"] = table.version
    found["strays"] = sorted(
        str(file.relative_to(path))
        for file in Path(path).rglob("*.parquet")
        if "_delta_log" not in file.parts and str(file.relative_to(path)) not in files
    )
    spark.stop()
    return found


PROGRAMS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "blocked commits": blocked_commits,
    "blocked writes": blocked_writes,
    "programs": run_under_takeover,
    "delta programs": delta_programs,
    "names of a server": server_names,
    "page about the takeover": page,
    "surroundings": surroundings,
    "takeover": takeover,
    "worker python": worker_python,
}


if __name__ == "__main__":
    _given = json.loads(sys.argv[1])
    _found = PROGRAMS[_given["program"]](_given)
    Path(_given["report"]).write_text(json.dumps(_found, ensure_ascii=True), encoding="utf-8")
