"""The port definitions and their in-process implementations."""

from __future__ import annotations

import random
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Clock(Protocol):
    """Where time comes from."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """The wall clock of the machine."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        """Wait for real."""
        time.sleep(seconds)


class Ids(Protocol):
    """Where randomness comes from."""

    def uuid(self) -> uuid.UUID:
        """A fresh random identifier."""
        ...

    def uniform(self) -> float:
        """A number in [0, 1), for jitter."""
        ...


class RandomIds:
    """Identifiers of the operating system, or a reproducible sequence when seeded."""

    def __init__(self, seed: int | None = None) -> None:
        self._random: random.Random = random.SystemRandom() if seed is None else random.Random(seed)

    def uuid(self) -> uuid.UUID:
        """A fresh version-4 UUID."""
        return uuid.UUID(int=self._random.getrandbits(128), version=4)

    def uniform(self) -> float:
        """A number in [0, 1)."""
        return self._random.random()


class Executor(Protocol):
    """Runs a function over items; the function and the items must be picklable."""

    def map(self, fn: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """The results, in the order of the items."""
        ...


class InProcess:
    """Runs everything here, one item after the other."""

    def map(self, fn: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """The results, in the order of the items."""
        return map(fn, items)


@dataclass(frozen=True, slots=True)
class Threads:
    """Runs items in threads: for work that waits for a service, not for a processor."""

    count: int = 16

    def map(self, fn: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """The results, in the order of the items; at most ``count`` items are begun ahead."""
        from concurrent.futures import ThreadPoolExecutor

        remaining = iter(items)
        with ThreadPoolExecutor(self.count) as pool:
            begun = deque(pool.submit(fn, item) for item in islice(remaining, self.count))
            while begun:
                found = begun.popleft().result()
                begun.extend(pool.submit(fn, item) for item in islice(remaining, 1))
                yield found


Progress = Callable[[str, int, int], None]
"""Called with a stage name, the number done and the number in all."""


def silent(stage: str, done: int, total: int) -> None:
    """Progress for nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteRequest:
    """Which files to write again, and under which rules.

    The types of the rooms above are not known here: ``snapshot`` is a ``log.Snapshot``, the files
    are ``actions.AddFile``, ``metadata`` is a ``protocol.Metadata``.
    """

    snapshot: Any
    """The table the files are live in; it says how to read them."""
    bins: Sequence[Sequence[Any]]
    """Live files that become new ones together; those of one bin share their partition values."""
    metadata: Any
    """What the new files are to fit: schema, column mapping, partitioning, properties."""
    row_ids: bool
    """Whether every row has to keep its row id and its row commit version."""
    progress: Progress


class Rewriter(Protocol):
    """Writes data files again; only a data engine has one."""

    def rewrite(self, request: RewriteRequest) -> Sequence[Sequence[Any]]:
        """The new files of each bin as add actions, in the order of the bins.

        They hold the rows that no deletion vector hides and have no deletion vector. Partition
        values are keyed by the physical names of ``request.metadata``. Nothing is committed.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """The ports, as one value to hand down."""

    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=RandomIds)
    executor: Executor = field(default_factory=InProcess)
    rewriter: Rewriter | None = None
    progress: Progress = silent
