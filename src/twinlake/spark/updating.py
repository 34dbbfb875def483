"""UPDATE: rows that match a condition get new values."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from twinlake.commit import Operation, OperationName
from twinlake.commit.plans import ChangeType, TableRules, plan_update
from twinlake.commit.readset import ReadSet
from twinlake.spark.assignments import assigned
from twinlake.spark.changing import CHANGE_TYPE, RowChange, collect_positions
from twinlake.spark.conditions import Condition
from twinlake.spark.enforcing import enforce
from twinlake.spark.scan import FILE_NUMBER, ROW_COMMIT_VERSION, ROW_INDEX, Scan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

    from twinlake.commit import CommitOptions
    from twinlake.commit.plans import Outcome, RowPlan
    from twinlake.table import Table

__all__ = ["update"]


def update(
    spark: SparkSession,
    table: Table,
    assignments: Mapping[str, str | Column],
    condition: str | Column | None = None,
    *,
    options: CommitOptions | None = None,
) -> int:
    """Give columns new values in the rows for which the condition is true; returns how many."""
    started = time.monotonic()
    TableRules.of(table.metadata).refuse_row_loss("UPDATE")
    wanted = Condition.of(spark, table, "true" if condition is None else condition, "UPDATE")
    parameters = {} if condition is None else {"predicate": [wanted.sql]}
    change = RowChange(spark, table, Operation(name=OperationName.UPDATE, parameters=parameters))
    if options is not None:
        change.options = options
    with change:
        outcome = _outcome(change, wanted, assignments)
        change.commit(outcome, started=started)
    return int(outcome.metrics.get("numUpdatedRows", "0"))


def _outcome(
    change: RowChange, wanted: Condition, assignments: Mapping[str, str | Column]
) -> Outcome:
    snapshot = change.snapshot
    files = snapshot.files(wanted.expr)
    reads = ReadSet(predicates=(wanted.expr,), files=frozenset(files["path"].to_pylist()))
    whole = Scan(snapshot=snapshot, files=files, positions=True).frame(change.spark)
    # Resolved before anything runs: a wrong assignment must not cost a scan.
    assigned(whole, change.after, assignments)
    rows = collect_positions(whole.where(wanted.column).select(FILE_NUMBER, ROW_INDEX))
    plan = plan_update(change.touched_files(files, update=rows), rules=change.rules, reads=reads)
    updated = _updated(change, plan, assignments) if plan.updated_rows else None
    images = None
    if updated is not None and plan.needs_change_files:
        from pyspark.sql import functions as F

        # The new values go to two places and must be the same in both.
        updated = updated.localCheckpoint()
        images = updated.withColumn(CHANGE_TYPE, F.lit(str(ChangeType.UPDATE_POSTIMAGE)))
    written = change.write(plan, changed=updated, change_rows=images)
    return plan.finish(written, now=change.table.runtime.clock.now_ms())


def _updated(
    change: RowChange, plan: RowPlan, assignments: Mapping[str, str | Column]
) -> DataFrame:
    """The matched rows, found again by position, with their new values."""
    rows = {step.file.add.path: step.file.update for step in plan.steps}
    found = change.rows_at(rows, row_ids=plan.materialise_row_ids)
    frame = assigned(found, change.after, assignments)
    # Updated rows were last changed by this commit, whatever version they came from.
    return enforce(frame.drop(ROW_COMMIT_VERSION), change.after)
