"""``replace_where``: the rows of a predicate go, the rows of a frame come, in one commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from twinlake.commit.plans import ChangeType
from twinlake.errors import Code, UserError
from twinlake.spark.dml.delete import delete_rows
from twinlake.spark.dml.row_change import CHANGE_TYPE, RowChange
from twinlake.spark.read.conditions import Condition
from twinlake.spark.rows.constraints import as_stored, filter_or_raise, first_cells
from twinlake.spark.rows.row_errors import raise_for_row
from twinlake.table.rows import table_after, write_metrics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from twinlake.actions import AddCDCFile, AddFile
    from twinlake.commit import CommitOptions, Operation
    from twinlake.commit.plans import Outcome
    from twinlake.protocol import Metadata
    from twinlake.table import Table

__all__ = ["replace_rows"]


def replace_rows(
    frame: DataFrame,
    table: Table,
    predicate: str,
    operation: Operation,
    metadata: Metadata,
    *,
    options: CommitOptions,
    txn: tuple[str, int] | None,
) -> Table:
    """Commit the frame in place of the rows that match; every new row has to match as well."""
    spark = frame.sparkSession
    wanted = Condition.of(spark, table, predicate, "WRITE")
    changed = None if metadata == table.metadata else metadata
    change = RowChange(spark, table, operation, metadata=changed, options=options)
    with change:
        outcome, needs_changes = delete_rows(change, wanted)
        checked = _all_match(as_stored(frame, metadata), wanted, metadata)
        if needs_changes:
            # The new rows go to data files and to change files and must be the same in both.
            checked = checked.localCheckpoint()
        files = change.write_rows([checked], row_ids=False)
        changes: tuple[AddCDCFile, ...] = ()
        if needs_changes:
            inserted = checked.withColumn(CHANGE_TYPE, F.lit(str(ChangeType.INSERT)))
            changes = change.write_change_files([inserted])
        metrics = _metrics(outcome, files, changes)
        result = change.commit_actions(
            (*outcome.actions, *files, *changes), reads=outcome.reads, metrics=metrics, txn=txn
        )
    return table.refresh() if result is None else table_after(table, result)


def _all_match(frame: DataFrame, wanted: Condition, metadata: Metadata) -> DataFrame:
    """The frame, failing on a row that the next reader of the predicate would not find."""
    error = UserError(
        Code.CONSTRAINT,
        f"A row to be written does not match replace_where: {wanted.sql}.",
        why="rows outside of the predicate would be added to what is already there",
        fix="Filter the frame by the same predicate, or widen the predicate.",
        delta_class="DELTA_REPLACE_WHERE_MISMATCH",
        fields={"predicate": wanted.sql},
    )
    raised = raise_for_row(frame.sparkSession, error, first_cells(metadata.schema))
    return filter_or_raise(frame, [(wanted.column, raised.cast("boolean"))])


def _metrics(
    outcome: Outcome, files: tuple[AddFile, ...], changes: tuple[AddCDCFile, ...]
) -> dict[str, str]:
    """Rows that stay in a touched file count as copied and as output, as in Delta."""
    kept = ("numDeletedRows", "numRemovedFiles", "numRemovedBytes")
    removed = {name: value for name, value in outcome.metrics.items() if name in kept}
    written = write_metrics((*outcome.adds, *files))
    copied = write_metrics(outcome.adds).get("numOutputRows", "0")
    changed = str(len(outcome.changes) + len(changes))
    return {**written, **removed, "numCopiedRows": copied, "numAddedChangeFiles": changed}
