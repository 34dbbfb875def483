"""What `make quick` leaves out, and that nothing dear gets into it by a forgotten mark."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.support.tiers import DEAR


def _run() -> None:
    subprocess.run([sys.executable, "-V"], check=True)


def _spawn() -> None:
    multiprocessing.get_context("spawn").Process(target=print).start()


def _fork() -> None:
    os.fork()


@pytest.mark.parametrize("start", [_run, _spawn, _fork])
def test_a_quick_test_that_starts_a_process_fails(start: Callable[[], object]) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"mark it @pytest\.mark\.process"):
        start()


@pytest.mark.process
def test_a_test_that_is_marked_may_start_one(request: pytest.FixtureRequest) -> None:
    _run()
    assert request.node.get_closest_marker("quick") is None


def test_every_mark_that_is_not_quick_is_declared(pytestconfig: pytest.Config) -> None:
    declared = {line.partition(":")[0] for line in pytestconfig.getini("markers")}
    assert declared >= DEAR | {"quick"}
