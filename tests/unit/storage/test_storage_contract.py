"""What every store promises, run against every store."""

from __future__ import annotations

import pickle
import threading
import uuid
from typing import TYPE_CHECKING

import pytest

from twinlake.errors import Code, StorageError, UserError
from twinlake.storage import (
    Committed,
    Conflict,
    LocalStore,
    MemoryStore,
    ObjectStore,
    Store,
    open_store,
)

if TYPE_CHECKING:
    from pathlib import Path

STORES = [
    pytest.param("local-durable"),
    pytest.param("local"),
    pytest.param("memory"),
    pytest.param("memory-below-a-prefix"),
    pytest.param("s3", marks=pytest.mark.s3),
    pytest.param("s3-bucket-root", marks=pytest.mark.s3),
    pytest.param("azure", marks=pytest.mark.azure),
    pytest.param("azure-container-root", marks=pytest.mark.azure),
]

ODD_KEYS = [
    "a b.txt",
    "100%.txt",
    "a%20b",
    "hash#tag.parquet",
    "question?.parquet",
    "plus+and=equals,semi;colon:at@.parquet",
    "grün/日本/😀.parquet",
    "quote'\"[x]{y}~!*()&$.parquet",
    "...dots/..x/x..",
]


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    match request.param:
        case "local-durable":
            return LocalStore(tmp_path / "table")
        case "local":
            return LocalStore(tmp_path / "table", durable=False)
        case "memory":
            return MemoryStore()
        case "memory-below-a-prefix":
            whole = MemoryStore("whole")
            whole.put("table", b"not below")
            whole.put("tablet/x", b"not below either")
            return whole.reopen("memory://whole/table")
        case "s3" | "azure" as name:
            server = request.getfixturevalue(f"{name}_server")
            return open_store(server.url(f"t {uuid.uuid4()}/ü%"), options=server.options)
        case "s3-bucket-root":
            server = request.getfixturevalue("s3_server")
            return _emptied(open_store(server.url(), options=server.options))
        case _:
            server = request.getfixturevalue("azure_server")
            options = {k: v for k, v in server.options.items() if k != "account_name"}
            return _emptied(open_store(server.abfss_url(), options=options))


def _emptied(store: Store) -> Store:
    store.delete([meta.key for meta in store.list_from("")])
    return store


def keys(store: Store, folder: str = "", start_after: str = "") -> list[str]:
    return [meta.key for meta in store.list_from(folder, start_after)]


def test_a_created_object_can_be_read(store: Store) -> None:
    assert store.create("_delta_log/0.json", b"one") == Committed()
    assert store.read("_delta_log/0.json") == b"one"


def test_the_second_create_is_a_conflict_and_changes_nothing(store: Store) -> None:
    store.create("k", b"one")
    assert store.create("k", b"two") == Conflict()
    assert store.read("k") == b"one"


def test_an_empty_body_is_an_object(store: Store) -> None:
    assert store.create("empty", b"") == Committed()
    assert store.create("empty", b"x") == Conflict()
    assert store.read("empty") == b""
    meta = store.head("empty")
    assert meta is not None
    assert meta.size == 0


def test_a_body_of_six_megabytes_survives(store: Store) -> None:
    body = bytes(range(256)) * (24 * 1024)
    assert store.create("large", body) == Committed()
    # A server that refuses before it has read a large body may cut the line: Unknown, then.
    assert store.create("large", b"other" + body) != Committed()
    assert store.read("large") == body
    assert store.read_range("large", 5_000_000, 1000) == body[5_000_000:5_001_000]


def test_put_creates_and_replaces(store: Store) -> None:
    store.put("deep/er/k", b"one")
    store.put("deep/er/k", b"second")
    assert store.read("deep/er/k") == b"second"
    assert store.create("deep/er/k", b"third") == Conflict()


def test_deleted_objects_are_gone_and_absent_ones_count_as_deleted(store: Store) -> None:
    store.put("a", b"1")
    store.put("b/c", b"2")
    store.delete(["a", "never/was", "b/c"])
    store.delete(["a"])
    store.delete([])
    assert keys(store) == []
    assert store.create("a", b"again") == Committed()


def test_what_is_missing_is_reported_as_missing(store: Store) -> None:
    store.put("folder/x", b"1")
    for key in ("nothing", "folder", "folder/y"):
        assert store.head(key) is None
        with pytest.raises(StorageError) as caught:
            store.read(key)
        assert caught.value.code is Code.STORAGE_NOT_FOUND
        assert caught.value.fields["key"] == key
        for length in (0, 5):
            with pytest.raises(StorageError) as caught:
                store.read_range(key, 0, length)
            assert caught.value.code is Code.STORAGE_NOT_FOUND


@pytest.mark.parametrize(
    ("start", "length", "expected"),
    [
        pytest.param(0, 3, b"012", id="head"),
        pytest.param(4, 3, b"456", id="middle"),
        pytest.param(8, 100, b"89", id="past the end"),
        pytest.param(10, 1, b"", id="at the end"),
        pytest.param(99, 1, b"", id="beyond the end"),
        pytest.param(3, 0, b"", id="no bytes"),
    ],
)
def test_read_range(store: Store, start: int, length: int, expected: bytes) -> None:
    store.put("digits", b"0123456789")
    assert store.read_range("digits", start, length) == expected


def test_head_tells_size_and_a_time_of_today(store: Store) -> None:
    store.put("k", b"12345")
    meta = store.head("k")
    assert meta is not None
    assert (meta.key, meta.size) == ("k", 5)
    assert meta.modified_ms > 1_700_000_000_000
    assert list(store.list_from("")) == [meta]


def test_listings_ascend_and_start_after_a_key(store: Store) -> None:
    # "a.b" < "a/b" < "a0": the order of whole keys, not that of a walk through folders.
    present = ["a.b", "a/b", "a/c/d", "a/c0", "a0", "b"]
    for key in reversed(present):
        store.put(key, key.encode())
    assert keys(store) == present
    assert keys(store, "a") == ["a/b", "a/c/d", "a/c0"]
    assert keys(store, "a/") == ["a/b", "a/c/d", "a/c0"]
    assert keys(store, "a", "a/b") == ["a/c/d", "a/c0"]
    assert keys(store, "a", "a/c") == ["a/c/d", "a/c0"]
    assert keys(store, "a", "a/c/d") == ["a/c0"]
    assert keys(store, "a", "a/z") == []
    assert keys(store, "", "a/c") == ["a/c/d", "a/c0", "a0", "b"]
    assert keys(store, "nowhere") == []
    assert [meta.size for meta in store.list_from("a")] == [3, 5, 4]


def test_the_tail_of_a_log(store: Store) -> None:
    names = [f"_delta_log/{version:020d}.json" for version in range(30)]
    for name in names:
        store.create(name, b"{}")
    assert keys(store, "_delta_log", f"_delta_log/{24:020d}.json") == names[25:]
    # A start between two names, as a log reader gives it: everything of a version and later.
    assert keys(store, "_delta_log", f"_delta_log/{24:020d}.") == names[24:]


@pytest.mark.parametrize("key", ODD_KEYS)
def test_odd_names_are_kept_as_they_are(store: Store, key: str) -> None:
    assert store.create(key, b"odd") == Committed()
    assert store.create(key, b"odd") == Conflict()
    assert store.read(key) == b"odd"
    assert keys(store) == [key]
    assert store.head(key) is not None
    store.delete([key])
    assert keys(store) == []


@pytest.mark.parametrize(
    "key", ["", "/", "/abs", "a//b", "a/", ".", "a/./b", "..", "a/../b", "n\0l"]
)
def test_keys_that_leave_the_root_are_refused_everywhere(store: Store, key: str) -> None:
    store.put("a/b", b"inside")
    for call in (
        lambda: store.read(key),
        lambda: store.read_range(key, 0, 1),
        lambda: store.head(key),
        lambda: store.create(key, b""),
        lambda: store.put(key, b""),
        lambda: store.delete([key]),
    ):
        with pytest.raises(UserError) as caught:
            call()
        assert caught.value.code is Code.PATH_UNSAFE
    assert keys(store) == ["a/b"]


@pytest.mark.parametrize("folder", ["..", "a/../..", "a//b", "n\0l"])
def test_folders_that_leave_the_root_are_refused(store: Store, folder: str) -> None:
    with pytest.raises(UserError) as caught:
        list(store.list_from(folder))
    assert caught.value.code is Code.PATH_UNSAFE


def test_threads_that_race_have_one_winner(store: Store) -> None:
    for number in range(5):
        barrier = threading.Barrier(8)
        outcomes: dict[int, object] = {}

        def run(
            client: int,
            key: str = f"race/{number}",
            barrier: threading.Barrier = barrier,
            outcomes: dict[int, object] = outcomes,
        ) -> None:
            barrier.wait()
            outcomes[client] = store.create(key, b"%d" % client)

        threads = [threading.Thread(target=run, args=(client,)) for client in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        winners = [client for client, outcome in outcomes.items() if outcome == Committed()]
        assert [store.read(f"race/{number}")] == [b"%d" % client for client in winners]
        assert sum(outcome == Conflict() for outcome in outcomes.values()) == 7


def test_the_url_opens_the_same_place(store: Store) -> None:
    store.put("k", b"here")
    assert not store.url.endswith("/")
    if isinstance(store, MemoryStore):
        assert store.reopen(store.url).read("k") == b"here"
        return
    options = store.config.options if isinstance(store, ObjectStore) else None
    again = open_store(store.url, options=options)
    assert again.url == store.url
    assert again.read("k") == b"here"


def test_stores_travel_to_other_processes(store: Store) -> None:
    if isinstance(store, MemoryStore):
        # Memory belongs to one process: a copy elsewhere would silently be another store.
        with pytest.raises(TypeError):
            pickle.dumps(store)
        return
    store.put("k", b"here")
    assert pickle.loads(pickle.dumps(store)).read("k") == b"here"
