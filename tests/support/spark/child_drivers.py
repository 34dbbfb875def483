"""Spark drivers in processes of their own, each in an environment that a test has spoilt.

A test starts :func:`run_child` with exactly the environment, the user and the working directory it
wants; the child runs one program of ``PROGRAMS`` and reports what each of its steps came to. A step
that fails is reported as its error, and whether that error is one of twinlake's.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["bare_environment", "run_child", "start_session", "step"]

_PROJECT = Path(__file__).resolve().parents[3]
_SECONDS = 300.0
_SETTINGS = {
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}


def bare_environment(folder: Path, **more: str) -> dict[str, str]:
    """What cron gives a program, and what the tests need to be found: no environment is active."""
    kept = {key: os.environ[key] for key in ("JAVA_HOME",) if key in os.environ}
    places = [str(_PROJECT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folder),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder),
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(place for place in places if place)),
        "PYTHONDONTWRITEBYTECODE": "1",
        **kept,
        **more,
    }


def run_child(
    program: str,
    folder: Path,
    task: Mapping[str, Any],
    *,
    environment: Mapping[str, str],
    user: int | None = None,
    prefix: Sequence[str] = (),
    seconds: float = _SECONDS,
) -> dict[str, Any]:
    """Run a program to its end in just this environment; returns what it reports.

    ``prefix`` is a command that starts the child, such as ``unshare --mount``.
    """
    report, log = folder / "report.json", folder / "child.log"
    whole = {**task, "program": program, "folder": str(folder), "report": str(report)}
    with log.open("wb") as target:
        process = subprocess.Popen(
            [
                *prefix,
                sys.executable,
                "-m",
                "tests.support.spark.child_programs",
                json.dumps(whole),
            ],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=target,
            stderr=target,
            start_new_session=True,
            user=user,
            group=user,
            extra_groups=None if user is None else (),
        )
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    said = log.read_text(errors="replace")[-6000:]
    assert code == 0, f"the child ended with {code}:\n{said}"
    found: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    return found


def start_session(task: Mapping[str, Any]) -> SparkSession:
    """A local session, without Delta Spark."""
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder.master("local[2]").appName("twinlake-child")
    warehouse = {"spark.sql.warehouse.dir": str(Path(task["folder"], "warehouse"))}
    for key, value in {**_SETTINGS, **warehouse, **task.get("settings", {})}.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    return session


def rows(spark: SparkSession, first: int, last: int) -> DataFrame:
    """Rows that are too many to be written by the driver itself."""
    return spark.range(first, last, 1, 2).selectExpr("id", "CAST(id % 2 AS INT) AS part")


def step(call: Callable[[], object]) -> dict[str, Any]:
    """What a call came to: its result, or its error."""
    from twinlake.errors import TwinlakeError

    try:
        return {"result": call()}
    except TwinlakeError as error:
        kind = next(c for c in type(error).__mro__ if c.__module__ == "twinlake.errors")
        return {"error": kind.__name__, "text": str(error), **error.to_dict()}
    except Exception as error:
        return {"foreign": f"{type(error).__module__}.{type(error).__name__}: {error}"[:4000]}
