"""Vacuum against long readers and writers: how long must deleted files be kept?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from twinlake.verify.checker import (
    Failure,
    Model,
    ModelError,
    Next,
    Role,
    Start,
    action,
    always,
    check,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

__all__ = ["NO_GRACE", "Vacuum", "safe_retention"]

#: Mutant: files that no version refers to are deleted whatever their age.
NO_GRACE = "no-grace"
MUTANTS = (None, NO_GRACE)

IDLE, WROTE, READS, DELETES, LOST = "IDLE", "WROTE", "READS", "DELETES", "LOST"


class File(NamedTuple):
    """An object of the store and the tick at which it was created."""

    name: str
    created: int


class Version(NamedTuple):
    """A version: the one file it consists of, and when the file before it was removed."""

    file: str
    removed: str = ""
    at: int = 0


class Actor(NamedTuple):
    """A writer, reader, vacuum or clock."""

    state: str = IDLE
    file: str = ""
    doomed: tuple[str, ...] = ()


Log = tuple[Version, ...]
Store = frozenset[File]
#: Since when the writer and the reader are busy; -1 for not at all.
Busy = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Vacuum(Model):
    """A writer, a reader and a vacuum on one table, under a clock.

    Neither writer nor reader takes more than ``longest`` ticks. The vacuum deletes what left the
    table, or never came into it, ``retention`` ticks ago or earlier: it lists first, then deletes
    file by file.
    """

    title: ClassVar[str] = "Delta vacuum"
    append_only: ClassVar[tuple[str, ...]] = ("log",)

    retention: int = 3
    longest: int = 2
    max_ticks: int = 6
    max_writes: int = 2
    mutant: str | None = None

    def __post_init__(self) -> None:
        if self.mutant not in MUTANTS:
            raise ModelError(f"{self.mutant!r} is no mutant of {self.title}")

    @property
    def roles(self) -> tuple[Role, ...]:
        """One of each."""
        return tuple(Role(name=name) for name in ("Writer", "Reader", "Vacuum", "Clock"))

    def initial(self) -> Iterator[Start]:
        """A table of one file."""
        first = File("file-0", 0)
        yield Start(
            {
                "log": (Version(first.name),),
                "store": frozenset((first,)),
                "clock": 0,
                "busy": (-1, -1),
            },
            (Actor(),) * 4,
        )

    @action(role="Clock", at=IDLE, writes=("clock",))
    def tick(self, _clock: Actor, clock: int, busy: Busy) -> Iterator[Next]:
        """Time passes, unless somebody has used up all the time they may take."""
        if clock < self.max_ticks and all(
            since < 0 or clock - since < self.longest for since in busy
        ):
            yield Next(Actor(), {"clock": clock + 1}, {"clock": clock + 1})

    @action(role="Writer", at=IDLE, writes=("store", "busy"))
    def write_file(
        self, _writer: Actor, log: Log, store: Store, clock: int, busy: Busy
    ) -> Iterator[Next]:
        """Write a new file; no version refers to it yet."""
        if len(log) <= self.max_writes:
            name = f"file-{len(log)}"
            after: dict[str, Hashable] = {"store": store | {File(name, clock)}}
            after["busy"] = (clock, busy[1])
            yield Next(Actor(WROTE, name), after, {"file": name})

    @action(role="Writer", at=WROTE, writes=("log", "busy"))
    def commit(self, writer: Actor, log: Log, clock: int, busy: Busy) -> Iterator[Next]:
        """Replace the table's file by the new one."""
        version = Version(writer.file, log[-1].file, clock)
        yield Next(Actor(), {"log": (*log, version), "busy": (-1, busy[1])}, {"file": writer.file})

    @action(role="Reader", at=IDLE, writes=("busy",))
    def open_version(self, _reader: Actor, log: Log, clock: int, busy: Busy) -> Iterator[Next]:
        """Plan a read of the newest version."""
        yield Next(Actor(READS, log[-1].file), {"busy": (busy[0], clock)}, {"file": log[-1].file})

    @action(role="Reader", at=READS, writes=("busy",))
    def read_file(self, reader: Actor, store: Store, busy: Busy) -> Iterator[Next]:
        """Read the planned file, if it is still there."""
        found = any(file.name == reader.file for file in store)
        yield Next(
            Actor() if found else Actor(LOST, reader.file),
            {"busy": (busy[0], -1)},
            {"file": reader.file, "found": found},
        )

    @action(role="Vacuum", at=IDLE)
    def list_files(self, _vacuum: Actor, log: Log, store: Store, clock: int) -> Iterator[Next]:
        """Find the files to delete."""
        removed = {version.removed: version.at for version in log if version.removed}
        known = {version.file for version in log}
        doomed = sorted(
            file.name
            for file in store
            if (
                clock - removed[file.name] >= self.retention
                if file.name in removed
                else file.name not in known
                and (clock - file.created >= self.retention or self.mutant == NO_GRACE)
            )
        )
        if doomed:
            yield Next(Actor(DELETES, doomed=tuple(doomed)), arguments={"files": doomed})

    @action(role="Vacuum", at=DELETES, writes=("store",))
    def delete_file(self, vacuum: Actor, store: Store) -> Iterator[Next]:
        """Delete one file."""
        name, *rest = vacuum.doomed
        left = frozenset(file for file in store if file.name != name)
        after = Actor(DELETES, doomed=tuple(rest)) if rest else Actor()
        yield Next(after, {"store": left}, {"file": name})

    @always
    def newest_version_is_whole(self, log: Log, store: Store) -> Failure | None:
        """The file of the newest version exists."""
        if any(file.name == log[-1].file for file in store):
            return None
        return Failure(f"{log[-1].file} of version {len(log) - 1} is gone")

    @always
    def readers_finish(self, actor: Actor) -> Failure | None:
        """A read that was planned within its time never misses a file."""
        return Failure(f"{actor.file} is gone") if actor.state == LOST else None


def safe_retention(*, longest: int, max_ticks: int = 8) -> int:
    """The least retention that is safe for readers and writers that take this long."""
    for retention in range(max_ticks):
        model = Vacuum(retention=retention, longest=longest, max_ticks=max_ticks)
        if check(model).ok:
            return retention
    raise ModelError(f"no retention below {max_ticks} ticks is safe")
