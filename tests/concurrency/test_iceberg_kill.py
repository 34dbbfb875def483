"""Conversions killed at any point: the next one repairs, and no reader sees a broken pointer.

Death is told in two ways. In this process nothing reaches the store any more from one write on,
before or after that write, so every single write of a conversion can be tried. Real processes are
killed with SIGKILL wherever they happen to be, while another one reads what the pointer names.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.data_files import append
from tests.support.iceberg.both_sides import V2, iceberg_rows, opened, remove_files, twin
from tests.support.processes.writers import event, spawn
from tests.support.scale import scale
from twinlake import Table
from twinlake.iceberg import sync_table
from twinlake.log import CACHE
from twinlake.storage import LocalStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.synchronize import Event

KILLS = scale(10, 200)
WRITES = ("create", "put", "delete")


def ids(folder: Path) -> list[int]:
    return sorted(row["id"] for row in iceberg_rows(folder))


def check_pointer(folder: Path, seen: set[str] | None = None) -> int:
    """Everything that the pointer reaches can be read, and every file it names is there.

    What is in ``seen`` was read before; files do not change, so they only have to be there.
    """
    table, known = opened(folder), set() if seen is None else seen
    for snapshot in table.metadata.snapshots:
        assert _is_there(snapshot.manifest_list)
        if snapshot.manifest_list in known:
            continue
        for manifest in snapshot.manifests(table.io):
            assert _is_there(manifest.manifest_path)
            if manifest.manifest_path in known:
                continue
            for entry in manifest.fetch_manifest_entry(table.io):
                assert _is_there(entry.data_file.file_path)
            known.add(manifest.manifest_path)
        known.add(snapshot.manifest_list)
    return int(table.metadata.properties["delta-version"])


def _is_there(location: str) -> bool:
    return Path(location.removeprefix("file://")).exists()


def logical(folder: Path) -> list[tuple[Any, ...]]:
    """What readers can tell of each snapshot; of a long history, of the newest ones."""
    table = opened(folder)
    return [
        (
            snapshot.snapshot_id,
            snapshot.sequence_number,
            sorted(
                task.file.file_path
                for task in table.scan(snapshot_id=snapshot.snapshot_id).plan_files()
            ),
        )
        for snapshot in table.metadata.snapshots[-100:]
    ]


class Killed(BaseException):
    """The end of a process; nobody may catch it."""


@dataclass
class Mortal:
    """Lets the store of this process die at its nth write."""

    dies_at: int | None = None
    after: bool = False
    """Whether the write itself still happens."""
    dead: bool = False
    names: list[str] = field(default_factory=list)

    def wrap(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(store: LocalStore, *args: Any) -> Any:
            if self.dead:
                raise Killed
            if name not in WRITES:
                return method(store, *args)
            last = len(self.names) == self.dies_at
            self.names.append(f"{name} {args[0]}")
            if last and not self.after:
                self.die()
            result = method(store, *args)
            if last:
                self.die()
            return result

        return call

    def die(self) -> None:
        self.dead = True
        raise Killed

    @contextlib.contextmanager
    def ruling(self) -> Iterator[None]:
        """Every store of this process lives by that."""
        with pytest.MonkeyPatch.context() as patch:
            for name in (*WRITES, "read", "read_range", "head", "list_from"):
                patch.setattr(LocalStore, name, self.wrap(name, getattr(LocalStore, name)))
            yield


def history(folder: Path, *, converted_at: int | None) -> Table:
    """Appends, a removal and a rename; with a face of the version given, or none."""
    table = twin(folder, "id LONG, name STRING")
    steps: list[Callable[[Table], Table]] = [
        lambda t: append(t, folder, [{"id": 1, "name": "a"}], [{"id": 2, "name": "b"}]),
        lambda t: append(t, folder, [{"id": 3, "name": "c"}]),
        lambda t: remove_files(t, [next(iter(t.snapshot.adds()))]),
        lambda t: t.rename_column("name", "label"),
        lambda t: append(t, folder, [{"id": 4, "label": "d"}]),
    ]
    for step in steps:
        table = step(table)
        if table.version == converted_at:
            table.iceberg.sync()
    return table


@pytest.mark.parametrize("converted_at", [None, 2], ids=["a first conversion", "one that goes on"])
def test_death_at_every_write(tmp_path: Path, converted_at: int | None) -> None:
    origin = tmp_path / "origin" / "t"
    origin.parent.mkdir()
    history(origin, converted_at=converted_at)
    work = tmp_path / "work" / "t"

    def fresh() -> Table:
        # Metadata names files by absolute paths, so every trial is in the same place.
        shutil.rmtree(work.parent, ignore_errors=True)
        shutil.copytree(origin, work)
        CACHE.forget(LocalStore(work).url)
        shutil.rmtree(work / "_iceberg", ignore_errors=True)
        table = Table.open(work, durable=False)
        if converted_at is not None:
            table.at(converted_at).iceberg.sync()
        return table

    counting, table = Mortal(), fresh()
    with counting.ruling():
        sync_table(table.snapshot)
    whole, rows = logical(work), ids(work)
    assert any("version-hint" in name for name in counting.names)
    assert len(counting.names) >= 4
    for number in range(len(counting.names)):
        for after in (False, True):
            table = fresh()
            dying = Mortal(dies_at=number, after=after)
            with pytest.raises(Killed), dying.ruling():
                sync_table(table.snapshot)
            if (work / "_iceberg/metadata/version-hint.text").exists():
                assert check_pointer(work) in (converted_at, table.version)
            table.iceberg.sync()
            assert check_pointer(work) == table.version
            assert (logical(work), ids(work)) == (whole, rows), dying.names[-1]


def commit_and_convert(folder: str, ready: str) -> None:
    """In a process of its own: commit, convert, and again, until somebody ends it."""
    path = Path(folder)
    table = Table.open(path, durable=False)
    Path(ready).touch()
    while True:
        number = table.version
        if number % 5 == 4:
            table = remove_files(table, [next(iter(table.snapshot.adds()))])
        else:
            table = append(table, path, [{"id": number}])
        table.iceberg.sync()


def wait_for_commit(folder: Path) -> None:
    """Until somebody commits the version after the newest one."""
    log, deadline = folder / "_delta_log", time.monotonic() + 120
    newest = max(int(commit.stem) for commit in log.glob("*.json") if commit.stem.isdigit())
    while not (log / f"{newest + 1:020}.json").exists():
        assert time.monotonic() < deadline


def follow_pointer(folder: str, report: str, stop: Event) -> None:
    """In a process of its own: read all that the pointer reaches, again and again."""
    looks, last, seen = 0, -1, set[str]()
    try:
        while not stop.is_set() or not looks:
            version = check_pointer(Path(folder), seen)
            assert version >= last, f"from version {last} back to {version}"
            looks, last = looks + 1, version
        text = f"ok {looks}"
    except BaseException as error:
        text = f"after version {last}: {type(error).__name__}: {error}"
    Path(report).write_text(text)


@pytest.mark.slow
def test_killed_conversions_are_repaired_and_readers_never_notice(tmp_path: Path) -> None:
    folder, report = tmp_path / "t", tmp_path / "report"
    table = append(twin(folder, "id LONG", properties=V2), folder, [{"id": 0}])
    table.iceberg.sync()
    dice, stop, seen = random.Random(KILLS), event(), set[str]()
    kills, mended = 0, 0
    reader = spawn(follow_pointer, str(folder), str(report), stop)
    try:
        # A kill can come between two conversions; more of them make up for it.
        while kills < KILLS or (mended * 2 < KILLS and kills < 4 * KILLS):
            ready = tmp_path / f"ready-{kills}"
            writer = spawn(commit_and_convert, str(folder), str(ready))
            deadline = time.monotonic() + 120
            while not ready.exists():
                assert writer.is_alive()
                assert time.monotonic() < deadline
                time.sleep(0.002)
            time.sleep(dice.uniform(0, 0.2))
            if kills % 3:
                # Two of three come right after a commit, however slow the machine is.
                wait_for_commit(folder)
                time.sleep(dice.uniform(0, 0.003))
            assert writer.pid is not None
            os.kill(writer.pid, signal.SIGKILL)
            writer.join(60)
            assert writer.exitcode == -signal.SIGKILL
            kills += 1
            table = Table.open(folder, durable=False)
            mended += table.iceberg.lag.versions > 0
            table.iceberg.sync()
            assert check_pointer(folder, seen) == table.version
    finally:
        stop.set()
        reader.join(120)
        if reader.is_alive():
            reader.kill()
            reader.join()
    assert report.read_text().startswith("ok "), report.read_text()
    assert check_pointer(folder) == table.version
    before, rows = logical(folder), ids(folder)
    assert rows == sorted(row["id"] for row in _delta_rows(table))
    # What was mended again and again is what a conversion from scratch makes.
    shutil.rmtree(folder / "_iceberg")
    table.iceberg.sync()
    assert (logical(folder), ids(folder)) == (before, rows)
    # Half of them, at least, died with a version that was not converted yet.
    assert mended * 2 >= KILLS, f"{mended} of {kills} left something to repair"


def _delta_rows(table: Table) -> list[dict[str, Any]]:
    from tests.support.local_engine import rows_of

    return rows_of(table.snapshot)
