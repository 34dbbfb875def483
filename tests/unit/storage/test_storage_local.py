"""What only a file system can do wrong."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from twinlake.errors import Code, StorageError, UserError
from twinlake.storage import Committed, Conflict, Durable, LocalStore, Unknown

needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")


def failing(number: int) -> Any:
    def fail(*args: object, **kwargs: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.rglob("*") if entry.is_file())


def test_leftovers_are_not_listed(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    for name in (".a1b2.tmp", "0.json#1", "0.json#12", "0.json", ".hidden", "x.tmp", "a#b"):
        (tmp_path / name).write_bytes(b"")
    assert [meta.key for meta in store.list_from("")] == [".hidden", "0.json", "a#b", "x.tmp"]


def test_links_to_folders_are_not_followed_and_broken_links_not_listed(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "broken").symlink_to(tmp_path / "nothing")
    (tmp_path / "file").write_bytes(b"123")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    found = [(meta.key, meta.size) for meta in LocalStore(tmp_path).list_from("")]
    assert found == [("file", 3), ("link", 3)]


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (errno.ENOSPC, "full"),
        (errno.EDQUOT, "quota"),
        (errno.EACCES, "permission"),
        (errno.EIO, "input/output"),
        (errno.EROFS, "read-only"),
        (errno.ENOLCK, "locks"),
    ],
    ids=errno.errorcode.get,
)
@pytest.mark.parametrize("call", ["writev", "fsync", "link", "replace", "open"])
def test_failures_leave_no_trace_and_say_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, why: str, call: str
) -> None:
    store = LocalStore(tmp_path)
    store.put("old", b"old")
    with monkeypatch.context() as patched:
        patched.setattr(os, call, failing(number))
        for change in (lambda: store.create("new", b"x"), lambda: store.put("old", b"x")):
            try:
                change()
            except StorageError as error:
                assert error.code is Code.STORAGE
                assert why in error.why
                assert error.fix
                assert error.fields["errno"] == errno.errorcode[number]
    expected = {"link": [b"x"], "replace": [b"old"]}.get(call, [b"old"])
    assert [store.read("old")] == expected
    assert ("new" in names(tmp_path)) == (call == "replace")
    assert not [name for name in names(tmp_path) if name.endswith(".tmp")]


@pytest.mark.parametrize("most", [1, 2, 3, 5, 1 << 20])
def test_pieces_that_are_written_little_by_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    real = os.writev

    def short(descriptor: int, pieces: list[memoryview]) -> int:
        assert len(pieces) <= 1024
        return real(descriptor, [b"".join(pieces)[:most]])

    monkeypatch.setattr(os, "writev", short)
    store = LocalStore(tmp_path, durable=False)
    pieces: list[bytes | memoryview] = [
        b"",
        b"ab",
        memoryview(b"xcdefy")[1:-1],
        b"",
        b"g",
        b"",
        *[b"h"] * 2000,
    ]
    store.put("k", *pieces)
    assert store.read("k") == b"".join(pieces)
    store.put("k")
    assert store.read("k") == b""


def test_a_file_that_is_written_again_has_another_tag(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, durable=False)
    before = None
    for _ in range(50):
        store.put("k", b"x")
        found = store.head("k")
        assert found == next(store.list_from(""))
        assert found != before
        before = found


def test_a_folder_that_cannot_be_synced_leaves_a_create_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(tmp_path)
    real, calls = os.fsync, []

    def fail_second(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 2:
            raise OSError(errno.EIO, "Input/output error")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fail_second)
    outcome = store.create("k", b"x")
    assert isinstance(outcome, Unknown)
    assert outcome.refusal is None
    assert store.read("k") == b"x"


def synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, durable: bool) -> list[str]:
    """The paths, relative to ``tmp_path``, that the second of two creates syncs, in order."""
    seen: list[str] = []
    real = os.fsync

    def record(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        seen.append(os.path.relpath(path, tmp_path))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", record)
    store = LocalStore(tmp_path / "new" / "table", durable=durable)
    assert store.create("_delta_log/0.json", b"x") == Committed()
    first, seen[:] = list(seen), []
    assert store.create("_delta_log/1.json", b"x") == Committed()
    return [*first, "|", *seen]


@needs_proc
def test_a_durable_create_syncs_the_file_its_folder_and_new_folders_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = synced(tmp_path, monkeypatch, durable=True)
    first, second = steps[: steps.index("|")], steps[steps.index("|") + 1 :]
    assert first[0].endswith(".tmp")
    assert first[1:5] == ["new/table/_delta_log", "new/table", "new", "."]
    assert len(second) == 2
    assert second[0].endswith(".tmp")
    assert second[1] == "new/table/_delta_log"


@needs_proc
def test_without_durable_nothing_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert synced(tmp_path, monkeypatch, durable=False) == ["|"]


def test_folders_deleted_meanwhile_are_made_again(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "t")
    store.create("log/0", b"x")
    store.delete(["log/0"])
    (tmp_path / "t" / "log").rmdir()
    assert store.create("log/0", b"y") == Committed()
    assert store.read("log/0") == b"y"


def test_a_file_where_a_folder_should_be(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.put("a", b"file")
    assert store.head("a/b") is None
    assert list(store.list_from("a")) == []
    store.delete(["a/b"])
    with pytest.raises(StorageError) as caught:
        store.create("a/b", b"")
    assert "is a file" in caught.value.why


def test_a_folder_where_a_file_should_be(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.put("a/b", b"file")
    assert store.create("a", b"") == Conflict()
    with pytest.raises(StorageError):
        store.put("a", b"")
    with pytest.raises(StorageError):
        store.delete(["a"])
    assert names(tmp_path) == ["b"]


def test_names_as_long_as_the_file_system_allows(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    assert store.create("n" * 255, b"x") == Committed()
    with pytest.raises(StorageError) as caught:
        store.create("n" * 256, b"x")
    assert "too long" in caught.value.why
    assert names(tmp_path) == ["n" * 255]


def test_the_url_is_encoded_and_the_path_is_not(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "a b%20ü#")
    assert store.path == str(tmp_path / "a b%20ü#")
    assert store.url == f"file://{tmp_path}/a%20b%2520ü%23"
    assert store.reopen(store.url).path == store.path


def test_only_places_of_the_file_system(tmp_path: Path) -> None:
    with pytest.raises(UserError):
        LocalStore("s3://bucket/t")
    assert LocalStore("/").url == "file://"
    (tmp_path / "k").write_bytes(b"1")
    assert LocalStore("/").read(f"{tmp_path}/k".lstrip("/")) == b"1"


@needs_proc
def test_sync_brings_a_file_and_its_folder_to_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    real = os.fsync

    def record(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        seen.append(os.path.relpath(path, tmp_path))
        real(descriptor)

    store = LocalStore(tmp_path)
    store.create("log/0.json", b"x")
    monkeypatch.setattr(os, "fsync", record)
    assert isinstance(store, Durable)
    store.sync("log/0.json")
    LocalStore(tmp_path, durable=False).sync("log/0.json")
    assert seen == ["log/0.json", "log"]


def test_a_sync_that_fails_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(tmp_path)
    store.create("k", b"x")

    def fail(_descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageError) as caught:
        store.sync("k")
    assert caught.value.fields == {"key": "k", "store": store.url, "errno": "EIO"}


def test_another_process_opens_the_same_folder_by_its_config(tmp_path: Path) -> None:
    import pickle

    from twinlake.storage import open_store, store_config

    store = LocalStore(tmp_path, durable=False)
    config = pickle.loads(pickle.dumps(store_config(store)))
    again = open_store(config.url, durable=config.durable, options=config.options)
    assert isinstance(again, LocalStore)
    assert (again.url, again.durable) == (store.url, False)
