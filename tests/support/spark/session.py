"""A real Spark session with real Delta Spark, started once a test run.

The Delta jar is named by its Maven coordinates and fetched by Spark's own resolver into the usual
Ivy cache, so the first run needs Maven Central and later runs need nothing. Sessions start one
after another, since two resolvers that fill one cache break each other's downloads. Everything the
JVM writes goes to a file; its tail is quoted only when the start fails.
"""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.engines.delta_tables import PeerTables
from tests.support.not_run import not_run
from tests.support.spark.ivy_cache import sole_resolver
from twinlake.spark.session import stderr_into

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

__all__ = [
    "DELTA_PACKAGE",
    "ICEBERG_PACKAGE",
    "delta_spark",
    "peer_tables",
    "start_delta_spark",
]

#: The build of Delta Spark for Spark 4.1: the plain ``delta-spark_2.13`` is built for Spark 4.2.
DELTA_PACKAGE = "io.delta:delta-spark_4.1_2.13:4.4.0"
#: Iceberg's own reader, for the Iceberg face of our tables.
ICEBERG_PACKAGE = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"

_REQUIRED_BY = "TWINLAKE_REQUIRE_INTEROP"
#: A registry may fail now and then, and each start fetches dozens of files from an empty cache.
_STARTS = 3

_SETTINGS = {
    "spark.jars.packages": f"{DELTA_PACKAGE},{ICEBERG_PACKAGE}",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    # The simple compiler and the simple collector: a JVM that lives for minutes and runs tiny
    # queries spends half its time in the others. Spark and Delta do not fit into the room that
    # compiled code has with this compiler, and much would be compiled again and again.
    "spark.driver.extraJavaOptions": (
        "-Duser.timezone=UTC -Dderby.system.durability=test "
        "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC -Xmn600m"
    ),
    "spark.driver.memory": "2g",
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.catalogImplementation": "in-memory",
    # Tables in tests are tiny: the defaults (200, 50 and 10,000 tasks) cost seconds for a commit.
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    # So do compiling and re-planning queries that see a handful of rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}


def start_delta_spark(folder: Path, settings: dict[str, str] | None = None) -> SparkSession:
    """Start Spark with Delta; the JVM's output goes to ``folder/spark.log``.

    ``settings`` come on top of the usual ones, for instance the S3A settings of a loopback server.
    """
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder: Any = SparkSession.builder.master("local[2]").appName("twinlake-tests")
    builder = builder.config("spark.sql.warehouse.dir", str(folder / "warehouse"))
    for key, value in {**_SETTINGS, **(settings or {})}.items():
        builder = builder.config(key, value)
    session = _started(builder, folder / "spark.log")
    _keep_jars_from_python(session)
    return session


def _started(builder: Any, log: Path) -> SparkSession:
    for start in range(1, _STARTS + 1):
        try:
            with sole_resolver(), stderr_into(log):
                session: SparkSession = builder.getOrCreate()
                return session
        except Exception:
            if start == _STARTS:
                raise
    raise AssertionError("the last start returns or raises")


def _keep_jars_from_python(session: SparkSession) -> None:
    """Take the jars off Python's path again, where Spark puts packages in case they hold modules.

    A Python worker looks through all of them in every task, which takes longer than most tasks.
    """
    context: Any = session.sparkContext
    context._python_includes.clear()
    sys.path[:] = [path for path in sys.path if not path.endswith(".jar")]


def _why_spark_failed(log: Path) -> str:
    """The line of the log that says what went wrong, or its last one."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    causes = ("RuntimeException: [", "UnsupportedClassVersionError", "UnknownHostException")
    telling = [line.strip() for line in lines if any(cause in line for cause in causes)]
    return next(iter(telling), lines[-1].strip() if lines else "no output")


def _start_or_none(folder: Path) -> SparkSession | None:
    # A start that fails drops its pipes to the dead JVM; without this the test would be blamed.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            session = start_delta_spark(folder)
            session.sql("SELECT 1").collect()
        except Exception as error:
            with (folder / "spark.log").open("a") as log:
                log.write(f"\n{type(error).__name__}: {error}\n")
        else:
            return session
    return None


@pytest.fixture(scope="session")
def delta_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A Spark session that reads and writes tables with Delta Spark itself."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        not_run("there is no Java; install Java 17 or 21", required_by=_REQUIRED_BY)
    try:
        import pyspark  # noqa: F401
    except ImportError:
        not_run("pyspark is not installed; run `make setup`", required_by=_REQUIRED_BY)
    folder = tmp_path_factory.mktemp("spark")
    session = _start_or_none(folder)
    if session is None:
        why = _why_spark_failed(folder / "spark.log")
        not_run(
            f"Spark did not start with {DELTA_PACKAGE} ({why}); "
            "the first run needs access to Maven Central",
            required_by=_REQUIRED_BY,
        )
    _running.append((session, dict(session.conf.getAll)))
    yield session
    _running.clear()
    session.stop()


_running: list[tuple[SparkSession, dict[str, str]]] = []
"""The session of this process, and the settings that it began with."""


@pytest.fixture(scope="module", autouse=True)
def settings_put_back() -> Iterator[None]:
    """What a module sets in the session is gone for the next one, which shares it."""
    yield
    for session, begun in _running:
        now = dict(session.conf.getAll)
        for key in now.keys() - begun.keys():
            session.conf.unset(key)
        for key, value in begun.items():
            if now.get(key) != value:
                session.conf.set(key, value)


@pytest.fixture(scope="session")
def peer_tables(delta_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> PeerTables:
    """The tables of Delta Spark, each made once a run; tests that change one take a copy."""
    return PeerTables(delta_spark, tmp_path_factory.mktemp("peer"))
