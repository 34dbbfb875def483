"""The faults that the memory store can be asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from twinlake.errors import Code, StorageError
from twinlake.storage import (
    Committed,
    Conflict,
    Fault,
    MemoryStore,
    SimulatedCrash,
    Unknown,
    open_store,
)

if TYPE_CHECKING:
    from twinlake.storage.memory import Operation

BODY = b"0123456789"


@pytest.mark.parametrize(
    ("fault", "left"),
    [
        pytest.param(Fault.before(), None, id="before"),
        pytest.param(Fault.after(), BODY, id="after"),
        pytest.param(Fault.torn(4), BODY[:4], id="torn"),
    ],
)
def test_failed_writes(fault: Fault, left: bytes | None) -> None:
    store = MemoryStore(faults=[("create", 1, fault), ("put", 1, fault)])
    assert isinstance(store.create("created", BODY), Unknown)
    with pytest.raises(StorageError) as caught:
        store.put("put", BODY)
    assert caught.value.code is Code.STORAGE
    expected = () if left is None else (("created", left), ("put", left))
    assert store.snapshot() == expected


@pytest.mark.parametrize(
    ("fault", "left"),
    [
        pytest.param(Fault.crash_before(), (), id="before"),
        pytest.param(Fault.crash_after(), (("k", BODY),), id="after"),
    ],
)
def test_crashes(fault: Fault, left: object) -> None:
    for operation in ("create", "put"):
        store = MemoryStore(faults=[(operation, 1, fault)])
        with pytest.raises(SimulatedCrash):
            getattr(store, operation)("k", BODY)
        assert store.snapshot() == left
    assert not issubclass(SimulatedCrash, Exception)


def test_a_fault_after_a_create_that_lost_leaves_the_winner() -> None:
    store = MemoryStore(faults=[("create", 2, Fault.after()), ("create", 3, Fault.torn(1))])
    assert store.create("k", b"winner") == Committed()
    assert isinstance(store.create("k", b"late"), Unknown)
    assert isinstance(store.create("k", b"later"), Unknown)
    assert store.create("k", b"last") == Conflict()
    assert store.read("k") == b"winner"


def test_a_stale_listing_misses_the_newest_objects() -> None:
    store = MemoryStore(faults=[("list_from", 1, Fault.stale(2)), ("list_from", 2, Fault.stale(9))])
    for key in ("l/c", "l/a", "l/d", "l/b"):
        store.create(key, b"")
    assert [meta.key for meta in store.list_from("l")] == ["l/a", "l/c"]
    assert list(store.list_from("l")) == []
    assert [meta.key for meta in store.list_from("l")] == ["l/a", "l/b", "l/c", "l/d"]


@pytest.mark.parametrize("fault", [Fault.before(), Fault.after()], ids=lambda fault: fault.kind)
def test_reads_can_fail(fault: Fault) -> None:
    operations: tuple[Operation, ...] = ("read", "read_range", "head", "list_from")
    store = MemoryStore(faults=[(operation, 1, fault) for operation in operations])
    store.put("k", BODY)
    for call in (
        lambda: store.read("k"),
        lambda: store.read_range("k", 0, 2),
        lambda: store.head("k"),
        lambda: store.list_from(""),
    ):
        with pytest.raises(StorageError) as caught:
            call()
        assert caught.value.code is Code.STORAGE
        call()


def test_deletes_fail_one_by_one() -> None:
    store = MemoryStore(faults=[("delete", 2, Fault.before())])
    for key in ("a", "b", "c"):
        store.put(key, b"")
    with pytest.raises(StorageError):
        store.delete(["a", "b", "c"])
    assert [key for key, _ in store.snapshot()] == ["b", "c"]


def test_a_plan_may_be_a_function() -> None:
    seen: list[tuple[str, str, int]] = []

    def plan(operation: Operation, key: str, nth: int) -> Fault | None:
        seen.append((operation, key, nth))
        return Fault.before() if key == "bad" else None

    store = MemoryStore(faults=plan)
    assert store.create("good", b"") == Committed()
    assert isinstance(store.create("bad", b""), Unknown)
    store.set_faults(())
    assert store.create("bad", b"") == Committed()
    assert seen == [("create", "good", 1), ("create", "bad", 2)]


def test_a_fork_goes_its_own_way() -> None:
    store = MemoryStore(faults=[("create", 2, Fault.before())])
    store.create("a", b"1")
    fork = store.fork()
    assert isinstance(fork.create("b", b"2"), Unknown)
    assert fork.create("b", b"2") == Committed()
    assert store.snapshot() == (("a", b"1"),)
    # The original has its own counters: its second create fails as well.
    assert isinstance(store.create("b", b"2"), Unknown)
    assert hash(fork.snapshot()) == hash((("a", b"1"), ("b", b"2")))


class StoppedClock:
    def now_ms(self) -> int:
        return 42

    def sleep(self, seconds: float) -> None:
        raise AssertionError("a store never sleeps")


def test_times_come_from_the_clock_and_can_be_set() -> None:
    store = MemoryStore(clock=StoppedClock())
    store.put("k", b"")
    assert [meta.modified_ms for meta in store.list_from("")] == [42]
    store.set_modified("k", 7)
    head = store.head("k")
    assert head is not None
    assert head.modified_ms == 7
    with pytest.raises(StorageError):
        store.set_modified("nothing", 7)


def test_named_stores_are_shared_within_the_process() -> None:
    open_store("memory://shared-by-name/t").put("k", b"here")
    assert open_store("memory://shared-by-name").read("t/k") == b"here"
    assert open_store("memory://another-name").head("t/k") is None
