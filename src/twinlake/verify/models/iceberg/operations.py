"""The parameters of the Iceberg model, and how its operations start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from twinlake.verify.checker import InitialState, Model, ModelError, Next, Role, action
from twinlake.verify.models.iceberg.snapshot_scan import KEY, ROW, Expected, expected, matches
from twinlake.verify.models.iceberg.validation import FIXES
from twinlake.verify.models.iceberg.values import (
    COPY_ON_WRITE,
    DELETE,
    EMPTY,
    IDLE,
    INSERT,
    MERGE_APPEND,
    MERGE_ON_READ,
    OVERWRITE_FILES,
    READ_DATA_FILES,
    REWRITE_FILES,
    ROW_DELTA,
    SERIALIZABLE,
    SNAPSHOT_ISOLATION,
    UPDATE,
    WRITE_DATA_FILES,
    FileNames,
    Predicate,
    Table,
    Writer,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping

__all__ = ["CANONICAL", "FAITHFUL", "Aborted", "Operations", "Started"]

FAITHFUL, CANONICAL = "faithful", "canonical"
#: A mutant: copy-on-write copies every physical row of a file, also those already deleted.
COW_IGNORES_DELETES = "cow-ignores-deletes"

#: How many writes and how many compactions have started.
Started = tuple[int, int]
#: How many operations have aborted.
Aborted = tuple[int]

CHOICES: Mapping[str, tuple[Hashable, ...]] = {
    "update_mode": (MERGE_ON_READ, COPY_ON_WRITE),
    "delete_mode": (MERGE_ON_READ, COPY_ON_WRITE),
    "isolation": (SNAPSHOT_ISOLATION, SERIALIZABLE),
    "fix": tuple(FIXES),
    "history": (KEY, ROW),
    "identity": (FAITHFUL, CANONICAL),
}


@dataclass(frozen=True, kw_only=True)
class Operations(Model):
    """What bounds the writers, where they begin, and the operations they may start."""

    title: ClassVar[str] = "Iceberg v2"
    append_only: ClassVar[tuple[str, ...]] = ("table",)
    only_grows: ClassVar[tuple[str, ...]] = ("started", "aborted")
    #: Deliberate mistakes that can be switched on to see whether they are caught.
    mutants: ClassVar[tuple[str | None, ...]] = (None, COW_IGNORES_DELETES)

    update_mode: str = MERGE_ON_READ
    delete_mode: str = MERGE_ON_READ
    isolation: str = SNAPSHOT_ISOLATION
    writers: int = 2
    allow_updates: bool = True
    allow_deletes: bool = True
    max_write_ops: int = 3
    max_compaction_ops: int = 0
    col1_values: tuple[str, ...] = ("jack",)
    col2_values: tuple[str, ...] = ("red", "blue")
    col3_values: tuple[str, ...] = ("A",)
    fix: str | None = None
    history: str = KEY
    identity: str = FAITHFUL
    mutant: str | None = None

    def __post_init__(self) -> None:
        wrong = [
            f"{name}={getattr(self, name)!r} is none of {', '.join(map(repr, allowed))}"
            for name, allowed in CHOICES.items()
            if getattr(self, name) not in allowed
        ]
        wrong += [
            f"{name} must not be negative"
            for name in ("max_write_ops", "max_compaction_ops")
            if getattr(self, name) < 0
        ]
        if self.writers < 1:
            wrong.append("writers must be at least 1")
        if self.mutant not in self.mutants:
            wrong.append(f"mutant={self.mutant!r} is no mutant of {self.title}")
        if wrong:
            raise ModelError("; ".join(wrong))

    @property
    def roles(self) -> tuple[Role, ...]:
        """The writers; catalog and object store do nothing of themselves."""
        return (Role(name="Writer", count=self.writers),)

    def interchangeable(self) -> tuple[tuple[Hashable, ...], ...]:
        """Ids, and the values of each column: the model only ever compares them."""
        return (self.col1_values, self.col2_values, self.col3_values)

    def initial(self) -> Iterator[InitialState]:
        """The empty table, nothing started."""
        shared: dict[str, Hashable] = {
            "table": (EMPTY,),
            "started": (0, 0),
            "aborted": (0,),
            "inserting": frozenset(),
        }
        if self.identity == FAITHFUL:
            shared |= {"names": FileNames(), "orphans": ()}
        yield InitialState(shared, (Writer(),) * self.writers)

    def show_change(self, variable: str, before: Any, after: Any) -> Any:
        """A new version as its number, its kind and its files."""
        if variable != "table":
            return super().show_change(variable, before, after)
        version = after[-1]
        entries = [*version.data.entries, *(version.deletes.entries if version.deletes else ())]
        return {
            "version": len(after) - 1,
            "location": version.location,
            "operation": version.operation,
            "files": {entry.file.path: entry.status for entry in entries},
            "history": [record._asdict() for record in version.recorded],
        }

    # --- an operation starts ------------------------------------------------------------------

    @action(at=IDLE, writes=("started", "inserting"))
    def start_insert_operation(
        self, _writer: Writer, table: Table, started: Started, inserting: frozenset[str]
    ) -> Iterator[Next]:
        """Insert a row whose id is neither in the table nor being inserted."""
        if started[0] >= self.max_write_ops:
            return
        taken = expected(table, self.history)
        for col1 in self.col1_values:
            if col1 in taken or col1 in inserting:
                continue
            for col2 in self.col2_values:
                for col3 in self.col3_values:
                    row = (col1, col2, col3)
                    yield Next(
                        Writer(
                            state=WRITE_DATA_FILES,
                            sql_op=INSERT,
                            update=MERGE_APPEND,
                            scan_version=len(table) - 1,
                            set_values=row,
                            row_history=((row, 0),),
                        ),
                        {"started": _one_more_write(started), "inserting": inserting | {col1}},
                        {"row": row},
                    )

    @action(at=IDLE, writes=("started",))
    def start_delete_operation(
        self, _writer: Writer, table: Table, started: Started
    ) -> Iterator[Next]:
        """Delete by one column, where the history has a row that matches."""
        if not self.allow_deletes or started[0] >= self.max_write_ops:
            return
        for predicate, _ in self._predicates(expected(table, self.history)):
            yield Next(
                Writer(
                    state=READ_DATA_FILES,
                    sql_op=DELETE,
                    update=_update_of(self.delete_mode),
                    scan_version=len(table) - 1,
                    predicate=predicate,
                ),
                {"started": _one_more_write(started)},
                {"predicate": predicate},
            )

    @action(at=IDLE, writes=("started",))
    def start_update_operation(
        self, _writer: Writer, table: Table, started: Started
    ) -> Iterator[Next]:
        """Set one column where another (or it itself) has a value, if that changes something."""
        if not self.allow_updates or started[0] >= self.max_write_ops:
            return
        rows = expected(table, self.history)
        for predicate, matching in self._predicates(rows):
            for set_values in self._assignments(rows, predicate, matching):
                yield Next(
                    Writer(
                        state=READ_DATA_FILES,
                        sql_op=UPDATE,
                        update=_update_of(self.update_mode),
                        scan_version=len(table) - 1,
                        predicate=predicate,
                        set_values=set_values,
                    ),
                    {"started": _one_more_write(started)},
                    {"predicate": predicate, "set": set_values},
                )

    @action(at=IDLE, writes=("started",))
    def start_compaction_operation(
        self, _writer: Writer, table: Table, started: Started
    ) -> Iterator[Next]:
        """Compact the whole table into one file."""
        if started[1] >= self.max_compaction_ops or len(table) == 1:
            return
        yield Next(
            Writer(state=READ_DATA_FILES, update=REWRITE_FILES, scan_version=len(table) - 1),
            {"started": (started[0], started[1] + 1)},
        )

    def _predicates(self, rows: dict[str, Expected]) -> Iterator[tuple[Predicate, int]]:
        """Predicates that fix one column and match, with the number of rows they match."""
        candidates: list[Predicate] = [(value, None, None) for value in self.col1_values]
        candidates += [(None, value, None) for value in self.col2_values]
        candidates += [(None, None, value) for value in self.col3_values]
        for predicate in candidates:
            matching = _count(rows, predicate)
            if matching:
                yield predicate, matching

    def _assignments(
        self, rows: dict[str, Expected], predicate: Predicate, matching: int
    ) -> Iterator[Predicate]:
        for column, values in ((1, self.col2_values), (2, self.col3_values)):
            for value in values:
                if value == predicate[column]:
                    continue
                both = (*predicate[:column], value, *predicate[column + 1 :])
                if _count(rows, both) != matching:  # type: ignore[arg-type]
                    yield (None, value, None) if column == 1 else (None, None, value)


def _count(rows: dict[str, Expected], predicate: Predicate) -> int:
    return sum(matches((key, row[0], row[1]), predicate) for key, row in rows.items())


def _one_more_write(started: Started) -> Started:
    return (started[0] + 1, started[1])


def _update_of(mode: str) -> str:
    return ROW_DELTA if mode == MERGE_ON_READ else OVERWRITE_FILES
