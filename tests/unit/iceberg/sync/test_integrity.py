"""The Iceberg metadata is lost, damaged, moved or of another table: the next sync repairs it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from threading import Event
from typing import Any

import msgspec
import pytest

from tests.support.data_files import append, write_file
from tests.support.iceberg.both_sides import (
    V2,
    V3,
    agree,
    as_text,
    hide,
    iceberg_rows,
    now_ms,
    opened,
    remove_files,
    twin,
)
from tests.support.iceberg.worker import sync_latest
from tests.support.local_engine import rows_of
from tests.support.log_tables import commit
from tests.support.scale import scale
from twinlake.iceberg import IntegrityCheck, lag_of, sync_table
from twinlake.log import load_snapshot
from twinlake.storage import LocalStore
from twinlake.table import Table

pytestmark = pytest.mark.slow

Damage = Callable[[Path], Any]
DAMAGES: dict[str, Damage] = {
    "lost": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "cut in half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "garbage": lambda path: path.write_bytes(bytes(reversed(path.read_bytes()))),
}


def made(folder: Path) -> Table:
    """A table with history, a file that went, hidden rows and Iceberg metadata."""
    table = twin(folder, "id INT, p INT", "p", properties=V3)
    for at in range(4):
        table = append(table, folder, [{"id": at, "p": 1}, {"id": at + 10, "p": 1}])
        sync_table(table.snapshot)
    first, second, *_ = table.snapshot.adds()
    table = hide(table, folder, {first.path: [0]})
    sync_table(table.snapshot)
    table = remove_files(table, [second])
    sync_table(table.snapshot)
    return table


def metadata_folder(folder: Path) -> Path:
    return folder / "_iceberg" / "metadata"


def files(folder: Path) -> dict[str, Path]:
    """One file of each kind, by what it is."""
    table = opened(folder)
    *_, old, new = table.metadata.snapshots
    current = new.manifests(table.io)
    (vectors,) = (m for m in current if m.content == 1)
    data = next(m for m in current if m.content == 0)
    live = {manifest.manifest_path for manifest in current}
    dead = next(m for m in old.manifests(table.io) if m.manifest_path not in live)

    found = {
        "metadata": table.metadata_location,
        "list": new.manifest_list,
        "old list": old.manifest_list,
        "manifest": data.manifest_path,
        "manifest of vectors": vectors.manifest_path,
        "old manifest": dead.manifest_path,
        "vectors": next(iter(vectors.fetch_manifest_entry(table.io))).data_file.file_path,
    }
    return {name: Path(path.removeprefix("file://")) for name, path in found.items()}


KINDS = [
    "metadata", "list", "old list", "manifest", "manifest of vectors", "old manifest", "vectors",
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_damage_to_any_file_is_found_and_repaired(tmp_path: Path, kind: str, damage: str) -> None:
    table = made(tmp_path)
    DAMAGES[damage](files(tmp_path)[kind])

    assert sync_table(table.snapshot, check=IntegrityCheck.CONTENT).rebuilt

    assert not agree(table, tmp_path).rebuilt


@pytest.mark.parametrize("damage", ["lost", "empty", "cut in half"])
@pytest.mark.parametrize("kind", ["metadata", "list", "manifest", "manifest of vectors"])
def test_a_listing_is_enough_for_the_newest_snapshot(
    tmp_path: Path, kind: str, damage: str
) -> None:
    table = made(tmp_path)
    DAMAGES[damage](files(tmp_path)[kind])

    assert agree(table, tmp_path).rebuilt


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", ["metadata", "list", "manifest"])
def test_damage_is_no_ground_to_build_on(tmp_path: Path, kind: str, damage: str) -> None:
    """What follows each commit looks at nothing but what it needs, and is not fooled by that."""
    made(tmp_path)
    DAMAGES[damage](files(tmp_path)[kind])
    # As another process, which knows of the metadata what it reads.
    table = Table(load_snapshot(LocalStore(tmp_path, durable=False)))
    table = remove_files(append(table, tmp_path, [{"id": 99, "p": 1}]))
    table = append(table, tmp_path, [{"id": 100, "p": 1}])

    done = sync_table(table.snapshot, check=IntegrityCheck.NOTHING)

    assert done.rebuilt
    agree(table, tmp_path)


@pytest.mark.parametrize("place", [0, 1, -1])
def test_a_snapshot_of_another_shape_is_found(tmp_path: Path, place: int) -> None:
    """Snapshots are text until somebody looks at them."""
    table = made(tmp_path)
    file = files(tmp_path)["metadata"]
    told = json.loads(file.read_text())
    told["snapshots"][place]["manifest-list"] = 7
    file.write_text(json.dumps(told))

    assert agree(table, tmp_path).rebuilt


@pytest.mark.parametrize("text", [None, "", "999", "x", "-1", "1e3", "5\n", "9" * 30], ids=repr)
def test_a_pointer_that_is_lost_or_wrong(tmp_path: Path, text: str | None) -> None:
    table = made(tmp_path)
    hint = metadata_folder(tmp_path) / "version-hint.text"
    if text is None:
        hint.unlink()
    else:
        hint.write_text(text)

    agree(table, tmp_path)

    assert hint.read_text() == str(table.version)


def test_a_pointer_that_is_behind(tmp_path: Path) -> None:
    table = made(tmp_path)
    (metadata_folder(tmp_path) / "version-hint.text").write_text("2")

    assert not agree(table, tmp_path).rebuilt


def test_an_old_value_does_not_take_the_face_back(tmp_path: Path) -> None:
    table = made(tmp_path)

    assert sync_table(table.at(2).snapshot).version == table.version
    files(tmp_path)["metadata"].write_bytes(b"{")
    done = sync_table(table.at(2).snapshot)

    assert done.rebuilt
    assert done.version == table.version
    agree(table, tmp_path)


def test_the_log_was_cleaned_up_behind_the_face(tmp_path: Path) -> None:
    table = made(tmp_path)
    for at in range(3):
        table = append(table, tmp_path, [{"id": 50 + at, "p": 2}])
    table.checkpoint()
    for version in range(table.version):
        (tmp_path / "_delta_log" / f"{version:020}.json").unlink()
    table = append(Table.open(tmp_path, durable=False), tmp_path, [{"id": 60, "p": 2}])

    done = agree(table, tmp_path)

    assert "does not hold version" in done.rebuilt
    assert len(opened(tmp_path).metadata.snapshots) == 2


def test_another_table_at_the_same_path(tmp_path: Path) -> None:
    made(tmp_path)
    shutil.rmtree(tmp_path / "_delta_log")
    table = append(twin(tmp_path, "other STRING"), tmp_path, [{"other": "x"}])
    assert lag_of(table.snapshot).iceberg_version == 6

    assert agree(table, tmp_path).rebuilt

    assert (metadata_folder(tmp_path) / "version-hint.text").read_text() == "1"
    # Path readers go on by number from the pointer, so nothing may be there.
    assert not list(metadata_folder(tmp_path).glob("v[2-9].metadata.json"))
    table = append(table, tmp_path, [{"other": "y"}])
    assert not agree(table, tmp_path).rebuilt


def test_the_log_took_another_course(tmp_path: Path) -> None:
    table = made(tmp_path)
    for version in (5, 6):
        for left in (tmp_path / "_delta_log").glob(f"{version:020}.*"):
            left.unlink()
    shutil.copytree(tmp_path, tmp_path.with_name("other"))
    shutil.rmtree(tmp_path)
    shutil.move(tmp_path.with_name("other"), tmp_path)
    table = Table.open(tmp_path, version=4, durable=False)
    table = append(table, tmp_path, [{"id": 70, "p": 1}])
    assert agree(table, tmp_path).rebuilt
    table = append(table, tmp_path, [{"id": 71, "p": 1}])

    agree(table, tmp_path)

    assert {row["id"] for row in iceberg_rows(tmp_path)} >= {70, 71}


def test_a_table_that_was_moved(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new place"
    old.mkdir()
    made(old)
    old.rename(new)
    table = Table.open(new, durable=False)

    assert agree(table, new).rebuilt
    assert not agree(append(table, new, [{"id": 90, "p": 1}]), new).rebuilt


def test_a_promise_that_was_taken_back_and_given_again(tmp_path: Path) -> None:
    table = append(twin(tmp_path, "id INT"), tmp_path, [{"id": 1}])
    agree(table, tmp_path)
    table = table.set_properties({"delta.enableIcebergCompatV2": "false"})
    table = append(table, tmp_path, [{"id": 2}])
    table = table.set_properties(V2)

    assert "has no Iceberg form" in agree(table, tmp_path).rebuilt


def test_snapshots_go_before_their_files(tmp_path: Path) -> None:
    table = made(tmp_path)
    table = append(table, tmp_path, [{"id": 80, "p": 1}])
    sync_table(table.snapshot)
    table.vacuum(0, enforce_retention=False)
    table = table.refresh()

    for _ in ("continued", "rebuilt"):
        sync_table(table.snapshot)
        found = opened(tmp_path)
        assert found.metadata.snapshots
        for snapshot in found.metadata.snapshots:
            for task in found.scan(snapshot_id=snapshot.snapshot_id).plan_files():
                assert Path(task.file.file_path.removeprefix("file://")).exists()
        agree(table, tmp_path)
        shutil.rmtree(metadata_folder(tmp_path))


SHORT = {
    "delta.deletedFileRetentionDuration": "interval 0 seconds",
    "delta.logRetentionDuration": "interval 0 seconds",
}
FEW = {"delta.universalFormat.config.iceberg.write.metadata.previous-versions-max": "12"}


@pytest.mark.parametrize("compat", [V2, V3], ids=["v2", "v3"])
def test_the_metadata_folder_does_not_grow_for_ever(tmp_path: Path, compat: dict[str, str]) -> None:
    table = twin(tmp_path, "id INT", properties={**compat, **SHORT})
    few = replace(table.metadata, configuration={**table.metadata.configuration, **FEW})
    commit(table.snapshot.store, 1, few)
    table = table.refresh()
    sizes = []
    for at in range(scale(32, 200)):
        gone = [add.remove(deletion_timestamp=now_ms()) for add in table.snapshot.adds()]
        new = write_file(table, tmp_path, [{"id": at}, {"id": -at}])
        table = table.commit("WRITE", [*gone, new], parameters={"mode": "Overwrite"})
        if compat is V3:
            table = hide(table, tmp_path, {new.path: [at % 2]})
        sync_table(table.snapshot, check=IntegrityCheck.NOTHING)
        sizes.append(len(list(metadata_folder(tmp_path).iterdir())))

    assert sizes[-1] <= sizes[-15]
    agree(table, tmp_path)
    # Everything that is left of earlier metadata goes with new metadata, once it is old.
    for path in metadata_folder(tmp_path).iterdir():
        os.utime(path, (0, 0))
    (metadata_folder(tmp_path) / f"v{table.version}.metadata.json").unlink()
    assert agree(table, tmp_path).rebuilt
    assert len(list(metadata_folder(tmp_path).iterdir())) < 10


@pytest.mark.process
def test_converters_of_several_processes(tmp_path: Path) -> None:
    table = made(tmp_path)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for at in range(scale(4, 40)):
            table = append(table, tmp_path, [{"id": 200 + at, "p": 1}])
            list(pool.map(sync_latest, [str(tmp_path)] * 3))

    assert not agree(table, tmp_path).rebuilt


def test_readers_never_see_a_broken_pointer(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT", properties={**V2, **SHORT})
    table = append(table, tmp_path, [{"id": 0}])
    sync_table(table.snapshot)
    over = Event()
    expected = {table.version: as_text(rows_of(table.snapshot))}

    def convert() -> None:
        while not over.is_set():
            sync_table(Table.open(tmp_path, durable=False).snapshot)

    def read() -> int:
        times = 0
        while not over.is_set():
            found = opened(tmp_path)
            version = int(found.metadata.properties["delta-version"])
            rows = as_text(found.scan().to_arrow().to_pylist())
            assert version not in expected or rows == expected[version]
            times += 1
        return times

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read)]
        converters = [pool.submit(convert) for _ in range(2)]
        try:
            for at in range(1, scale(12, 200)):
                live = list(table.snapshot.adds())
                gone = [add.remove(deletion_timestamp=now_ms()) for add in live[: len(live) > 3]]
                new = write_file(table, tmp_path, [{"id": at}])
                table = table.commit("WRITE", [*gone, new], parameters={"mode": "Append"})
                expected[table.version] = as_text(rows_of(table.snapshot))
        finally:
            over.set()
        assert all(reader.result() for reader in readers)
        for converter in converters:
            converter.result()
    agree(table, tmp_path)


def test_nothing_to_do_writes_nothing(tmp_path: Path) -> None:
    table = made(tmp_path)
    before = {path.name: path.stat().st_mtime_ns for path in metadata_folder(tmp_path).iterdir()}

    done = sync_table(table.snapshot)

    assert (done.converted, done.rebuilt) == (0, "")
    assert {
        path.name: path.stat().st_mtime_ns for path in metadata_folder(tmp_path).iterdir()
    } == before
    assert msgspec.json.decode(files(tmp_path)["metadata"].read_bytes())["metadata-log"]
