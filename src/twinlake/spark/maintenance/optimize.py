"""OPTIMIZE and REORG: files are rewritten, rows stay as they are."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from twinlake.commit import CommitOptions, Operation, OperationName
from twinlake.commit.plans import (
    OptimizeOptions,
    TableRules,
    plan_optimize,
    plan_reorg_purge,
)
from twinlake.errors import Code, UserError
from twinlake.protocol import CLIENT_FEATURES, keys, property_value
from twinlake.runtime import RewriteRequest
from twinlake.spark.delta_settings import user_metadata as session_note
from twinlake.spark.errors import raises_spark_errors
from twinlake.spark.maintenance.dropped_columns import files_with_dropped_columns
from twinlake.spark.maintenance.optimize_result import OptimizeResult
from twinlake.spark.maintenance.partition_filter import PartitionBuilder, PartitionFilter
from twinlake.spark.maintenance.rewrite import SparkRewriter
from twinlake.spark.session import open_table
from twinlake.spark.unsupported import unsupported_call
from twinlake.table import Table
from twinlake.table.rows import UncommittedFiles, commit_change, table_after

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from twinlake.commit.plans import CompactionPlan
    from twinlake.runtime import Rewriter

__all__ = ["DeltaOptimizeBuilder", "OptimizeResult", "optimize", "optimize_options", "purge"]

_GIB: Final = 1 << 30
_CONF: Final = "spark.databricks.delta.optimize."
_HOLLOW: Final = 0.05


@raises_spark_errors
def optimize(
    spark: SparkSession,
    path: str | os.PathLike[str] | Table,
    where: str | Sequence[str] | None = None,
    target_size: int | None = None,
    *,
    user_metadata: str | None = None,
    rewriter: Rewriter | None = None,
) -> OptimizeResult:
    """Pack small files into larger ones; ``where`` chooses partitions.

    The target size is the argument, the session's ``spark.databricks.delta.optimize.maxFileSize``,
    the table's ``delta.targetFileSize`` or 1 GiB, whichever is given first.
    """
    table = _opened(spark, path)
    chosen = PartitionFilter.of(spark, table.metadata, where)
    options = optimize_options(spark, table, target_size)
    # What a clustering OPTIMIZE has put in order is not mixed up again.
    files = [add for add in chosen.files(table.snapshot) if add.clustering_provider is None]
    plan = plan_optimize(files, rules=TableRules.of(table.metadata), options=options)
    parameters = {"predicate": chosen.texts, "zOrderBy": [], "clusterBy": [], "auto": False}
    operation = Operation(name=OperationName.OPTIMIZE, parameters=parameters)
    return _execute(spark, table, plan, operation, user_metadata, rewriter)


@raises_spark_errors
def purge(
    spark: SparkSession,
    path: str | os.PathLike[str] | Table,
    where: str | Sequence[str] | None = None,
    *,
    user_metadata: str | None = None,
    rewriter: Rewriter | None = None,
) -> OptimizeResult:
    """Rewrite files that hold deleted rows or dropped columns; ``where`` chooses partitions."""
    table = _opened(spark, path)
    chosen = PartitionFilter.of(spark, table.metadata, where)
    files = list(chosen.files(table.snapshot))
    stale = files_with_dropped_columns(table, files)
    wanted = [f for f in files if f.path in stale or f.deletion_vector is not None]
    plan = plan_reorg_purge(
        wanted, rules=TableRules.of(table.metadata), stale=stale, target_size=_target(spark, table)
    )
    parameters = {"predicate": chosen.texts, "applyPurge": True}
    operation = Operation(name=OperationName.REORG, parameters=parameters)
    result = _execute(spark, table, plan, operation, user_metadata, rewriter)
    return replace(result, considered=len(files))


def optimize_options(
    spark: SparkSession, table: Table, target_size: int | None = None
) -> OptimizeOptions:
    """When a file is rewritten: the argument, the session, the table, in this order."""
    smallest = _setting(spark, "minFileSize")
    hollow = _setting(spark, "maxDeletedRowsRatio")
    from_session = target_size is None and _setting(spark, "maxFileSize") is not None
    # As in Delta, the session's largest size alone does not set the smallest.
    unsaid = _GIB if from_session else None
    return OptimizeOptions(
        target_size=_target(spark, table) if target_size is None else target_size,
        min_file_size=unsaid if smallest is None else int(smallest),
        max_deleted_ratio=_HOLLOW if hollow is None else hollow,
        lone_files=False,
    )


def _target(spark: SparkSession, table: Table) -> int:
    asked = _setting(spark, "maxFileSize")
    return int(asked or property_value(table.metadata, keys.TARGET_FILE_SIZE) or _GIB)


def _setting(spark: SparkSession, name: str) -> float | None:
    """A number of the session; None where nobody set it."""
    text: str | None = spark.conf.get(_CONF + name, None)
    try:
        return None if text is None else float(text) if "." in text else int(text)
    except ValueError as error:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{text!r} is not a value of {_CONF}{name}.",
            fix=f"Run `spark.conf.set({_CONF + name!r}, NUMBER)`.",
            fields={"setting": _CONF + name, "value": text},
        ) from error


def _opened(spark: SparkSession, path: str | os.PathLike[str] | Table) -> Table:
    table = path.refresh() if isinstance(path, Table) else open_table(spark, path)
    table.protocol.check_read_write(CLIENT_FEATURES, metadata=table.metadata)
    return table


def _execute(
    spark: SparkSession,
    table: Table,
    plan: CompactionPlan,
    operation: Operation,
    user_metadata: str | None,
    rewriter: Rewriter | None,
) -> OptimizeResult:
    started = round(time.time() * 1000)
    note = user_metadata or session_note(spark)
    seen: dict[str, Any] = {
        "started_ms": started,
        "considered": plan.considered,
        "bins": len(plan.bins),
        "partitions": len({tuple(sorted(b.partition_values.items())) for b in plan.bins}),
    }
    if not plan.bins:
        return OptimizeResult(table=table, version=None, **seen)
    request = RewriteRequest(
        snapshot=table.snapshot,
        bins=tuple(packed.files for packed in plan.bins),
        metadata=table.metadata,
        row_ids=plan.materialise_row_ids,
        progress=table.runtime.progress,
    )
    written = (rewriter or SparkRewriter(spark)).rewrite(request)
    with UncommittedFiles(table.snapshot.store) as new_files:
        new_files.add(*(file for files in written for file in files))
        outcome = plan.finish(written, now=table.runtime.clock.now_ms())
        result = commit_change(
            table,
            operation,
            outcome.actions,
            reads=outcome.reads,
            metrics=outcome.metrics,
            options=CommitOptions(policy=table.policy, user_metadata=note),
            tags=outcome.tags,
            made=new_files,
            trusted=rewriter is None,
        )
    assert result is not None
    return OptimizeResult(
        table=table_after(table, result),
        version=result.version,
        added=outcome.adds,
        removed=tuple(file for packed in plan.bins for file in packed.files),
        metrics=outcome.metrics,
        warnings=result.warnings,
        **seen,
    )


class DeltaOptimizeBuilder(PartitionBuilder):
    """``DeltaTable.optimize()``: choose partitions, then execute."""

    def executeCompaction(self) -> DataFrame:
        """Pack small files into larger ones; returns one row with path and metrics."""
        return optimize(self._spark, self._open(), self._filters).to_frame(self._spark)

    @raises_spark_errors
    def executeZOrderBy(self, *cols: str | list[str] | tuple[str, ...]) -> DataFrame:
        """Not supported yet."""
        names = cols[0] if len(cols) == 1 and isinstance(cols[0], (list, tuple)) else cols
        wrong = next((name for name in names if not isinstance(name, str)), None)
        if wrong is not None:
            raise TypeError(f"Z-order column must be str. Found {wrong} with type {type(wrong)}")
        raise unsupported_call("DeltaOptimizeBuilder.executeZOrderBy")
