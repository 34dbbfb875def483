"""Cleanup of a twin table: VACUUM, Iceberg snapshot expiry and log cleanup.

A version may be read by a Delta reader, who takes the newest one, and by an Iceberg reader, who
takes any snapshot that the view lists. So there is one list for both: the log records from which
version on snapshots are kept. VACUUM and snapshot expiry alike first commit a later start of
that list and deletes files only when that commit is old enough.
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

__all__ = ["TwinTableCleanup", "safe_wait"]

#: The vacuum goes by the age of tombstones alone and does not look at what the view lists.
VACUUMS_LISTED = "vacuums-listed"
#: An Iceberg client that has expired snapshots deletes their files right away.
DELETES_AT_ONCE = "deletes-at-once"
#: Files that no version refers to are deleted whatever their age.
NO_GRACE = "no-grace"
#: The log is cleaned up to the newest version, though older snapshots are still listed.
CLEANS_LISTED = "cleans-listed"
#: A snapshot's sequence number is its place among the entries that the log still has.
COUNTS_ENTRIES = "counts-entries"

IDLE, WROTE, READS, DELETES, LOST = "IDLE", "WROTE", "READS", "DELETES", "LOST"
VACUUM, EXPIRER = CLEANERS = ("Vacuum", "Expirer")


class _File(NamedTuple):
    """An object of the store and the tick at which it was created."""

    name: str
    created: int


class _Version(NamedTuple):
    """A version that consists of one file, and the tick at which it was committed."""

    file: str
    at: int = 0


class _Listing(NamedTuple):
    """From which version on the view lists snapshots, since when."""

    start: int = 0
    at: int = 0


class _Actor(NamedTuple):
    """Anyone: the writer, the readers, the cleaners, the clock."""

    state: str = IDLE
    file: str = ""
    doomed: tuple[str, ...] = ()


Log = tuple[_Version, ...]
#: The starts of the list, one after the other; each is a commit that changes no file.
Listings = tuple[_Listing, ...]
Store = frozenset[_File]
#: Since when writer, Delta reader and Iceberg reader are busy; -1 for not at all.
Busy = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class TwinTableCleanup(MutantModel):
    """A writer, a Delta and an Iceberg reader, a VACUUM and a snapshot expiry, under a clock.

    Nobody takes more than ``longest`` ticks. Files go ``wait`` ticks after the last version that
    has them left the list, or, if none ever had, that long after they were written.
    """

    title: ClassVar[str] = "Vacuum and expiry of a twin table"
    append_only: ClassVar[tuple[str, ...]] = ("log", "listings")
    mutants: ClassVar[tuple[str | None, ...]] = (
        None,
        VACUUMS_LISTED,
        DELETES_AT_ONCE,
        NO_GRACE,
        CLEANS_LISTED,
        COUNTS_ENTRIES,
    )

    wait: int = 2
    longest: int = 1
    max_ticks: int = 4
    max_writes: int = 1

    @property
    def roles(self) -> tuple[Role, ...]:
        """One of each."""
        names = ("Writer", "DeltaReader", "IcebergReader", *CLEANERS, "Clock")
        return tuple(Role(name=name) for name in names)

    def initial(self) -> Iterator[InitialState]:
        """A table of one file, whose only snapshot is listed."""
        first = _File("file-0", 0)
        shared: dict[str, Hashable] = {
            "log": (_Version(first.name),),
            "listings": (_Listing(),),
            "store": frozenset((first,)),
            "cleaned": (0,),
            "clock": (0,),
            "busy": (-1, -1, -1),
        }
        yield InitialState(shared, (_Actor(),) * len(self.roles))

    @action(role="Clock", at=IDLE, writes=("clock",))
    def tick(self, _clock: _Actor, clock: tuple[int], busy: Busy) -> Iterator[Next]:
        """Time passes, unless somebody has used up all the time they may take."""
        if clock[0] < self.max_ticks and all(
            since < 0 or clock[0] - since < self.longest for since in busy
        ):
            yield Next(_Actor(), {"clock": (clock[0] + 1,)}, {"clock": clock[0] + 1})

    # --- a writer and two readers -------------------------------------------------------------

    @action(role="Writer", at=IDLE, writes=("store", "busy"))
    def write_file(
        self, _writer: _Actor, log: Log, store: Store, clock: tuple[int], busy: Busy
    ) -> Iterator[Next]:
        """Write a new file, as a client of either kind does before it commits."""
        if len(log) <= self.max_writes:
            name = f"file-{len(log)}"
            after: dict[str, Hashable] = {"store": store | {_File(name, clock[0])}}
            yield Next(_Actor(WROTE, name), after | _busy(busy, 0, clock[0]), {"file": name})

    @action(role="Writer", at=WROTE, writes=("log", "busy"))
    def commit(self, writer: _Actor, log: Log, clock: tuple[int], busy: Busy) -> Iterator[Next]:
        """Replace the table's file by the new one."""
        after: dict[str, Hashable] = {"log": (*log, _Version(writer.file, clock[0]))}
        yield Next(_Actor(), after | _busy(busy, 0, -1), {"version": len(log)})

    @action(role="DeltaReader", at=IDLE, writes=("busy",))
    def open_newest_version(
        self, _reader: _Actor, log: Log, clock: tuple[int], busy: Busy
    ) -> Iterator[Next]:
        """Plan a read of the newest version."""
        yield Next(_Actor(READS, log[-1].file), _busy(busy, 1, clock[0]), {"version": len(log) - 1})

    @action(role="DeltaReader", at=READS, writes=("busy",))
    def read_version(self, reader: _Actor, store: Store, busy: Busy) -> Iterator[Next]:
        """Read the planned file, if it is still there."""
        yield Next(_read(reader, store), _busy(busy, 1, -1), {"file": reader.file})

    @action(role="IcebergReader", at=IDLE, writes=("busy",))
    def open_listed_snapshot(
        self, _reader: _Actor, log: Log, listings: Listings, clock: tuple[int], busy: Busy
    ) -> Iterator[Next]:
        """Plan a read of any snapshot that the view lists."""
        for version in range(listings[-1].start, len(log)):
            planned = _Actor(READS, log[version].file)
            yield Next(planned, _busy(busy, 2, clock[0]), {"version": version})

    @action(role="IcebergReader", at=READS, writes=("busy",))
    def read_snapshot(self, reader: _Actor, store: Store, busy: Busy) -> Iterator[Next]:
        """Read the planned file, if it is still there."""
        yield Next(_read(reader, store), _busy(busy, 2, -1), {"file": reader.file})

    # --- VACUUM and snapshot expiry -----------------------------------------------------------

    @action(role=VACUUM, at=IDLE, writes=("listings",), fair=False)
    def vacuum_shortens_list(
        self, _vacuum: _Actor, log: Log, listings: Listings, clock: tuple[int]
    ) -> Iterator[Next]:
        """VACUUM: commit that only the newest version stays listed."""
        if listings[-1].start < len(log) - 1:
            yield Next(_Actor(), _shortened(listings, len(log) - 1, clock), {"from": len(log) - 1})

    @action(role=EXPIRER, at=IDLE, writes=("listings",), fair=False)
    def expire_snapshots(
        self, _expirer: _Actor, log: Log, listings: Listings, store: Store, clock: tuple[int]
    ) -> Iterator[Next]:
        """Snapshot expiry: commit that some old snapshots are no longer listed."""
        for start in range(listings[-1].start + 1, len(log)):
            after = _Actor()
            if self.mutant == DELETES_AT_ONCE:
                expired = {one.file for one in log[:start]}
                doomed = tuple(sorted(one.name for one in store if one.name in expired))
                after = _Actor(DELETES, doomed=doomed) if doomed else after
            yield Next(after, _shortened(listings, start, clock), {"from": start})

    @action(role=VACUUM, at=IDLE)
    def list_files(
        self, _vacuum: _Actor, log: Log, listings: Listings, store: Store, clock: tuple[int]
    ) -> Iterator[Next]:
        """Find the files to delete."""
        doomed = self._doomed(log, listings, store, clock[0])
        if doomed:
            yield Next(_Actor(DELETES, doomed=doomed), arguments={"files": doomed})

    @action(role=VACUUM, at=DELETES, writes=("store",))
    def delete_file(self, vacuum: _Actor, store: Store) -> Iterator[Next]:
        """Delete one file."""
        yield from _deleted(vacuum, store)

    @action(role=EXPIRER, at=IDLE)
    def list_expired_files(
        self, _expirer: _Actor, log: Log, listings: Listings, store: Store, clock: tuple[int]
    ) -> Iterator[Next]:
        """Find the files to delete by the same rule as the vacuum, maybe at the same time."""
        yield from self.list_files(_expirer, log, listings, store, clock)

    @action(role=EXPIRER, at=DELETES, writes=("store",))
    def delete_expired_file(self, expirer: _Actor, store: Store) -> Iterator[Next]:
        """Delete one file."""
        yield from _deleted(expirer, store)

    @action(role=VACUUM, at=IDLE, writes=("cleaned",), fair=False)
    def clean_log(
        self, _vacuum: _Actor, log: Log, listings: Listings, cleaned: tuple[int]
    ) -> Iterator[Next]:
        """Drop log entries that no listed snapshot needs: a checkpoint stands for them."""
        upto = len(log) - 1 if self.mutant == CLEANS_LISTED else listings[-1].start
        if upto > cleaned[0]:
            yield Next(_Actor(), {"cleaned": (upto,)}, {"entries before": upto})

    def _doomed(self, log: Log, listings: Listings, store: Store, now: int) -> tuple[str, ...]:
        known = {version.file for version in log}
        gone: dict[str, int] = {}
        for listing in listings:
            for version in log[: listing.start]:
                gone.setdefault(version.file, listing.at)
        if self.mutant == VACUUMS_LISTED:
            gone = {log[at - 1].file: log[at].at for at in range(1, len(log))}
        return tuple(
            sorted(
                file.name
                for file in store
                if (file.name in gone and now - gone[file.name] >= self.wait)
                or (
                    file.name not in known
                    and (now - file.created >= self.wait or self.mutant == NO_GRACE)
                )
            )
        )

    # --- what must hold -----------------------------------------------------------------------

    @always
    def listed_snapshots_are_whole(
        self, log: Log, listings: Listings, store: Store
    ) -> Failure | None:
        """Every file of every snapshot that the view lists exists; so does the newest version's."""
        there = {file.name for file in store}
        for number in range(listings[-1].start, len(log)):
            if log[number].file not in there:
                return Failure(f"{log[number].file} of version {number} is gone")
        return None

    @always
    def readers_finish(self, actor: _Actor) -> Failure | None:
        """A read of either kind never misses a file of what it planned."""
        return Failure(f"{actor.file} is gone") if actor.state == LOST else None

    @always
    def listed_snapshots_can_be_derived(
        self, listings: Listings, cleaned: tuple[int]
    ) -> Failure | None:
        """The log still has the entry of every listed snapshot."""
        if cleaned[0] <= listings[-1].start:
            return None
        return Failure(
            f"the view lists version {listings[-1].start}, but the log begins at {cleaned[0]}"
        )

    @always
    def numbers_are_stable(self, log: Log, cleaned: tuple[int]) -> Failure | None:
        """Cleaning the log changes no sequence number."""
        first = cleaned[0] if self.mutant == COUNTS_ENTRIES else 0
        for number in range(cleaned[0], len(log)):
            if number - first != number:
                return Failure(f"version {number} has become number {number - first}")
        return None

    @eventually_always
    def old_files_go_away(
        self, log: Log, listings: Listings, store: Store, clock: tuple[int]
    ) -> bool:
        """In the end no file is left that should have been deleted."""
        return not self._doomed(log, listings, store, clock[0])


def _busy(busy: Busy, which: int, since: int) -> dict[str, Hashable]:
    return {"busy": (*busy[:which], since, *busy[which + 1 :])}


def _read(reader: _Actor, store: Store) -> _Actor:
    found = any(file.name == reader.file for file in store)
    return _Actor() if found else _Actor(LOST, reader.file)


def _shortened(listings: Listings, start: int, clock: tuple[int]) -> dict[str, Hashable]:
    return {"listings": (*listings, _Listing(start, clock[0]))}


def _deleted(cleaner: _Actor, store: Store) -> Iterator[Next]:
    name, *rest = cleaner.doomed
    after = _Actor(DELETES, doomed=tuple(rest)) if rest else _Actor()
    left = frozenset(file for file in store if file.name != name)
    yield Next(after, {"store": left}, {"file": name})


def safe_wait(*, longest: int, max_ticks: int = 5) -> int:
    """The least wait that is safe for readers and writers that take this long."""
    for wait in range(max_ticks):
        if check(TwinTableCleanup(wait=wait, longest=longest, max_ticks=max_ticks)).ok:
            return wait
    raise ModelError(f"no wait below {max_ticks} ticks is safe")
