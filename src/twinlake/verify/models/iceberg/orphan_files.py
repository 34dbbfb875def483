"""The cleaner of orphan files against writers: how old must a file be before it may go?

A file that a writer has written but not committed looks just like one that nobody will ever
commit. Only its age tells them apart, and what age is enough depends on how long a write takes
and on the order in which the cleaner looks at the store and at the table.
"""

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
    eventually_always,
)
from twinlake.verify.models.mutation import MutantModel

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

__all__ = ["OrphanCleanup", "safe_grace"]

#: Mutants: no file is too young; the cleaner reads the table's metadata first and lists the store
#: afterwards; a file's age is judged when it is deleted and not when it is listed; the cleaner
#: runs once and never again.
NO_GRACE_AGE, METADATA_FIRST = "no-grace-age", "metadata-first"
AGES_AT_DELETION, CLEANS_ONCE = "ages-at-deletion", "cleans-once"

IDLE, WROTE, STOPPED = "IDLE", "WROTE", "STOPPED"
LISTED, KNOWS, DELETES = "LISTED", "KNOWS", "DELETES"


class _File(NamedTuple):
    """An object of the store and the tick at which it was created."""

    name: str
    created: int


class _Actor(NamedTuple):
    """A writer, the cleaner or the clock."""

    state: str = IDLE
    #: Since when it is busy.
    since: int = 0
    #: The files it has written, listed or is going to delete.
    files: tuple[_File, ...] = ()
    #: The files that the metadata refers to, as the cleaner has read it.
    known: frozenset[str] = frozenset()


Table = tuple[str, ...]
Store = frozenset[_File]
#: Since when somebody is busy, and for how many ticks that may go on.
Busy = tuple[tuple[int, int], ...]


@dataclass(frozen=True, kw_only=True)
class OrphanCleanup(MutantModel):
    """Writers that append files, one who removes orphans, and a clock.

    From its first file to its commit a write takes at most ``longest`` ticks, and the cleaner at
    most ``pause`` ticks between its two looks; it deletes unreferenced files that were at least
    ``grace`` ticks old when it listed them.
    """

    title: ClassVar[str] = "Clean-up of orphan files"
    mutants: ClassVar[tuple[str | None, ...]] = (
        None,
        NO_GRACE_AGE,
        METADATA_FIRST,
        AGES_AT_DELETION,
        CLEANS_ONCE,
    )
    append_only: ClassVar[tuple[str, ...]] = ("table",)
    only_grows: ClassVar[tuple[str, ...]] = ("written", "crashed", "clock")

    writers: int = 1
    grace: int = 3
    longest: int = 2
    pause: int = 1
    max_ticks: int = 6
    max_writes: int = 2
    max_crashes: int = 1

    @property
    def roles(self) -> tuple[Role, ...]:
        """The writers, the cleaner, the clock."""
        return (Role(name="Writer", count=self.writers), Role(name="Cleaner"), Role(name="Clock"))

    def initial(self) -> Iterator[InitialState]:
        """An empty table and an empty store."""
        shared: dict[str, Hashable] = {
            "table": (),
            "store": frozenset(),
            "clock": (0,),
            "busy": (),
            "written": (0,),
            "crashed": (0,),
        }
        yield InitialState(shared, (_Actor(),) * (self.writers + 2))

    @action(role="Clock", at=IDLE, writes=("clock",))
    def tick(self, _clock: _Actor, clock: tuple[int], busy: Busy) -> Iterator[Next]:
        """Time passes, unless somebody has used up all the time they may take."""
        if clock[0] < self.max_ticks and all(clock[0] - since < most for since, most in busy):
            yield Next(_Actor(), {"clock": (clock[0] + 1,)}, {"clock": clock[0] + 1})

    # --- writers ----------------------------------------------------------------------------------

    @action(role="Writer", at=IDLE, writes=("store", "busy", "written"))
    def write_file(
        self, _writer: _Actor, store: Store, clock: tuple[int], busy: Busy, written: tuple[int]
    ) -> Iterator[Next]:
        """Write a data file; nothing refers to it yet."""
        if written[0] >= self.max_writes:
            return
        file = _File(f"file-{written[0] + 1}", clock[0])
        after: dict[str, Hashable] = {"store": store | {file}, "written": (written[0] + 1,)}
        after["busy"] = _begun(busy, clock[0], self.longest)
        yield Next(_Actor(WROTE, clock[0], (file,)), after, {"file": file.name})

    @action(role="Writer", at=WROTE, writes=("table", "busy"))
    def commit(self, writer: _Actor, table: Table, busy: Busy) -> Iterator[Next]:
        """Make the file part of the table."""
        name = writer.files[0].name
        done = {"table": (*table, name), "busy": _ended(busy, writer.since, self.longest)}
        yield Next(_Actor(), done, {"file": name})

    @action(role="Writer", at=WROTE, writes=("busy", "crashed"), fair=False)
    def crash(self, writer: _Actor, busy: Busy, crashed: tuple[int]) -> Iterator[Next]:
        """Stop before the commit: the file stays behind."""
        if crashed[0] < self.max_crashes:
            done: dict[str, Hashable] = {"crashed": (crashed[0] + 1,)}
            done["busy"] = _ended(busy, writer.since, self.longest)
            yield Next(_Actor(), done, {"left": writer.files[0].name})

    # --- the cleaner ------------------------------------------------------------------------------

    @action(role="Cleaner", at=(IDLE, KNOWS), writes=("busy",))
    def list_store(
        self, cleaner: _Actor, store: Store, clock: tuple[int], busy: Busy
    ) -> Iterator[Next]:
        """List the store and keep what is old enough."""
        if (cleaner.state == KNOWS) != (self.mutant == METADATA_FIRST):
            return
        least = 0 if self.mutant in (NO_GRACE_AGE, AGES_AT_DELETION) else self.grace
        old = tuple(sorted(file for file in store if clock[0] - file.created >= least))
        names = [file.name for file in old]
        if cleaner.state == KNOWS:
            doomed = tuple(file for file in old if file.name not in cleaner.known)
            ended = {"busy": _ended(busy, cleaner.since, self.pause)}
            yield Next(self._deleting(doomed), ended, {"old": names})
        elif old:
            begun = {"busy": _begun(busy, clock[0], self.pause)}
            yield Next(_Actor(LISTED, clock[0], old), begun, {"old": names})

    @action(role="Cleaner", at=(IDLE, LISTED), writes=("busy",))
    def read_metadata(
        self, cleaner: _Actor, table: Table, clock: tuple[int], busy: Busy
    ) -> Iterator[Next]:
        """Read which files the table refers to."""
        if cleaner.state == LISTED:
            doomed = tuple(file for file in cleaner.files if file.name not in table)
            ended = {"busy": _ended(busy, cleaner.since, self.pause)}
            arguments = {"orphans": [file.name for file in doomed]}
            yield Next(self._deleting(doomed), ended, arguments)
        elif self.mutant == METADATA_FIRST:
            begun = {"busy": _begun(busy, clock[0], self.pause)}
            yield Next(_Actor(KNOWS, clock[0], known=frozenset(table)), begun, {"files": table})

    @action(role="Cleaner", at=DELETES, writes=("store",))
    def delete_file(self, cleaner: _Actor, store: Store, clock: tuple[int]) -> Iterator[Next]:
        """Delete one file."""
        file, *rest = cleaner.files
        young = self.mutant == AGES_AT_DELETION and clock[0] - file.created < self.grace
        left = store if young else store - {file}
        yield Next(
            self._deleting(tuple(rest)), {"store": left}, {"file": file.name, "deleted": not young}
        )

    def _deleting(self, doomed: tuple[_File, ...]) -> _Actor:
        if doomed:
            return _Actor(DELETES, files=doomed)
        return _Actor(STOPPED if self.mutant == CLEANS_ONCE else IDLE)

    # --- what must hold ---------------------------------------------------------------------------

    @always
    def committed_files_exist(self, table: Table, store: Store) -> Failure | None:
        """No file of the table is ever deleted."""
        there = {file.name for file in store}
        gone = [name for name in table if name not in there]
        return Failure(f"{gone[0]} is committed and gone", {"gone": gone}) if gone else None

    @eventually_always
    def old_orphans_go_away(self, table: Table, store: Store, clock: tuple[int]) -> bool:
        """In the end nothing is left of the grace age that the table does not refer to."""
        return all(file.name in table or clock[0] - file.created < self.grace for file in store)


def _begun(busy: Busy, since: int, most: int) -> Busy:
    return tuple(sorted((*busy, (since, most))))


def _ended(busy: Busy, since: int, most: int) -> Busy:
    left = list(busy)
    left.remove((since, most))
    return tuple(left)


def safe_grace(*, longest: int, pause: int = 1, mutant: str | None = None) -> int:
    """The least grace age that is safe for writes that take this long, found by searching."""
    enough = longest + pause + 2
    for grace in range(enough + 1):
        model = OrphanCleanup(
            grace=grace, longest=longest, pause=pause, mutant=mutant, max_ticks=enough, max_writes=1
        )
        if check(model, without=("OldOrphansGoAway",)).ok:
            return grace
    raise ModelError(f"no grace age up to {enough} ticks is safe")
