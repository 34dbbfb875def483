"""Statements that change rows.

A statement has two sides. ``run`` drives the shipped code on a bench; ``apply`` says in one line
what the statement means, for the history that evaluates the run.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Protocol

from twinlake.commit import Operation, OperationName, ReadSet
from twinlake.commit.plans import (
    MergeClause,
    Outcome,
    TableRules,
    Then,
    When,
    plan_delete,
    plan_merge,
    plan_optimize,
    plan_update,
)
from twinlake.schema import parse_schema
from twinlake.schema.predicates import parse_predicate
from twinlake.verify.code.row_engine import Row, RowEffect, Rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from twinlake.actions import AddFile
    from twinlake.commit.plans import RowPlan
    from twinlake.log import Snapshot
    from twinlake.schema.predicates import Expr
    from twinlake.verify.code.row_engine import RowEngine, StatementResult

__all__ = ["Append", "Delete", "DeletePart", "Merge", "Optimize", "Statement", "Update"]


class Statement(Protocol):
    """One thing an actor does to a table."""

    @property
    def name(self) -> str:
        """What it is called in reports."""
        ...

    def run(self, engine: RowEngine) -> StatementResult:
        """Do it, and say what it came to."""
        ...

    def apply(self, rows: Rows) -> Rows:
        """The rows after it, had it run alone on these."""
        ...


@dataclass(frozen=True, slots=True)
class Append:
    """INSERT: rows that nothing has to be read for."""

    rows: tuple[Row, ...]
    application: str = ""
    name: str = "append"

    def run(self, engine: RowEngine) -> StatementResult:
        """Write one file a partition and commit it blindly."""
        snapshot = engine.load()
        files = engine.write_by_partition(snapshot, self.rows)
        engine.effect = RowEffect(read_version=snapshot.version, added=self.rows)
        outcome = Outcome(
            operation="WRITE",
            adds=files,
            metrics={"numFiles": str(len(files)), "numOutputRows": str(len(self.rows))},
            reads=ReadSet(),
        )
        operation = Operation(name=OperationName.WRITE, parameters={"mode": "Append"})
        return engine.commit(snapshot, operation, outcome, application=self.application)

    def apply(self, rows: Rows) -> Rows:
        """All that was there, and these."""
        return rows + Counter(self.rows)


@dataclass(frozen=True, slots=True)
class _RowChange:
    """A change of the rows with one id of one partition."""

    part: str
    id: int

    def _run(
        self, engine: RowEngine, plan: Callable[..., RowPlan], name: OperationName, *, delete: bool
    ) -> StatementResult:
        """Find the rows, plan, write vectors or new files, commit."""
        snapshot = engine.load()
        adds, reads = _scan(snapshot, _where(snapshot, self.part, self.id))
        found, contents = engine.matching(adds, self.matches, delete=delete)
        planned = plan(found, rules=TableRules.of(snapshot.metadata), reads=reads)
        outcome = engine.execute_plan(snapshot, planned, contents, self.changed)
        operation = Operation(name=name, parameters={"predicate": [_text(self.part, self.id)]})
        return engine.commit(snapshot, operation, outcome)

    def matches(self, row: Row) -> bool:
        """Whether a row matches."""
        return row[:2] == (self.part, self.id)

    def changed(self, row: Row) -> Row:
        """A matching row with its new value."""
        return row


@dataclass(frozen=True, slots=True)
class Delete(_RowChange):
    """DELETE of one id of one partition."""

    name: str = "delete"

    def run(self, engine: RowEngine) -> StatementResult:
        """Delete the rows that match."""
        return self._run(engine, plan_delete, OperationName.DELETE, delete=True)

    def apply(self, rows: Rows) -> Rows:
        """All but the rows that match."""
        return Counter({row: count for row, count in rows.items() if not self.matches(row)})


@dataclass(frozen=True, slots=True)
class DeletePart(_RowChange):
    """DELETE of a whole partition: its files go without one being written."""

    id: int = 0
    name: str = "delete part"

    def run(self, engine: RowEngine) -> StatementResult:
        """Delete the rows that match, whatever their id."""
        snapshot = engine.load()
        adds, reads = _scan(snapshot, _where(snapshot, self.part))
        found, contents = engine.matching(adds, self.matches, delete=True)
        planned = plan_delete(found, rules=TableRules.of(snapshot.metadata), reads=reads)
        outcome = engine.execute_plan(snapshot, planned, contents, self.changed)
        return engine.commit(snapshot, Operation(name=OperationName.DELETE), outcome)

    def matches(self, row: Row) -> bool:
        """Whether a row is of the partition."""
        return row[0] == self.part

    def apply(self, rows: Rows) -> Rows:
        """All but the rows of the partition."""
        return Counter({row: count for row, count in rows.items() if not self.matches(row)})


@dataclass(frozen=True, slots=True)
class Update(_RowChange):
    """UPDATE of one id of one partition: a letter is added to the value, so none can get lost."""

    letter: str
    name: str = "update"

    def run(self, engine: RowEngine) -> StatementResult:
        """Write the rows that match with their new value."""
        return self._run(engine, plan_update, OperationName.UPDATE, delete=False)

    def changed(self, row: Row) -> Row:
        """The row with its new value."""
        return (row[0], row[1], row[2] + self.letter)

    def apply(self, rows: Rows) -> Rows:
        """The rows that match get a letter more."""
        after: Rows = Counter()
        for row, count in rows.items():
            after[self.changed(row) if self.matches(row) else row] += count
        return after


@dataclass(frozen=True, slots=True)
class Merge:
    """MERGE of one source row: update the rows of its id, or insert it."""

    row: Row
    letter: str
    name: str = "merge"

    def run(self, engine: RowEngine) -> StatementResult:
        """Join, plan, write, commit."""
        snapshot = engine.load()
        adds, reads = _scan(snapshot, _where(snapshot, self.row[0], self.row[1]))
        found, contents = engine.matching(adds, self._update.matches, delete=False)
        matched = any(len(file.update) for file in found)
        inserted = () if matched else (self.row,)
        plan = plan_merge(
            found,
            clauses=(
                MergeClause(When.MATCHED, Then.UPDATE),
                MergeClause(When.NOT_MATCHED, Then.INSERT),
            ),
            source_rows=1,
            inserted_rows=len(inserted),
            rules=TableRules.of(snapshot.metadata),
            reads=reads,
        )
        outcome = engine.execute_plan(snapshot, plan, contents, self._update.changed, inserted)
        return engine.commit(snapshot, Operation(name=OperationName.MERGE), outcome)

    @property
    def _update(self) -> Update:
        return Update(self.row[0], self.row[1], self.letter)

    def apply(self, rows: Rows) -> Rows:
        """Matched rows get a letter more; without one the source row comes in."""
        if not any(self._update.matches(row) for row in rows.elements()):
            return rows + Counter([self.row])
        return self._update.apply(rows)


@dataclass(frozen=True, slots=True)
class Optimize:
    """OPTIMIZE of one partition, or of the whole table."""

    part: str | None = None
    name: str = "optimize"

    def run(self, engine: RowEngine) -> StatementResult:
        """Pack, write the rows that are not hidden, commit."""
        snapshot = engine.load()
        adds = list(snapshot.adds(_where(snapshot, self.part) if self.part else None))
        plan = plan_optimize(adds, rules=TableRules.of(snapshot.metadata))
        engine.effect = RowEffect(read_version=snapshot.version)
        written = [
            [engine.write_file(snapshot, self._live_rows(engine, packed.files), change=False)]
            for packed in plan.bins
        ]
        outcome = plan.finish(written, now=engine.runtime.clock.now_ms())
        return engine.commit(snapshot, Operation(name=OperationName.OPTIMIZE), outcome)

    @staticmethod
    def _live_rows(engine: RowEngine, files: tuple[AddFile, ...]) -> list[Row]:
        found = (engine.rows_in(add) for add in files)
        return [row for rows, hidden in found for n, row in enumerate(rows) if n not in hidden]

    def apply(self, rows: Rows) -> Rows:
        """The same rows."""
        return rows


def _text(part: str, number: int | None = None) -> str:
    return f"p = '{part}'" + ("" if number is None else f" AND id = {number}")


def _where(snapshot: Snapshot, part: str, number: int | None = None) -> Expr:
    return _parsed(_text(part, number), snapshot.metadata.schema_string)


@cache
def _parsed(text: str, schema: str) -> Expr:
    """Parsed once: a run is repeated by the thousand, and what its SQL means stays the same."""
    return parse_predicate(text, parse_schema(schema))


def _scan(snapshot: Snapshot, where: Expr) -> tuple[list[AddFile], ReadSet]:
    """The files that may hold matching rows, and what having looked at them means."""
    adds = list(snapshot.adds(where))
    paths = frozenset(add.path for add in adds)
    return adds, ReadSet(predicates=(where,), files=paths)
