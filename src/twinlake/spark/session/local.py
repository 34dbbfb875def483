"""A Spark session on this machine, for commands that move rows."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from twinlake.errors import Code, UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

__all__ = ["local_session", "stderr_into"]

_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.session.timeZone": "UTC",
}


@contextlib.contextmanager
def local_session(settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A session that uses all cores of this machine; it is stopped at the end if it is new.

    ``settings`` come on top of its own, unless a session is already there.
    """
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        raise _missing("there is no Java", "Install Java 17 or 21, or set `JAVA_HOME`.")
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise _missing(
            "PySpark is not installed", "Run `pip install 'twinlake[spark]'`."
        ) from error
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder: Any = SparkSession.builder.master("local[*]").appName("twinlake")
    for key, value in {**_SETTINGS, **(settings or {})}.items():
        builder = builder.config(key, value)
    session: SparkSession = _started(builder)
    try:
        yield session
    finally:
        session.stop()


def _started(builder: Any) -> Any:
    """The session; what the JVM prints on standard error is shown only if it does not start."""
    folder = Path(tempfile.mkdtemp(prefix="twinlake-spark-"))
    try:
        with stderr_into(folder / "log"):
            return builder.getOrCreate()
    except Exception as error:
        printed = (folder / "log").read_text(errors="replace").strip().splitlines()
        why = printed[-1] if printed else str(error)
        raise _missing(f"Spark did not start ({why})", "Check Java (17 or 21).") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def stderr_into(log: Path) -> Iterator[None]:
    """Send file descriptor 2 into ``log``; a process started meanwhile keeps writing there."""
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        with log.open("ab") as target:
            os.dup2(target.fileno(), 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


def _missing(why: str, fix: str) -> UserError:
    return UserError(
        Code.SPARK_REQUIRED,
        "This command moves rows and needs Spark on this machine.",
        why=why,
        fix=fix,
        fields={"reason": why},
    )
