"""Real processes that commit to one table, and readers that watch it meanwhile.

Writers acknowledge a commit only after it returned, in one short line to an append-only file, which
the kernel keeps whole: a writer killed at any moment leaves exactly what it had acknowledged.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from multiprocessing.process import BaseProcess
    from multiprocessing.synchronize import Barrier, Event

__all__ = ["Ack", "Place", "check_log", "readers", "spawn", "write_in_turn", "write_until_killed"]

# Fork would copy the parent's threads and connections; the S3 client does not survive that.
_SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the table is, as a process can be told."""

    url: str
    options: Mapping[str, Any] = field(default_factory=dict)
    durable: bool = True

    def open(self, version: int | None = None) -> Any:
        from twinlake.table import Table

        return Table.open(
            self.url, version, durable=self.durable, options=dict(self.options) or None
        )

    def create(self) -> Any:
        from twinlake.table import Table

        return Table.create(
            self.url, "id BIGINT", durable=self.durable, options=dict(self.options) or None
        )


@dataclass(frozen=True, slots=True, order=True)
class Ack:
    """A commit that a writer was told is done."""

    version: int
    path: str


def spawn(target: Any, *args: Any) -> BaseProcess:
    process = _SPAWN.Process(target=target, args=args, daemon=True)
    process.start()
    return process


def barrier(parties: int) -> Barrier:
    return _SPAWN.Barrier(parties)


def event() -> Event:
    return _SPAWN.Event()


def _add(path: str) -> Any:
    from twinlake.actions import AddFile

    return AddFile(
        path=path,
        partition_values={},
        size=1,
        modification_time=1,
        data_change=True,
        stats='{"numRecords":1}',
        tags={"id": path},
    )


def _acknowledge(descriptor: int, version: int, path: str) -> None:
    os.write(descriptor, f"{version} {path}\n".encode())


def acknowledged(folder: Path) -> list[Ack]:
    found = []
    for file in sorted(folder.glob("*.ack")):
        for text in file.read_text().splitlines():
            version, _, path = text.partition(" ")
            found.append(Ack(int(version), path))
    return found


def write_in_turn(place: Place, name: str, commits: int, folder: str, start: Barrier) -> None:
    """Commit one file at a time, all writers released together."""
    table = place.open()
    descriptor = os.open(f"{folder}/{name}.ack", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    start.wait(120)
    for number in range(commits):
        path = f"{name}-{number}.parquet"
        table = table.commit("WRITE", [_add(path)])
        _acknowledge(descriptor, table.version, path)
    os.close(descriptor)


def write_until_killed(place: Place, name: str, folder: str) -> None:
    """Commit one file after the other until somebody ends the process."""
    descriptor = os.open(f"{folder}/{name}.ack", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    table, number = place.open(), 0
    while True:
        path = f"{name}-{number}.parquet"
        table = table.commit("WRITE", [_add(path)])
        _acknowledge(descriptor, table.version, path)
        number += 1


def _walk(place: Place, stop: Event) -> Iterator[Any]:
    """Every version by its number until there are no more; the early ones whole, then a few."""
    from twinlake.errors import Code, TwinlakeError

    store, version = place.open().snapshot.store, 1
    while True:
        last_round = stop.is_set()
        try:
            _check_commit(store, version)
            # From scratch each costs what the table holds; thousands of them would take hours.
            if version <= 500 or version % 50 == 0:
                yield place.open(version)
            version += 1
        except TwinlakeError as error:
            if error.code not in (Code.VERSION_NOT_FOUND, Code.STORAGE_NOT_FOUND):
                raise
            if last_round:
                yield place.open(version - 1)
                return
            time.sleep(0.005)


def _check_commit(store: Any, version: int) -> None:
    from twinlake.actions import AddFile
    from twinlake.log import read_checksum, read_commit

    adds = [action for action in read_commit(store, version) if isinstance(action, AddFile)]
    assert len(adds) == 1, f"version {version} adds {len(adds)} files"
    checksum = read_checksum(store, version)
    assert checksum is None or checksum.num_files == version


def _follow(place: Place, stop: Event) -> Iterator[Any]:
    """The latest version, by turns brought up to date and read anew."""
    from twinlake.log import CACHE

    table = place.open()
    while not stop.is_set():
        yield table.refresh()
        CACHE.forget(table.location)
        table = place.open()
        yield table


_READERS = {"walk": _walk, "follow": _follow}


def _watch(place: Place, name: str, folder: str, stop: Event) -> None:
    """Look at version after version; write down the first thing that does not hold."""
    looks, seen, last = 0, set[str](), 0
    try:
        for table in _READERS[name](place, stop):
            assert table.version >= last, f"from version {last} back to {table.version}"
            last = table.version
            now = _check_state(table)
            assert seen <= now, f"version {last} lost {sorted(seen - now)[:3]}"
            seen = now
            looks += 1
        report = f"ok {looks} {last}"
    except BaseException as error:
        report = f"after version {last}: {type(error).__name__}: {error}"
    Path(folder, f"{name}.reader").write_text(report)


def _check_state(table: Any) -> set[str]:
    """One version is whole: every commit adds one file, and all ways of counting agree."""
    from twinlake.log import check_checksum, read_checksum

    version, snapshot = table.version, table.snapshot
    paths = table.files()["path"].to_pylist()
    assert len(paths) == len(set(paths)) == version, f"{len(paths)} files at version {version}"
    assert snapshot.num_files == snapshot.size_in_bytes == version
    checksum = read_checksum(snapshot.store, version)
    if checksum is not None:
        check_checksum(snapshot, checksum)
    return set(paths)


@contextlib.contextmanager
def readers(place: Place, folder: Path) -> Iterator[None]:
    """Two readers while the body runs, and their verdict at the end."""
    stop = event()
    running = [spawn(_watch, place, name, str(folder), stop) for name in _READERS]
    try:
        yield
    finally:
        stop.set()
        for process in running:
            process.join(120)
            if process.is_alive():
                process.kill()
                process.join()
    latest = place.open().version
    for name in _READERS:
        report = folder / f"{name}.reader"
        text = report.read_text() if report.exists() else "died without a word"
        assert text.startswith("ok "), f"reader {name}: {text}"
        assert int(text.split()[1]) > 0, f"reader {name} never saw anything"
    assert (folder / "walk.reader").read_text().split()[2] == str(latest)


def check_log(place: Place, acks: list[Ack]) -> int:
    """Every acknowledged commit is in the log once and where it was said; returns the version."""
    from twinlake.actions import AddFile
    from twinlake.log import read_commit, write_checkpoint

    assert not [n for n, count in Counter(ack.version for ack in acks).items() if count > 1]
    table = place.open()
    store, version = table.snapshot.store, int(table.version)
    found = []
    for number in range(1, version + 1):
        adds = [a for a in read_commit(store, number) if isinstance(a, AddFile)]
        assert len(adds) == 1, f"version {number} has {len(adds)} files"
        found.append(Ack(number, adds[0].path))
    doubled = [p for p, count in Counter(f.path for f in found).items() if count > 1]
    assert not doubled, f"committed twice: {doubled[:3]}"
    lost = set(acks) - set(found)
    assert not lost, f"acknowledged and lost: {sorted(lost)[:3]}"
    expected = {f.path for f in found}
    assert _check_state(table) == expected
    # The state read from a checkpoint is the state read from the commits.
    write_checkpoint(table.snapshot)
    from twinlake.log import CACHE

    CACHE.forget(table.location)
    again = place.open()
    assert again.snapshot.checkpoint is not None
    assert again.snapshot.checkpoint.version == version
    assert _check_state(again) == expected
    return version
