"""Reading that goes on while what was read before is used, and several files at once, in order."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from queue import Queue
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

__all__ = ["map_ahead", "read_ahead"]

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
