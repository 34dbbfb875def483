"""The two workers of the Spark benchmarks, as their parent sees them."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.harness import ROOT, WrongResult

if TYPE_CHECKING:
    from collections.abc import Iterator

OURS: Final = "twinlake"
THEIRS: Final = "Delta Spark"
_TAIL: Final = 2000


class SparkMissing(Exception):
    """Spark, or Delta Spark, cannot be started here."""


class Worker:
    """One side in its own process, asked over a pipe."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._log = folder / f"{name.replace(' ', '-')}.log"
        command = [sys.executable, "-m", "benchmarks.spark_worker", name, str(folder)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def wait_until_ready(self) -> None:
        """Its session is there, or there is a reason why not."""
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            self._process.wait()
            raise SparkMissing(f"{self.name} did not start:\n{self._said()}")

    def ask(self, **request: Any) -> dict[str, Any]:
        """Its answer; an error there is one here."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"error": self._said()}
        if "error" in answer:
            raise WrongResult(f"{self.name} failed:\n{answer['error']}")
        return answer

    def _said(self) -> str:
        return self._log.read_text(errors="replace")[-_TAIL:]

    def close(self) -> None:
        """No more requests; the session ends by itself."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextlib.contextmanager
def workers(data: Path) -> Iterator[dict[str, Worker]]:
    """Both sides, started together and ended together."""
    try:
        import pyspark  # noqa: F401
    except ImportError as error:
        raise SparkMissing("pyspark is not installed") from error
    data.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="scratch-spark-", dir=data))
    started: dict[str, Worker] = {}
    try:
        for name in (OURS, THEIRS):
            started[name] = Worker(name, folder)
        for worker in started.values():
            worker.wait_until_ready()
        yield started
    finally:
        for worker in started.values():
            worker.close()
        shutil.rmtree(folder, ignore_errors=True)
