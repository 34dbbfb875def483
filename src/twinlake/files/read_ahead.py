"""Reading that goes on while what was read before is used, and several parts at once, in order."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from queue import Queue
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

__all__ = ["map_ahead", "read_ahead", "stream_ahead"]

T = TypeVar("T")
R = TypeVar("R")

_AHEAD: Final = 4


def read_ahead(batches: Iterator[T]) -> Generator[T]:
    """The same batches; reading goes on while earlier ones are written."""
    queue: Queue[tuple[Any, BaseException | None]] = Queue(_AHEAD)
    stopped = threading.Event()

    def read() -> None:
        error: BaseException | None = None
        try:
            for batch in batches:
                queue.put((batch, None))
                if stopped.is_set():
                    return
        except BaseException as problem:
            error = problem
        queue.put((None, error))

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        while True:
            batch, error = queue.get()
            if error is not None:
                raise error
            if batch is None:
                return
            yield batch
    finally:
        stopped.set()
        while thread.is_alive():
            with contextlib.suppress(Exception):
                queue.get(timeout=0.01)
        thread.join()


def map_ahead(
    function: Callable[[T], R], items: Iterable[T], *, threads: int | None = None
) -> Iterator[R]:
    """The results in the order of the items; a few more items than threads are under way.

    >>> list(map_ahead(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    workers = threads or os.cpu_count() or 1
    waiting: deque[Any] = deque()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def stream_ahead(
    parts: Iterable[Callable[[], Iterable[T]]],
    *,
    size: Callable[[T], int],
    budget: int,
    threads: int | None = None,
) -> Iterator[T]:
    """What the parts yield, in their order, several of them read at once.

    Not more than about ``budget`` of what ``size`` counts waits to be used, whatever the parts
    hold; one more item for each thread is in the making.

    >>> list(stream_ahead([lambda: "ab", lambda: "c"], size=len, budget=1))
    ['a', 'b', 'c']
    """
    workers = threads or os.cpu_count() or 1
    state = _Streams(budget)
    waiting: deque[_Stream[T]] = deque()
    coming = iter(parts)
    with ThreadPoolExecutor(workers) as pool:
        try:
            while True:
                for part in islice(coming, workers + 1 - len(waiting)):
                    stream = _Stream[T](state, size)
                    waiting.append(stream)
                    pool.submit(stream.fill, part)
                if not waiting:
                    return
                state.head = waiting[0]
                yield from waiting[0].items()
                waiting.popleft()
        finally:
            state.stop()


class _Streams:
    """What all the parts that are read at once share."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.held = 0
        self.head: Any = None
        self.is_stopped = False
        self.changed = threading.Condition()

    def stop(self) -> None:
        """Let every part end."""
        with self.changed:
            self.is_stopped = True
            self.changed.notify_all()


class _Stream(Generic[T]):
    """The items of one part, from the thread that makes them to the one that uses them."""

    def __init__(self, state: _Streams, size: Callable[[T], int]) -> None:
        self._state = state
        self._size = size
        self._items: deque[T] = deque()
        self._is_done = False
        self._error: BaseException | None = None

    def fill(self, part: Callable[[], Iterable[T]]) -> None:
        """Make the items of the part, as far ahead as there is room."""
        state, error = self._state, None
        try:
            for item in () if state.is_stopped else part():
                if not self._put(item):
                    break
        except BaseException as problem:
            error = problem
        with state.changed:
            self._error, self._is_done = error, True
            state.changed.notify_all()

    def _put(self, item: T) -> bool:
        state, size = self._state, self._size(item)
        with state.changed:
            # Whose turn it is may always give one: nobody else can make room.
            state.changed.wait_for(
                lambda: (
                    state.is_stopped
                    or state.held + size <= state.budget
                    or (state.head is self and not self._items)
                )
            )
            if not state.is_stopped:
                self._items.append(item)
                state.held += size
                state.changed.notify_all()
            return not state.is_stopped

    def items(self) -> Iterator[T]:
        """The items, once it is the turn of this part."""
        state = self._state
        with state.changed:
            state.changed.notify_all()
        while True:
            with state.changed:
                state.changed.wait_for(lambda: self._items or self._is_done)
                if not self._items:
                    break
                item = self._items.popleft()
                state.held -= self._size(item)
                state.changed.notify_all()
            yield item
        if self._error is not None:
            raise self._error
