"""The port definitions and their in-process implementations."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
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


class Rewriter(Protocol):
    """Rewrites data files under a schema and rules; only a data engine has one."""

    def rewrite(self, *, table: Any, files: Any, schema: Any, rules: Any) -> Any:
        """The new files, as add actions."""
        ...


Progress = Callable[[str, int, int], None]
"""Called with a stage name, the number done and the number in all."""


def silent(stage: str, done: int, total: int) -> None:
    """Progress for nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """The ports, as one value to hand down."""

    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=RandomIds)
    executor: Executor = field(default_factory=InProcess)
    rewriter: Rewriter | None = None
    progress: Progress = silent
