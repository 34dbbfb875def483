"""UPDATE: rows that match a condition get new values."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from twinlake.commit import CommitOptions, Operation, OperationName, ReadSet
from twinlake.commit.plans import ChangeType, Mode, TableRules, Written, plan_update
from twinlake.spark.dml.assignments import assign_columns
from twinlake.spark.dml.row_change import CHANGE_TYPE, RowChange, collect_positions
from twinlake.spark.read.conditions import Condition
from twinlake.spark.read.table_scan import ROW_COMMIT_VERSION, Scan
from twinlake.spark.rows.constraints import enforce

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

    from twinlake.commit.plans import Outcome, RowPlan
    from twinlake.table import Table

__all__ = ["update"]

_MATCHED: Final = "__twinlake_matched"


def update(
    spark: SparkSession,
    table: Table,
    assignments: Mapping[str, str | Column],
    condition: str | Column | None = None,
    *,
    alias: str | None = None,
    target: DataFrame | None = None,
    options: CommitOptions | None = None,
    shown: list[str] | None = None,
) -> int:
    """Give columns new values in the rows for which the condition is true; returns how many.

    ``target``: the frame of the table that condition and values may have taken columns from.
    ``shown``: the predicate of the history where there is no condition; SQL has an empty one.
    """
    started = time.monotonic()
    TableRules.of(table.metadata).refuse_row_loss("UPDATE")
    chosen = "true" if condition is None else condition
    wanted = Condition.of(spark, table, chosen, "UPDATE", alias=alias, target=target)
    predicate = shown if condition is None else [wanted.shown]
    parameters = {} if predicate is None else {"predicate": predicate}
    operation = Operation(name=OperationName.UPDATE, parameters=parameters)
    with RowChange(spark, table, operation, options=options or CommitOptions()) as change:
        outcome = _outcome(change, wanted, assignments)
        change.commit(outcome, started=started)
    return int(outcome.metrics.get("numUpdatedRows", "0"))


def _outcome(
    change: RowChange, wanted: Condition, assignments: Mapping[str, str | Column]
) -> Outcome:
    snapshot = change.snapshot
    files = snapshot.files(wanted.expr)
    reads = ReadSet(predicates=(wanted.expr,), files=frozenset(files["path"].to_pylist()))
    scan = Scan(snapshot=snapshot, files=files, positions=True)
    whole = wanted.named(scan.frame(change.spark))
    # Resolved before anything runs: a wrong assignment must not cost a scan.
    assign_columns(whole, change.after, assignments)
    with change.timed("scan"):
        rows = collect_positions(whole.where(wanted.column))
    plan = plan_update(change.touched_files(files, update=rows), rules=change.rules, reads=reads)
    with change.timed("rewrite"):
        written = _write(change, plan, wanted, assignments) if plan.steps else Written()
    return plan.finish(written, now=change.table.runtime.clock.now_ms())


def _write(
    change: RowChange,
    plan: RowPlan,
    wanted: Condition,
    assignments: Mapping[str, str | Column],
) -> Written:
    in_place = change.rules.mode is Mode.COPY_ON_WRITE
    rows = _rewritten(change, plan, wanted) if in_place else _matched(change, plan, wanted)
    frame = assign_columns(rows, change.after, assignments, only=F.col(_MATCHED))
    frame = enforce(frame, change.after)
    images = None
    if plan.needs_change_files:
        # The new values go to two places and must be the same in both.
        frame = frame.localCheckpoint()
        kind = F.lit(str(ChangeType.UPDATE_POSTIMAGE))
        images = frame.where(_MATCHED).withColumn(CHANGE_TYPE, kind)
    return change.write(plan, changed=[frame], change_rows=images, changed_holds_copied=in_place)


def _matched(change: RowChange, plan: RowPlan, wanted: Condition) -> DataFrame:
    """The rows to update, found again by position."""
    rows = {step.file.add.path: step.file.update for step in plan.steps}
    found = wanted.named(change.rows_at(rows, row_ids=plan.materialise_row_ids))
    # Updated rows were last changed by this commit, whatever version they came from.
    return found.drop(ROW_COMMIT_VERSION).withColumn(_MATCHED, F.lit(True))


def _rewritten(change: RowChange, plan: RowPlan, wanted: Condition) -> DataFrame:
    """All rows of the touched files: updated ones and others stay together in their new file."""
    files = change.only(step.file.add.path for step in plan.steps)
    scan = Scan(snapshot=change.snapshot, files=files, row_ids=plan.materialise_row_ids)
    found = wanted.named(scan.frame(change.spark))
    flagged = found.withColumn(_MATCHED, F.coalesce(wanted.column, F.lit(False)))
    if not plan.materialise_row_ids:
        return flagged
    kept = F.when(~F.col(_MATCHED), F.col(ROW_COMMIT_VERSION))
    return flagged.withColumn(ROW_COMMIT_VERSION, kept)
