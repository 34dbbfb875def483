"""Data engines, found without importing them.

An engine registers a factory in the entry-point group ``twinlake.engines``. The factory is called
with whatever the caller passed as ``spark=`` and answers with an engine, or with None if that is
not its kind of session. So the rooms below an engine can use one and still know nothing of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from twinlake.errors import Code, UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.runtime._ports import Executor, Rewriter

__all__ = [
    "ENGINE_GROUP",
    "ContentReader",
    "Engine",
    "FileContent",
    "OffendingRows",
    "engine_for",
]

ENGINE_GROUP: Final = "twinlake.engines"
"""The entry-point group: ``name = "package.module:factory"``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffendingRows:
    """Rows that break a rule."""

    count: int
    shown: tuple[str, ...] = ()
    """Some of them as text, if values may be shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContent:
    """The rows of a data file in sum, whatever their order."""

    rows: int
    hash: int


class ContentReader(Protocol):
    """Reads both sides of a table by the engine's own readers, and returns no row of them.

    Files are named by their location, percent-decoded, such as ``file:///lake/t/a b.parquet``. A
    file without rows may be left out.
    """

    @property
    def delta_reader(self) -> str:
        """What reads the Delta side, with its version."""
        ...

    @property
    def iceberg_reader(self) -> str:
        """What reads the Iceberg side, with its version; empty where the engine has no reader.

        Then contents of the Delta side are to be compared with those of ``hash_python_rows``.
        """
        ...

    def delta_contents(self, snapshot: Any) -> Mapping[str, FileContent]:
        """The contents of the files of a ``log.Snapshot``."""
        ...

    def iceberg_contents(self, location: str, snapshot_id: int | None) -> Mapping[str, FileContent]:
        """The contents of the files of an Iceberg snapshot; without an id of the current one."""
        ...


@runtime_checkable
class Engine(Protocol):
    """What moves rows: it runs functions over items, rewrites files, and looks at rows."""

    @property
    def executor(self) -> Executor:
        """Runs file-parallel work."""
        ...

    @property
    def rewriter(self) -> Rewriter:
        """Writes files again."""
        ...

    @property
    def contents(self) -> ContentReader | None:
        """Hashes the rows of files; None where the engine leaves that to its executor."""
        ...

    def offending_rows(self, snapshot: Any, expression: str, limit: int) -> OffendingRows:
        """The rows of the snapshot for which the expression is not true.

        A result of null counts as not true, as in Delta. At most ``limit`` of them are shown, and
        none unless whoever runs the engine asked for values of rows.
        """
        ...


def engine_for(spark: object | None) -> Engine | None:
    """The engine for a session; None for none, and an error for what no engine takes.

    An engine itself is taken as it is.

    >>> engine_for(None) is None
    True
    """
    if spark is None or isinstance(spark, Engine):
        return spark
    refusals: list[str] = []
    for entry in sorted(entry_points(group=ENGINE_GROUP), key=lambda entry: entry.name):
        try:
            factory = entry.load()
        except (ImportError, AttributeError) as error:
            refusals.append(f"engine {entry.name!r} cannot be loaded ({error})")
            continue
        engine = factory(spark)
        if isinstance(engine, Engine):
            return engine
        refusals.append(f"engine {entry.name!r} does not take it")
    kind = f"{type(spark).__module__}.{type(spark).__qualname__}"
    raise UserError(
        Code.SPARK_REQUIRED,
        f"No data engine works with an object of type {kind}.",
        why="; ".join(refusals) or "no engine is installed",
        fix="Pass a classic SparkSession as `spark=`; without PySpark, run `pip install "
        "'twinlake[spark]'` first.",
        fields={"type": kind, "engines": refusals},
    )
