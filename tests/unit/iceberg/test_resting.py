"""What a process knows of the face it made last: used where it still holds, and only there."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.support.data_files import append
from tests.support.iceberg_faces import V2, V3, agree, opened, remove_files, twin
from twinlake.errors import Code, StorageError
from twinlake.iceberg import Check, resting, sync
from twinlake.iceberg.resting import Resting
from twinlake.log import load_snapshot
from twinlake.storage import LocalStore
from twinlake.table import Table

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
    """Both faces hold the same rows, and nothing is left to repair."""
    assert not agree(table, folder).rebuilt


def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys of the face that are read from now on."""
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


@pytest.mark.parametrize("check", Check)
def test_whoever_syncs_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check: Check
) -> None:
    table = made(tmp_path, properties=V2, asks={})
    sync(table.snapshot)
    for at in range(3):
        table = append(table, tmp_path, [{"id": at, "p": 1}])
        with monkeypatch.context() as patched:
            seen = reads(patched)
            sync(table.snapshot, check=check)
            # The first one finds a face of which nothing is known.
            assert (seen == []) == (at > 0 and check is not Check.CONTENT)
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
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", ["metadata", "list"])
def test_damage_is_noticed_by_the_next_commit(tmp_path: Path, kind: str, damage: str) -> None:
    table = made(tmp_path)
    path = newest(tmp_path, kind)
    DAMAGES[damage](path)
    table = append(table, tmp_path, [{"id": 9, "p": 1}])
    whole(table, tmp_path)


def test_a_manifest_that_is_lost_is_noticed_before_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resting, "MOST_TURNS", 3)
    table = made(tmp_path, 9)
    newest(tmp_path, "manifest").unlink()
    for at in range(4):
        table = append(table, tmp_path, [{"id": at, "p": 1}])
    whole(table, tmp_path)


def test_somebody_else_went_on(tmp_path: Path) -> None:
    table = made(tmp_path)
    other = Table(load_snapshot(LocalStore(tmp_path, durable=False)))
    append(other, tmp_path, [{"id": 20, "p": 0}])
    whole(append(table.refresh(), tmp_path, [{"id": 21, "p": 0}]), tmp_path)


def test_somebody_else_made_the_same_version_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path)
    for path in (tmp_path / FACE).iterdir():
        path.unlink()
    assert sync(load_snapshot(LocalStore(tmp_path, durable=False))).rebuilt
    with monkeypatch.context() as patched:
        seen = reads(patched)
        table = remove_files(table, list(table.snapshot.adds())[:2])
        assert f"v{table.version - 1}.metadata.json" in seen
    whole(table, tmp_path)


def test_a_store_that_fails_after_the_face_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path)

    def fails(*_: Any) -> Any:
        raise StorageError(Code.STORAGE, "gone")

    with monkeypatch.context() as patched:
        patched.setattr(resting, "_published", fails)
        resting.RESTING.take(table.snapshot.store)
        table = append(table, tmp_path, [{"id": 9, "p": 1}])
    assert not table.warnings
    assert table.iceberg.lag.versions == 0
    whole(append(table, tmp_path, [{"id": 10, "p": 1}]), tmp_path)


def test_few_tables_are_kept(tmp_path: Path) -> None:
    with patch("twinlake.iceberg.syncing.RESTING", Resting(capacity=2)) as kept:
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
