"""Statements on a real table that can be held between their read and their commit.

A data engine of a few lines for ``twinlake demo``: it reads and writes Parquet files with pyarrow.
Everything that decides anything, plans, read sets and commits, is the shipped code.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.actions import AddFile
from twinlake.commit import CommitOptions, Operation, Transaction
from twinlake.commit.plans import (
    TableRules,
    WriteDeletionVector,
    Written,
    plan_delete,
    plan_update,
    touched,
)
from twinlake.log.deletion_vectors import dv_key, read_dv, write_dv_file
from twinlake.schema import physical_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from twinlake.commit.plans import Outcome, RowPlan, TouchedFile
    from twinlake.table import Table

__all__ = ["Held", "Row", "delete_rows", "insert_rows", "read_rows", "update_rows"]

Row = dict[str, Any]
_ROW_ID: Final = "delta.rowTracking.materializedRowIdColumnName"
_FIELD_ID: Final = b"PARQUET:field_id"
#: The field id that Iceberg reserves for the id of a row.
_ROW_ID_FIELD: Final = b"2147483540"


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A statement that has read and written its files, and has yet to commit."""

    table: Table
    operation: Operation
    outcome: Outcome

    def commit(self) -> int:
        """Commit it; the version it became.

        Raises:
            ConflictError: if another commit since its read contradicts it.
        """
        options = CommitOptions(tags=self.outcome.tags)
        transaction = Transaction(
            self.table.snapshot, self.operation, self.table.runtime, options=options
        )
        transaction.record(self.outcome.reads).add(*self.outcome.actions)
        return transaction.commit(metrics=self.outcome.metrics).version


def insert_rows(table: Table, rows: Sequence[Row]) -> Table:
    """Add rows in one file."""
    return table.commit("WRITE", [_written(table, rows)], parameters={"mode": "Append"})


def read_rows(table: Table) -> list[Row]:
    """The rows of a version, those that deletion vectors hide left out."""
    return [
        row
        for add in table.snapshot.adds()
        for position, row in enumerate(_rows_of(table, add))
        if position not in _hidden(table, add)
    ]


def delete_rows(table: Table, column: str, value: str) -> Held:
    """DELETE by one column: read, write the vectors, and hold."""
    plan = _planned(table, column, value, "delete")
    vectors = _vectors(table, plan)
    return _held(table, plan, Written(vectors=vectors), column, value)


def update_rows(table: Table, column: str, value: str, change: Mapping[str, str]) -> Held:
    """UPDATE by one column: read, write the vectors and the new rows, and hold."""
    plan = _planned(table, column, value, "update")
    rows: list[Row] = []
    ids: list[int] = []
    for step in plan.steps:
        found = _rows_of(table, step.file.add)
        for position in step.file.update:
            rows.append({**found[position], **change})
            ids.append((step.file.add.base_row_id or 0) + position)
    files = (_written(table, rows, ids if plan.materialise_row_ids else None),)
    return _held(table, plan, Written(files=files, vectors=_vectors(table, plan)), column, value)


def _planned(table: Table, column: str, value: str, kind: str) -> RowPlan:
    from twinlake.commit import ReadSet
    from twinlake.schema.predicates import parse_predicate

    where = parse_predicate(_predicate(column, value), table.schema)
    adds = list(table.snapshot.adds(where))
    reads = ReadSet(predicates=(where,), files=frozenset(add.path for add in adds))
    found = [_touched(table, add, kind, lambda row: row[column] == value) for add in adds]
    plan = plan_delete if kind == "delete" else plan_update
    return plan(found, rules=TableRules.of(table.metadata), reads=reads)


def _touched(table: Table, add: AddFile, kind: str, wanted: Callable[[Row], bool]) -> TouchedFile:
    hidden = _hidden(table, add)
    rows = _rows_of(table, add)
    hits = [at for at, row in enumerate(rows) if at not in hidden and wanted(row)]
    if kind == "delete":
        return touched(add, hidden=hidden, delete=hits)
    return touched(add, hidden=hidden, update=hits)


def _held(table: Table, plan: RowPlan, written: Written, column: str, value: str) -> Held:
    operation = Operation(
        name=plan.operation, parameters={"predicate": [_predicate(column, value)]}
    )
    outcome = plan.finish(written, now=table.runtime.clock.now_ms())
    return Held(table=table, operation=operation, outcome=outcome)


def _predicate(column: str, value: str) -> str:
    return f"{column} = '{value}'"


def _hidden(table: Table, add: AddFile) -> frozenset[int]:
    if add.deletion_vector is None:
        return frozenset()
    return frozenset(read_dv(table.snapshot.store, add.deletion_vector))


def _vectors(table: Table, plan: RowPlan) -> dict[str, Any]:
    vectors = {}
    for step in plan.steps:
        if isinstance(step, WriteDeletionVector):
            uuid = table.runtime.ids.uuid()
            data, (descriptor,) = write_dv_file([step.positions], uuid)
            table.snapshot.store.put(dv_key(uuid), data)
            vectors[step.file.add.path] = descriptor
    return vectors


def _rows_of(table: Table, add: AddFile) -> list[Row]:
    """The rows of a data file under their logical names, in order."""
    import pyarrow.parquet as pq

    data = table.snapshot.store.read(add.path)
    names = {physical_name(field): field.name for field in table.schema}
    found = pq.read_table(io.BytesIO(data)).select(list(names))
    return list(found.rename_columns(list(names.values())).to_pylist())


def _written(table: Table, rows: Sequence[Row], row_ids: Sequence[int] | None = None) -> AddFile:
    """A data file with these rows; ``row_ids`` keep their identity."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from twinlake.schema.arrow import to_arrow

    kinds = to_arrow(table.schema, field_ids=True)
    names = [physical_name(field) for field in table.schema]
    fields = [field.with_name(name) for field, name in zip(kinds, names, strict=True)]
    columns = [pa.array([row[field.name] for row in rows], field.type) for field in kinds]
    if row_ids is not None:
        marked = pa.field(table.properties[_ROW_ID], pa.int64())
        fields.append(marked.with_metadata({_FIELD_ID: _ROW_ID_FIELD}))
        columns.append(pa.array(row_ids, pa.int64()))
    body = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(columns, schema=pa.schema(fields)), body)
    key = f"part-{table.runtime.ids.uuid()}.parquet"
    table.snapshot.store.put(key, body.getvalue())
    return AddFile(
        path=key,
        partition_values={},
        size=len(body.getvalue()),
        modification_time=table.runtime.clock.now_ms(),
        data_change=True,
        stats=_statistics(names, rows),
    )


def _statistics(names: Sequence[str], rows: Sequence[Row]) -> str:
    """Counts and bounds; the rows of the demonstration hold texts, and no null."""
    values = dict(zip(names, zip(*(row.values() for row in rows), strict=True), strict=True))
    stats = {
        "numRecords": len(rows),
        "minValues": {name: min(found) for name, found in values.items()},
        "maxValues": {name: max(found) for name, found in values.items()},
        "nullCount": dict.fromkeys(names, 0),
    }
    return msgspec.json.encode(stats).decode()
