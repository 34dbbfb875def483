"""What actors do: statements that change rows, and the upkeep that must not.

A statement has two sides. ``run`` drives the shipped code on a bench; ``apply`` says in one line
what the statement means, for the history that judges the run.
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
    Then,
    When,
    plan_delete,
    plan_merge,
    plan_optimize,
    plan_update,
)
from twinlake.verify.code.bench import Effect, Row, Rows, rules_of

if TYPE_CHECKING:
    from twinlake.actions import AddFile
    from twinlake.log import Snapshot
    from twinlake.schema.predicates import Expr
    from twinlake.verify.code.bench import Bench, Told

__all__ = ["Append", "Delete", "Merge", "Optimize", "Statement", "Update"]


class Statement(Protocol):
    """One thing an actor does to a table."""

    @property
    def name(self) -> str:
        """What it is called in reports."""
        ...

    def run(self, bench: Bench) -> Told:
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

    def run(self, bench: Bench) -> Told:
        """Write one file a partition and commit it blindly."""
        snapshot = bench.load()
        files = bench.write_by_partition(snapshot, self.rows)
        bench.effect = Effect(read_version=snapshot.version, added=self.rows)
        outcome = Outcome(
            operation="WRITE",
            adds=files,
            metrics={"numFiles": str(len(files)), "numOutputRows": str(len(self.rows))},
            reads=ReadSet(),
        )
        operation = Operation(name=OperationName.WRITE, parameters={"mode": "Append"})
        return bench.commit(snapshot, operation, outcome, application=self.application)

    def apply(self, rows: Rows) -> Rows:
        """All that was there, and these."""
        return rows + Counter(self.rows)


@dataclass(frozen=True, slots=True)
class Delete:
    """DELETE of one id of one partition."""

    part: str
    id: int
    name: str = "delete"

    def run(self, bench: Bench) -> Told:
        """Find the rows, plan, write vectors or new files, commit."""
        snapshot = bench.load()
        adds, reads = _scan(snapshot, _where(snapshot, self.part, self.id))
        found, contents = bench.matching(adds, self.takes, delete=True)
        plan = plan_delete(found, rules=rules_of(snapshot), reads=reads)
        outcome = bench.carry_out(snapshot, plan, contents, lambda row: row)
        operation = Operation(
            name=OperationName.DELETE, parameters={"predicate": [_text(self.part, self.id)]}
        )
        return bench.commit(snapshot, operation, outcome)

    def takes(self, row: Row) -> bool:
        """Whether a row matches."""
        return row[:2] == (self.part, self.id)

    def apply(self, rows: Rows) -> Rows:
        """All but the rows that match."""
        return Counter({row: count for row, count in rows.items() if not self.takes(row)})


@dataclass(frozen=True, slots=True)
class Update:
    """UPDATE of one id of one partition: a letter is added to the value, so none can get lost."""

    part: str
    id: int
    letter: str
    name: str = "update"

    def run(self, bench: Bench) -> Told:
        """Find the rows, plan, write them anew, commit."""
        snapshot = bench.load()
        adds, reads = _scan(snapshot, _where(snapshot, self.part, self.id))
        found, contents = bench.matching(adds, self.takes, delete=False)
        plan = plan_update(found, rules=rules_of(snapshot), reads=reads)
        outcome = bench.carry_out(snapshot, plan, contents, self.changed)
        operation = Operation(
            name=OperationName.UPDATE, parameters={"predicate": [_text(self.part, self.id)]}
        )
        return bench.commit(snapshot, operation, outcome)

    def takes(self, row: Row) -> bool:
        """Whether a row matches."""
        return row[:2] == (self.part, self.id)

    def changed(self, row: Row) -> Row:
        """The row with its new value."""
        return (row[0], row[1], row[2] + self.letter)

    def apply(self, rows: Rows) -> Rows:
        """The rows that match get a letter more."""
        after: Rows = Counter()
        for row, count in rows.items():
            after[self.changed(row) if self.takes(row) else row] += count
        return after


@dataclass(frozen=True, slots=True)
class Merge:
    """MERGE of one source row: update the rows of its id, or insert it."""

    row: Row
    letter: str
    name: str = "merge"

    def run(self, bench: Bench) -> Told:
        """Join, plan, write, commit."""
        snapshot = bench.load()
        adds, reads = _scan(snapshot, _where(snapshot, self.row[0], self.row[1]))
        found, contents = bench.matching(adds, self.takes, delete=False)
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
            rules=rules_of(snapshot),
            reads=reads,
        )
        outcome = bench.carry_out(snapshot, plan, contents, self.changed, inserted)
        return bench.commit(snapshot, Operation(name=OperationName.MERGE), outcome)

    def takes(self, row: Row) -> bool:
        """Whether a row matches the source row."""
        return row[:2] == self.row[:2]

    def changed(self, row: Row) -> Row:
        """A matched row with its new value."""
        return (row[0], row[1], row[2] + self.letter)

    def apply(self, rows: Rows) -> Rows:
        """Matched rows get a letter more; without one the source row comes in."""
        if not any(self.takes(row) for row in rows.elements()):
            return rows + Counter([self.row])
        return Update(self.row[0], self.row[1], self.letter).apply(rows)


@dataclass(frozen=True, slots=True)
class Optimize:
    """OPTIMIZE of one partition, or of the whole table."""

    part: str | None = None
    name: str = "optimize"

    def run(self, bench: Bench) -> Told:
        """Pack, write the rows that are not hidden, commit."""
        snapshot = bench.load()
        adds = list(snapshot.adds(_where(snapshot, self.part) if self.part else None))
        plan = plan_optimize(adds, rules=rules_of(snapshot))
        bench.effect = Effect(read_version=snapshot.version)
        written = [
            [bench.write_file(snapshot, self._live(bench, packed.files), change=False)]
            for packed in plan.bins
        ]
        outcome = plan.finish(written, now=bench.runtime.clock.now_ms())
        return bench.commit(snapshot, Operation(name=OperationName.OPTIMIZE), outcome)

    @staticmethod
    def _live(bench: Bench, files: tuple[AddFile, ...]) -> list[Row]:
        found = (bench.rows_in(add) for add in files)
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
    from twinlake.schema import parse_schema
    from twinlake.schema.predicates import parse_predicate

    return parse_predicate(text, parse_schema(schema))


def _scan(snapshot: Snapshot, where: Expr) -> tuple[list[AddFile], ReadSet]:
    """The files that may hold matching rows, and what having looked at them means."""
    adds = list(snapshot.adds(where))
    paths = frozenset(add.path for add in adds)
    return adds, ReadSet(predicates=(where,), files=paths)
