"""Snapshot retention: expirers, rollbacks and long readers on the snapshots of one table.

The table's metadata is one register with compare-and-swap that names all retained snapshots and
the current one. An expirer removes snapshots by a swap, *then* deletes the files that no retained
snapshot has, one by one.
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

__all__ = ["COMMITTED_AGE", "SUPERSEDED_AGE", "SnapshotRetention", "safe_expiry"]

#: Mutants: an expirer overwrites the register without comparing; it deletes files before its swap;
#: after a lost swap it removes what it had chosen before; it deletes only what a single snapshot
#: had for itself; a rollback that lost its swap puts back a snapshot that was expired meanwhile.
BLIND_SWAP, DELETES_FIRST, STALE_PLAN = "blind-swap", "deletes-first", "stale-plan"
FORGETS_SHARED, ROLLS_BACK_BLINDLY = "forgets-shared", "rolls-back-blindly"

#: From when a snapshot's age counts: from the commit that made it, as Iceberg does, or from the
#: commit that took its place.
COMMITTED_AGE, SUPERSEDED_AGE = "committed", "superseded"
AGES = (COMMITTED_AGE, SUPERSEDED_AGE)

IDLE, READS, LOST = "IDLE", "READS", "LOST"
PLANNED, DELETES = "PLANNED", "DELETES"
NEVER = -1


class _Snapshot(NamedTuple):
    """A snapshot: its files, when it was made, and since when another one is current."""

    id: int
    files: tuple[str, ...]
    committed: int
    superseded: int = NEVER


class _Metadata(NamedTuple):
    """What the register holds; the number tells one content from the next."""

    number: int
    snapshots: tuple[_Snapshot, ...]
    current: int

    @property
    def files(self) -> frozenset[str]:
        """The files of all retained snapshots."""
        return frozenset(path for one in self.snapshots for path in one.files)

    def snapshot(self, wanted: int) -> _Snapshot | None:
        """The snapshot of this id, if it is retained."""
        return next((one for one in self.snapshots if one.id == wanted), None)


class _Actor(NamedTuple):
    """A writer, an operator who rolls back, an expirer, a reader or the clock."""

    state: str = IDLE
    since: int = 0
    #: What it still has to read or to delete.
    files: tuple[str, ...] = ()
    #: The metadata it has read, and the snapshots it is about to remove or to roll back to.
    base: _Metadata | None = None
    chosen: tuple[int, ...] = ()


Busy = tuple[int, ...]
Deleted = frozenset[str]


@dataclass(frozen=True, kw_only=True)
class SnapshotRetention(MutantModel):
    """Writers, expirers, readers and rollbacks under a clock.

    Every snapshot has two files, of which it shares one with the next. A reader takes at most
    ``longest`` ticks. Expirers remove snapshots that are not current and are ``retention`` ticks
    old or older.
    """

    title: ClassVar[str] = "Retention of snapshots"
    mutants: ClassVar[tuple[str | None, ...]] = (
        None,
        BLIND_SWAP,
        DELETES_FIRST,
        STALE_PLAN,
        FORGETS_SHARED,
        ROLLS_BACK_BLINDLY,
    )
    only_grows: ClassVar[tuple[str, ...]] = ("written", "rolled", "clock")

    expirers: int = 1
    readers: int = 1
    operators: int = 0
    retention: int = 2
    longest: int = 1
    age_from: str = SUPERSEDED_AGE
    max_ticks: int = 4
    max_writes: int = 2
    max_rollbacks: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.age_from not in AGES:
            raise ModelError(f"age_from={self.age_from!r} is none of {', '.join(AGES)}")

    @property
    def roles(self) -> tuple[Role, ...]:
        """Those who take part, and the clock."""
        counts = {
            "Writer": 1,
            "Expirer": self.expirers,
            "Reader": self.readers,
            "Operator": self.operators,
            "Clock": 1,
        }
        return tuple(Role(name=name, count=count) for name, count in counts.items())

    def initial(self) -> Iterator[InitialState]:
        """A table of one snapshot with two files."""
        first = _Snapshot(1, ("file-1", "file-2"), 0)
        shared: dict[str, Hashable] = {
            "metadata": _Metadata(0, (first,), 1),
            "deleted": frozenset(),
            "clock": (0,),
            "busy": (),
            "written": (0,),
            "rolled": (0,),
        }
        yield InitialState(shared, (_Actor(),) * sum(role.count for role in self.roles))

    @action(role="Clock", at=IDLE, writes=("clock",))
    def tick(self, _clock: _Actor, clock: tuple[int], busy: Busy) -> Iterator[Next]:
        """Time passes, unless a reader has used up all the time it may take."""
        if clock[0] < self.max_ticks and all(clock[0] - since < self.longest for since in busy):
            yield Next(_Actor(), {"clock": (clock[0] + 1,)}, {"clock": clock[0] + 1})

    @action(role="Writer", at=IDLE, writes=("metadata", "written"))
    def commit(
        self, _writer: _Actor, metadata: _Metadata, clock: tuple[int], written: tuple[int]
    ) -> Iterator[Next]:
        """Replace the older file of the current snapshot by a new one."""
        current = metadata.snapshot(metadata.current)
        if written[0] >= self.max_writes or current is None:
            return
        number = written[0] + 2
        made = _Snapshot(number, (current.files[1], f"file-{number + 1}"), clock[0])
        after = _switched(metadata, made.id, clock[0], (*metadata.snapshots, made))
        done = {"metadata": after, "written": (written[0] + 1,)}
        yield Next(_Actor(), done, {"snapshot": made.id, "files": made.files})

    # --- expirers ---------------------------------------------------------------------------------

    @action(role="Expirer", at=IDLE)
    def plan_expiry(
        self, _expirer: _Actor, metadata: _Metadata, clock: tuple[int]
    ) -> Iterator[Next]:
        """Read the metadata and choose old snapshots, the oldest first."""
        old = [
            one.id
            for one in metadata.snapshots
            if one.id != metadata.current and clock[0] - self._since(one) >= self.retention
        ]
        for count in range(1, len(old) + 1):
            chosen = tuple(old[:count])
            planned = _Actor(PLANNED, base=metadata, chosen=chosen)
            if self.mutant == DELETES_FIRST:
                doomed = self._doomed(metadata, chosen)
                planned = planned._replace(state=DELETES if doomed else PLANNED, files=doomed)
            yield Next(planned, arguments={"snapshots": chosen})

    def _since(self, snapshot: _Snapshot) -> int:
        return snapshot.committed if self.age_from == COMMITTED_AGE else snapshot.superseded

    @action(role="Expirer", at=PLANNED, writes=("metadata",))
    def expire(self, expirer: _Actor, metadata: _Metadata) -> Iterator[Next]:
        """Swap the register; the files to delete follow from what was swapped in."""
        base = expirer.base
        if base is None:
            raise ModelError("an expirer with a plan has read the metadata")
        if base.number != metadata.number:
            if self.mutant == STALE_PLAN:
                base = metadata
            elif self.mutant != BLIND_SWAP:
                yield Next(_Actor(), arguments={"swap": "failed"})
                return
        kept = tuple(one for one in base.snapshots if one.id not in expirer.chosen)
        after = _Metadata(metadata.number + 1, kept, base.current)
        doomed = self._doomed(base, expirer.chosen)
        if self.mutant == DELETES_FIRST:
            doomed = ()
        done = _Actor(DELETES, files=doomed) if doomed else _Actor()
        arguments = {"snapshots": expirer.chosen, "files": doomed}
        yield Next(done, {"metadata": after}, arguments)

    def _doomed(self, base: _Metadata, chosen: tuple[int, ...]) -> tuple[str, ...]:
        """The files that only the chosen snapshots have."""
        every = [path for one in base.snapshots for path in one.files]
        kept = {path for one in base.snapshots if one.id not in chosen for path in one.files}
        if self.mutant == FORGETS_SHARED:
            kept |= {path for path in every if every.count(path) > 1}
        return tuple(sorted(set(every) - kept))

    @action(role="Expirer", at=DELETES, writes=("deleted",))
    def delete_file(self, expirer: _Actor, deleted: Deleted) -> Iterator[Next]:
        """Delete one file; it does not matter if it is gone already."""
        path, *rest = expirer.files
        after = expirer._replace(files=tuple(rest)) if rest else _Actor()
        if not rest and self.mutant == DELETES_FIRST:
            after = expirer._replace(state=PLANNED, files=())
        yield Next(after, {"deleted": deleted | {path}}, {"file": path})

    # --- rollbacks --------------------------------------------------------------------------------

    @action(role="Operator", at=IDLE, writes=("rolled",))
    def start_rollback(
        self, _operator: _Actor, metadata: _Metadata, rolled: tuple[int]
    ) -> Iterator[Next]:
        """Read the metadata and choose a snapshot to go back to."""
        if rolled[0] < self.max_rollbacks:
            for one in metadata.snapshots:
                if one.id != metadata.current:
                    opened = _Actor(PLANNED, base=metadata, chosen=(one.id,))
                    yield Next(opened, {"rolled": (rolled[0] + 1,)}, {"snapshot": one.id})

    @action(role="Operator", at=PLANNED, writes=("metadata",))
    def roll_back(self, operator: _Actor, metadata: _Metadata, clock: tuple[int]) -> Iterator[Next]:
        """Make the snapshot current, if it is retained when the swap succeeds."""
        base, (wanted,) = operator.base, operator.chosen
        if base is None:
            raise ModelError("an operator who rolls back has read the metadata")
        if base.number != metadata.number and self.mutant != ROLLS_BACK_BLINDLY:
            again = operator._replace(base=metadata)
            known = metadata.snapshot(wanted) is not None
            yield Next(again if known else _Actor(), arguments={"swap": "failed", "known": known})
            return
        snapshots = metadata.snapshots
        remembered = base.snapshot(wanted)
        if metadata.snapshot(wanted) is None and remembered is not None:
            snapshots = tuple(sorted((*snapshots, remembered)))
        after = _switched(metadata, wanted, clock[0], snapshots)
        yield Next(_Actor(), {"metadata": after}, {"snapshot": wanted})

    # --- readers ----------------------------------------------------------------------------------

    @action(role="Reader", at=IDLE, writes=("busy",))
    def open_snapshot(
        self, _reader: _Actor, metadata: _Metadata, clock: tuple[int], busy: Busy
    ) -> Iterator[Next]:
        """Plan a read of the current snapshot, or of one that is retained for long enough."""
        for one in metadata.snapshots:
            left = self.retention - (clock[0] - self._since(one))
            if one.id == metadata.current or left > self.longest:
                begun = {"busy": tuple(sorted((*busy, clock[0])))}
                yield Next(_Actor(READS, clock[0], one.files), begun, {"snapshot": one.id})

    @action(role="Reader", at=READS, writes=("busy",))
    def read_file(self, reader: _Actor, deleted: Deleted, busy: Busy) -> Iterator[Next]:
        """Read the next file of the plan, if it is still there."""
        path, *rest = reader.files
        if path not in deleted and rest:
            yield Next(reader._replace(files=tuple(rest)), arguments={"file": path})
            return
        left = list(busy)
        left.remove(reader.since)
        found = path not in deleted
        after = _Actor() if found else _Actor(LOST, files=(path,))
        yield Next(after, {"busy": tuple(left)}, {"file": path, "found": found})

    # --- what must hold ---------------------------------------------------------------------------

    @always
    def retained_snapshots_are_whole(self, metadata: _Metadata, deleted: Deleted) -> Failure | None:
        """Every file of every retained snapshot exists, and the current one is retained."""
        if metadata.snapshot(metadata.current) is None:
            return Failure(f"the current snapshot {metadata.current} is expired")
        for one in metadata.snapshots:
            gone = sorted(deleted.intersection(one.files))
            if gone:
                return Failure(f"{gone[0]} of snapshot {one.id} is gone", {"snapshot": one.id})
        return None

    @always
    def readers_finish(self, actor: _Actor) -> Failure | None:
        """A read that began within the retention never misses a file."""
        return Failure(f"{actor.files[0]} is gone") if actor.state == LOST else None

    @eventually_always
    def unreachable_files_go_away(
        self, metadata: _Metadata, deleted: Deleted, written: tuple[int]
    ) -> bool:
        """In the end every file is deleted that no retained snapshot has."""
        every = {f"file-{number}" for number in range(1, written[0] + 3)}
        return every - metadata.files == deleted


def _switched(
    metadata: _Metadata, current: int, now: int, snapshots: tuple[_Snapshot, ...]
) -> _Metadata:
    """The metadata with another current snapshot; the one before it is superseded from now on."""
    dated = tuple(
        one._replace(superseded=NEVER)
        if one.id == current
        else one._replace(superseded=now)
        if one.id == metadata.current
        else one
        for one in snapshots
    )
    return _Metadata(metadata.number + 1, dated, current)


def safe_expiry(*, longest: int, age_from: str = SUPERSEDED_AGE) -> int | None:
    """The least retention with which every reader finishes, or ``None`` if no tried one will do."""
    enough = longest + 2
    for retention in range(enough + 1):
        model = SnapshotRetention(
            retention=retention,
            longest=longest,
            age_from=age_from,
            max_ticks=2 * enough,
            max_writes=1,
        )
        if check(model, without=("UnreachableFilesGoAway",)).ok:
            return retention
    return None
