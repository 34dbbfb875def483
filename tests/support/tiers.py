"""The tiers of the suite: which test belongs to ``make quick``, and what such a test may not do.

A quick test checks one rule of the code in this process: it lies in ``tests/unit`` or
``tests/property`` and is none of :data:`DEAR`. Some of these marks follow from the folder or from a
fixture; the others stand at the test. A quick test that starts a process fails, in every tier, so
that a forgotten mark is seen at once.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DEAR", "no_processes", "pytest_collection_modifyitems", "pytest_runtest_protocol"]

#: A test with one of these marks is not quick.
DEAR: Final = frozenset({"process", "search", "slow", "s3", "azure", "postgres", "spark"})

_TESTS: Final = Path(__file__).resolve().parents[1]
_QUICK_PATHS: Final = ("unit/", "property/")
#: By the beginning of a test's path.
_MARK_OF_PATH: Final = {
    "concurrency/": "process",
    "unit/verify/": "search",
    "unit/cli/commands/test_verify": "search",
    "unit/cli/verify/": "search",
}
_MARK_OF_FIXTURE: Final = {
    "s3_server": "s3",
    "azure_server": "azure",
    "postgres_server": "postgres",
    "delta_spark": "spark",
}
_STARTERS: Final = (
    (subprocess.Popen, "__init__"),
    (BaseProcess, "start"),
    (os, "fork"),
    (os, "posix_spawn"),
    (os, "system"),
)


@pytest.hookimpl(tryfirst=True)  # before marks select and deselect
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test the marks of its folder and fixtures, and ``quick`` if it is; sort them."""
    for item in items:
        inside = item.path.is_relative_to(_TESTS)
        path = item.path.relative_to(_TESTS).as_posix() if inside else ""
        for prefix, mark in _MARK_OF_PATH.items():
            if path.startswith(prefix):
                item.add_marker(mark)
        for fixture in _MARK_OF_FIXTURE.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(_MARK_OF_FIXTURE[fixture])
        marks = {mark.name for mark in item.iter_markers()}
        if path.startswith(_QUICK_PATHS) and not marks & DEAR:
            item.add_marker("quick")
    # Files that take long come first: at the end no worker waits for another one's last file.
    long = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in long)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Run a quick test, with its fixtures, where no process can be started."""
    with no_processes() if item.get_closest_marker("quick") else contextlib.nullcontext():
        return (yield)


@contextlib.contextmanager
def no_processes() -> Iterator[None]:
    """Fail the test at whatever would start a process."""

    def refuse(*_: object, **__: object) -> NoReturn:
        pytest.fail("a quick test starts a process: mark it @pytest.mark.process")

    with pytest.MonkeyPatch.context() as patch:
        for owner, name in _STARTERS:
            patch.setattr(owner, name, refuse)
        yield
