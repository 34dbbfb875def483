"""``toDF()``: a frame whose leading filters reach the list of files before Spark sees it.

People write ``table.toDF().where(...)``. Were the scan built at ``toDF()``, all files of the table
would be listed and only rows be filtered. So the frame waits: ``where``, ``filter`` and ``select``
are tried on an empty frame with the same columns, which also finds mistakes at once, and when
anything else is asked of the frame, the scan is built with what those filters leave of the files
and they are replayed on it. The empty frame and the scan share the ids of their columns, so that
columns taken from the one (``df.id``) mean the same in the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from twinlake.spark.read.conditions import empty_frame, skipping_expression
from twinlake.spark.read.expression_ids import with_expression_ids
from twinlake.spark.read.table_scan import Scan

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from pyspark.sql import Column, SparkSession

    from twinlake.log import Snapshot
    from twinlake.schema.predicates import Expr

__all__ = ["TableFrame", "matching_files", "table_frame"]

_SOURCE = "_metadata"
"""The hidden column of file sources: path, size and row index of where a row comes from."""


def table_frame(spark: SparkSession, snapshot: Snapshot) -> DataFrame:
    """The table's rows as a frame that skips files by the filters put on it."""
    return TableFrame(spark, snapshot, empty_frame(spark, snapshot.metadata), ())


def matching_files(spark: SparkSession, snapshot: Snapshot, where: str | Column) -> pa.Table:
    """The files that may hold rows for which the condition is true."""
    filtered = empty_frame(spark, snapshot.metadata).where(where)
    return snapshot.files(_skipping(spark, snapshot, filtered))


class TableFrame(ClassicDataFrame):
    """A frame over a table that has not been listed yet; everything else about it is Spark's."""

    def __new__(cls, *_: Any, **__: Any) -> TableFrame:
        """Make it as it is: PySpark would look at the arguments for the kind of session."""
        return object.__new__(cls)

    def __init__(
        self,
        spark: SparkSession,
        snapshot: Snapshot,
        template: DataFrame,
        steps: tuple[Callable[[DataFrame], DataFrame], ...],
        *,
        base: DataFrame | None = None,
    ) -> None:
        self._snapshot = snapshot
        self._base = base or template
        self._template = template
        self._steps = steps
        self._scanned: Any = None
        super().__init__(template._jdf, spark)

    @property
    def _jdf(self) -> Any:
        if self._scanned is None:
            self._scanned = self._scan(one_branch=False)._jdf
        return self._scanned

    @_jdf.setter
    def _jdf(self, _: Any) -> None:
        # The constructor of DataFrame sets it; here it is made when first needed.
        self._scanned = None

    def _then(self, step: Callable[[DataFrame], DataFrame]) -> DataFrame:
        if self._scanned is not None:
            return step(DataFrame(self._scanned, self.sparkSession))
        return TableFrame(
            self.sparkSession,
            self._snapshot,
            step(self._template),
            (*self._steps, step),
            base=self._base,
        )

    def _asks_for_source(self, *columns: Any) -> bool:
        """Whether ``_metadata``, which exists on scans of files only, is meant."""
        named = any(_SOURCE in str(column) for column in columns)
        return named and self._scanned is None and _SOURCE not in self._template.columns

    def where(self, condition: Column | str) -> DataFrame:
        """Filter; files that cannot hold matching rows will not be read."""
        if self._asks_for_source(condition):
            return self._scan(one_branch=True).where(condition)
        return self._then(lambda frame: frame.where(condition))

    filter = where

    def select(self, *cols: Any) -> DataFrame:
        """Select columns."""
        if self._asks_for_source(*cols):
            return self._scan(one_branch=True).select(*cols)
        return self._then(lambda frame: frame.select(*cols))

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, str) and self._scanned is None:
            return self._template[item]
        return super().__getitem__(item)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self.__dict__.get("_scanned") is None and name in self._template.columns:
            return self._template[name]
        return super().__getattr__(name)

    @property
    def columns(self) -> list[str]:
        """The column names; nothing is read for them."""
        return self._template.columns

    @property
    def schema(self) -> Any:
        """The schema; nothing is read for it."""
        return self._template.schema

    def _scan(self, *, one_branch: bool) -> DataFrame:
        spark = self.sparkSession
        skipping = _skipping(spark, self._snapshot, self._template) if self._steps else None
        files = self._snapshot.files(skipping)
        scan = Scan(snapshot=self._snapshot, files=files, one_branch=one_branch)
        frame = with_expression_ids(spark, scan.frame(spark), self._base)
        for step in self._steps:
            frame = step(frame)
        return frame


def _skipping(spark: SparkSession, snapshot: Snapshot, filtered: DataFrame) -> Expr | None:
    """The condition on the table's own columns of the filters on an empty frame."""
    plan: Any = filtered._jdf.queryExecution().optimizedPlan()
    sql = _condition_on_leaf(plan)
    return None if sql is None else skipping_expression(spark, sql, snapshot.metadata)


def _condition_on_leaf(plan: Any) -> str | None:
    """The condition right above the source of a plan of projections and one filter."""
    while True:
        name = plan.nodeName()
        if name == "Filter":
            child = plan.child()
            return str(plan.condition().sql()) if not child.children().size() else None
        if name != "Project":
            return None
        plan = plan.child()
