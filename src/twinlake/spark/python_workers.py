"""Functions in Spark's Python workers: the interpreter, jobs, and errors of its environment.

PySpark runs ``PYSPARK_PYTHON`` in the workers, or else the first ``python3`` of the PATH. In a cron
job, a notebook or an IDE nobody has activated an environment, and that is another Python than the
driver's. Where nobody has chosen one, workers of a local session run the driver's own interpreter.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from pyspark import TaskContext
from pyspark.sql import DataFrame, functions
from pyspark.sql.udf import _create_udf
from pyspark.util import PythonEvalType

from twinlake.errors import Code, UserError
from twinlake.spark.errors import encode_error, message_texts
from twinlake.spark.spark_types import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

__all__ = [
    "WorkerFunction",
    "map_in_arrow",
    "run_in_workers",
    "task_ids",
    "worker_errors",
    "worker_interpreter",
    "worker_python",
]

T = TypeVar("T")
R = TypeVar("R")

_ENVIRONMENT: Final = "PYSPARK_PYTHON"
_CONTEXT_SETTING: Final = "spark.pyspark.python"
_SESSION_SETTING: Final = "spark.sql.execution.pyspark.python"
_DEFAULT: Final = "python3"
"""What PySpark runs where nothing is set."""
_UNKNOWN: Final = "unknown"

_making = threading.Lock()


def worker_python(spark: SparkSession) -> str:
    """The interpreter that functions of ours run in; a choice of the user's always counts."""
    context: Any = spark.sparkContext
    chosen = spark.conf.get(_SESSION_SETTING, None)
    if chosen:
        return str(chosen)
    if os.environ.get(_ENVIRONMENT) or context.pythonExec != _DEFAULT:
        return str(context.pythonExec)
    # PySpark itself reads this one only if the driver was started by spark-submit.
    chosen = context.getConf().get(_CONTEXT_SETTING)
    if chosen:
        return str(chosen)
    return sys.executable if _is_local(spark) and sys.executable else _DEFAULT


def _is_local(spark: SparkSession) -> bool:
    return str(spark.sparkContext.master).startswith("local")


@contextlib.contextmanager
def worker_interpreter(spark: SparkSession) -> Iterator[None]:
    """Functions that PySpark makes for the JVM in the block name the right interpreter.

    It is written into each function when that is made. The context has its own value back
    afterwards, so that functions of the user's run where they always did.
    """
    context: Any = spark.sparkContext
    with _making:
        before, context.pythonExec = context.pythonExec, worker_python(spark)
        try:
            yield
        finally:
            context.pythonExec = before


@dataclass(frozen=True, slots=True)
class WorkerFunction(Generic[T, R]):
    """A function on its way to the workers; it refuses to run by another version of twinlake."""

    function: Callable[[T], R]
    version: str

    @classmethod
    def of(cls, function: Callable[[T], R]) -> WorkerFunction[T, R]:
        """The function, with the version that the driver has."""
        return cls(function, _version())

    def __call__(self, argument: T) -> R:
        """Call the function, if this process has the driver's version of twinlake."""
        here = _version()
        # Sources that were shipped without the package's metadata do not know their version.
        if here != self.version and _UNKNOWN not in (here, self.version):
            why = f"they have twinlake {here}, and the driver has {self.version}"
            raise RuntimeError(encode_error(_cannot_run(why, _cluster_fix(self.version), {})))
        return self.function(argument)


@cache
def _version() -> str:
    try:
        return metadata.version("twinlake")
    except metadata.PackageNotFoundError:
        return _UNKNOWN


def run_in_workers(
    spark: SparkSession, function: Callable[[T], R], items: Sequence[T], slices: int
) -> list[R]:
    """The results of a function over items, by a Spark job."""
    context: Any = spark.sparkContext
    job = context.parallelize(items, slices).map(WorkerFunction.of(function))
    with worker_errors(spark):
        with worker_interpreter(spark):
            _ = job._jrdd
        found: list[R] = job.collect()
    return found


def task_ids() -> tuple[int, int, int]:
    """Partition, attempt id and attempt number of the Spark task; zeros outside of one."""
    context = TaskContext.get()
    if context is None:
        return 0, 0, 0
    return context.partitionId(), context.taskAttemptId(), context.attemptNumber()


def map_in_arrow(
    frame: DataFrame,
    call: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: StructType | str,
) -> DataFrame:
    """The frame's batches through a function that is importable by name.

    ``DataFrame.mapInArrow`` does the same, but it asks for pandas and trips over dots in names.
    """
    made: Any = WorkerFunction.of(call)
    function: Any = _create_udf(made, schema, PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    columns = [functions.col(quoted(name)) for name in frame.columns]
    with worker_interpreter(frame.sparkSession):
        applied = function(*columns)._jc
    jdf = cast("Any", frame)._jdf.mapInArrow(applied, False, None)
    return DataFrame(jdf, frame.sparkSession)


@contextlib.contextmanager
def worker_errors(spark: SparkSession) -> Iterator[None]:
    """Around a job of ours: one error that names what the workers' Python lacks."""
    try:
        yield
    except Exception as error:
        found = _environment_error(spark, error)
        if found is None:
            raise
        raise found from error


def _environment_error(spark: SparkSession, error: Exception) -> UserError | None:
    # A session that went down cannot be asked; its own exception is passed on.
    with contextlib.suppress(Exception):
        python = worker_python(spark)
        for text in message_texts(error):
            why = _complaint(text, python)
            if why is not None:
                return _cannot_run(
                    f"they run {python}, and {why}",
                    _fix(spark, python),
                    {"python": python, "driver_python": sys.executable, "version": _version()},
                )
    return None


_MISSING: Final = re.compile(r"ModuleNotFoundError: No module named '(\w+)[\w.]*'")
_NO_PROGRAM: Final = re.compile(r'Cannot run program "([^"]+)"')
_COMPLAINTS: Final[Mapping[re.Pattern[str], str]] = {
    re.compile(
        r"Python in worker has different version:? (\S+) than that in driver:? ([\d.]+)"
    ): "that is Python {0}, while the driver is Python {1}",
    re.compile(
        r"\[(?:PACKAGE_NOT_INSTALLED|UNSUPPORTED_PACKAGE_VERSION)\] (\S+ >= [\d.]+) must be"
    ): "it has no {0}",
    re.compile(
        r"(?:Can't get attribute|cannot import name) '(\w+)' (?:on <module|from) '(twinlake[\w.]*)'"
    ): "its twinlake is another version: {1} has no {0}",
    re.compile(r"Error from python worker:\s+(.+)"): "it did not start: {0}",
}
"""Messages of Spark and Python about an environment, and their meaning."""


def _complaint(text: str, python: str) -> str | None:
    """The problem of the workers' Python that a message reports; None if it reports none."""
    needed = _needed_modules()
    if missing := next((m[1] for m in _MISSING.finditer(text) if m[1] in needed), None):
        return f"it has no module {missing}"
    if any(m[1] == python for m in _NO_PROGRAM.finditer(text)):
        return "there is no such program"
    for pattern, meaning in _COMPLAINTS.items():
        if found := pattern.search(text):
            return meaning.format(*found.groups())
    return None


def _needed_modules() -> frozenset[str]:
    """The modules that twinlake takes to run; missing modules of the user do not count."""
    with contextlib.suppress(metadata.PackageNotFoundError):
        names = (re.match(r"[\w-]+", line) for line in metadata.requires("twinlake") or ())
        own = {name[0].replace("-", "_").lower() for name in names if name is not None}
        return frozenset({"twinlake", "numpy", *own})
    return frozenset({"twinlake", "numpy", "msgspec", "pyarrow"})


def _cannot_run(why: str, fix: str, fields: Mapping[str, Any]) -> UserError:
    return UserError(
        Code.SPARK_WORKERS,
        "Spark's Python workers cannot run twinlake.",
        why=why,
        fix=fix,
        fields=fields,
    )


def _fix(spark: SparkSession, python: str) -> str:
    version = _version()
    if not _is_local(spark):
        return _cluster_fix(version)
    if python != sys.executable:
        return (
            f"Unset {_ENVIRONMENT}, {_CONTEXT_SETTING} and {_SESSION_SETTING} and start the "
            f"session again: workers of a local session then run the driver's {sys.executable}."
        )
    return (
        "Run `pip install 'twinlake[spark]'` with that Python, or set PYTHONPATH "
        "before the session starts: workers do not see what a program adds to sys.path."
    )


def _cluster_fix(version: str) -> str:
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    return (
        f"Install Python {minor} on every machine of the cluster, run there "
        f"`pip install 'twinlake[spark]=={version}'` and set {_ENVIRONMENT} or "
        f"{_CONTEXT_SETTING} to it before the session starts; or ship a packed environment "
        f"(`spark.archives`) and set {_ENVIRONMENT} to its Python."
    )
