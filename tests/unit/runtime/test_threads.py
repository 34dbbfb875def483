from __future__ import annotations

import threading

import pytest

from twinlake.runtime import Threads


def test_results_come_in_the_order_of_the_items() -> None:
    assert list(Threads(3).map(lambda n: n * n, range(50))) == [n * n for n in range(50)]
    assert list(Threads(3).map(str, ())) == []


def test_items_are_worked_on_at_once() -> None:
    together = threading.Barrier(4, timeout=10)

    def wait(number: int) -> int:
        together.wait()
        return number

    assert list(Threads(4).map(wait, range(8))) == list(range(8))


def test_no_more_items_are_begun_than_there_are_threads() -> None:
    begun: list[int] = []
    found = Threads(2).map(begun.append, range(10))
    next(found)
    assert len(begun) <= 4
    del found


def test_an_error_reaches_the_caller() -> None:
    def fail(number: int) -> int:
        raise ValueError(number)

    with pytest.raises(ValueError, match="0"):
        list(Threads(2).map(fail, range(3)))
