"""DELETE: rows that match a condition leave the table."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from twinlake.commit import Operation, OperationName
from twinlake.commit.plans import TableRules, plan_delete, plan_delete_files
from twinlake.commit.readset import ReadSet
from twinlake.schema.predicates import evaluate_on, is_exact, is_partition_only
from twinlake.spark.dml.row_change import RowChange, collect_positions
from twinlake.spark.read.conditions import Condition
from twinlake.spark.read.table_scan import FILE_NUMBER, ROW_INDEX, Scan

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from twinlake.commit import CommitOptions
    from twinlake.commit.plans import Outcome
    from twinlake.log import Snapshot
    from twinlake.schema import ColumnPath
    from twinlake.schema.predicates import Expr
    from twinlake.table import Table

__all__ = ["delete", "files_decided"]


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
    rules = TableRules.of(table.metadata)
    rules.refuse_row_loss("DELETE")
    wanted = (
        None
        if condition is None
        else Condition.of(spark, table, condition, "DELETE", alias=alias, target=target)
    )
    parameters = {"predicate": ["true" if wanted is None else wanted.shown]}
    operation = Operation(name=OperationName.DELETE, parameters=parameters)
    change = RowChange(spark, table, operation)
    if options is not None:
        change.options = options
    with change:
        if wanted is None or _decided_by_files(table, wanted):
            outcome = _whole_files(change, wanted)
        else:
            outcome = _rows(change, wanted)
        change.commit(outcome, started=started)
    deleted = outcome.metrics.get("numDeletedRows")
    return None if deleted is None else int(deleted)


def _decided_by_files(table: Table, wanted: Condition) -> bool:
    """Whether each file goes or stays as a whole."""
    columns = table.metadata.partition_columns
    return is_partition_only(wanted.expr, columns) and is_exact(wanted.expr)


def _whole_files(change: RowChange, wanted: Condition | None) -> Outcome:
    now = change.table.runtime.clock.now_ms()
    snapshot = change.snapshot
    if wanted is None:
        reads = ReadSet(whole_table=True)
        return plan_delete_files(snapshot.adds(), rules=change.rules, reads=reads, now=now)
    reads = ReadSet(predicates=(wanted.expr,))
    paths = files_decided(snapshot, wanted.expr)
    gone = snapshot.live_files(paths).values()
    return plan_delete_files(gone, rules=change.rules, reads=reads, now=now)


def files_decided(snapshot: Snapshot, expr: Expr) -> list[str]:
    """The files whose partition values make the expression true.

    Skipping may keep a file that does not match; here that would delete its rows, so the
    expression is evaluated on the values themselves.
    """
    files = snapshot.files()
    values = files["partition_values"].combine_chunks()
    names: list[ColumnPath] = [(name,) for name in snapshot.metadata.partition_columns]
    columns = dict(zip(names, values.flatten(), strict=True))
    mask = evaluate_on(expr, columns, len(files))
    return [path for path in files.filter(mask)["path"].to_pylist() if path is not None]


def _rows(change: RowChange, wanted: Condition) -> Outcome:
    snapshot = change.snapshot
    files = snapshot.files(wanted.expr)
    reads = ReadSet(predicates=(wanted.expr,), files=frozenset(files["path"].to_pylist()))
    matched = Scan(snapshot=snapshot, files=files, positions=True).frame(change.spark)
    rows = collect_positions(
        wanted.named(matched).where(wanted.column).select(FILE_NUMBER, ROW_INDEX)
    )
    plan = plan_delete(change.touched_files(files, delete=rows), rules=change.rules, reads=reads)
    return plan.finish(change.write(plan), now=change.table.runtime.clock.now_ms())
