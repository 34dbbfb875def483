"""Upgrades killed at every write: the table is valid Delta at every point, the next run finishes.

Death is told in two ways. In this process nothing reaches the store any more from one write on,
before or after that write, so every single write can be tried. Real processes are killed with
SIGKILL at every commit.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
from deltalake import DeltaTable

from tests.support.data_files import append
from tests.support.local_engine import LocalEngine, rows_of
from tests.support.processes.writers import spawn
from tests.support.scale import is_full_scale
from twinlake import Table
from twinlake.compat import Plan
from twinlake.log import CACHE, check_checksum, load_snapshot, read_checksum
from twinlake.log.deletion_vectors import dv_key, write_dv_file
from twinlake.storage import LocalStore

STRICT = "icebergWriterCompatV1"
PROPERTIES = {
    "delta.enableDeletionVectors": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.dropFeatureTruncateHistory.retentionDuration": "interval 0 hours",
    "delta.checkpointInterval": "3",
}
WRITES = ("create", "put", "delete", "sync")


def make(folder: Path) -> list[dict[str, Any]]:
    """A table that breaks a handful of rules; returns its rows."""
    schema = "id INT, b TINYINT, p STRING, a ARRAY<SMALLINT>"
    table = Table.create(folder, schema, partition_by=["p"], properties=PROPERTIES, durable=False)
    first = [{"id": n, "b": n, "p": "x", "a": [n]} for n in range(4)]
    table = append(table, folder, first, [{"id": 9, "b": None, "p": "y", "a": None}])
    add = next(add for add in table.snapshot.adds() if "x" in add.partition_values.values())
    data, (vector,) = write_dv_file([(0, 2)], UUID(int=7))
    (folder / dv_key(UUID(int=7))).write_bytes(data)
    marked = msgspec.structs.replace(add, deletion_vector=vector)
    table = table.commit("DELETE", [add.remove(deletion_timestamp=5), marked])
    return rows_of(table.snapshot)


class Killed(BaseException):
    """The end of a process; nobody may catch it."""


@dataclass
class Mortal:
    """Lets the store of this process die at its nth write."""

    dies_at: int | None = None
    after: bool = False
    """Whether the write itself still happens."""
    commits_only: bool = False
    count: int = 0
    dead: bool = False
    names: list[str] = field(default_factory=list)

    def wrap(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(store: LocalStore, *args: Any) -> Any:
            if self.dead:
                raise Killed
            if name not in WRITES or (self.commits_only and not self._is_commit(name, args)):
                return method(store, *args)
            self.names.append(f"{name} {args[0]}")
            last = self.count == self.dies_at
            self.count += 1
            if last and not self.after:
                self.die()
            result = method(store, *args)
            if last:
                self.die()
            return result

        return call

    @staticmethod
    def _is_commit(name: str, args: tuple[Any, ...]) -> bool:
        return name == "create" and str(args[0]).endswith(".json")

    def die(self) -> None:
        self.dead = True
        raise Killed


@contextmanager
def mortal(mortality: Mortal) -> Iterator[None]:
    """Every store of this process lives by that."""
    names = (*WRITES, "read", "read_range", "head")
    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setattr(LocalStore, name, mortality.wrap(name, getattr(LocalStore, name)))
        yield


def upgrade(folder: Path) -> Plan:
    return Table.open(folder, durable=False).upgrade(STRICT, spark=LocalEngine())


def assert_valid(folder: Path, rows: list[dict[str, Any]]) -> None:
    """The table as somebody sees it who knows nothing of what happened."""
    store = LocalStore(folder)
    CACHE.forget(store.url)
    snapshot = load_snapshot(store)
    assert rows_of(snapshot) == rows
    checksum = read_checksum(store, snapshot.version)
    if checksum is not None:
        check_checksum(snapshot, checksum)
    theirs = DeltaTable(str(folder))
    assert theirs.version() == snapshot.version
    assert [field.name for field in theirs.schema().fields] == ["id", "b", "p", "a"]


def assert_finishes(folder: Path, rows: list[dict[str, Any]]) -> None:
    plan = upgrade(folder)
    assert plan.done, str(plan)
    table = Table.open(folder)
    report = table.check(STRICT, files=True)
    assert report.ok, str(report)
    assert rows_of(table.snapshot) == rows
    assert_valid(folder, rows)


def test_death_at_every_write(tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    rows = make(origin)
    counting = Mortal(commits_only=not is_full_scale())
    shutil.copytree(origin, tmp_path / "whole")
    with mortal(counting):
        assert upgrade(tmp_path / "whole").done
    # Switching, converting, the barrier, the drop, the flag.
    assert sum(name.endswith(".json") and "create" in name for name in counting.names) == 5
    for number in range(counting.count):
        for after in (False, True):
            folder = tmp_path / f"{number}-{after}"
            shutil.copytree(origin, folder)
            dying = Mortal(dies_at=number, after=after, commits_only=counting.commits_only)
            with pytest.raises(Killed), mortal(dying):
                upgrade(folder)
            assert_valid(folder, rows)
            assert_finishes(folder, rows)
            shutil.rmtree(folder)


def die_after_commits(folder: str, commits: int) -> None:
    """In a process of its own: upgrade, and be killed right after so many commits."""
    original, made = LocalStore.create, 0

    def create(store: LocalStore, key: str, data: bytes) -> Any:
        nonlocal made
        outcome = original(store, key, data)
        made += key.endswith(".json")
        if made == commits:
            os.kill(os.getpid(), signal.SIGKILL)
        return outcome

    LocalStore.create = create  # type: ignore[method-assign, assignment]
    upgrade(Path(folder))


def test_killed_processes_are_followed_by_ones_that_finish(tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    rows = make(origin)
    for commits in range(1, 6) if is_full_scale() else (2, 4):
        folder = tmp_path / str(commits)
        shutil.copytree(origin, folder)
        process = spawn(die_after_commits, str(folder), commits)
        process.join(120)
        assert process.exitcode == -signal.SIGKILL
        assert_valid(folder, rows)
        assert_finishes(folder, rows)


def test_death_while_the_files_are_listed_again(tmp_path: Path) -> None:
    """The same in place, where one commit takes every file to its new names."""
    origin = tmp_path / "origin"
    properties = {"delta.columnMapping.mode": "name", "delta.enableChangeDataFeed": "true"}
    table = Table.create(origin, "id INT, b TINYINT", properties=properties, durable=False)
    append(table, origin, [{"id": 1, "b": 2}], [{"id": 3, "b": None}])
    for number in range(3):
        for after in (False, True):
            folder = tmp_path / f"{number}-{after}"
            shutil.copytree(origin, folder)
            with pytest.raises(Killed), mortal(Mortal(number, after, commits_only=True)):
                Table.open(folder, durable=False).upgrade(STRICT, in_place=True)
            CACHE.forget(LocalStore(folder).url)
            assert DeltaTable(str(folder)).version() == Table.open(folder).version
            assert Table.open(folder).upgrade(STRICT, in_place=True).done
            assert Table.open(folder).check(STRICT, files=True).ok
