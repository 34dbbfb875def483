"""Actors: each runs real code in a thread of its own and stops before every storage call.

Exactly one thread runs at a time, and it runs until its next storage call, so a run is a sequence
of choices of who goes next and nothing else. What the code between two calls does is not visible
to anybody else: so storage calls are the only points where a switch can matter.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, Final

from twinlake.storage import SimulatedCrash
from twinlake.verify.code.storage_call import FaultName, StorageCall, storage_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from twinlake.storage import CreateOutcome, Fault, MemoryStore, ObjectMeta

__all__ = [
    "ActorClock",
    "ActorStore",
    "ActorThread",
    "RunAbandoned",
    "SharedObjects",
    "silence_actor_logs",
]

_THREADS: Final = "twinlake-actor-"


class RunAbandoned(BaseException):
    """The run is over for the explorer; the actor's code must not go on."""


class SharedObjects:
    """The objects of a run, and the fault that the call which is being made meets."""

    def __init__(self, memory: MemoryStore, clock: ActorClock) -> None:
        self.memory = memory
        self.clock = clock
        self.at_start = memory.fork()
        self.at_start.set_faults(())
        self._fault: Fault | None = None
        memory.set_faults(lambda _operation, _key, _nth: self._fault)

    def perform(self, actor: ActorThread, run: Callable[[MemoryStore], Any]) -> Any:
        """Make a call on the store, with the fault it is to meet."""
        self.clock.now = actor.now
        self._fault = storage_fault(actor.fault)
        try:
            return run(self.memory)
        finally:
            self._fault = None


class ActorClock:
    """A clock that stands still at the time of the actor that runs."""

    def __init__(self, now: int) -> None:
        self.now = now
        self.slept = 0.0

    def now_ms(self) -> int:
        """The time of the actor that runs."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Nobody waits: that others run meanwhile is a choice of the schedule."""
        self.slept += seconds


def silence_actor_logs() -> None:
    """Drop the log records of actors: failures are provoked here by the thousand."""
    for name in ("twinlake.commit", "twinlake.iceberg"):
        logging.getLogger(name).addFilter(_not_an_actor)


def _not_an_actor(record: logging.LogRecord) -> bool:
    return not (record.threadName or "").startswith(_THREADS)


class ActorThread:
    """A program in a thread that is let run one storage call at a time."""

    def __init__(self, name: str, now: int, program: Callable[[], Any]) -> None:
        self.name = name
        self.now = now
        self.pending: StorageCall | None = None
        """The call it is about to make; None once it is done."""
        self.calls = 0
        """How many calls it has made."""
        self.fault: FaultName | None = None
        self.result: Any = None
        """What the last call returned or raised."""
        self.reply: Any = None
        self.error: BaseException | None = None
        self.wrote: set[str] = set()
        self._abandoned = False
        self._program = program
        self._go, self._back = threading.Lock(), threading.Lock()
        self._go.acquire()
        self._back.acquire()
        self._thread = threading.Thread(target=self._main, name=f"{_THREADS}{name}", daemon=True)

    @property
    def is_done(self) -> bool:
        """Whether it makes no further call."""
        return self.pending is None

    def start(self) -> None:
        """Run to the first storage call."""
        self._thread.start()
        self._back.acquire()

    def step(self, fault: FaultName | None = None) -> None:
        """Make the pending call and run to the next one."""
        self.calls += 1
        self.fault = fault
        self._go.release()
        self._back.acquire()

    def abandon(self) -> None:
        """End the program where it stands."""
        if self.pending is not None:
            self._abandoned = True
            self._go.release()
        self._thread.join()

    def pause(self, call: StorageCall) -> None:
        """Called from within: wait for the turn to make a call."""
        if threading.current_thread() is not self._thread:
            raise AssertionError(f"{call} of {self.name} came from a thread it does not know")
        if self._abandoned:
            raise RunAbandoned
        self.pending = call
        self._back.release()
        self._go.acquire()
        if self._abandoned:
            raise RunAbandoned

    def _main(self) -> None:
        try:
            self.reply = self._program()
        except RunAbandoned:
            pass
        except BaseException as error:
            self.error = error
        self.pending = None
        self._back.release()


class ActorStore:
    """The storage port of one actor: other actors may run before every call."""

    def __init__(self, actor: ActorThread, shared: SharedObjects) -> None:
        self._actor = actor
        self._shared = shared

    @property
    def url(self) -> str:
        """The root of the table."""
        return self._shared.memory.url

    def read(self, key: str) -> bytes:
        """The whole object."""
        data: bytes = self._call(StorageCall("read", key), lambda store: store.read(key))
        return data

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """A part of an object."""
        call = StorageCall("read_range", key)
        data: bytes = self._call(call, lambda store: store.read_range(key, start, length))
        return data

    def head(self, key: str) -> ObjectMeta | None:
        """Size and time of an object."""
        found: ObjectMeta | None = self._call(
            StorageCall("head", key), lambda store: store.head(key)
        )
        return found

    def list_from(self, folder: str, start_after: str = "") -> Iterator[ObjectMeta]:
        """A listing, made at one moment."""
        call = StorageCall("list_from", folder.strip("/"), start_after)
        found: tuple[ObjectMeta, ...] = self._call(
            call, lambda store: tuple(self._listed(store, folder, start_after))
        )
        return iter(found)

    def create(self, key: str, data: bytes) -> CreateOutcome:
        """Create an object if there is none."""
        outcome: CreateOutcome = self._call(
            StorageCall("create", key), lambda store: store.create(key, data)
        )
        return outcome

    def put(self, key: str, *pieces: bytes | memoryview) -> None:
        """Create or replace an object."""
        self._call(StorageCall("put", key), lambda store: store.put(key, *pieces))

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects, one call each."""
        for key in keys:
            self._delete(key)

    def _delete(self, key: str) -> None:
        self._call(StorageCall("delete", key), lambda store: store.delete([key]))

    def _listed(self, store: MemoryStore, folder: str, start_after: str) -> Iterable[ObjectMeta]:
        listed = store.list_from(folder, start_after)
        if self._actor.fault is not FaultName.STALE_LIST:
            return listed
        own = {item.key: item for item in listed if item.key in self._actor.wrote}
        old = {item.key: item for item in self._shared.at_start.list_from(folder, start_after)}
        return [item for _, item in sorted({**old, **own}.items())]

    def _call(self, call: StorageCall, run: Callable[[MemoryStore], Any]) -> Any:
        actor = self._actor
        actor.pause(call)
        try:
            actor.result = self._shared.perform(actor, run)
        except (Exception, SimulatedCrash) as error:
            actor.result = error
            raise
        finally:
            if call.operation in ("create", "put"):
                actor.wrote.add(call.key)
        return actor.result
