"""Parts that are read at once: in their order, with bounded memory, and never stuck."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinlake.files import stream_ahead

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


def streamed(
    parts: Iterable[Callable[[], Iterable[int]]], budget: int, threads: int = 3
) -> Iterator[int]:
    return stream_ahead(parts, size=abs, budget=budget, threads=threads)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=8),
    st.integers(0, 20),
    st.integers(1, 4),
)
def test_everything_comes_in_order(parts: list[list[int]], budget: int, threads: int) -> None:
    found = streamed([part.__iter__ for part in parts], budget, threads)
    assert list(found) == [item for part in parts for item in part]


def test_no_more_than_the_budget_waits() -> None:
    made, used, most = 0, 0, 0
    lock = threading.Lock()

    def part() -> Iterator[int]:
        nonlocal made
        for _ in range(20):
            with lock:
                made += 1
            yield 1

    for item in streamed([part] * 6, budget=5, threads=2):
        time.sleep(0.001)
        with lock:
            most = max(most, made - used)
            used += item
    assert used == 120
    # What waits, one of the part whose turn it is, one in each thread, and the one in use.
    assert most <= 5 + 1 + 2 + 1


def test_later_parts_are_read_meanwhile() -> None:
    started = [threading.Event() for _ in range(2)]

    def part(number: int) -> Iterator[int]:
        started[number].set()
        yield number

    found = streamed([partial(part, 0), partial(part, 1)], budget=10)
    assert next(found) == 0
    assert started[1].wait(10)
    assert list(found) == [1]


def test_an_error_comes_after_what_was_read_before_it() -> None:
    def broken() -> Iterator[int]:
        yield 2
        raise ValueError("broken")

    found = streamed([[1].__iter__, broken, [3].__iter__], budget=10)
    assert [next(found), next(found)] == [1, 2]
    with pytest.raises(ValueError, match="broken"):
        next(found)


def test_who_stops_early_leaves_no_thread() -> None:
    def endless() -> Iterator[int]:
        while True:
            yield 1

    before = threading.active_count()
    found = streamed([endless] * 5, budget=3)
    assert next(found) == 1
    found.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before


def test_parts_are_made_when_their_turn_is_near() -> None:
    asked: list[int] = []

    def parts() -> Iterator[Callable[[], Iterable[int]]]:
        for number in range(100):
            asked.append(number)
            yield [number].__iter__

    found = streamed(parts(), budget=10, threads=2)
    assert next(found) == 0
    assert len(asked) <= 4
    found.close()  # type: ignore[attr-defined]
