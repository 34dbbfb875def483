"""Committing through a store that may lose replies: who finds out what really happened?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from twinlake.verify.checker import Failure, InitialState, Next, action, always, eventually_always
from twinlake.verify.models.mutation import WriterModel

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["LogStore"]

#: Mutants: the store overwrites; an unknown outcome is reported as a failure; it is retried as a
#: new version without looking; an entry becomes visible before it is complete.
BLIND_OVERWRITE, GIVE_UP = "blind-overwrite", "give-up"
RETRY_BLINDLY, NON_ATOMIC = "retry-blindly", "non-atomic"

IDLE, PUT, FINISH, UNKNOWN = "IDLE", "PUT", "FINISH", "UNKNOWN"
COMMITTED, FAILED = "committed", "failed"


class _Entry(NamedTuple):
    """A log entry: the token of the operation that wrote it, and whether all of it is there."""

    token: int
    complete: bool = True


class _Committer(NamedTuple):
    """A writer with an operation, named by its token, that aims at a version."""

    state: str = IDLE
    token: int = 0
    version: int = 0


Log = tuple[_Entry, ...]
Reports = tuple[tuple[int, str], ...]


@dataclass(frozen=True, kw_only=True)
class LogStore(WriterModel):
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

    def initial(self) -> Iterator[InitialState]:
        """An empty log, nothing reported."""
        shared = {"log": (), "reported": (), "started": (0,), "faulted": (0,)}
        yield InitialState(shared, (_Committer(),) * self.writers)

    @action(at=IDLE, writes=("started",))
    def start(self, _writer: _Committer, log: Log, started: tuple[int]) -> Iterator[Next]:
        """List the log and aim at the version after the last one seen."""
        if started[0] >= self.max_ops:
            return
        seen = {len(log)} | ({len(log) - 1} if self.stale_list and log else set())
        for last in sorted(seen):
            opened = _Committer(PUT, started[0] + 1, last + 1)
            arguments = {"token": opened.token, "version": opened.version}
            yield Next(opened, {"started": (started[0] + 1,)}, arguments)

    @action(at=PUT, writes=("log", "reported", "faulted"))
    def put(
        self, writer: _Committer, log: Log, reported: Reports, faulted: tuple[int]
    ) -> Iterator[Next]:
        """Create the entry if it is absent; the reply may be lost, before or after the effect."""
        taken = writer.version <= len(log)
        if faulted[0] < self.faults:
            lost = {"faulted": (faulted[0] + 1,)}
            unknown = writer._replace(state=UNKNOWN)
            yield Next(unknown, lost, {"reply": "lost", "effect": False})
            if not taken:
                yield Next(
                    unknown,
                    {**lost, "log": (*log, _Entry(writer.token))},
                    {"reply": "lost", "effect": True},
                )
        if taken and self.mutant != BLIND_OVERWRITE:
            yield Next(writer._replace(version=writer.version + 1), arguments={"reply": "exists"})
            return
        at = writer.version - 1
        if self.mutant == NON_ATOMIC:
            torn = (*log[:at], _Entry(writer.token, complete=False), *log[at + 1 :])
            yield Next(writer._replace(state=FINISH), {"log": torn}, {"reply": "none yet"})
            return
        written = (*log[:at], _Entry(writer.token), *log[at + 1 :])
        done = {"log": written, "reported": _with_report(reported, writer.token, COMMITTED)}
        yield Next(_Committer(), done, {"reply": "created", "version": writer.version})

    @action(at=FINISH, writes=("log", "reported"))
    def finish(self, writer: _Committer, log: Log, reported: Reports) -> Iterator[Next]:
        """The rest of an entry that a store without atomic writes shows early."""
        at = writer.version - 1
        written = (*log[:at], _Entry(writer.token), *log[at + 1 :])
        done = {"log": written, "reported": _with_report(reported, writer.token, COMMITTED)}
        yield Next(_Committer(), done, {"version": writer.version})

    @action(at=UNKNOWN, writes=("reported",))
    def settle(self, writer: _Committer, log: Log, reported: Reports) -> Iterator[Next]:
        """Read the entry back: is it mine, somebody else's, or not there?"""
        if self.mutant == GIVE_UP:
            yield Next(_Committer(), {"reported": _with_report(reported, writer.token, FAILED)})
        elif self.mutant == RETRY_BLINDLY:
            yield Next(writer._replace(state=PUT, version=len(log) + 1))
        elif writer.version > len(log):
            yield Next(writer._replace(state=PUT), arguments={"found": "nothing"})
        elif log[writer.version - 1].token == writer.token:
            committed = {"reported": _with_report(reported, writer.token, COMMITTED)}
            yield Next(_Committer(), committed, {"found": "mine"})
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
    def reports_are_true(self, log: Log, reported: Reports) -> Failure | None:
        """What was reported as committed is in the log, and what as failed is not."""
        tokens = {entry.token for entry in log}
        for token, outcome in reported:
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
    def everything_is_reported(self, reported: Reports) -> bool:
        """In the end every operation has an answer."""
        return len(reported) == self.max_ops


def _with_report(reported: Reports, token: int, outcome: str) -> Reports:
    return tuple(sorted((*reported, (token, outcome))))
