"""VACUUM on a real folder: what goes, what stays, what the log says, and what interrupts it."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar
from uuid import UUID

import msgspec
import pytest

from tests.support.local_engine import LocalEngine
from tests.unit.table.making import create, data_file, log_lines, write_files
from twinlake import Table
from twinlake.actions import AddCDCFile
from twinlake.errors import Code, StorageError, UnsupportedFeature, UserError
from twinlake.log.deletion_vectors import dv_key, write_dv_file
from twinlake.runtime import InProcess, Runtime, SystemClock
from twinlake.storage import open_store

T = TypeVar("T")
R = TypeVar("R")
HOUR = 3_600_000
WEEK = 168 * HOUR


@dataclass
class Later:
    """The wall clock, put forward."""

    ahead_ms: int = 0

    def now_ms(self) -> int:
        return SystemClock().now_ms() + self.ahead_ms

    def sleep(self, seconds: float) -> None:
        del seconds


def tree(folder: Path) -> set[str]:
    """All files and folders but for the log."""
    found = (
        p.relative_to(folder).as_posix() + ("/" if p.is_dir() else "") for p in folder.rglob("*")
    )
    return {name for name in found if not name.startswith("_delta_log/")}


def age(folder: Path, hours: float, *names: str) -> None:
    for name in names:
        at = SystemClock().now_ms() / 1000 - hours * 3600
        os.utime(folder / name, (at, at))


def remove(table: Table, *names: str, hours_ago: float = 0) -> Table:
    at = SystemClock().now_ms() - int(hours_ago * HOUR)
    gone = [a.remove(deletion_timestamp=at) for a in table.snapshot.adds() if a.path in names]
    assert len(gone) == len(names)
    return table.commit("DELETE", gone)


def messy(folder: Path) -> Table:
    """Live, removed, orphaned, hidden and young files, and folders of every kind."""
    table = create(folder, "id INT, d STRING", partition_by=["d"])
    adds = [data_file(f"d={n}/{n}.parquet", partition={"d": str(n)}) for n in range(3)]
    table = remove(table.commit("WRITE", adds), "d=1/1.parquet", hours_ago=200)
    table = remove(table, "d=2/2.parquet", hours_ago=1)
    names = [
        "d=0/0.parquet", "d=1/1.parquet", "d=1/.1.parquet.crc", "d=2/2.parquet",
        "orphan.parquet", "d=0/orphan#1", "young.parquet", "deep/er/x",
        "_change_data/cdc-1", "_delta_index/i", "_hidden/x", ".dot", "_under", "d=0/.secret",
        "_iceberg/metadata/v1.json", "metadata/v1.json",
        "inner/_delta_log/0.json", "inner/part-0", "young/y",
    ]  # fmt: skip
    write_files(folder, *names)
    age(folder, 200, *names)
    age(folder, 1, "young.parquet", "young/y")
    (folder / "empty/nest").mkdir(parents=True)
    return table


SWEPT = {
    "d=1/1.parquet", "orphan.parquet", "d=0/orphan#1", "deep/er/x", "_change_data/cdc-1",
    "_delta_index/i",
}  # fmt: skip


def test_a_dry_run_tells_and_leaves_everything(tmp_path: Path) -> None:
    table = messy(tmp_path)
    before = tree(tmp_path)
    found = table.vacuum(dry_run=True)
    assert set(found.files) == SWEPT
    assert found.directories == ("empty/nest", "empty", "young")
    assert (found.dry_run, found.num_deleted, found.version) == (True, 0, None)
    assert tree(tmp_path) == before
    assert table.refresh().version == table.version


def test_a_full_vacuum_deletes_what_may_go_and_says_so(tmp_path: Path) -> None:
    table = messy(tmp_path)
    before = tree(tmp_path)
    found = table.vacuum()
    gone = SWEPT | {"empty/", "empty/nest/", "d=1/.1.parquet.crc"}
    assert before - tree(tmp_path) == gone
    assert found.num_deleted == len(SWEPT) + 2
    assert found.version == table.version + 2
    start, end = (log_lines(tmp_path, table.version + n)[0]["commitInfo"] for n in (1, 2))
    assert (start["operation"], start["operationParameters"]) == (
        "VACUUM START",
        {"retentionCheckEnabled": True, "defaultRetentionMillis": WEEK},
    )
    assert start["operationMetrics"] == {
        "numFilesToDelete": str(len(SWEPT) + 3),
        "sizeOfDataToDelete": str(4 * len(SWEPT)),
    }
    assert (end["operation"], end["operationParameters"]) == ("VACUUM END", {"status": "COMPLETED"})
    assert end["operationMetrics"] == {
        "numDeletedFiles": str(found.num_deleted),
        "numVacuumedDirectories": str(found.num_directories),
    }
    assert {start["isolationLevel"], end["isolationLevel"]} == {"SnapshotIsolation"}
    assert start["isBlindAppend"] is end["isBlindAppend"] is True
    # What it emptied goes the next time, as with Delta.
    again = table.vacuum()
    assert again.files == ()
    assert {"d=1", "deep/er", "deep", "_delta_index"} <= set(again.directories)
    assert not (tmp_path / "deep").exists()


def test_no_retention_takes_all_but_live_files(tmp_path: Path) -> None:
    table = messy(tmp_path)
    found = table.vacuum(0, enforce_retention=False)
    assert {"d=2/2.parquet", "young.parquet", "young/y"} <= set(found.files)
    assert (tmp_path / "d=0/0.parquet").exists()
    assert (tmp_path / "inner/part-0").exists()
    parameters = table.refresh().history()[1].operation_parameters
    assert parameters["specifiedRetentionMillis"] == 0
    assert parameters["retentionCheckEnabled"] is False


@pytest.mark.parametrize(
    ("hours", "delta_class"),
    [
        (1, "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"),
        (167.99, "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"),
        (-1, "DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE"),
    ],
)
def test_a_retention_that_is_too_short_is_refused(
    tmp_path: Path, hours: float, delta_class: str
) -> None:
    table = messy(tmp_path)
    with pytest.raises(UserError) as refused:
        table.vacuum(hours, dry_run=True)
    assert refused.value.delta_class == delta_class
    assert refused.value.code is Code.INVALID_ARGUMENT


def test_the_tables_own_retention_counts(tmp_path: Path) -> None:
    table = messy(tmp_path).set_properties(
        {"delta.deletedFileRetentionDuration": "interval 30 minutes"}
    )
    assert "d=2/2.parquet" in table.vacuum(dry_run=True).files
    assert "d=2/2.parquet" not in table.vacuum(2, dry_run=True).files


def test_a_longer_retention_reads_the_removals_that_checkpoints_forgot(tmp_path: Path) -> None:
    table = create(tmp_path).commit("WRITE", [data_file("a"), data_file("b")])
    write_files(tmp_path, "a", "b")
    age(tmp_path, 400, "a", "b")
    table = remove(table, "a", hours_ago=180)
    table.checkpoint()
    table = Table.open(tmp_path, durable=False)
    assert table.vacuum(dry_run=True).files == ("a",)
    assert table.vacuum(190, dry_run=True).files == ()


def test_live_vectors_stay_and_old_ones_go(tmp_path: Path) -> None:
    table = create(tmp_path, properties={"delta.enableDeletionVectors": "true"})
    ids = [UUID(int=1), UUID(int=2)]
    written = [write_dv_file([[n]], uuid) for n, uuid in enumerate(ids)]
    for uuid, (data, _) in zip(ids, written, strict=True):
        (tmp_path / dv_key(uuid)).write_bytes(data)
    old, new = (data_file("a", vector=vectors[0]) for _, vectors in written)
    table = table.commit("WRITE", [old])
    table = table.commit("DELETE", [old.remove(deletion_timestamp=1), new])
    write_files(tmp_path, "a")
    age(tmp_path, 200, "a", *(dv_key(uuid) for uuid in ids))
    assert table.vacuum().files == (dv_key(ids[0]),)
    assert (tmp_path / dv_key(ids[1])).exists()


def test_files_committed_while_the_folder_is_listed_stay(tmp_path: Path) -> None:
    table = create(tmp_path).commit("WRITE", [data_file("a")])
    write_files(tmp_path, "a", "sub/b")

    class Slow(InProcess):
        def map(self, fn: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
            found = list(super().map(fn, items))
            if not Table.open(tmp_path).files("true")["path"].to_pylist().count("sub/b"):
                Table.open(tmp_path, durable=False).commit("WRITE", [data_file("sub/b")])
            return iter(found)

    slow = Table(table.snapshot, runtime=Runtime(executor=Slow(), clock=Later(HOUR)))
    assert slow.vacuum(0, enforce_retention=False).files == ()


class Elsewhere:
    """Sends functions and items through pickle, as an engine with worker processes does."""

    def map(self, fn: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        for item in items:
            sent: tuple[Callable[[T], R], T] = pickle.loads(pickle.dumps((fn, item)))
            yield pickle.loads(pickle.dumps(sent[0](sent[1])))


def test_the_work_can_be_done_by_other_processes(tmp_path: Path) -> None:
    table = messy(tmp_path)
    engine = LocalEngine(executor=Elsewhere())
    longer = table.vacuum(300, dry_run=True, spark=engine)
    assert longer.files == ()
    assert table.vacuum(mode="lite", dry_run=True, spark=engine).files == ()
    found = table.vacuum(spark=engine)
    assert set(found.files) == SWEPT
    assert not SWEPT & tree(tmp_path)


# Lite


def changes(name: str) -> AddCDCFile:
    return AddCDCFile(path=name, partition_values={}, size=9, data_change=False)


def later(table: Table, hours: float) -> Table:
    return Table(table.snapshot, runtime=Runtime(clock=Later(int(hours * HOUR)))).refresh()


def lite(folder: Path) -> Table:
    """Version 1 writes, 2 removes a, 3 removes b with a change file."""
    table = create(folder).commit("WRITE", [data_file(n) for n in "abc"])
    write_files(folder, "a", "b", "c", "orphan", "_change_data/1")
    table = remove(table, "a")
    (b,) = (add for add in table.snapshot.adds() if add.path == "b")
    now = SystemClock().now_ms()
    return table.commit("UPDATE", [b.remove(deletion_timestamp=now), changes("_change_data/1")])


def test_lite_takes_what_the_log_names_and_remembers_how_far_it_got(tmp_path: Path) -> None:
    table = lite(tmp_path)
    assert table.vacuum(mode="lite").files == ()
    found = later(table, 169).vacuum(mode="lite")
    assert found.files == ("_change_data/1", "a", "b")
    assert (found.size_in_bytes, found.num_deleted, found.num_directories) == (209, 3, 1)
    assert (tmp_path / "orphan").exists()
    hint = msgspec.json.decode((tmp_path / "_delta_log/_last_vacuum_info").read_bytes())
    assert hint == {"latestCommitVersionOutsideOfRetentionWindow": 5}
    assert later(table, 170).vacuum(mode="lite").files == ()
    table.vacuum(mode="lite")
    hint = msgspec.json.decode((tmp_path / "_delta_log/_last_vacuum_info").read_bytes())
    assert hint["latestCommitVersionOutsideOfRetentionWindow"] >= 5


def test_lite_goes_on_after_a_full_one(tmp_path: Path) -> None:
    table = lite(tmp_path)
    later(table, 169).vacuum()
    table = remove(table.refresh(), "c")
    assert later(table, 400).vacuum(mode="lite").files == ("c",)


def test_lite_is_refused_when_history_is_gone(tmp_path: Path) -> None:
    table = lite(tmp_path)
    table.checkpoint()
    (tmp_path / f"_delta_log/{0:020d}.json").unlink()
    table = later(Table.open(tmp_path, durable=False), 169)
    with pytest.raises(UserError) as refused:
        table.vacuum(mode="lite")
    assert refused.value.delta_class == "DELTA_CANNOT_VACUUM_LITE"
    assert refused.value.fields == {"earliest_version": 1, "last_vacuumed_version": None}
    table.vacuum()
    assert table.vacuum(mode="lite").files == ()


# What goes wrong


@dataclass
class Breaks(InProcess):
    """Deletes one batch and then fails."""

    calls: list[str] = field(default_factory=list)

    def map(self, fn: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        if type(fn).__name__ != "DeleteFiles":
            yield from super().map(fn, items)
            return
        yield fn(next(iter(items)))
        raise StorageError(Code.STORAGE, "the store went away")


def test_a_vacuum_that_fails_says_so_and_can_be_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twinlake.table.operations.vacuum._BATCH", 2)
    table = messy(tmp_path)
    broken = Table(table.snapshot, runtime=Runtime(executor=Breaks()))
    with pytest.raises(StorageError):
        broken.vacuum()
    assert table.refresh().history(1)[0].operation_parameters == {"status": "FAILED"}
    assert not (tmp_path / "_delta_log/_last_vacuum_info").exists()
    left = table.vacuum()
    assert len(left.files) == len(SWEPT) - 2
    assert not SWEPT & tree(tmp_path)


def test_the_write_check_comes_first(tmp_path: Path) -> None:
    table = messy(tmp_path)
    known = table.protocol.to_dict()
    line = {
        "protocol": {
            "minReaderVersion": known["minReaderVersion"],
            "minWriterVersion": 7,
            "writerFeatures": ["somethingNew"],
        }
    }
    target = tmp_path / "_delta_log" / f"{table.version + 1:020d}.json"
    target.write_bytes(msgspec.json.encode(line))
    before = tree(tmp_path)
    with pytest.raises(UnsupportedFeature):
        Table.open(tmp_path).vacuum(0, dry_run=True, enforce_retention=False)
    assert tree(tmp_path) == before


def test_a_mode_that_is_not_known(tmp_path: Path) -> None:
    mode: Any = "fast"
    with pytest.raises(UserError, match="fast"):
        create(tmp_path).vacuum(mode=mode)


@pytest.mark.parametrize("parallel", [False, True], ids=["flat", "by-folder"])
@pytest.mark.parametrize("mode", ["full", "lite"])
def test_on_an_object_store(mode: Literal["full", "lite"], parallel: bool) -> None:
    url = f"memory://vacuum-{mode}-{parallel}/t"
    table = Table.create(url, "id INT, d STRING", partition_by=["d"])
    adds = [data_file(f"d={n}/{n}", partition={"d": str(n)}) for n in range(3)]
    table = remove(table.commit("WRITE", adds), "d=1/1")
    store = open_store(url)
    for key in ["d=0/0", "d=1/1", "d=2/2", "d=2/x/y", "root", "d=2.5", "_iceberg/m"]:
        store.put(key, b"12345")

    class Spread(InProcess):
        pass

    class Other:
        def map(self, fn: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
            return map(fn, items)

    runtime = Runtime(executor=Other() if parallel else Spread(), clock=Later(200 * HOUR))
    found = Table(table.snapshot, runtime=runtime).vacuum(mode=mode)
    expected = {"full": ("d=1/1", "d=2.5", "d=2/x/y", "root"), "lite": ("d=1/1",)}
    assert found.files == expected[mode]
    assert found.num_directories == {"full": 5, "lite": 1}[mode]
    left = {meta.key for meta in store.list_from("") if not meta.key.startswith("_delta_log")}
    assert {"d=0/0", "d=2/2", "_iceberg/m"} <= left
    assert not left & set(found.files)


def test_the_result_as_data(tmp_path: Path) -> None:
    found = messy(tmp_path).vacuum(dry_run=True).to_dict()
    assert found["num_files"] == len(found["files"]) == len(SWEPT)
    assert (found["mode"], found["retention_ms"], found["version"]) == ("full", WEEK, None)
