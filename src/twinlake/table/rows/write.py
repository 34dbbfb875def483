"""Appends and overwrites in this process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from twinlake.commit import Operation, OperationName
from twinlake.commit.plans import TableRules
from twinlake.errors import Code, UserError
from twinlake.schema.predicates import evaluate_on
from twinlake.table.rows.arrow_data import ArrowData
from twinlake.table.rows.delete import delete_matching
from twinlake.table.rows.fitted_rows import FittedRows
from twinlake.table.rows.given_columns import (
    columns_with_values,
    computed_columns,
    refuse_explicit,
    refuse_missing,
)
from twinlake.table.rows.removed_files import all_files
from twinlake.table.rows.row_change import LocalRowChange
from twinlake.table.rows.row_commit import is_committed, write_metrics
from twinlake.table.rows.row_rules import RowRules
from twinlake.table.rows.row_scan import exact_predicate
from twinlake.table.rows.row_value import columns_at
from twinlake.table.rows.schema_evolution import (
    evolve,
    refuse_duplicates,
    refuse_missing_partitions,
    refuse_partitions_alone,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from twinlake.commit import CommitOptions, CommitResult
    from twinlake.protocol import Metadata
    from twinlake.runtime import Ids
    from twinlake.schema import Struct
    from twinlake.schema.predicates import Expr
    from twinlake.table.view import TableView

__all__ = ["NewRows", "RowWrite", "metadata_of_write", "new_rows"]


@dataclass(frozen=True, slots=True)
class NewRows:
    """How batches of some columns become rows of a table that fulfil its rules."""

    fitted: FittedRows
    rules: RowRules

    @classmethod
    def of(cls, given: Struct, metadata: Metadata) -> NewRows:
        """For data with the ``given`` columns; what only Spark can do is refused here."""
        names = given.names()
        refuse_explicit(metadata.schema, names)
        refuse_missing(given, metadata.schema, defaults=True)
        computed = computed_columns(metadata, names)
        return cls(FittedRows.of(names, metadata), RowRules.of(metadata, computed=computed))

    def batch(self, data: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch, checked."""
        return self.rules.checked(self.fitted.batch(data))


def new_rows(data: ArrowData, metadata: Metadata) -> Iterator[pa.RecordBatch]:
    """The rows with the columns of the table, checked; raises before the first where it can."""
    rows = NewRows.of(data.schema, metadata)
    return (rows.batch(batch) for batch in data.batches())


def metadata_of_write(
    given: Struct,
    metadata: Metadata,
    *,
    merge_schema: bool = False,
    overwrite_schema: bool = False,
    ids: Ids | None = None,
) -> Metadata:
    """The metadata that data with the ``given`` columns leaves; refuses data that do not fit."""
    refuse_duplicates(given)
    changed = evolve(
        given,
        metadata,
        merge_schema=merge_schema,
        overwrite_schema=overwrite_schema,
        implicit_casts=not overwrite_schema,
        ids=ids,
    )
    valued = columns_with_values(given, changed)
    refuse_missing_partitions(changed, [*given.names(), *valued])
    refuse_partitions_alone(changed, valued)
    return changed


@dataclass(frozen=True, slots=True, kw_only=True)
class RowWrite:
    """Rows to append, or to put in the place of others."""

    table: TableView
    data: Any
    mode: str = "Append"
    where: str | None = None
    merge_schema: bool = False
    overwrite_schema: bool = False
    options: CommitOptions
    txn: tuple[str, int] | None = None
    target_file_size: int | None = None

    def run(self) -> CommitResult | None:
        """Write the files and commit them; None if ``txn`` says that it was done before."""
        if is_committed(self.table, self.txn):
            return None
        if self.mode == "Overwrite":
            TableRules.of(self.table.metadata).refuse_row_loss("WRITE")
        where = None if self.where is None else exact_predicate(self.where, self.table.snapshot)
        data = ArrowData.of(self.data, None if self.overwrite_schema else self.table.schema)
        metadata = metadata_of_write(
            data.schema,
            self.table.metadata,
            merge_schema=self.merge_schema,
            overwrite_schema=self.overwrite_schema,
            ids=self.table.runtime.ids,
        )
        rows = new_rows(data, metadata)
        with LocalRowChange(
            self.table, self._operation(), metadata, options=self.options, txn=self.txn
        ) as change:
            if where is not None:
                return self._replace(change, rows, where)
            files = change.write_files(rows, target_file_size=self.target_file_size)
            if self.mode == "Append":
                return change.commit_actions(files, reads=None, metrics=write_metrics(files))
            removal = all_files(self.table.snapshot)
            metrics = {
                **write_metrics(files),
                "numRemovedFiles": str(len(removal.files)),
                "numRemovedBytes": str(removal.size),
            }
            gone = removal.removes(self.table.runtime.clock.now_ms())
            return change.commit_actions((*gone, *files), reads=removal.reads, metrics=metrics)

    def _operation(self) -> Operation:
        parameters: dict[str, Any] = {"mode": self.mode, "partitionBy": []}
        if self.where is not None:
            parameters["predicate"] = self.where
        flags = {
            "canMergeSchema": self.merge_schema,
            "canOverwriteSchema": self.overwrite_schema,
        }
        parameters |= {name: True for name, on in flags.items() if on}
        return Operation(name=OperationName.WRITE, parameters=parameters)

    def _replace(
        self, change: LocalRowChange, rows: Iterator[pa.RecordBatch], where: Expr
    ) -> CommitResult | None:
        """Rows in the place of those that match; every new row has to match as well."""
        outcome, needs_changes = delete_matching(change, where)
        # Held in memory where they go to two places and must be the same in both.
        checked = (_matching(batch, where, self.where or "") for batch in rows)
        kept = list(checked) if needs_changes else None
        files = change.write_files(checked if kept is None else kept)
        changes = () if kept is None else change.inserted_changes(kept)
        removed = ("numDeletedRows", "numRemovedFiles", "numRemovedBytes")
        metrics = {
            **write_metrics((*outcome.adds, *files)),
            **{name: value for name, value in outcome.metrics.items() if name in removed},
            "numCopiedRows": write_metrics(outcome.adds).get("numOutputRows", "0"),
            "numAddedChangeFiles": str(len(outcome.changes) + len(changes)),
        }
        return change.commit_actions(
            (*outcome.actions, *files, *changes), reads=outcome.reads, metrics=metrics
        )


def _matching(rows: pa.RecordBatch, where: Expr, text: str) -> pa.RecordBatch:
    found = evaluate_on(where, columns_at(rows, where.columns()), rows.num_rows)
    if not pc.all(pc.fill_null(found, False)).as_py():
        raise UserError(
            Code.CONSTRAINT,
            f"A row to be written does not match the predicate of the overwrite: {text}.",
            why="rows outside of the predicate would be added to what is already there",
            fix="Filter the data by the same predicate, or widen the predicate.",
            delta_class="DELTA_REPLACE_WHERE_MISMATCH",
            fields={"predicate": text},
        )
    return rows
