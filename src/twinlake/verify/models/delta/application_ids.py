"""Application transaction ids: a stream that starts over writes every batch exactly once.

An application takes its batches in order and notes its progress only after a commit, so that a
crash in between makes it send a batch again. Two instances of it may run at the same time without
knowing it. The log remembers the last batch of the application; conflicts between instances are
found by the rules that twinlake really commits by.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from twinlake.verify.checker import (
    ActionCheck,
    Failure,
    InitialState,
    Next,
    Role,
    action,
    always,
    eventually_always,
)
from twinlake.verify.models.delta.conflict_rules import (
    APPLICATIONS,
    CheckedCommit,
    PartitionedPath,
    conflict,
)
from twinlake.verify.models.mutation import MutantModel

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

__all__ = ["ApplicationIds"]

#: Mutants: an instance does not look up which batch the log has last; a commit of another
#: instance is no conflict; the id is committed in a version of its own, after the data.
IGNORES_LAST_BATCH, UNCHECKED_APPLICATION = "ignores-last-batch", "unchecked-application"
NOTES_ID_LATER = "notes-id-later"

IDLE, COMMIT, NOTE_ID, REPORT = "IDLE", "COMMIT", "NOTE_ID", "REPORT"
APPLICATION = "stream"
LEVEL = "WriteSerializable"


class _Instance(NamedTuple):
    """An instance of the application with the batch it is about to write."""

    state: str = IDLE
    batch: int = 0
    read_version: int = 0


class _Version(NamedTuple):
    """A version: the batch whose data it adds, and the last batch the application has noted."""

    batch: int = 0
    last: int = 0


Log = tuple[_Version, ...]


@dataclass(frozen=True, kw_only=True)
class ApplicationIds(MutantModel):
    """Instances of one application that write its batches, and may crash before they note it."""

    title: ClassVar[str] = "Delta application transaction ids"
    mutants: ClassVar[tuple[str | None, ...]] = (
        None,
        IGNORES_LAST_BATCH,
        UNCHECKED_APPLICATION,
        NOTES_ID_LATER,
    )
    append_only: ClassVar[tuple[str, ...]] = ("log",)
    only_grows: ClassVar[tuple[str, ...]] = ("progress", "crashed")

    instances: int = 2
    batches: int = 2
    max_crashes: int = 1

    @property
    def roles(self) -> tuple[Role, ...]:
        """The instances."""
        return (Role(name="Instance", count=self.instances),)

    def initial(self) -> Iterator[InitialState]:
        """Nothing was written."""
        shared: dict[str, Hashable] = {"log": (_Version(),), "progress": (0,), "crashed": (0,)}
        yield InitialState(shared, (_Instance(),) * self.instances)

    @action(at=IDLE)
    def start_batch(self, _instance: _Instance, log: Log, progress: tuple[int]) -> Iterator[Next]:
        """Take the batch after the one that was noted last; skip it if the log has it."""
        batch = progress[0] + 1
        if batch > self.batches:
            return
        done = log[-1].last >= batch and self.mutant != IGNORES_LAST_BATCH
        opened = _Instance(REPORT if done else COMMIT, batch, len(log) - 1)
        yield Next(opened, arguments={"batch": batch, "skipped": done})

    @action(at=COMMIT, writes=("log",))
    def commit(self, instance: _Instance, log: Log) -> Iterator[Next]:
        """Commit the data and the id together, unless the other instance was here meanwhile."""
        lost = self._lost(instance, log)
        if lost is not None:
            yield Next(_Instance(), arguments={"conflict": True}, checks=(lost,))
            return
        later = self.mutant == NOTES_ID_LATER
        version = _Version(instance.batch, log[-1].last if later else instance.batch)
        state = NOTE_ID if later else REPORT
        yield Next(instance._replace(state=state), {"log": (*log, version)}, {"version": len(log)})

    def _lost(self, instance: _Instance, log: Log) -> ActionCheck | None:
        winners = tuple(self._as_commit(one) for one in log[instance.read_version + 1 :])
        lost = conflict(
            self._as_commit(_Version(instance.batch, instance.batch)),
            instance.read_version,
            winners,
            isolation=LEVEL,
            without=APPLICATIONS if self.mutant == UNCHECKED_APPLICATION else frozenset(),
        )
        return ActionCheck(lost.rule, False, lost.why) if lost is not None else None

    def _as_commit(self, version: _Version) -> CheckedCommit:
        return CheckedCommit(
            "STREAMING UPDATE",
            added=(PartitionedPath(f"file-{version.batch}", "a"),) if version.batch else (),
            application=(APPLICATION, version.last) if version.last else None,
        )

    @action(at=NOTE_ID, writes=("log",))
    def note_id(self, instance: _Instance, log: Log) -> Iterator[Next]:
        """Commit the id in a version of its own."""
        version = _Version(0, max(instance.batch, log[-1].last))
        yield Next(instance._replace(state=REPORT), {"log": (*log, version)})

    @action(at=REPORT, writes=("progress",))
    def report(self, instance: _Instance, progress: tuple[int]) -> Iterator[Next]:
        """Note that the batch is done; the next start goes on after it."""
        noted = max(progress[0], instance.batch)
        yield Next(_Instance(), {"progress": (noted,)}, {"batch": instance.batch})

    @action(at=(COMMIT, NOTE_ID, REPORT), writes=("crashed",), fair=False)
    def crash(self, _instance: _Instance, crashed: tuple[int]) -> Iterator[Next]:
        """Stop and start over from what was noted."""
        if crashed[0] < self.max_crashes:
            yield Next(_Instance(), {"crashed": (crashed[0] + 1,)})

    @always
    def exactly_once_and_in_order(self, log: Log) -> Failure | None:
        """The log has the batches 1, 2, 3, ... once each."""
        batches = [version.batch for version in log if version.batch]
        if batches == list(range(1, len(batches) + 1)):
            return None
        return Failure(f"the log has the batches {batches}", {"batches": batches})

    @eventually_always
    def every_batch_is_written(self, log: Log, progress: tuple[int]) -> bool:
        """In the end all batches are in the log, and noted."""
        return progress[0] == self.batches == max(version.batch for version in log)
