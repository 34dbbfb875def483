"""What a process knows of the metadata it wrote last: used where it still holds, and only there."""

from __future__ import annotations

import gc
import os
import time
import weakref
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.support.data_files import append
from tests.support.iceberg.both_sides import V2, V3, agree, opened, remove_files, twin
from twinlake.errors import Code, StorageError
from twinlake.iceberg import IntegrityCheck, sync_table
from twinlake.iceberg.format.table_metadata import TableMetadata
from twinlake.iceberg.sync import cleanup as cleaning
from twinlake.iceberg.sync import metadata_cache as resting
from twinlake.iceberg.sync.metadata_cache import MetadataCache
from twinlake.iceberg.sync.metadata_files import MetadataFiles
from twinlake.log import CACHE, load_snapshot, write_checkpoint
from twinlake.storage import LocalStore
from twinlake.table import Table

pytestmark = pytest.mark.slow

WITH_COMMIT = {"twinlake.iceberg.sync": "commit"}
FACE = "_iceberg/metadata"


def made(
    folder: Path,
    commits: int = 3,
    properties: dict[str, str] = V2,
    asks: dict[str, str] = WITH_COMMIT,
) -> Table:
    table = twin(folder, "id INT, p INT", "p", properties={**properties, **asks})
    for at in range(commits):
        table = append(table, folder, [{"id": at, "p": at % 2}])
    return table


def whole(table: Table, folder: Path) -> None:
    """Both sides hold the same rows, and nothing is left to repair."""
    assert not agree(table, folder).rebuilt


def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys of the Iceberg metadata that are read from now on."""
    seen: list[str] = []

    def spy(name: str) -> None:
        real = getattr(LocalStore, name)

        def call(self: LocalStore, key: str, *more: Any) -> Any:
            if key.startswith(FACE) and not key.endswith(".text"):
                seen.append(key.removeprefix(f"{FACE}/"))
            return real(self, key, *more)

        monkeypatch.setattr(LocalStore, name, call)

    spy("read")
    spy("read_range")
    return seen


@pytest.mark.parametrize("properties", [V2, V3], ids=["v2", "v3"])
def test_what_was_just_written_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, properties: dict[str, str]
) -> None:
    table = made(tmp_path, properties=properties)
    with monkeypatch.context() as patched:
        seen = reads(patched)
        for at in range(20):
            table = append(table, tmp_path, [{"id": at, "p": 1}])
        assert seen == []
    whole(table, tmp_path)


@pytest.mark.parametrize("check", IntegrityCheck)
def test_whoever_syncs_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check: IntegrityCheck
) -> None:
    table = made(tmp_path, properties=V2, asks={})
    sync_table(table.snapshot)
    for at in range(3):
        table = append(table, tmp_path, [{"id": at, "p": 1}])
        with monkeypatch.context() as patched:
            seen = reads(patched)
            sync_table(table.snapshot, check=check)
            # The first one finds metadata of which nothing is known.
            assert (seen == []) == (at > 0 and check is not IntegrityCheck.CONTENT)
    whole(table, tmp_path)


@pytest.mark.parametrize("kind", ["metadata", "list", "old list", "manifest"])
def test_who_has_nothing_to_convert_looks_at_the_files(tmp_path: Path, kind: str) -> None:
    table = made(tmp_path)
    newest(tmp_path, kind).unlink()
    assert table.iceberg.sync().rebuilt
    whole(table, tmp_path)


def newest(folder: Path, kind: str) -> Path:
    table = opened(folder)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    place = {
        "metadata": table.metadata_location,
        "list": snapshot.manifest_list,
        "old list": table.metadata.snapshots[0].manifest_list,
        "manifest": snapshot.manifests(table.io)[-1].manifest_path,
    }[kind]
    return Path(place.removeprefix("file://"))


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "lost": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "garbage": lambda path: path.write_bytes(bytes(reversed(path.read_bytes()))),
    "the same again": lambda path: path.write_bytes(path.read_bytes()),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_metadata_file_that_is_not_ours_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    table = made(tmp_path)
    DAMAGES[damage](newest(tmp_path, "metadata"))
    with monkeypatch.context() as patched:
        seen = reads(patched)
        table = append(table, tmp_path, [{"id": 9, "p": 1}])
        assert f"v{table.version - 1}.metadata.json" in seen
    whole(table, tmp_path)


def test_a_manifest_that_is_lost_is_noticed_before_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resting, "MAX_REUSES", 3)
    table = made(tmp_path, 9)
    newest(tmp_path, "manifest").unlink()
    for at in range(4):
        table = append(table, tmp_path, [{"id": at, "p": 1}])
    whole(table, tmp_path)


def test_somebody_else_went_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path)
    other = append(another(tmp_path), tmp_path, [{"id": 20, "p": 0}])
    with monkeypatch.context() as patched:
        seen = reads(patched)
        table = append(table.refresh(), tmp_path, [{"id": 21, "p": 0}])
        assert f"v{other.version}.metadata.json" in seen
    whole(table, tmp_path)


def another(folder: Path) -> Table:
    """The table as another process has it."""
    return Table(load_snapshot(LocalStore(folder, durable=False)))


def test_somebody_else_made_the_same_version_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path)
    for path in (tmp_path / FACE).iterdir():
        path.unlink()
    assert sync_table(another(tmp_path).snapshot).rebuilt
    with monkeypatch.context() as patched:
        seen = reads(patched)
        table = remove_files(table, list(table.snapshot.adds())[:2])
        assert f"v{table.version - 1}.metadata.json" in seen
    whole(table, tmp_path)


@pytest.mark.parametrize("moment", ["before it is published", "after it is published"])
def test_somebody_else_makes_it_anew_during_a_conversion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """And deletes manifests that we remember, since they are old and not in the new metadata."""
    table = made(tmp_path, 12)
    write_checkpoint(table.snapshot)
    for version in range(10):
        # So that other metadata is made than what was continued.
        (tmp_path / f"_delta_log/{version:020}.json").unlink()
    for at in range(2):
        table = append(table, tmp_path, [{"id": 100 + at, "p": 0}])
    old = time.time() - 3 * 24 * 60 * 60
    for manifest in (tmp_path / FACE).glob("m-*.avro"):
        os.utime(manifest, (old, old))
    before = set((tmp_path / FACE).glob("m-*.avro"))
    with monkeypatch.context() as patched:
        real_publish, real_clean_up = MetadataFiles.publish, cleaning.clean_up

        def make_anew() -> None:
            patched.undo()
            min((tmp_path / FACE).glob("snap-*")).unlink()
            assert another(tmp_path).iceberg.sync().rebuilt

        def publish(self: MetadataFiles, metadata: TableMetadata, **more: Any) -> None:
            make_anew()
            real_publish(self, metadata, **more)

        def clean_up(*arguments: Any) -> None:
            real_clean_up(*arguments)
            make_anew()

        if moment == "before it is published":
            patched.setattr(MetadataFiles, "publish", publish)
        else:
            patched.setattr("twinlake.iceberg.sync.table_sync.clean_up", clean_up)
        table = append(table, tmp_path, [{"id": 200, "p": 0}])
    assert any(not manifest.exists() for manifest in before)
    whole(append(table, tmp_path, [{"id": 201, "p": 0}]), tmp_path)


def test_others_are_told_before_and_after_old_files_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path)
    files = MetadataFiles(table.snapshot.store)
    (tmp_path / FACE / "v99.metadata.json").write_text("{}")
    old = time.time() - 3 * 24 * 60 * 60
    os.utime(tmp_path / FACE / "v99.metadata.json", (old, old))
    seen = [files.rebuild_marker()]
    real = LocalStore.delete

    def delete(self: LocalStore, keys: Iterable[str]) -> None:
        seen.append(files.rebuild_marker())
        real(self, keys)

    newest(tmp_path, "manifest").unlink()
    with monkeypatch.context() as patched:
        patched.setattr(MetadataFiles, "delete_ahead", lambda *_: None)
        patched.setattr(LocalStore, "delete", delete)
        assert sync_table(table.snapshot).rebuilt
    assert not (tmp_path / FACE / "v99.metadata.json").exists()
    assert len({*seen, files.rebuild_marker()}) == 3


@pytest.mark.parametrize("kind", ["m-", "snap-", "v"])
def test_a_conversion_that_fails_half_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    table = made(tmp_path, 7)
    real = LocalStore.put

    def put(self: LocalStore, key: str, *pieces: bytes | memoryview) -> None:
        if key.startswith(f"{FACE}/{kind}"):
            raise StorageError(Code.STORAGE, "full")
        real(self, key, *pieces)

    with monkeypatch.context() as patched:
        patched.setattr(LocalStore, "put", put)
        # The eighth merges manifests.
        table = append(table, tmp_path, [{"id": 8, "p": 1}])
        assert table.warnings
    table = remove_files(table, list(table.snapshot.adds())[:2])
    assert not table.warnings
    whole(append(table, tmp_path, [{"id": 9, "p": 1}]), tmp_path)


def test_a_store_that_fails_after_the_face_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path)

    def fails(*_: Any) -> Any:
        raise StorageError(Code.STORAGE, "gone")

    with monkeypatch.context() as patched:
        resting.METADATA_CACHE.take(table.snapshot.store)
        patched.setattr(MetadataFiles, "metadata_stamp", fails)
        table = append(table, tmp_path, [{"id": 9, "p": 1}])
    assert not table.warnings
    assert table.iceberg.lag.versions == 0
    whole(append(table, tmp_path, [{"id": 10, "p": 1}]), tmp_path)


def test_few_tables_are_kept(tmp_path: Path) -> None:
    with patch(
        "twinlake.iceberg.sync.table_sync.METADATA_CACHE", MetadataCache(capacity=2)
    ) as kept:
        tables = {name: made(tmp_path / name, 2) for name in "abc"}
        assert kept.take(tables["a"].snapshot.store) is None
        assert kept.take(tables["c"].snapshot.store) is not None
        assert kept.take(tables["c"].snapshot.store) is None
        for name, table in tables.items():
            whole(append(table, tmp_path / name, [{"id": 9, "p": 1}]), tmp_path / name)


def test_threads_that_share_a_table(tmp_path: Path) -> None:
    table = made(tmp_path)

    def write(thread: int) -> list[Any]:
        own, said = table, list[Any]()
        for at in range(5):
            own = append(own, tmp_path, [{"id": 100 * thread + at, "p": thread % 2}])
            said += own.warnings
        return said

    with ThreadPoolExecutor(8) as threads:
        assert not any(threads.map(write, range(8)))
    table = table.refresh()
    assert table.version == 3 + 40
    whole(table, tmp_path)


def test_a_store_that_is_gone_leaves_nothing(tmp_path: Path) -> None:
    kept = MetadataCache()
    with patch("twinlake.iceberg.sync.table_sync.METADATA_CACHE", kept):
        table = another(tmp_path) if made(tmp_path).version else None
        assert table is not None
        append(table, tmp_path, [{"id": 9, "p": 1}])
        store = weakref.ref(table.snapshot.store)
        assert len(kept._kept) == 2
        CACHE.forget(table.snapshot.store.url)
        del table
        gc.collect()
    assert store() is None
    assert len(kept._kept) == 1


def test_little_is_kept_of_large_manifests(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT, p INT", "p", properties={**V2, **WITH_COMMIT})
    table = append(table, tmp_path, [{"id": 0, "p": 0}])
    with patch("twinlake.iceberg.sync.manifest_reader._FEW", 3):
        for at in range(20):
            table = append(table, tmp_path, [{"id": at, "p": at}])
            ground = resting.METADATA_CACHE.take(table.snapshot.store)
            assert ground is not None
            known = ground.known
            assert sum(map(len, known._entries.values())) <= 3
            assert known._paths.keys() <= {row.path for row in ground.state.rows}
            resting.METADATA_CACHE.keep(table.snapshot.store, ground)
    whole(table, tmp_path)


@pytest.mark.process
def test_a_child_of_a_process_does_not_wait_for_its_threads(tmp_path: Path) -> None:
    table = made(tmp_path)
    with resting.METADATA_CACHE._lock:
        child = os.fork()
        if not child:
            os._exit(0 if resting.METADATA_CACHE.take(table.snapshot.store) is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
