"""Isolation on Delta: is there a serial order that explains what every operation read?

Commits are refused by the rules that twinlake really commits by. *Serializable* requires that the
order of the versions is such an order, *write-serializable* that there is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from twinlake.verify.checker import (
    ActionCheck,
    Failure,
    InitialState,
    ModelError,
    Next,
    action,
    always,
    eventually_always,
)
from twinlake.verify.models.delta.conflict_rules import (
    ADDED_FILES,
    EVERYTHING,
    REMOVED_FILES,
    CheckedCommit,
    PartitionedPath,
    conflict,
)
from twinlake.verify.models.mutation import WriterModel

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from twinlake.verify.models.delta.conflict_rules import RuleConflict

__all__ = [
    "COMMIT_ORDER",
    "SERIALIZABLE",
    "SOME_ORDER",
    "WRITE_SERIALIZABLE",
    "Isolation",
    "IsolationFile",
    "IsolationOperation",
    "Rows",
    "applied",
    "explained",
]

APPEND, COUNT, DELETE, COMPACT = "append", "count", "delete", "compact"
SERIALIZABLE, WRITE_SERIALIZABLE = LEVELS = ("Serializable", "WriteSerializable")
COMMIT_ORDER, SOME_ORDER = ORDERS = ("commit order", "some order")

#: Mutants: an append that has read says that it has not; files added meanwhile, or removed
#: meanwhile, are not looked at; a serializable table is checked as a write-serializable one; a
#: compaction commits like an update of all rows. A control: it asks for all rows, as an update
#: does, but says that it changes none.
HIDES_READS, IGNORES_ADDED, IGNORES_REMOVED = "hides-reads", "ignores-added", "ignores-removed"
RELAXED, COMPACTION_CHANGES_DATA = "relaxed", "compaction-changes-data"
COMPACTION_ASKS = "compaction-asks"

IDLE, COMMIT = "IDLE", "COMMIT"
#: The name that the log gives to each kind of operation.
NAMES = {APPEND: "WRITE", COUNT: "WRITE", DELETE: "DELETE", COMPACT: "OPTIMIZE"}


Row = tuple[str, int]


class IsolationFile(NamedTuple):
    """A data file of one partition."""

    path: str
    partition: str
    rows: tuple[Row, ...]


class IsolationOperation(NamedTuple):
    """An operation with what it read, what it adds and what it removes."""

    kind: str
    partition: str
    seen: tuple[Row, ...] = ()
    added: tuple[IsolationFile, ...] = ()
    removed: tuple[str, ...] = ()
    commit: CheckedCommit = CheckedCommit("")


#: The rows of a table by partition, sorted.
Rows = tuple[tuple[str, tuple[Row, ...]], ...]


class _Version(NamedTuple):
    """A version: its files, and the operation that made it."""

    files: tuple[IsolationFile, ...]
    operation: IsolationOperation | None = None


class _Worker(NamedTuple):
    """A writer and its operation."""

    state: str = IDLE
    read_version: int = 0
    operation: IsolationOperation | None = None


Log = tuple[_Version, ...]
#: Who lost to whom, by kind.
Losses = frozenset[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Isolation(WriterModel):
    """Blind appends, appends of what was counted, deletes and compactions, under an isolation.

    A count reads one partition and appends what it found to the next. ``order`` is the order
    that must explain everything; by default the one that the isolation level requires.
    """

    title: ClassVar[str] = "Delta isolation"
    mutants: ClassVar[tuple[str | None, ...]] = (
        None,
        HIDES_READS,
        IGNORES_ADDED,
        IGNORES_REMOVED,
        RELAXED,
        COMPACTION_CHANGES_DATA,
        COMPACTION_ASKS,
    )
    append_only: ClassVar[tuple[str, ...]] = ("log",)
    only_grows: ClassVar[tuple[str, ...]] = ("started",)

    isolation: str = SERIALIZABLE
    order: str | None = None
    partitions: tuple[str, ...] = ("a", "b")
    max_ops: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.isolation not in LEVELS:
            raise ModelError(f"isolation={self.isolation!r} is none of {', '.join(LEVELS)}")
        if self.order not in (None, *ORDERS):
            raise ModelError(f"order={self.order!r} is none of {', '.join(ORDERS)}")
        if self.max_ops > 5:
            raise ModelError("more than 5 operations have too many orders to look through")

    def initial(self) -> Iterator[InitialState]:
        """A table with one row in each partition."""
        shared: dict[str, Hashable] = {
            "log": (self._first(),),
            "lost": frozenset(),
            "started": (0,),
            "ended": 0,
        }
        yield InitialState(shared, (_Worker(),) * self.writers)

    def _first(self) -> _Version:
        return _Version(
            tuple(IsolationFile(f"file-{one}", one, (("first", 0),)) for one in self.partitions)
        )

    @action(at=IDLE, writes=("started",))
    def start(self, _worker: _Worker, log: Log, started: tuple[int]) -> Iterator[Next]:
        """Choose an operation, read, and write files."""
        if started[0] >= self.max_ops:
            return
        number = started[0] + 1
        for operation in self._choices(log[-1], number):
            opened = _Worker(COMMIT, len(log) - 1, operation)
            arguments = {
                "operation": operation.kind,
                "partition": operation.partition,
                "read": operation.seen,
            }
            yield Next(opened, {"started": (number,)}, arguments)

    def _choices(self, newest: _Version, number: int) -> Iterator[IsolationOperation]:
        for at, partition in enumerate(self.partitions):
            files = [file for file in newest.files if file.partition == partition]
            seen = tuple(sorted(row for file in files for row in file.rows))
            path, following = f"file-{number}", self.partitions[at - 1]
            blind = IsolationFile(path, partition, ((APPEND, number),))
            yield self._operation(APPEND, partition, added=(blind,))
            counted = IsolationFile(path, following, ((COUNT, len(seen)),))
            yield self._operation(COUNT, partition, files, seen, added=(counted,))
            if files:
                removed = tuple(file.path for file in files)
                yield self._operation(DELETE, partition, files, seen, removed=removed)
        merged = [
            IsolationFile(f"file-{number}-{one}", one, rows)
            for one in self.partitions
            if (rows := tuple(r for f in newest.files if f.partition == one for r in f.rows))
        ]
        if merged:
            every = tuple(file.path for file in newest.files)
            yield self._operation(
                COMPACT, "", list(newest.files), added=tuple(merged), removed=every
            )

    def _operation(
        self,
        kind: str,
        partition: str,
        read: list[IsolationFile] | None = None,
        seen: tuple[Row, ...] = (),
        *,
        added: tuple[IsolationFile, ...] = (),
        removed: tuple[str, ...] = (),
    ) -> IsolationOperation:
        hidden = self.mutant == HIDES_READS and kind == COUNT
        asked = partition if kind in (COUNT, DELETE) and not hidden else None
        changes, name = kind != COMPACT, NAMES[kind]
        if kind == COMPACT and self.mutant in (COMPACTION_CHANGES_DATA, COMPACTION_ASKS):
            asked = EVERYTHING
            if self.mutant == COMPACTION_CHANGES_DATA:
                changes, name = True, "UPDATE"
        commit = CheckedCommit(
            name,
            added=tuple(PartitionedPath(file.path, file.partition) for file in added),
            removed=removed,
            data_change=changes,
            files=frozenset() if hidden else frozenset(file.path for file in read or ()),
            asked=asked,
        )
        return IsolationOperation(kind, partition, seen, added, removed, commit)

    # --- commits ----------------------------------------------------------------------------------

    @action(at=COMMIT, writes=("log", "ended"))
    def commit(self, worker: _Worker, log: Log, ended: int) -> Iterator[Next]:
        """Put the next version, if the rules let the operation follow those it did not see."""
        operation = _operation_of(worker)
        if self._lost(worker, log) is not None:
            return
        kept = tuple(file for file in log[-1].files if file.path not in operation.removed)
        version = _Version((*kept, *operation.added), operation)
        done = {"log": (*log, version), "ended": ended + 1}
        yield Next(_Worker(), done, {"version": len(log)}, (ActionCheck("rules", True),))

    @action(at=COMMIT, writes=("lost", "ended"))
    def refuse(self, worker: _Worker, log: Log, lost: Losses, ended: int) -> Iterator[Next]:
        """A rule says that the operation must be done again."""
        found = self._lost(worker, log)
        if found is None:
            return
        winner = log[found.version].operation
        pair = (_operation_of(worker).kind, winner.kind if winner else "")
        checks = (ActionCheck(found.rule, False, found.why),)
        yield Next(_Worker(), {"lost": lost | {pair}, "ended": ended + 1}, {"lost": pair}, checks)

    def _lost(self, worker: _Worker, log: Log) -> RuleConflict | None:
        winners = tuple(
            version.operation.commit
            for version in log[worker.read_version + 1 :]
            if version.operation is not None
        )
        without: frozenset[str] = frozenset()
        if self.mutant == IGNORES_ADDED:
            without = ADDED_FILES
        elif self.mutant == IGNORES_REMOVED:
            without = REMOVED_FILES
        return conflict(
            _operation_of(worker).commit,
            worker.read_version,
            winners,
            isolation=WRITE_SERIALIZABLE if self.mutant == RELAXED else self.isolation,
            without=without,
        )

    # --- what must hold ---------------------------------------------------------------------------

    @always
    def a_serial_order_explains_everything(self, log: Log) -> Failure | None:
        """Done one after the other, the operations read what they read and leave what is there."""
        done = tuple(version.operation for version in log if version.operation is not None)
        start = _rows(log[0])
        default = COMMIT_ORDER if self.isolation == SERIALIZABLE else SOME_ORDER
        strict = (self.order or default) == COMMIT_ORDER
        if explained(start, done, _rows(log[-1]), strict=strict):
            return None
        kinds = [f"{one.kind} {one.partition}".strip() for one in done]
        which = "the order of versions does not explain" if strict else "no serial order explains"
        return Failure(f"{which} {', '.join(kinds)}", {"operations": kinds})

    @always
    def appends_and_compactions_do_not_conflict(self, lost: Losses) -> Failure | None:
        """A blind append never loses, and a compaction never loses to an append."""
        for loser, winner in sorted(lost):
            if loser == APPEND or (loser == COMPACT and winner in (APPEND, COUNT)):
                return Failure(f"{loser} lost to {winner}", {"loser": loser, "winner": winner})
        return None

    @eventually_always
    def everything_ends(self, started: tuple[int], ended: int) -> bool:
        """In the end every operation has committed or was refused."""
        return started[0] == ended

    def show_change(self, variable: str, before: Any, after: Any) -> Any:
        """A new version as its rows by partition."""
        if variable != "log":
            return super().show_change(variable, before, after)
        return {"version": len(after) - 1, "rows": dict(_rows(after[-1]))}


def _operation_of(worker: _Worker) -> IsolationOperation:
    if worker.operation is None:
        raise ModelError("a writer that commits has an operation")
    return worker.operation


def _rows(version: _Version) -> Rows:
    found: dict[str, list[Row]] = {}
    for file in version.files:
        found.setdefault(file.partition, []).extend(file.rows)
    return tuple((name, tuple(sorted(rows))) for name, rows in sorted(found.items()) if rows)


@lru_cache(maxsize=100_000)
def explained(
    start: Rows, left: tuple[IsolationOperation, ...], end: Rows, *, strict: bool
) -> bool:
    """Whether the operations, in some order or just in this one, lead from ``start`` to ``end``."""
    left = tuple(operation for operation in left if operation.kind != COMPACT)
    if not left:
        return start == end
    for at, operation in enumerate(left[:1] if strict else left):
        after = applied(dict(start), operation)
        if after is not None and explained(
            after, (*left[:at], *left[at + 1 :]), end, strict=strict
        ):
            return True
    return False


def applied(rows: dict[str, tuple[Row, ...]], operation: IsolationOperation) -> Rows | None:
    """The table after an operation, or ``None`` if it would have read something else."""
    if operation.kind != APPEND and rows.get(operation.partition, ()) != operation.seen:
        return None
    if operation.kind == DELETE:
        rows.pop(operation.partition, None)
    for file in operation.added:
        rows[file.partition] = tuple(sorted((*rows.get(file.partition, ()), *file.rows)))
    return tuple(sorted(rows.items()))
