"""``reorg`` and ``DeltaTable.reorg()``: Delta's REORG TABLE for callers without SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.errors import Code, UserError, listed
from twinlake.spark.api.catalog import table_location
from twinlake.spark.errors import raises_spark_errors
from twinlake.spark.maintenance.optimize import purge as purge_files
from twinlake.spark.maintenance.optimize_result import OptimizeResult
from twinlake.spark.maintenance.partition_filter import PartitionBuilder
from twinlake.spark.session import open_table
from twinlake.table import Table

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession


__all__ = ["DeltaReorgBuilder", "reorg"]


@raises_spark_errors
def reorg(
    spark: SparkSession,
    path_or_name: str | os.PathLike[str] | Table,
    where: str | Sequence[str] | None = None,
    *,
    purge: bool = True,
    upgrade_uniform: int | None = None,
    user_metadata: str | None = None,
) -> OptimizeResult:
    """Rewrite files that hold what the table no longer has: ``REORG TABLE ... APPLY (...)``.

    ``purge`` is ``APPLY (PURGE)``: it rewrites files with deletion vectors or dropped columns, in
    the partitions that ``where`` chooses. ``upgrade_uniform=n`` is ``APPLY (UPGRADE UNIFORM
    (ICEBERG_COMPAT_VERSION = n))`` instead: it enables icebergCompatV<n> and UniForm, and rewrites
    the files that do not fit. Rows stay as they are.
    """
    _check_arguments(where, purge, upgrade_uniform)
    table = _opened(spark, path_or_name)
    if upgrade_uniform is None:
        return purge_files(spark, table, where, user_metadata=user_metadata)
    return _upgraded(spark, table, upgrade_uniform)


def _check_arguments(
    where: str | Sequence[str] | None, purge: bool, upgrade_uniform: int | None
) -> None:
    problems = []
    if upgrade_uniform is not None and where:
        problems.append("UPGRADE UNIFORM takes no condition: it concerns every file of the table")
    if upgrade_uniform is None and not purge:
        problems.append("neither PURGE nor UPGRADE UNIFORM is asked for")
    if problems:
        raise UserError(
            Code.INVALID_ARGUMENT,
            "REORG cannot run with these arguments.",
            why=listed(problems),
            fix="Call `reorg(spark, path, where=...)` to purge partitions, or "
            "`reorg(spark, path, upgrade_uniform=2)`.",
            fields={"problems": problems},
        )


def _opened(spark: SparkSession, asked: str | os.PathLike[str] | Table) -> Table:
    if isinstance(asked, Table):
        return asked.refresh()
    return open_table(spark, table_location(spark, asked))


def _upgraded(spark: SparkSession, table: Table, version: int) -> OptimizeResult:
    started = table.runtime.clock.now_ms()
    plan = table.upgrade_uniform(version, spark)
    after = table.refresh()
    if after.version == table.version:
        return OptimizeResult(table=table, version=None, started_ms=started, plan=plan)
    old = {add.path: add for add in table.snapshot.adds()}
    new = {add.path: add for add in after.snapshot.adds()}
    # A file that is committed again with its tag keeps its path, and its bytes.
    removed = tuple(add for path, add in old.items() if path not in new)
    return OptimizeResult(
        table=after,
        version=after.version,
        added=tuple(add for path, add in new.items() if path not in old),
        removed=removed,
        partitions=len({tuple(sorted(add.partition_values.items())) for add in removed}),
        considered=len(old),
        started_ms=started,
        plan=plan,
    )


class DeltaReorgBuilder(PartitionBuilder):
    """``DeltaTable.reorg()``: choose partitions, then execute. Delta's own Python API has none."""

    def executePurge(self) -> DataFrame:
        """Rewrite files with deletion vectors or dropped columns; returns path and metrics."""
        return reorg(self._spark, self._open(), self._filters).to_frame(self._spark)

    def executeUpgradeUniform(self, icebergCompatVersion: int = 2) -> DataFrame:
        """Enable icebergCompatV1 or V2 and UniForm; returns path and metrics of rewritten files."""
        done = reorg(self._spark, self._open(), self._filters, upgrade_uniform=icebergCompatVersion)
        return done.to_frame(self._spark)
