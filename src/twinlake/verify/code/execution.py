"""One run of a workload under one schedule: who moved, which call, what it changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from twinlake.commit import AlreadyCommitted
from twinlake.errors import Code, CommitUnknown, ConflictError, StorageError, TwinlakeError
from twinlake.log import CACHE
from twinlake.storage import Committed, Conflict, SimulatedCrash, Unknown
from twinlake.verify.code.actor_thread import (
    ActorStore,
    ActorThread,
    SharedObjects,
    silence_actor_logs,
)
from twinlake.verify.code.storage_call import (
    FaultName,
    Footprint,
    PlacedFault,
    StorageCall,
    footprint,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType

    from twinlake.storage import MemoryStore, ObjectMeta
    from twinlake.verify.code.actor_thread import ActorClock
    from twinlake.verify.code.row_engine import RowEngine
    from twinlake.verify.code.workload import Workload

__all__ = ["Event", "Execution", "Reply", "RunFailure"]

_COMMITS: Final = "_delta_log/"


@dataclass(frozen=True, slots=True)
class Event:
    """A storage call that was made."""

    actor: int
    number: int
    """Which call of the actor it was, from 1."""
    call: StorageCall
    fault: FaultName | None
    footprint: Footprint
    result: str
    before: bytes | None = None
    """The object before the call, where the call changed it."""
    after: bytes | None = None

    @property
    def changed(self) -> bool:
        """Whether the store is another one after it."""
        return self.before != self.after

    @property
    def is_visible(self) -> bool:
        """Whether a reader could notice: a new data file is not known to anybody yet."""
        is_metadata = self.call.key.startswith(("_delta_log/", "_iceberg/"))
        return self.changed and (is_metadata or self.before is not None)


@dataclass(frozen=True, slots=True)
class Reply:
    """How an actor's statement ended, as its caller sees it."""

    kind: str
    """committed, already, nothing, done, refused, failed, unknown, crashed, running or broken."""
    version: int | None = None
    text: str = ""

    def __str__(self) -> str:
        text = self.kind if self.version is None else f"{self.kind} {self.version}"
        return f"{text} ({self.text})" if self.text else text


@dataclass(frozen=True, slots=True)
class RunFailure:
    """A property that does not hold: a sentence, and the compared values by name."""

    property: str
    message: str
    fields: Mapping[str, Any] = field(default_factory=dict)


class Execution:
    """A run in progress; a context manager, as it holds threads."""

    def __init__(self, workload: Workload, faults: Iterable[PlacedFault] = ()) -> None:
        self.workload = workload
        memory, clock = workload.table()
        self._shared = SharedObjects(memory, clock)
        self._faults = {(one.actor, one.call): one.fault for one in faults}
        self.engines: list[RowEngine] = []
        self.actors: list[ActorThread] = []
        self.events: list[Event] = []
        self.bodies: dict[str, bytes] = dict(self._shared.at_start.snapshot())
        """Every object there ever was, as it was first written."""
        self.replaced: Event | None = None
        """The call that changed a commit after it was written, if one did."""
        self.floor = 0
        """Versions before this one may have been cleaned up."""
        self.fingerprint = 0
        """A fingerprint of the objects and of all there ever were."""
        self.log_fingerprint = 0
        """A fingerprint of the log alone."""
        self._seen = [0] * len(workload.actors)
        self._listed: dict[int, Any] = {}
        for number in range(len(workload.actors)):
            self._place(number, clock)

    def _place(self, number: int, clock: ActorClock) -> None:
        workload = self.workload
        engine = workload.engine(number, clock)
        name, statement = workload.actors[number]
        actor = ActorThread(name, workload.now(number), lambda: statement.run(engine))
        engine.store = ActorStore(actor, self._shared)
        self.engines.append(engine)
        self.actors.append(actor)

    def __enter__(self) -> Execution:
        silence_actor_logs()
        CACHE.forget(self._shared.memory.url)
        for actor in self.actors:
            self._shared.clock.now = actor.now
            actor.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for actor in self.actors:
            actor.abandon()

    @property
    def enabled(self) -> tuple[int, ...]:
        """The actors that have a call to make."""
        return tuple(n for n, actor in enumerate(self.actors) if not actor.is_done)

    @property
    def state(self) -> tuple[int, ...]:
        """What identifies this state: the objects, and what each actor has seen."""
        return (self.fingerprint, *self._seen)

    def pending(self, number: int) -> tuple[StorageCall, FaultName | None]:
        """The call an actor is about to make, and the fault that waits for it."""
        actor = self.actors[number]
        if actor.pending is None:
            raise AssertionError(f"{actor.name} is done")
        return actor.pending, self._fault(actor, number, actor.pending)

    def touches(self, number: int) -> Footprint:
        """What the pending call of an actor touches."""
        return footprint(*self.pending(number))

    def _fault(self, actor: ActorThread, number: int, call: StorageCall) -> FaultName | None:
        fault = self._faults.get((number, actor.calls + 1))
        return fault if fault is not None and fault.applies_to(call.operation) else None

    def place(self, number: int, fault: FaultName) -> PlacedFault:
        """Let the pending call of an actor meet a fault."""
        placed = PlacedFault(number, self.actors[number].calls + 1, fault)
        self._faults[placed.actor, placed.call] = fault
        return placed

    def met_faults(self) -> int:
        """How many of the placed faults were met."""
        return sum(event.fault is not None for event in self.events)

    def step(self, number: int) -> Event:
        """Let an actor make its call."""
        actor = self.actors[number]
        call, fault = self.pending(number)
        before = self.peek(call.key)
        self._shared.clock.now = actor.now
        actor.step(fault)
        after = self.peek(call.key)
        event = Event(
            actor=number,
            number=actor.calls,
            call=call,
            fault=fault,
            footprint=footprint(call, fault),
            result=_result_text(call, actor.result),
            before=before if before != after else None,
            after=after if before != after else None,
        )
        self._note(event, actor)
        self.events.append(event)
        return event

    def peek(self, key: str) -> bytes | None:
        """An object as it is, without taking part in anything."""
        try:
            return self._shared.memory.read(key) if key else None
        except StorageError:
            return None

    def view(self) -> MemoryStore:
        """A copy of the objects, free of faults."""
        copy = self._shared.memory.fork()
        copy.set_faults(())
        return copy

    def _note(self, event: Event, actor: ActorThread) -> None:
        key = event.call.key
        if event.call.operation == "list_from" and key == "_delta_log" and not event.call.after:
            self._listed[event.actor] = actor.result
        if event.call.operation == "delete" and is_commit(key):
            # A cleanup keeps the newest checkpoint that it listed.
            self.floor = max(self.floor, _newest_checkpoint(self._listed.get(event.actor, ())))
        self._seen[event.actor] = hash((self._seen[event.actor], event.call, _seen(actor.result)))
        if not event.changed:
            return
        turned = hash((key, event.before)) ^ hash((key, event.after))
        self.fingerprint ^= turned
        if key.startswith(_COMMITS):
            self.log_fingerprint ^= turned
        if event.after is None:
            return
        if key not in self.bodies:
            self.bodies[key] = event.after
            self.fingerprint ^= hash((key, event.after, "first"))
        elif is_commit(key) and self.bodies[key] != event.after:
            self.replaced = self.replaced or event

    def reply(self, number: int) -> Reply:
        """How the statement of an actor ended."""
        actor = self.actors[number]
        if not actor.is_done:
            return Reply("running")
        error = actor.error
        match error:
            case None if self.engines[number].effect is None:
                return Reply("done")
            case None if actor.reply is None:
                return Reply("nothing")
            case None if isinstance(actor.reply, AlreadyCommitted):
                return Reply("already")
            case None:
                return Reply("committed", actor.reply)
            case SimulatedCrash():
                return Reply("crashed")
            case CommitUnknown():
                return Reply("unknown", text=error.what)
            case ConflictError():
                return Reply("refused", text=f"{error.rule or error.code}: {error.what}")
            case TwinlakeError():
                return Reply("failed", text=f"{error.code}: {error.what}")
            case _:
                return Reply("broken", text=f"{type(error).__name__}: {error}")

    def replies(self) -> Mapping[str, Reply]:
        """All replies, by actor."""
        return {actor.name: self.reply(n) for n, actor in enumerate(self.actors)}


def is_commit(key: str) -> bool:
    """Whether a key is that of a commit of the log."""
    name = key.removeprefix(_COMMITS)
    return key.startswith(_COMMITS) and name.endswith(".json") and name[:-5].isdigit()


def _newest_checkpoint(listed: Iterable[ObjectMeta]) -> int:
    names = (item.key.removeprefix(_COMMITS) for item in listed)
    return max((int(n.split(".")[0]) for n in names if ".checkpoint." in n), default=0)


def _seen(result: Any) -> int:
    if isinstance(result, BaseException):
        return hash((type(result).__name__, str(result)))
    return hash(result)


def _result_text(call: StorageCall, result: Any) -> str:
    match result:
        case None:
            return "not there" if call.operation == "head" else "ok"
        case Committed():
            return "created"
        case Conflict():
            return "there is one already"
        case Unknown():
            return "no answer"
        case SimulatedCrash():
            return "crashed"
        case bytes():
            return f"{len(result)} bytes"
        case tuple():
            return f"{len(result)} objects"
        case StorageError():
            return "not there" if result.code is Code.STORAGE_NOT_FOUND else "error"
        case BaseException():
            return f"{type(result).__name__}"
        case _:
            return "there"
