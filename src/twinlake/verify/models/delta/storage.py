"""Committing through a store that may lose replies: who finds out what really happened?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from twinlake.verify.checker import (
    Failure,
    Next,
    Start,
    action,
    always,
    eventually_always,
)
from twinlake.verify.models.mutation import Writers

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["BLIND_OVERWRITE", "GIVE_UP", "NON_ATOMIC", "RETRY_BLINDLY", "LogStore"]

#: Mutants: the store overwrites; an unknown outcome is reported as a failure; it is retried as a
#: new version without looking; an entry becomes visible before it is complete.
BLIND_OVERWRITE, GIVE_UP = "blind-overwrite", "give-up"
RETRY_BLINDLY, NON_ATOMIC = "retry-blindly", "non-atomic"

IDLE, PUT, FINISH, UNKNOWN = "IDLE", "PUT", "FINISH", "UNKNOWN"
COMMITTED, FAILED = "committed", "failed"


class Entry(NamedTuple):
    """A log entry: the token of the operation that wrote it, and whether all of it is there."""

    token: int
    complete: bool = True


class Committer(NamedTuple):
    """A writer with an operation, named by its token, that aims at a version."""

    state: str = IDLE
    token: int = 0
    version: int = 0


Log = tuple[Entry, ...]
Told = tuple[tuple[int, str], ...]


@dataclass(frozen=True, kw_only=True)
class LogStore(Writers):
    """Writers that append operations to the log under faults of the store.

    ``faults`` puts may fail without a word on whether they took effect. ``stale_list`` lets a
    writer start from a listing that lacks the newest entry.
    """

    title: ClassVar[str] = "Delta log on a store with faults"
    mutants: ClassVar[tuple[str | None, ...]] = (
        None,
        BLIND_OVERWRITE,
        GIVE_UP,
        RETRY_BLINDLY,
        NON_ATOMIC,
    )
    only_grows: ClassVar[tuple[str, ...]] = ("started", "faulted")

    max_ops: int = 3
    faults: int = 1
    stale_list: bool = True

    def initial(self) -> Iterator[Start]:
        """An empty log, nothing reported."""
        shared = {"log": (), "told": (), "started": (0,), "faulted": (0,)}
        yield Start(shared, (Committer(),) * self.writers)

    @action(at=IDLE, writes=("started",))
    def start(self, _writer: Committer, log: Log, started: tuple[int]) -> Iterator[Next]:
        """List the log and aim at the version after the last one seen."""
        if started[0] >= self.max_ops:
            return
        seen = {len(log)} | ({len(log) - 1} if self.stale_list and log else set())
        for last in sorted(seen):
            opened = Committer(PUT, started[0] + 1, last + 1)
            arguments = {"token": opened.token, "version": opened.version}
            yield Next(opened, {"started": (started[0] + 1,)}, arguments)

    @action(at=PUT, writes=("log", "told", "faulted"))
    def put(self, writer: Committer, log: Log, told: Told, faulted: tuple[int]) -> Iterator[Next]:
        """Create the entry if it is absent; the reply may be lost, before or after the effect."""
        taken = writer.version <= len(log)
        if faulted[0] < self.faults:
            lost = {"faulted": (faulted[0] + 1,)}
            unknown = writer._replace(state=UNKNOWN)
            yield Next(unknown, lost, {"reply": "lost", "effect": False})
            if not taken:
                yield Next(
                    unknown,
                    {**lost, "log": (*log, Entry(writer.token))},
                    {"reply": "lost", "effect": True},
                )
        if taken and self.mutant != BLIND_OVERWRITE:
            yield Next(writer._replace(version=writer.version + 1), arguments={"reply": "exists"})
            return
        at = writer.version - 1
        if self.mutant == NON_ATOMIC:
            torn = (*log[:at], Entry(writer.token, complete=False), *log[at + 1 :])
            yield Next(writer._replace(state=FINISH), {"log": torn}, {"reply": "none yet"})
            return
        written = (*log[:at], Entry(writer.token), *log[at + 1 :])
        done = {"log": written, "told": _tell(told, writer.token, COMMITTED)}
        yield Next(Committer(), done, {"reply": "created", "version": writer.version})

    @action(at=FINISH, writes=("log", "told"))
    def finish(self, writer: Committer, log: Log, told: Told) -> Iterator[Next]:
        """The rest of an entry that a store without atomic writes shows early."""
        at = writer.version - 1
        written = (*log[:at], Entry(writer.token), *log[at + 1 :])
        done = {"log": written, "told": _tell(told, writer.token, COMMITTED)}
        yield Next(Committer(), done, {"version": writer.version})

    @action(at=UNKNOWN, writes=("told",))
    def settle(self, writer: Committer, log: Log, told: Told) -> Iterator[Next]:
        """Read the entry back: is it mine, somebody else's, or not there?"""
        if self.mutant == GIVE_UP:
            yield Next(Committer(), {"told": _tell(told, writer.token, FAILED)})
        elif self.mutant == RETRY_BLINDLY:
            yield Next(writer._replace(state=PUT, version=len(log) + 1))
        elif writer.version > len(log):
            yield Next(writer._replace(state=PUT), arguments={"found": "nothing"})
        elif log[writer.version - 1].token == writer.token:
            committed = {"told": _tell(told, writer.token, COMMITTED)}
            yield Next(Committer(), committed, {"found": "mine"})
        else:
            again = writer._replace(state=PUT, version=writer.version + 1)
            yield Next(again, arguments={"found": "another's"})

    @always
    def exactly_once(self, log: Log) -> Failure | None:
        """No operation is in the log twice."""
        tokens = [entry.token for entry in log]
        twice = sorted({token for token in tokens if tokens.count(token) > 1})
        return Failure(f"operation {twice[0]} is in the log twice") if twice else None

    @always
    def reports_are_true(self, log: Log, told: Told) -> Failure | None:
        """What was reported as committed is in the log, and what as failed is not."""
        tokens = {entry.token for entry in log}
        for token, outcome in told:
            if (token in tokens) != (outcome == COMMITTED):
                where = "in" if token in tokens else "not in"
                return Failure(f"operation {token} was reported {outcome} and is {where} the log")
        return None

    @always
    def entries_are_complete(self, log: Log) -> Failure | None:
        """No reader can see half an entry."""
        for version, entry in enumerate(log, 1):
            if not entry.complete:
                return Failure(f"version {version} is visible before it is complete")
        return None

    @eventually_always
    def everything_is_reported(self, told: Told) -> bool:
        """In the end every operation has an answer."""
        return len(told) == self.max_ops


def _tell(told: Told, token: int, outcome: str) -> Told:
    return tuple(sorted((*told, (token, outcome))))
