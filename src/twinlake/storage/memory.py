"""A store in memory, with faults on order: for tests and for the model checker.

Faults are chosen by a plan, never by chance, so that every run can be repeated. A store can be
forked: the copy has the same objects, counters and plan and then goes its own way.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from twinlake.errors import Code, StorageError
from twinlake.runtime import SystemClock
from twinlake.storage.interface import Committed, Conflict, ObjectMeta, Unknown
from twinlake.storage.paths import Location, check_key, parse_location

if TYPE_CHECKING:
    from twinlake.runtime import Clock
    from twinlake.storage.interface import CreateOutcome

__all__ = ["Fault", "FaultKind", "FaultPlan", "MemoryStore", "Operation", "SimulatedCrash"]

Operation = Literal["read", "read_range", "head", "list_from", "create", "put", "delete"]


class SimulatedCrash(BaseException):
    """The process "died" here. Not an ``Exception``: no handler may live on after a crash."""


class FaultKind(StrEnum):
    """What goes wrong."""

    BEFORE = "before"  # fails, nothing happened
    AFTER = "after"  # it happened, the reply is lost
    TORN = "torn"  # a part of the body is kept, the reply is lost: a store that is not atomic
    STALE = "stale"  # a listing misses the newest objects
    CRASH_BEFORE = "crash-before"
    CRASH_AFTER = "crash-after"


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault; ``amount`` is the bytes kept by a torn write or the objects a stale list misses.

    >>> Fault.stale(2)
    Fault(kind=<FaultKind.STALE: 'stale'>, amount=2)
    """

    kind: FaultKind
    amount: int = 0

    @classmethod
    def before(cls) -> Fault:
        """Fail without an effect."""
        return cls(FaultKind.BEFORE)

    @classmethod
    def after(cls) -> Fault:
        """Have the effect, then fail."""
        return cls(FaultKind.AFTER)

    @classmethod
    def torn(cls, keep: int) -> Fault:
        """Keep only the first bytes of a written body, then fail."""
        return cls(FaultKind.TORN, keep)

    @classmethod
    def stale(cls, miss: int = 1) -> Fault:
        """Leave the newest objects out of a listing."""
        return cls(FaultKind.STALE, miss)

    @classmethod
    def crash_before(cls) -> Fault:
        """Die before the effect."""
        return cls(FaultKind.CRASH_BEFORE)

    @classmethod
    def crash_after(cls) -> Fault:
        """Die after the effect."""
        return cls(FaultKind.CRASH_AFTER)


FaultPlan = Callable[[Operation, str, int], Fault | None] | Iterable[tuple[Operation, int, Fault]]
"""``plan(operation, key, nth)``, or rows ``(operation, nth, fault)``; ``nth`` counts from 1."""


@dataclass(frozen=True, slots=True)
class _Object:
    data: bytes
    modified_ms: int
    order: int

    def meta(self, key: str) -> ObjectMeta:
        return ObjectMeta(key, len(self.data), self.modified_ms, str(self.order))


class _Contents:
    """What the views of one store share."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.objects: dict[str, _Object] = {}
        self.order = 0
        self.calls: dict[str, int] = {}


def _chooser(plan: FaultPlan) -> Callable[[Operation, str, int], Fault | None]:
    if callable(plan):
        return plan
    rows = {(operation, nth): fault for operation, nth, fault in plan}
    return lambda operation, _key, nth: rows.get((operation, nth))


class MemoryStore:
    """Objects in memory, under ``memory://name``.

    >>> store = MemoryStore(faults=[("create", 1, Fault.after())])
    >>> store.create("a", b"1")
    Unknown(reason='injected: after', refusal=None)
    >>> store.read("a")
    b'1'
    """

    def __init__(
        self,
        name: str = "private",
        *,
        faults: FaultPlan = (),
        clock: Clock | None = None,
    ) -> None:
        self._location = Location(scheme="memory", authority=name)
        self._contents = _Contents()
        self._clock = clock or SystemClock()
        self._choose = _chooser(faults)
        self._prefix = ""

    def __repr__(self) -> str:
        return f"MemoryStore({self.url!r}, objects={len(self._contents.objects)})"

    @property
    def url(self) -> str:
        """The name as a ``memory://`` URL."""
        return self._location.url

    def reopen(self, url: str) -> MemoryStore:
        """A view of the same objects from another root."""
        return self._view(parse_location(url), self._contents)

    def fork(self) -> MemoryStore:
        """An independent copy: objects, call counters and fault plan."""
        source = self._contents
        copied = _Contents()
        with source.lock:
            copied.objects = dict(source.objects)
            copied.order = source.order
            copied.calls = dict(source.calls)
        return self._view(self._location, copied)

    def snapshot(self) -> tuple[tuple[str, bytes], ...]:
        """Every object as a hashable value, ascending by full key; takes no part in faults."""
        with self._contents.lock:
            return tuple(
                (key, self._contents.objects[key].data) for key in sorted(self._contents.objects)
            )

    def set_faults(self, faults: FaultPlan) -> None:
        """Replace the plan; counting starts again at 1."""
        with self._contents.lock:
            self._contents.calls.clear()
            self._choose = _chooser(faults)

    def set_modified(self, key: str, modified_ms: int) -> None:
        """Give an object another time, as a copied or restored file has."""
        full = self._prefix + check_key(key)
        with self._contents.lock:
            found = self._object(key)
            self._contents.objects[full] = _Object(found.data, modified_ms, found.order)

    # The operations

    def read(self, key: str) -> bytes:
        """The whole object."""
        check_key(key)
        with self._contents.lock:
            self._fail_reading("read", key)
            return self._object(key).data

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """At most ``length`` bytes from ``start``."""
        check_key(key)
        with self._contents.lock:
            self._fail_reading("read_range", key)
            return self._object(key).data[start : start + max(length, 0)]

    def head(self, key: str) -> ObjectMeta | None:
        """Size and time of one object, or None."""
        check_key(key)
        with self._contents.lock:
            self._fail_reading("head", key)
            found = self._contents.objects.get(self._prefix + key)
            return None if found is None else found.meta(key)

    def list_from(self, folder: str, start_after: str = "") -> Iterator[ObjectMeta]:
        """The objects below ``folder/`` after ``start_after``, ascending."""
        folder = folder.strip("/")
        below = self._prefix + (f"{check_key(folder)}/" if folder else "")
        cut = len(self._prefix)
        with self._contents.lock:
            fault = self._next_fault("list_from", folder)
            if fault is not None and fault.kind is not FaultKind.STALE:
                raise self._injected(fault, "list", folder)
            found = [
                (key, held)
                for key, held in self._contents.objects.items()
                if key.startswith(below) and key[cut:] > start_after
            ]
        if fault is not None and fault.amount > 0:
            found.sort(key=lambda pair: pair[1].order)
            found = found[: max(len(found) - fault.amount, 0)]
        found.sort(key=lambda pair: pair[0])
        return iter([held.meta(key[cut:]) for key, held in found])

    def create(self, key: str, data: bytes) -> CreateOutcome:
        """Create the object if and only if none is there."""
        check_key(key)
        with self._contents.lock:
            fault = self._next_fault("create", key)
            if fault is None:
                return self._create(key, data)
            if _has_effect(fault):
                self._create(key, _kept(fault, data))
            error = self._injected(fault, "create", key)
            return Unknown(error.why)

    def put(self, key: str, *pieces: bytes | memoryview) -> None:
        """Create or replace the object."""
        check_key(key)
        data = b"".join(pieces)
        with self._contents.lock:
            fault = self._next_fault("put", key)
            if fault is None or _has_effect(fault):
                self._store(key, _kept(fault, data))
            if fault is not None:
                raise self._injected(fault, "write", key)

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects; one that is not there counts as deleted."""
        for key in keys:
            check_key(key)
            with self._contents.lock:
                fault = self._next_fault("delete", key)
                if fault is None or _has_effect(fault):
                    self._contents.objects.pop(self._prefix + key, None)
                if fault is not None:
                    raise self._injected(fault, "delete", key)

    # Within

    def _view(self, location: Location, contents: _Contents) -> MemoryStore:
        view = MemoryStore(location.authority, clock=self._clock)
        view._location = location
        view._contents = contents
        view._choose = self._choose
        view._prefix = f"{location.path}/" if location.path else ""
        return view

    def _object(self, key: str) -> _Object:
        found = self._contents.objects.get(self._prefix + key)
        if found is None:
            raise StorageError(
                Code.STORAGE_NOT_FOUND,
                f"There is no {key!r} in {self.url}.",
                why="the object does not exist",
                fix="Check the path; a cleanup may have deleted the object.",
                fields={"key": key, "store": self.url},
            )
        return found

    def _create(self, key: str, data: bytes) -> CreateOutcome:
        if self._prefix + key in self._contents.objects:
            return Conflict()
        self._store(key, data)
        return Committed()

    def _store(self, key: str, data: bytes) -> None:
        contents = self._contents
        contents.order += 1
        contents.objects[self._prefix + key] = _Object(
            bytes(data), self._clock.now_ms(), contents.order
        )

    def _next_fault(self, operation: Operation, key: str) -> Fault | None:
        nth = self._contents.calls.get(operation, 0) + 1
        self._contents.calls[operation] = nth
        return self._choose(operation, key, nth)

    def _fail_reading(self, operation: Operation, key: str) -> None:
        fault = self._next_fault(operation, key)
        if fault is not None:
            raise self._injected(fault, "read", key)

    def _injected(self, fault: Fault, verb: str, key: str) -> StorageError:
        if fault.kind in (FaultKind.CRASH_BEFORE, FaultKind.CRASH_AFTER):
            raise SimulatedCrash(f"{fault.kind} {verb} {key}")
        return StorageError(
            Code.STORAGE,
            f"Could not {verb} {key!r} in {self.url}.",
            why=f"injected: {fault.kind}",
            fix="This is a rehearsed failure; try again.",
            fields={"key": key, "store": self.url},
        )


def _has_effect(fault: Fault) -> bool:
    return fault.kind in (FaultKind.AFTER, FaultKind.TORN, FaultKind.CRASH_AFTER)


def _kept(fault: Fault | None, data: bytes) -> bytes:
    return data[: fault.amount] if fault is not None and fault.kind is FaultKind.TORN else data
