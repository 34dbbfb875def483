"""Vacuum against readers, writers, restores and clones: how long must deleted files be kept?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from twinlake.verify.checker import (
    Failure,
    InitialState,
    ModelError,
    Next,
    Role,
    action,
    always,
    check,
)
from twinlake.verify.models.mutation import MutantModel

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

__all__ = ["DeltaVacuum", "safe_retention"]

#: Mutant: files that no version refers to are deleted whatever their age.
NO_GRACE = "no-grace"

IDLE, WROTE, READS, DELETES, LOST = "IDLE", "WROTE", "READS", "DELETES", "LOST"
RESTORES = "RESTORES"


class _File(NamedTuple):
    """An object of the store and the tick at which it was created."""

    name: str
    created: int


class _Version(NamedTuple):
    """A version: the one file it consists of, and when the file before it was removed."""

    file: str
    removed: str = ""
    at: int = 0
    restored: bool = False


class _Actor(NamedTuple):
    """A writer, reader, operator, vacuum or clock."""

    state: str = IDLE
    file: str = ""
    read_version: int = 0
    doomed: tuple[str, ...] = ()


Log = tuple[_Version, ...]
Store = frozenset[_File]
#: Since when the writer, the reader and the operator are busy; -1 for not at all.
Busy = tuple[int, int, int]
#: How many restores and clones there were.
Operated = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class DeltaVacuum(MutantModel):
    """A writer, a reader, a vacuum and an operator on one table, under a clock.

    Nobody but the vacuum takes more than ``longest`` ticks. The vacuum deletes what left the
    table, or never came into it, ``retention`` ticks ago or earlier: it lists first, then deletes
    file by file. The operator may restore a version that was replaced less than ``restorable``
    ticks ago, and make a shallow clone, which refers to the table's own files.
    """

    title: ClassVar[str] = "Delta vacuum"
    mutants: ClassVar[tuple[str | None, ...]] = (None, NO_GRACE)
    append_only: ClassVar[tuple[str, ...]] = ("log",)
    only_grows: ClassVar[tuple[str, ...]] = ("operated",)

    retention: int = 3
    longest: int = 2
    max_ticks: int = 6
    max_writes: int = 2
    max_restores: int = 0
    restorable: int = 1
    max_clones: int = 0
    #: Whether the vacuum knows which files a clone refers to.
    knows_clones: bool = False

    @property
    def roles(self) -> tuple[Role, ...]:
        """One of each."""
        names = ("Writer", "Reader", "Operator", "Vacuum", "Clock")
        return tuple(Role(name=name) for name in names)

    def initial(self) -> Iterator[InitialState]:
        """A table of one file."""
        first = _File("file-0", 0)
        yield InitialState(
            {
                "log": (_Version(first.name),),
                "store": frozenset((first,)),
                "clock": 0,
                "busy": (-1, -1, -1),
                "cloned": frozenset(),
                "operated": (0, 0),
            },
            (_Actor(),) * 5,
        )

    @action(role="Clock", at=IDLE, writes=("clock",))
    def tick(self, _clock: _Actor, clock: int, busy: Busy) -> Iterator[Next]:
        """Time passes, unless somebody has used up all the time they may take."""
        if clock < self.max_ticks and all(
            since < 0 or clock - since < self.longest for since in busy
        ):
            yield Next(_Actor(), {"clock": clock + 1}, {"clock": clock + 1})

    @action(role="Writer", at=IDLE, writes=("store", "busy"))
    def write_file(
        self, _writer: _Actor, log: Log, store: Store, clock: int, busy: Busy
    ) -> Iterator[Next]:
        """Write a new file; no version refers to it yet."""
        if sum(not version.restored for version in log) <= self.max_writes:
            name = f"file-{sum(not version.restored for version in log)}"
            after: dict[str, Hashable] = {"store": store | {_File(name, clock)}}
            after["busy"] = (clock, *busy[1:])
            yield Next(_Actor(WROTE, name), after, {"file": name})

    @action(role="Writer", at=WROTE, writes=("log", "busy"))
    def commit(self, writer: _Actor, log: Log, clock: int, busy: Busy) -> Iterator[Next]:
        """Replace the table's file by the new one."""
        version = _Version(writer.file, log[-1].file, clock)
        after: dict[str, Hashable] = {"log": (*log, version), "busy": (-1, *busy[1:])}
        yield Next(_Actor(), after, {"file": writer.file})

    @action(role="Reader", at=IDLE, writes=("busy",))
    def open_version(self, _reader: _Actor, log: Log, clock: int, busy: Busy) -> Iterator[Next]:
        """Plan a read of the newest version."""
        begun = {"busy": (busy[0], clock, busy[2])}
        yield Next(_Actor(READS, log[-1].file), begun, {"file": log[-1].file})

    @action(role="Reader", at=READS, writes=("busy",))
    def read_file(self, reader: _Actor, store: Store, busy: Busy) -> Iterator[Next]:
        """Read the planned file, if it is still there."""
        found = any(file.name == reader.file for file in store)
        yield Next(
            _Actor() if found else _Actor(LOST, reader.file),
            {"busy": (busy[0], -1, busy[2])},
            {"file": reader.file, "found": found},
        )

    # --- the operator -----------------------------------------------------------------------------

    @action(role="Operator", at=IDLE, writes=("busy", "operated"))
    def start_restore(
        self, _operator: _Actor, log: Log, store: Store, clock: int, busy: Busy, operated: Operated
    ) -> Iterator[Next]:
        """Choose a version that was replaced not long ago and whose file is there."""
        if operated[0] >= self.max_restores:
            return
        there = {file.name for file in store}
        for name, at in _removals(log).items():
            if name in there and name != log[-1].file and clock - at < self.restorable:
                begun: dict[str, Hashable] = {"busy": (*busy[:2], clock)}
                begun["operated"] = (operated[0] + 1, operated[1])
                yield Next(_Actor(RESTORES, name, len(log) - 1), begun, {"file": name})

    @action(role="Operator", at=RESTORES, writes=("log", "busy"))
    def restore(self, operator: _Actor, log: Log, clock: int, busy: Busy) -> Iterator[Next]:
        """Commit the old file as the newest version, unless somebody else has committed."""
        done: dict[str, Hashable] = {"busy": (*busy[:2], -1)}
        if operator.read_version == len(log) - 1:
            version = _Version(operator.file, log[-1].file, clock, restored=True)
            done["log"] = (*log, version)
        yield Next(_Actor(), done, {"file": operator.file, "conflict": "log" not in done})

    @action(role="Operator", at=IDLE, writes=("cloned", "operated"))
    def clone(
        self, _operator: _Actor, log: Log, cloned: frozenset[str], operated: Operated
    ) -> Iterator[Next]:
        """Make a table of its own that refers to the file of the newest version."""
        if operated[1] < self.max_clones:
            made: dict[str, Hashable] = {"cloned": cloned | {log[-1].file}}
            made["operated"] = (operated[0], operated[1] + 1)
            yield Next(_Actor(), made, {"file": log[-1].file})

    # --- the vacuum -------------------------------------------------------------------------------

    @action(role="Vacuum", at=IDLE)
    def list_files(
        self, _vacuum: _Actor, log: Log, store: Store, clock: int, cloned: frozenset[str]
    ) -> Iterator[Next]:
        """Find the files to delete."""
        removed = _removals(log)
        known = {version.file for version in log}
        spared = {log[-1].file} | (cloned if self.knows_clones else frozenset())
        doomed = sorted(
            file.name
            for file in store
            if file.name not in spared
            and (
                clock - removed[file.name] >= self.retention
                if file.name in removed
                else file.name not in known
                and (clock - file.created >= self.retention or self.mutant == NO_GRACE)
            )
        )
        if doomed:
            yield Next(_Actor(DELETES, doomed=tuple(doomed)), arguments={"files": doomed})

    @action(role="Vacuum", at=DELETES, writes=("store",))
    def delete_file(self, vacuum: _Actor, store: Store) -> Iterator[Next]:
        """Delete one file."""
        name, *rest = vacuum.doomed
        left = frozenset(file for file in store if file.name != name)
        after = _Actor(DELETES, doomed=tuple(rest)) if rest else _Actor()
        yield Next(after, {"store": left}, {"file": name})

    @always
    def newest_version_is_whole(self, log: Log, store: Store) -> Failure | None:
        """The file of the newest version exists."""
        if any(file.name == log[-1].file for file in store):
            return None
        return Failure(f"{log[-1].file} of version {len(log) - 1} is gone")

    @always
    def readers_finish(self, actor: _Actor) -> Failure | None:
        """A read that was planned within its time never misses a file."""
        return Failure(f"{actor.file} is gone") if actor.state == LOST else None

    @always
    def clones_are_whole(self, cloned: frozenset[str], store: Store) -> Failure | None:
        """Every file that a clone refers to exists."""
        there = {file.name for file in store}
        gone = sorted(cloned - there)
        return Failure(f"{gone[0]} of a clone is gone") if gone else None


def _removals(log: Log) -> dict[str, int]:
    """Files that left the table, each with the last time it did."""
    return {version.removed: version.at for version in log if version.removed}


def safe_retention(
    *, longest: int, max_ticks: int = 8, restorable: int | None = None, max_writes: int = 2
) -> int:
    """The least retention that is safe for readers and writers that take this long.

    ``restorable`` asks for restores as well, of versions replaced less than so many ticks ago.
    """
    for retention in range(max_ticks):
        model = DeltaVacuum(
            retention=retention,
            longest=longest,
            max_ticks=max_ticks,
            max_writes=max_writes,
            max_restores=0 if restorable is None else 1,
            restorable=restorable or 0,
        )
        if check(model).ok:
            return retention
    raise ModelError(f"no retention below {max_ticks} ticks is safe")
