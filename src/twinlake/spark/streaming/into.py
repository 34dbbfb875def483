"""``into``: what writes the batches of a stream to a table, each of them once.

Each commit names the query and the batch (a ``txn`` action), so a batch that comes again after a
failure is found to be written already.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from twinlake.commit import CommitOptions, Operation, OperationName
from twinlake.commit.plans import Then, When
from twinlake.errors import Code, UserError, listed
from twinlake.spark.delta_settings import user_metadata as session_metadata
from twinlake.spark.dml.merge.clauses import Clause
from twinlake.spark.dml.merge.execution import AUTO_MERGE, MergeRequest, merge
from twinlake.spark.dml.write import WriteOptions, write_table
from twinlake.spark.errors import raises_spark_errors
from twinlake.spark.session import open_table, session_conf, settings_of
from twinlake.spark.spark_types import quoted
from twinlake.table import shared_store, table_exists
from twinlake.table.rows import is_committed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import SparkSession

__all__ = ["into"]

_MODES: Final = {"append": "append", "complete": "overwrite"}
"""Output modes of a stream, and the modes of a write that do the same."""
_QUERY_ID: Final = "sql.streaming.queryId"
"""Where Spark keeps the id of the query that a thread works for."""
_TARGET: Final = "twinlake_target"
_SOURCE: Final = "twinlake_source"
_RANK: Final = "__twinlake_rank"


@raises_spark_errors
def into(
    path: str | os.PathLike[str],
    mode: str = "append",
    merge: str | Sequence[str] | None = None,
    *,
    latest_by: str | None = None,
    partition_by: str | Sequence[str] | None = None,
    merge_schema: bool | None = None,
    properties: Mapping[str, object] | None = None,
    user_metadata: str | None = None,
    txn_app_id: str | None = None,
) -> Callable[[DataFrame, int], None]:
    """A function for ``foreachBatch`` and ``follow`` that writes each batch once.

    ``mode`` is append, or complete to replace all rows by those of the batch. ``merge`` names key
    columns: rows that match are updated and the others inserted; of several rows of a batch with
    one key, that with the largest ``latest_by`` counts. The table is made by the first batch if
    there is none, with ``partition_by`` and ``properties``. Outside of a stream ``txn_app_id``
    stands for the id of the query.
    """
    keys = (merge,) if isinstance(merge, str) else tuple(merge or ())
    sink = _Sink(
        path=os.fspath(path),
        mode=mode.lower(),
        keys=keys,
        latest_by=latest_by,
        partition_by=(partition_by,)
        if isinstance(partition_by, str)
        else None
        if partition_by is None
        else tuple(partition_by),
        merge_schema=merge_schema,
        properties=properties,
        user_metadata=user_metadata,
        app_id=txn_app_id,
    )
    sink.check()
    return sink.write


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sink:
    """Where batches go, and how."""

    path: str
    mode: str
    keys: tuple[str, ...]
    latest_by: str | None
    partition_by: tuple[str, ...] | None
    merge_schema: bool | None
    properties: Mapping[str, object] | None
    user_metadata: str | None
    app_id: str | None
    sessions: list[SparkSession] = field(default_factory=list)
    """The session of the stream, once it is known."""

    def check(self) -> None:
        """Refuse what cannot be meant, all of it at once."""
        problems = []
        if self.mode not in _MODES:
            problems.append(f"mode is {self.mode!r}, not append or complete")
        if self.keys and self.mode == "complete":
            problems.append("merge changes some rows, and mode complete replaces all of them")
        if self.latest_by is not None and not self.keys:
            problems.append("latest_by chooses between rows with one key, and merge names no key")
        if problems:
            raise UserError(
                Code.INVALID_ARGUMENT,
                "A stream cannot be written like that.",
                why=listed(problems),
                fix="Correct the arguments that are named; a stream in output mode `update` is "
                "written with `merge=`.",
                fields={"problems": problems},
            )

    @raises_spark_errors
    def write(self, df: DataFrame, batch_id: int) -> None:
        """Write one batch, unless it is there already."""
        df = self._in_one_session(df)
        spark = df.sparkSession
        txn = self._query_id(spark), batch_id
        rows = self._latest(df) if self.keys else df
        if self.keys and self._has_table(spark):
            self._merge(spark, rows, txn)
        else:
            write_table(rows, self.path, self._options(spark, txn))

    def _in_one_session(self, df: DataFrame) -> DataFrame:
        """The frame in the session object of the batch before.

        Spark wraps the session of the stream anew for each batch, and what we keep for a session
        would have to be made each time.
        """
        session = df.sparkSession
        known = next((one for one in self.sessions if _is_same(one, session)), None)
        if known is None:
            self.sessions[:] = [session]
            return df
        return df if known is session else DataFrame(df._jdf, known)

    def _query_id(self, spark: SparkSession) -> str:
        found = self.app_id or spark.sparkContext.getLocalProperty(_QUERY_ID)
        if not found:
            raise UserError(
                Code.INVALID_ARGUMENT,
                "The batch belongs to no stream.",
                why="the thread that writes it runs no streaming query, so there is no id by which "
                "the batch would be known when it comes again",
                fix="Pass the function to `foreachBatch` or `follow`, or give `txn_app_id=`.",
            )
        return str(found)

    def _has_table(self, spark: SparkSession) -> bool:
        options = settings_of(spark, self.path).options
        return table_exists(shared_store(self.path, True, options or None))

    def _options(self, spark: SparkSession, txn: tuple[str, int]) -> WriteOptions:
        return WriteOptions(
            mode=_MODES[self.mode],
            partition_by=self.partition_by,
            merge_schema=self._merges_schema(spark),
            properties=self.properties,
            user_metadata=self._note(spark),
            txn=txn,
            operation=Operation(
                name=OperationName.STREAMING_UPDATE,
                parameters={
                    "outputMode": self.mode.capitalize(),
                    "queryId": txn[0],
                    "epochId": str(txn[1]),
                },
            ),
        )

    def _merges_schema(self, spark: SparkSession) -> bool:
        if self.merge_schema is not None:
            return self.merge_schema
        return session_conf(spark, AUTO_MERGE, "false").lower() == "true"

    def _note(self, spark: SparkSession) -> str | None:
        return self.user_metadata or session_metadata(spark)

    def _latest(self, df: DataFrame) -> DataFrame:
        """One row for each key, if there is something to choose it by."""
        if self.latest_by is None:
            return df
        order = Window.partitionBy(*[F.col(quoted(key)) for key in self.keys]).orderBy(
            F.col(quoted(self.latest_by)).desc_nulls_last()
        )
        return df.withColumn(_RANK, F.row_number().over(order)).where(f"{_RANK} = 1").drop(_RANK)

    def _merge(self, spark: SparkSession, rows: DataFrame, txn: tuple[str, int]) -> None:
        table = open_table(spark, self.path)
        if is_committed(table, txn):
            return
        on = " AND ".join(
            f"{_TARGET}.{quoted(key)} <=> {_SOURCE}.{quoted(key)}" for key in self.keys
        )
        clauses: tuple[Any, ...] = (
            Clause(when=When.MATCHED, then=Then.UPDATE, condition=None, assignments=None),
            Clause(when=When.NOT_MATCHED, then=Then.INSERT, condition=None, assignments=None),
        )
        merge(
            spark,
            table,
            MergeRequest(
                source=rows.alias(_SOURCE),
                condition=on,
                clauses=clauses,
                alias=_TARGET,
                evolution=self._merges_schema(spark),
                options=CommitOptions(policy=table.policy, user_metadata=self._note(spark)),
                txn=txn,
            ),
        )


def _is_same(one: SparkSession, other: SparkSession) -> bool:
    """Whether two session objects stand for one session of the JVM."""
    return one is other or bool(one._jsparkSession == other._jsparkSession)
