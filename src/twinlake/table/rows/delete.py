"""DELETE in this process: rows that match a predicate are removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.commit import Operation, OperationName, ReadSet
from twinlake.commit.plans import TableRules, plan_delete, plan_delete_files
from twinlake.schema.predicates import evaluate_on, is_partition_only
from twinlake.table.rows.row_change import LocalRowChange
from twinlake.table.rows.row_scan import exact_predicate

if TYPE_CHECKING:
    from twinlake.commit import CommitOptions, CommitResult
    from twinlake.commit.plans import Outcome
    from twinlake.log import Snapshot
    from twinlake.schema import ColumnPath
    from twinlake.schema.predicates import Expr
    from twinlake.table.view import TableView

__all__ = ["delete_matching", "delete_rows", "files_by_partition"]


def delete_rows(
    table: TableView, where: str | None, *, options: CommitOptions
) -> CommitResult | None:
    """Delete the rows for which the predicate is true; without one, all rows."""
    TableRules.of(table.metadata).refuse_row_loss("DELETE")
    expr = None if where is None else exact_predicate(where, table.snapshot)
    parameters = {"predicate": ["true" if expr is None else f"({expr})"]}
    operation = Operation(name=OperationName.DELETE, parameters=parameters)
    with LocalRowChange(table, operation, table.metadata, options=options) as change:
        outcome, _ = delete_matching(change, expr)
        return change.commit(outcome)


def delete_matching(change: LocalRowChange, where: Expr | None) -> tuple[Outcome, bool]:
    """The outcome of deleting matching rows, and whether it needs change files.

    Files go as a whole where there is no predicate, or partition values decide it.
    """
    snapshot, rules = change.snapshot, TableRules.of(change.snapshot.metadata)
    now = change.table.runtime.clock.now_ms()
    if where is None:
        reads = ReadSet(whole_table=True)
        return plan_delete_files(snapshot.adds(), rules=rules, reads=reads, now=now), False
    if is_partition_only(where, snapshot.metadata.partition_columns):
        gone = snapshot.live_files(files_by_partition(snapshot, where)).values()
        reads = ReadSet(predicates=(where,))
        return plan_delete_files(gone, rules=rules, reads=reads, now=now), False
    files = list(snapshot.adds(where))
    reads = ReadSet(predicates=(where,), files=frozenset(add.path for add in files))
    touched = [
        change.touched_file(add, delete=rows.tolist())
        for add, rows in zip(files, change.matches(files, where), strict=True)
        if len(rows)
    ]
    plan = plan_delete(touched, rules=rules, reads=reads)
    return plan.finish(change.write(plan), now=now), plan.needs_change_files


def files_by_partition(snapshot: Snapshot, where: Expr) -> list[str]:
    """The files whose partition values make the expression true.

    Skipping may keep a file that does not match; here that would delete its rows, so the
    expression is evaluated on the values themselves.
    """
    files = snapshot.files()
    values = files["partition_values"].combine_chunks()
    names: list[ColumnPath] = [(name,) for name in snapshot.metadata.partition_columns]
    columns = dict(zip(names, values.flatten(), strict=True))
    mask = evaluate_on(where, columns, len(files))
    return [path for path in files.filter(mask)["path"].to_pylist() if path is not None]
