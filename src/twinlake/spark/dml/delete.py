"""DELETE: rows that match a condition are removed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from twinlake.commit import CommitOptions, Operation, OperationName, ReadSet
from twinlake.commit.plans import TableRules, plan_delete, plan_delete_files
from twinlake.schema.predicates import is_exact, is_partition_only
from twinlake.spark.dml.row_change import RowChange, collect_positions
from twinlake.spark.read.conditions import Condition
from twinlake.spark.read.table_scan import Scan
from twinlake.table.rows import files_by_partition

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from twinlake.commit.plans import Outcome
    from twinlake.table import Table

__all__ = ["delete", "delete_rows", "truncate"]


def delete(
    spark: SparkSession,
    table: Table,
    condition: str | Column | None = None,
    *,
    alias: str | None = None,
    target: DataFrame | None = None,
    options: CommitOptions | None = None,
) -> int | None:
    """Delete the rows for which the condition is true; returns how many, None if not known.

    Without a condition every row goes. A condition that partition values decide alone reads no
    data file.
    """
    started = time.monotonic()
    TableRules.of(table.metadata).refuse_row_loss("DELETE")
    wanted = (
        None
        if condition is None
        else Condition.of(spark, table, condition, "DELETE", alias=alias, target=target)
    )
    parameters = {"predicate": ["true" if wanted is None else wanted.shown]}
    operation = Operation(name=OperationName.DELETE, parameters=parameters)
    with RowChange(spark, table, operation, options=options or CommitOptions()) as change:
        outcome, _ = delete_rows(change, wanted)
        change.commit(outcome, started=started)
    deleted = outcome.metrics.get("numDeletedRows")
    return None if deleted is None else int(deleted)


def truncate(spark: SparkSession, table: Table, *, options: CommitOptions) -> None:
    """Delete every row; no data file is read."""
    started = time.monotonic()
    TableRules.of(table.metadata).refuse_row_loss("TRUNCATE")
    operation = Operation(name=OperationName.TRUNCATE, parameters={})
    with RowChange(spark, table, operation, options=options) as change:
        outcome, _ = delete_rows(change, None)
        metrics = {
            "numRemovedFiles": outcome.metrics.get("numRemovedFiles", "0"),
            "executionTimeMs": str(round((time.monotonic() - started) * 1000)),
        }
        change.commit_actions(outcome.actions, reads=outcome.reads, metrics=metrics)


def delete_rows(change: RowChange, wanted: Condition | None) -> tuple[Outcome, bool]:
    """The outcome of deleting matching rows, and whether it needs change files.

    Files go as a whole where there is no condition, or partition values decide it.
    """
    snapshot, rules = change.snapshot, change.rules
    clock = change.table.runtime.clock
    if wanted is None:
        reads = ReadSet(whole_table=True)
        return plan_delete_files(
            snapshot.adds(), rules=rules, reads=reads, now=clock.now_ms()
        ), False
    expr = wanted.expr
    if is_partition_only(expr, snapshot.metadata.partition_columns) and is_exact(expr):
        gone = snapshot.live_files(files_by_partition(snapshot, expr)).values()
        reads = ReadSet(predicates=(expr,))
        return plan_delete_files(gone, rules=rules, reads=reads, now=clock.now_ms()), False
    files = snapshot.files(expr)
    reads = ReadSet(predicates=(expr,), files=frozenset(files["path"].to_pylist()))
    scanned = Scan(snapshot=snapshot, files=files, positions=True).frame(change.spark)
    rows = collect_positions(wanted.named(scanned).where(wanted.column))
    plan = plan_delete(change.touched_files(files, delete=rows), rules=rules, reads=reads)
    return plan.finish(change.write(plan), now=clock.now_ms()), plan.needs_change_files
