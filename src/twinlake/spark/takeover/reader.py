"""``spark.read`` under the takeover."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.readwriter import DataFrameReader
from pyspark.sql.utils import to_str

from twinlake.errors import Code, UserError
from twinlake.spark.delta_options import OptionUse, OptionValues
from twinlake.spark.errors import spark_errors
from twinlake.spark.read.table_frame import table_frame
from twinlake.spark.session import open_table
from twinlake.spark.takeover.deferred import Deferred
from twinlake.spark.takeover.names import find_name
from twinlake.spark.takeover.paths import (
    missing_path,
    partition_inside,
    requested_travel,
    without_time_travel,
)
from twinlake.spark.takeover.state import TAKEOVER, is_ours

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from twinlake.spark.takeover.names import NamedTable
    from twinlake.spark.takeover.paths import TimeTravel

__all__ = ["TakeoverReader", "no_path", "read_named", "read_path"]


class TakeoverReader(DataFrameReader):
    """Spark's reader, but for formats and names of ours."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._deferred = Deferred(spark._jsparkSession.read)
        self._format: str | None = None
        self._own_schema = False
        self._options: dict[str, str | None] = {}

    @property
    def _jreader(self) -> Any:
        return self._deferred.get()

    @_jreader.setter
    def _jreader(self, made: Any) -> None:
        self._deferred.set(made)

    def format(self, source: str) -> TakeoverReader:
        """The format; Spark is told of its own only."""
        self._format = source
        if not is_ours(source):
            super().format(source)
        return self

    def schema(self, schema: StructType | str) -> TakeoverReader:
        """A schema; tables have their own."""
        self._own_schema = True
        super().schema(schema)
        return self

    def option(self, key: str, value: Any) -> TakeoverReader:
        """An option."""
        text = to_str(value)
        self._options[key] = text
        self._deferred.then(lambda made: made.option(key, text))
        return self

    def options(self, **options: Any) -> TakeoverReader:
        """Some options."""
        for key, value in options.items():
            self.option(key, value)
        return self

    def load(
        self,
        path: str | list[str] | None = None,
        format: str | None = None,
        schema: StructType | str | None = None,
        **options: Any,
    ) -> DataFrame:
        """The rows at a path."""
        if format is not None:
            self.format(format)
        if schema is not None:
            self.schema(schema)
        self.options(**options)
        if not TAKEOVER.is_chosen(self._format):
            return super().load(path)
        with spark_errors(), TAKEOVER.inside():
            if self._own_schema:
                raise _own_schema()
            return read_path(self._spark, path, OptionValues.of(self._options))

    def table(self, tableName: str) -> DataFrame:
        """The rows of a table by its name."""
        return self.named(tableName, lambda: super(TakeoverReader, self).table(tableName))

    def named(self, name: str, otherwise: Callable[[], DataFrame]) -> DataFrame:
        """The rows of a table of ours by its name, or what Spark makes of the name."""
        with spark_errors(), TAKEOVER.inside():
            found = find_name(self._spark, name)
            if found is not None:
                return read_named(self._spark, found, OptionValues.of(self._options))
        return otherwise()


def read_path(spark: SparkSession, path: Any, values: OptionValues) -> DataFrame:
    """The rows at a path, of the version that it or the options name."""
    if isinstance(path, (list, tuple)):
        path = path[0] if len(path) == 1 else None
    path = values.text("path") if path is None else path
    if path is None:
        raise no_path()
    plain, travel = without_time_travel(spark, path)
    try:
        return _rows(spark, plain, values, travel)
    except UserError as error:
        # Looked into only now: a path that is a table costs no call to the store more.
        if error.code is not Code.TABLE_NOT_FOUND:
            raise
        inside = partition_inside(spark, plain)
        if inside is None:
            raise missing_path(spark, plain) from error
    root, condition = inside
    return _rows(spark, root, values, travel).where(condition)


def read_named(spark: SparkSession, found: NamedTable, values: OptionValues) -> DataFrame:
    """The rows of a table that was found by its name."""
    try:
        return _rows(spark, found.location, values, found.travel)
    except UserError as error:
        if error.code is not Code.TABLE_NOT_FOUND or not found.by_path:
            raise
        raise missing_path(spark, found.location) from error


def _rows(
    spark: SparkSession, location: str, values: OptionValues, in_path: TimeTravel | None
) -> DataFrame:
    values.warn_of_unknown(OptionUse.READ)
    if values.truth("readChangeFeed") or values.truth("readChangeData"):
        return _changes(spark, location, values)
    travel = requested_travel(spark, values, in_path)
    return table_frame(
        spark, open_table(spark, location, travel.version, travel.timestamp).snapshot
    )


def _changes(spark: SparkSession, location: str, values: OptionValues) -> DataFrame:
    from twinlake.spark import changes

    return changes(
        spark,
        location,
        from_version=values.number("startingVersion"),
        to_version=values.number("endingVersion"),
        from_timestamp=values.text("startingTimestamp"),
        to_timestamp=values.text("endingTimestamp"),
    )


def no_path() -> UserError:
    """The error of a call without a path."""
    return UserError(
        Code.INVALID_ARGUMENT,
        "'path' is not specified.",
        why="a table is read and written by one path, or by its name",
        fix='Call `load(PATH)` or `save(PATH)`, or give `option("path", PATH)`.',
    )


def _own_schema() -> UserError:
    return UserError(
        Code.SCHEMA_INVALID,
        "A table does not support user-specified schema.",
        why="its columns are those that its log has",
        fix="Leave the schema out, and use `select` and `cast` on the frame.",
    )
