"""Isolation on Delta: is there a serial order that explains what every operation read?

Commits are refused by the rules that twinlake really commits by. *Serializable* promises that the
order of the versions is such an order, *write-serializable* that there is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from twinlake.verify.checker import (
    Check,
    Failure,
    ModelError,
    Next,
    Start,
    action,
    always,
    eventually_always,
)
from twinlake.verify.models.delta.serial_orders import (
    APPEND,
    COMPACT,
    COUNT,
    DELETE,
    File,
    Row,
    Rows,
    Work,
    explained,
)
from twinlake.verify.models.delta.shipped import (
    ADDED_FILES,
    EVERYTHING,
    REMOVED_FILES,
    Added,
    Commit,
    conflict,
)
from twinlake.verify.models.mutation import Writers

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from twinlake.verify.models.delta.shipped import Lost

__all__ = [
    "COMMIT_ORDER",
    "COMPACTION_ASKS",
    "COMPACTION_CHANGES_DATA",
    "HIDES_READS",
    "IGNORES_ADDED",
    "IGNORES_REMOVED",
    "RELAXED",
    "SERIALIZABLE",
    "SOME_ORDER",
    "WRITE_SERIALIZABLE",
    "Isolation",
]

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


class Version(NamedTuple):
    """A version: its files, and the operation that made it."""

    files: tuple[File, ...]
    work: Work | None = None


class Worker(NamedTuple):
    """A writer and its operation."""

    state: str = IDLE
    read_version: int = 0
    work: Work | None = None


Log = tuple[Version, ...]
#: Who lost to whom, by kind.
Losses = frozenset[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Isolation(Writers):
    """Blind appends, appends of what was counted, deletes and compactions, under an isolation.

    A count reads one partition and appends what it found to the next. ``order`` is the order
    that must explain everything; by default the one that the isolation promises.
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

    def initial(self) -> Iterator[Start]:
        """A table with one row in each partition."""
        shared: dict[str, Hashable] = {
            "log": (self._first(),),
            "lost": frozenset(),
            "started": (0,),
            "ended": 0,
        }
        yield Start(shared, (Worker(),) * self.writers)

    def _first(self) -> Version:
        return Version(tuple(File(f"file-{one}", one, (("first", 0),)) for one in self.partitions))

    @action(at=IDLE, writes=("started",))
    def start(self, _worker: Worker, log: Log, started: tuple[int]) -> Iterator[Next]:
        """Choose an operation, read, and write files."""
        if started[0] >= self.max_ops:
            return
        number = started[0] + 1
        for work in self._choices(log[-1], number):
            opened = Worker(COMMIT, len(log) - 1, work)
            arguments = {"operation": work.kind, "partition": work.partition, "read": work.seen}
            yield Next(opened, {"started": (number,)}, arguments)

    def _choices(self, newest: Version, number: int) -> Iterator[Work]:
        for at, partition in enumerate(self.partitions):
            files = [file for file in newest.files if file.partition == partition]
            seen = tuple(sorted(row for file in files for row in file.rows))
            path, following = f"file-{number}", self.partitions[at - 1]
            blind = File(path, partition, ((APPEND, number),))
            yield self._work(APPEND, partition, added=(blind,))
            counted = File(path, following, ((COUNT, len(seen)),))
            yield self._work(COUNT, partition, files, seen, added=(counted,))
            if files:
                removed = tuple(file.path for file in files)
                yield self._work(DELETE, partition, files, seen, removed=removed)
        merged = [
            File(f"file-{number}-{one}", one, rows)
            for one in self.partitions
            if (rows := tuple(r for f in newest.files if f.partition == one for r in f.rows))
        ]
        if merged:
            every = tuple(file.path for file in newest.files)
            yield self._work(COMPACT, "", list(newest.files), added=tuple(merged), removed=every)

    def _work(
        self,
        kind: str,
        partition: str,
        read: list[File] | None = None,
        seen: tuple[Row, ...] = (),
        *,
        added: tuple[File, ...] = (),
        removed: tuple[str, ...] = (),
    ) -> Work:
        hidden = self.mutant == HIDES_READS and kind == COUNT
        asked = partition if kind in (COUNT, DELETE) and not hidden else None
        changes, name = kind != COMPACT, NAMES[kind]
        if kind == COMPACT and self.mutant in (COMPACTION_CHANGES_DATA, COMPACTION_ASKS):
            asked = EVERYTHING
            if self.mutant == COMPACTION_CHANGES_DATA:
                changes, name = True, "UPDATE"
        commit = Commit(
            name,
            added=tuple(Added(file.path, file.partition) for file in added),
            removed=removed,
            data_change=changes,
            files=frozenset() if hidden else frozenset(file.path for file in read or ()),
            asked=asked,
        )
        return Work(kind, partition, seen, added, removed, commit)

    # --- commits ----------------------------------------------------------------------------------

    @action(at=COMMIT, writes=("log", "ended"))
    def commit(self, worker: Worker, log: Log, ended: int) -> Iterator[Next]:
        """Put the next version, if the rules let the operation follow those it did not see."""
        work = _of(worker)
        if self._lost(worker, log) is not None:
            return
        kept = tuple(file for file in log[-1].files if file.path not in work.removed)
        version = Version((*kept, *work.added), work)
        done = {"log": (*log, version), "ended": ended + 1}
        yield Next(Worker(), done, {"version": len(log)}, (Check("rules", True),))

    @action(at=COMMIT, writes=("lost", "ended"))
    def refuse(self, worker: Worker, log: Log, lost: Losses, ended: int) -> Iterator[Next]:
        """A rule says that the operation must be done again."""
        found = self._lost(worker, log)
        if found is None:
            return
        winner = log[found.version].work
        pair = (_of(worker).kind, winner.kind if winner else "")
        checks = (Check(found.rule, False, found.why),)
        yield Next(Worker(), {"lost": lost | {pair}, "ended": ended + 1}, {"lost": pair}, checks)

    def _lost(self, worker: Worker, log: Log) -> Lost | None:
        winners = tuple(
            version.work.commit
            for version in log[worker.read_version + 1 :]
            if version.work is not None
        )
        without: frozenset[str] = frozenset()
        if self.mutant == IGNORES_ADDED:
            without = ADDED_FILES
        elif self.mutant == IGNORES_REMOVED:
            without = REMOVED_FILES
        return conflict(
            _of(worker).commit,
            worker.read_version,
            winners,
            isolation=WRITE_SERIALIZABLE if self.mutant == RELAXED else self.isolation,
            without=without,
        )

    # --- what must hold ---------------------------------------------------------------------------

    @always
    def a_serial_order_explains_everything(self, log: Log) -> Failure | None:
        """Done one after the other, the operations read what they read and leave what is there."""
        done = tuple(version.work for version in log if version.work is not None)
        start = _rows(log[0])
        promised = COMMIT_ORDER if self.isolation == SERIALIZABLE else SOME_ORDER
        strict = (self.order or promised) == COMMIT_ORDER
        if explained(start, done, _rows(log[-1]), strict=strict):
            return None
        kinds = [f"{work.kind} {work.partition}".strip() for work in done]
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


def _of(worker: Worker) -> Work:
    if worker.work is None:
        raise ModelError("a writer that commits has an operation")
    return worker.work


def _rows(version: Version) -> Rows:
    found: dict[str, list[Row]] = {}
    for file in version.files:
        found.setdefault(file.partition, []).extend(file.rows)
    return tuple((name, tuple(sorted(rows))) for name, rows in sorted(found.items()) if rows)
