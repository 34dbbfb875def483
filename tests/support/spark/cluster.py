"""Spark outside the test's own process: a standalone cluster on loopback, and driver programs.

A master, two workers and the driver are processes of their own, each in a process group of its
own, so that whatever happens they can all be ended. Nothing of the tests is handed to the workers:
no ``PYTHONPATH``, a working folder elsewhere, and a Python that has the package installed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.not_run import not_run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["WORKERS", "Cluster", "needs_java", "run_driver", "spark_cluster"]

WORKERS = 2
START_SECONDS = 120.0
DRIVER_SECONDS = 300.0

_PROJECT = Path(__file__).resolve().parents[3]
_DEPLOY = "org.apache.spark.deploy"
_MASTER_URL = re.compile(r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
_REGISTERED = re.compile(r"Successfully registered with master")
# A JVM that lives for a minute has no use for the second compiler and the parallel collector.
_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_STOP_SECONDS = 10.0


def needs_java() -> None:
    """Leave a test out where nothing can run Spark."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        not_run("there is no Java; install Java 17 or 21", required_by="TWINLAKE_REQUIRE_INTEROP")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A running cluster: what drivers are told, and the folder in which executors live."""

    master: str
    work: Path

    @property
    def settings(self) -> dict[str, str]:
        """What a driver needs to use all of it, and to wait until all of it is there."""
        return {
            "spark.master": self.master,
            "spark.cores.max": str(WORKERS),
            "spark.executor.cores": "1",
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": _JAVA_OPTIONS,
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{START_SECONDS:.0f}s",
            # Executors are given tasks as they come, wherever the data are.
            "spark.locality.wait": "0",
        }


@contextlib.contextmanager
def spark_cluster(folder: Path) -> Iterator[Cluster]:
    """A master and two workers of one core each; gone at the end, with their executors."""
    work = folder / "work"
    work.mkdir()
    started: list[subprocess.Popen[bytes]] = []
    try:
        master = _daemon(started, folder / "master.log", "master.Master", ())
        url = _awaited(master, folder / "master.log", _MASTER_URL)
        logs = [folder / f"worker{number}.log" for number in range(WORKERS)]
        workers = [
            _daemon(
                started,
                log,
                "worker.Worker",
                ("--cores", "1", "--memory", "1g", "--work-dir", str(work / log.stem), url),
            )
            for log in logs
        ]
        for worker, log in zip(workers, logs, strict=True):
            _awaited(worker, log, _REGISTERED)
        yield Cluster(master=url, work=work)
    finally:
        # Workers first: they end their executors, which end their Python workers.
        for process in reversed(started):
            _end(process)


def _daemon(
    started: list[subprocess.Popen[bytes]], log: Path, name: str, arguments: Sequence[str]
) -> subprocess.Popen[bytes]:
    import pyspark

    home = Path(pyspark.__file__).parent
    # Port 0 is whatever port is free, also for the pages nobody looks at.
    places = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    with log.open("wb") as target:
        process = subprocess.Popen(
            [str(home / "bin" / "spark-class"), f"{_DEPLOY}.{name}", *places, *arguments],
            cwd=log.parent,
            env={
                **_environment(),
                "SPARK_HOME": str(home),
                "SPARK_DAEMON_MEMORY": "256m",
                "SPARK_DAEMON_JAVA_OPTS": _JAVA_OPTIONS,
                "SPARK_LOCAL_DIRS": str(log.parent / "scratch"),
            },
            stdin=subprocess.DEVNULL,
            stdout=target,
            stderr=target,
            start_new_session=True,
        )
    started.append(process)
    return process


def _environment() -> dict[str, str]:
    """Ours without what would lead to the sources of the tests, or to another Spark."""
    ours = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("SPARK_", "PYSPARK_", "PYTEST_", "COV_")) and key != "PYTHONPATH"
    }
    return {**ours, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}


def _awaited(process: subprocess.Popen[bytes], log: Path, wanted: re.Pattern[str]) -> str:
    """What the log says once it says it."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        found = wanted.search(log.read_text(errors="replace"))
        if found is not None:
            return found.group(found.lastindex or 0)
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise RuntimeError(f"{log.stem} did not start:\n{log.read_text(errors='replace')[-3000:]}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and its group; what does not go when asked is killed."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def run_driver(
    program: str,
    folder: Path,
    task: Mapping[str, Any],
    *,
    environment: Mapping[str, str] | None = None,
    seconds: float = DRIVER_SECONDS,
) -> dict[str, Any]:
    """Run a program of ``driver_programs`` to its end; returns what it reports."""
    report, log = folder / "report.json", folder / "driver.log"
    whole = {**task, "program": program, "folder": str(folder), "report": str(report)}
    with log.open("wb") as target:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.spark.driver_programs", json.dumps(whole)],
            cwd=_PROJECT,
            env={**_environment(), "PYTHONWARNINGS": "ignore", **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=target,
            stderr=target,
            start_new_session=True,
        )
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        _end(process)
    said = log.read_text(errors="replace")[-6000:]
    assert code == 0, f"the driver ended with {code}:\n{said}"
    found: dict[str, Any] = json.loads(report.read_text())
    return found
