"""``frame.writeTo`` under the takeover."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.readwriter import DataFrameWriterV2
from pyspark.sql.utils import to_str

from twinlake.errors import Code, UserError
from twinlake.spark.api.create_table import CreateMode
from twinlake.spark.errors import spark_errors
from twinlake.spark.read.conditions import empty_frame
from twinlake.spark.session import open_table
from twinlake.spark.spark_types import java_class
from twinlake.spark.takeover.deferred import Deferred
from twinlake.spark.takeover.names import find_name
from twinlake.spark.takeover.state import TAKEOVER, is_ours
from twinlake.spark.takeover.table_writes import create, write_named
from twinlake.spark.takeover.write_request import WriteRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

__all__ = ["TakeoverWriterV2"]


class TakeoverWriterV2(DataFrameWriterV2):
    """Spark's writer to tables by name, but for formats and names of ours."""

    def __init__(self, df: DataFrame, table: str) -> None:
        self._df = df
        self._spark = df.sparkSession
        self._table = table
        self._deferred = Deferred(lambda: df._jdf.writeTo(table))
        self._provider: str | None = None
        self._options: dict[str, str | None] = {}
        self._properties: dict[str, str] = {}
        self._partition_by: tuple[str, ...] | None = None
        self._transforms: str | None = None
        self._cluster_by: tuple[str, ...] = ()
        if not isinstance(table, str):
            self._deferred.get()

    @property
    def _jwriter(self) -> Any:
        return self._deferred.get()

    def using(self, provider: str) -> TakeoverWriterV2:
        """The format; Spark is told of its own only."""
        self._provider = provider
        if not is_ours(provider):
            super().using(provider)
        return self

    def option(self, key: str, value: Any) -> TakeoverWriterV2:
        """An option."""
        text = to_str(value)
        self._options[key] = text
        self._put_off(lambda made: made.option(key, text))
        return self

    def options(self, **options: Any) -> TakeoverWriterV2:
        """Some options."""
        texts = {key: to_str(value) for key, value in options.items()}
        self._options.update(texts)
        self._put_off(lambda made: made.options(texts))
        return self

    def tableProperty(self, property: str, value: str) -> TakeoverWriterV2:
        """A property of a new table."""
        self._properties[property] = value
        self._put_off(lambda made: made.tableProperty(property, value))
        return self

    def partitionedBy(self, col: Any, *cols: Any) -> TakeoverWriterV2:
        """The partition columns of a new table."""
        given = (col, *cols)
        names = [_name(one) for one in given]
        if None in names:
            self._transforms = str(next(one for one in given if _name(one) is None))
        else:
            self._partition_by = tuple(str(name) for name in names)
        self._put_off(lambda _: super(TakeoverWriterV2, self).partitionedBy(col, *cols)._jwriter)
        return self

    def clusterBy(self, col: str, *cols: str) -> TakeoverWriterV2:
        """The clustering columns of a new table."""
        self._cluster_by = (col, *cols)
        self._put_off(lambda _: super(TakeoverWriterV2, self).clusterBy(col, *cols)._jwriter)
        return self

    def _put_off(self, call: Callable[[Any], Any]) -> None:
        def then(made: Any) -> Any:
            call(made)
            return made

        self._deferred.then(then)

    def create(self) -> None:
        """Create a table with the rows."""
        if not self._creates(CreateMode.CREATE):
            super().create()

    def replace(self) -> None:
        """Replace a table by one with the rows."""
        if not self._creates(CreateMode.REPLACE):
            super().replace()

    def createOrReplace(self) -> None:
        """Create a table with the rows, or replace the one that has the name."""
        if not self._creates(CreateMode.CREATE_OR_REPLACE):
            super().createOrReplace()

    def append(self) -> None:
        """Append the rows."""
        if not self._writes("append", {}):
            super().append()

    def overwrite(self, condition: Any) -> None:
        """Put the rows in the place of those that match."""
        with spark_errors(), TAKEOVER.inside():
            found = find_name(self._spark, self._table)
            if found is not None:
                metadata = open_table(self._spark, found.location).metadata
                text = _sql(empty_frame(self._spark, metadata), condition)
                where = {} if text.lower() == "true" else {"replaceWhere": text}
                request = self._request({"partitionOverwriteMode": "static", **where})
                write_named(self._df, found, request, "overwrite")
                return
        super().overwrite(condition)

    def overwritePartitions(self) -> None:
        """Put the rows in the place of the partitions that they are in."""
        if not self._writes("overwrite", {"partitionOverwriteMode": "dynamic"}):
            super().overwritePartitions()

    def _creates(self, how: CreateMode) -> bool:
        """Make the table, if it is ours to make."""
        if not TAKEOVER.is_chosen(self._provider):
            return False
        with spark_errors(), TAKEOVER.inside():
            if self._transforms is not None or self._cluster_by:
                raise _transforms(self._transforms or "clusterBy")
            create(self._df, self._table, self._request({}), how, properties=self._properties)
        return True

    def _writes(self, mode: str, more: dict[str, str | None]) -> bool:
        """Write to the table, if it is one of ours."""
        with spark_errors(), TAKEOVER.inside():
            found = find_name(self._spark, self._table)
            if found is None:
                return False
            write_named(self._df, found, self._request(more), mode)
        return True

    def _request(self, more: dict[str, str | None]) -> WriteRequest:
        return WriteRequest.of(
            {**self._options, **more},
            partition_by=self._partition_by,
            cluster_by=self._cluster_by,
        )


def _name(column: Any) -> str | None:
    """The column that is meant; None for a function of one."""
    if isinstance(column, str):
        return column
    expression: Any = column._jc.node()
    if str(expression.getClass().getSimpleName()) != "UnresolvedAttribute":
        return None
    parts = expression.nameParts()
    return str(parts.head()) if parts.size() == 1 else None


def _sql(frame: DataFrame, condition: Column | str) -> str:
    """A condition on the columns of a frame as Spark spells it."""
    column = condition if isinstance(condition, Column) else F.col(condition)
    filtered: Any = frame.where(column)
    folding = java_class(
        frame.sparkSession, "org.apache.spark.sql.catalyst.optimizer.ConstantFolding"
    )
    return str(folding.apply(filtered._jdf.queryExecution().analyzed()).condition().sql())


def _transforms(what: str) -> UserError:
    return UserError(
        Code.INVALID_ARGUMENT,
        "Operation not allowed: `Partitioning by expressions` is not supported for Delta tables.",
        why=f"{what} is not a column",
        fix="Add the value as a column and partition by that, or cluster the table with "
        "`DeltaTableBuilder.clusterBy(COLUMN)`.",
        delta_class="DELTA_OPERATION_NOT_ALLOWED",
    )
