"""One statement that is run: its text, the names it can use, and the tables as it sees them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from twinlake.commit import CommitOptions
from twinlake.errors import Code, UserError
from twinlake.spark.api.delta_table import DeltaTable
from twinlake.spark.api.result_frames import empty_result
from twinlake.spark.delta_settings import user_metadata
from twinlake.spark.read.table_scan import frame_of_plan
from twinlake.spark.statements.queries.names import TableNames
from twinlake.spark.statements.queries.views import Views
from twinlake.spark.statements.syntax.plan_tree import PlanTree, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from twinlake.log import Snapshot
    from twinlake.spark.statements.queries.names import SqlTable
    from twinlake.table import Table

__all__ = ["SparkStatement"]

_ARROW_TYPES: Final = {"string": pa.string(), "bigint": pa.int64(), "boolean": pa.bool_()}
"""What the columns of answers can be."""


@dataclass
class SparkStatement:
    """A statement; each table is seen at one version, however often it is named."""

    spark: SparkSession
    text: str
    """With the values of its markers in it."""
    given: str
    args: Mapping[str, Any] | Sequence[Any] | None
    read: list[Snapshot] = field(default_factory=list)
    """What its queries read."""
    feeds: dict[tuple[Any, ...], DataFrame] = field(default_factory=dict)
    """The change feeds that it names; both passes of a query use the same."""
    _snapshots: dict[str, Snapshot] = field(default_factory=dict)

    @cached_property
    def tree(self) -> PlanTree:
        """Spark's classes for parsed statements."""
        return PlanTree(self.spark)

    @cached_property
    def names(self) -> TableNames:
        """The names of tables."""
        return TableNames(self.spark)

    @cached_property
    def views(self) -> Views:
        """The session's views over tables of ours."""
        return Views.of(self.spark)

    def text_of(self, node: Any) -> str:
        """What the user wrote for a node of the parsed statement."""
        return text_of(node, self.text)

    def snapshot(self, table: SqlTable) -> Snapshot:
        """The table as it is now."""
        found = self._snapshots.get(table.location)
        if found is None:
            found = self._snapshots[table.location] = table.open(self.spark).snapshot
        return found

    def past_snapshot(self, table: SqlTable, version: Any, timestamp: Any) -> Snapshot:
        """The table as it was at a version, or at the time that an expression says."""
        if version is not None:
            return table.open(self.spark, version=_version(str(version))).snapshot
        return table.open(self.spark, timestamp=self._moment(timestamp)).snapshot

    def _moment(self, timestamp: Any) -> int:
        """A time as Spark reads it in the session's zone, in milliseconds."""
        moment = F.unix_millis(self.tree.column(timestamp).try_cast("timestamp"))
        one = frame_of_plan(self.spark, self.tree.parse("SELECT 1"))
        (row,) = one.select(moment).collect()
        if row[0] is None:
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"{timestamp.sql()} is not a timestamp.",
                fix="Write it as '2026-01-31' or '2026-01-31 12:00:00'.",
                delta_class="INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.INPUT",
                fields={"timestamp": str(timestamp.sql())},
            )
        return int(row[0])

    def delta_table(self, table: SqlTable, alias: str | None = None) -> DeltaTable:
        """The handle whose methods do what the statement asks for."""
        return DeltaTable(self.spark, table.reference, alias)

    def options(self, table: Table) -> CommitOptions:
        """How commits of the statement are made."""
        return CommitOptions(policy=table.policy, user_metadata=user_metadata(self.spark))

    def frame(self, plan: Any) -> DataFrame:
        """A plan without names of ours in it as a frame."""
        return frame_of_plan(self.spark, plan)

    def nothing(self) -> DataFrame:
        """The result of a statement that has none."""
        return empty_result(self.spark)

    def rows(self, rows: Sequence[tuple[Any, ...]], schema: str) -> DataFrame:
        """Rows that a statement answers with; no job makes them."""
        kind: Any = StructType.fromDDL(schema)
        columns: Any = zip(*rows, strict=True) if rows else [()] * len(kind)
        arrays = [
            pa.array(column, _ARROW_TYPES[field.dataType.simpleString()])
            for field, column in zip(kind, columns, strict=True)
        ]
        table: Any = pa.table(arrays, names=kind.names)
        frame: DataFrame = self.spark.createDataFrame(table, kind)
        return frame

    def pass_on(self) -> DataFrame:
        """What Spark makes of the statement as it was given."""
        if self.args is None:
            return self.spark.sql(self.given)
        given: Any = self.args
        return self.spark.sql(self.given, given)


def _version(text: str) -> int:
    if text.isdecimal():
        return int(text)
    raise UserError(
        Code.INVALID_ARGUMENT,
        f"{text!r} is not a version.",
        why="versions are whole numbers from 0 on",
        fix="Write `VERSION AS OF 3`, or `TIMESTAMP AS OF '2026-01-31'`.",
        delta_class="DELTA_VERSION_INVALID",
        fields={"version": text},
    )
