"""``frame.write`` under the takeover."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.readwriter import DataFrameWriter
from pyspark.sql.utils import to_str

from twinlake.errors import Code, UserError
from twinlake.spark.errors import spark_errors
from twinlake.spark.takeover.deferred import Deferred
from twinlake.spark.takeover.names import find_name
from twinlake.spark.takeover.reader import no_path
from twinlake.spark.takeover.state import TAKEOVER, is_ours
from twinlake.spark.takeover.table_writes import insert_by_position, save_as_table
from twinlake.spark.takeover.write_request import WriteRequest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["MODES", "TakeoverWriter"]

MODES = frozenset({"append", "overwrite", "error", "errorifexists", "default", "ignore"})
"""Modes that Spark takes; of any other it says so itself, at once."""


class TakeoverWriter(DataFrameWriter):
    """Spark's writer, but for formats and names of ours."""

    def __init__(self, df: DataFrame) -> None:
        self._df = df
        self._spark = df.sparkSession
        # A frame of ours reads the log when its ``_jdf`` is looked at.
        self._deferred = Deferred(lambda: df._jdf.write())  # noqa: PLW0108
        self._format: str | None = None
        self._mode: str | None = None
        self._partition_by: tuple[str, ...] | None = None
        self._cluster_by: tuple[str, ...] = ()
        self._unsupported: str | None = None
        self._options: dict[str, str | None] = {}

    @property
    def _jwrite(self) -> Any:
        return self._deferred.get()

    @_jwrite.setter
    def _jwrite(self, made: Any) -> None:
        self._deferred.set(made)

    def format(self, source: str) -> TakeoverWriter:
        """The format; Spark is told of its own only."""
        self._format = source
        if not is_ours(source):
            super().format(source)
        return self

    def mode(self, saveMode: str | None) -> TakeoverWriter:
        """The mode."""
        if saveMode is None:
            return self
        if not isinstance(saveMode, str) or saveMode.lower() not in MODES:
            super().mode(saveMode)
            return self
        self._mode = saveMode
        self._deferred.then(lambda made: made.mode(saveMode))
        return self

    def option(self, key: str, value: Any) -> TakeoverWriter:
        """An option."""
        text = to_str(value)
        self._options[key] = text
        self._deferred.then(lambda made: made.option(key, text))
        return self

    def options(self, **options: Any) -> TakeoverWriter:
        """Some options."""
        for key, value in options.items():
            self.option(key, value)
        return self

    def partitionBy(self, *cols: Any) -> TakeoverWriter:
        """The partition columns."""
        names = _names(cols)
        if names is None:
            super().partitionBy(*cols)
            return self
        self._partition_by = names
        sc = self._spark._sc
        self._deferred.then(lambda made: made.partitionBy(_sequence(sc, names)))
        return self

    def clusterBy(self, *cols: Any) -> TakeoverWriter:
        """The clustering columns."""
        names = _names(cols)
        if not names:
            super().clusterBy(*cols)
            return self
        self._cluster_by = names
        sc = self._spark._sc
        self._deferred.then(lambda made: made.clusterBy(names[0], _sequence(sc, names[1:])))
        return self

    def bucketBy(self, numBuckets: int, col: Any, *cols: Any) -> TakeoverWriter:
        """Buckets, which tables do not have."""
        self._unsupported = "bucketBy"
        super().bucketBy(numBuckets, col, *cols)
        return self

    def sortBy(self, col: Any, *cols: Any) -> TakeoverWriter:
        """Sorting within buckets, which tables do not have."""
        self._unsupported = self._unsupported or "sortBy"
        super().sortBy(col, *cols)
        return self

    def save(
        self,
        path: str | None = None,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: str | list[str] | None = None,
        **options: Any,
    ) -> None:
        """Write to a path."""
        self._collect(format, mode, partitionBy, options)
        if not TAKEOVER.is_chosen(self._format):
            super().save(path)
            return
        with spark_errors(), TAKEOVER.inside():
            self._refuse_buckets("save")
            request = self._request()
            target = path if path is not None else request.values.text("path")
            if target is None:
                raise no_path()
            request.write(self._df, target, self._mode or "error")

    def insertInto(self, tableName: str, overwrite: bool | None = None) -> None:
        """Write to a table by its name; columns are taken by position."""
        with spark_errors(), TAKEOVER.inside():
            found = find_name(self._spark, tableName)
            if found is not None:
                self._refuse_buckets("insertInto")
                if self._partition_by is not None:
                    raise _partitions_given()
                if overwrite is not None:
                    self._mode = "overwrite" if overwrite else "append"
                how = "overwrite" if (self._mode or "").lower() == "overwrite" else "append"
                insert_by_position(self._df, found, self._request(), how)
                return
        super().insertInto(tableName, overwrite)

    def saveAsTable(
        self,
        name: str,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: str | list[str] | None = None,
        **options: Any,
    ) -> None:
        """Write to a table by its name, which may be new."""
        self._collect(format, mode, partitionBy, options)
        if self._format is None or is_ours(self._format):
            with spark_errors(), TAKEOVER.inside():
                found = find_name(self._spark, name)
                if found is not None or TAKEOVER.is_chosen(self._format):
                    self._refuse_buckets("saveAsTable")
                    save_as_table(self._df, name, found, self._request(), self._mode or "error")
                    return
        super().saveAsTable(name)

    def _collect(
        self,
        format: str | None,
        mode: str | None,
        partition_by: str | list[str] | None,
        options: dict[str, Any],
    ) -> None:
        """Arguments in the order in which PySpark takes them."""
        self.mode(mode).options(**options)
        if partition_by is not None:
            self.partitionBy(partition_by)
        if format is not None:
            self.format(format)

    def _request(self) -> WriteRequest:
        return WriteRequest.of(
            self._options, partition_by=self._partition_by, cluster_by=self._cluster_by
        )

    def _refuse_buckets(self, call: str) -> None:
        if self._unsupported is not None:
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"'{call}' does not support {self._unsupported} right now.",
                why="tables have no buckets",
                fix=f"Leave {self._unsupported} out; `clusterBy(COLUMN)` of a new table keeps rows "
                "together.",
            )


def _names(cols: tuple[Any, ...]) -> tuple[str, ...] | None:
    """Names as they were given; None for what only Spark can judge."""
    if len(cols) == 1 and isinstance(cols[0], (list, tuple)):
        cols = tuple(cols[0])
    return cols if all(isinstance(name, str) for name in cols) else None


def _sequence(context: Any, names: tuple[str, ...]) -> Any:
    from pyspark.sql.classic.column import _to_seq

    return _to_seq(context, names)


def _partitions_given() -> UserError:
    return UserError(
        Code.INVALID_ARGUMENT,
        "insertInto() can't be used together with partitionBy().",
        why="the table says by which columns it is partitioned",
        fix="Leave `partitionBy(...)` out.",
    )
