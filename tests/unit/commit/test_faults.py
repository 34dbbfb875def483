"""Stores that fail: nothing acknowledged is lost, nothing is committed twice."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from tests.unit.commit.making import add, begin, create_table, remove, runtime
from twinlake.actions import AddFile, CommitInfo
from twinlake.commit import Operation, Transaction
from twinlake.errors import (
    Code,
    CommitUnknown,
    ConcurrentDeleteDeleteException,
    CorruptTable,
    StorageError,
    TwinlakeError,
)
from twinlake.log import commit_key, load_snapshot, read_commit
from twinlake.protocol import Metadata
from twinlake.storage import Fault, MemoryStore, SimulatedCrash


def committed_ids(store: MemoryStore) -> list[str]:
    ids = []
    for version in range(load_snapshot(store).version + 1):
        info = read_commit(store, version)[0]
        assert isinstance(info, CommitInfo)
        assert info.txn_id is not None
        ids.append(info.txn_id)
    return ids


def added_paths(store: MemoryStore) -> Counter[str]:
    return Counter(
        action.path
        for version in range(load_snapshot(store).version + 1)
        for action in read_commit(store, version)
        if isinstance(action, AddFile)
    )


@pytest.mark.parametrize(
    "fault", [Fault.before(), Fault.after()], ids=["before-the-effect", "after-the-effect"]
)
@pytest.mark.parametrize("rival", [False, True], ids=["alone", "with-a-rival"])
def test_a_lost_reply_is_settled(fault: Fault, rival: bool) -> None:
    store = MemoryStore()
    table = create_table(store)
    if rival:
        begin(table, ports=runtime(seed=1)).add(add("theirs")).commit()
    store.set_faults([("create", 1, fault)])
    result = begin(table, ports=runtime(seed=2)).add(add("ours")).commit()
    store.set_faults(())
    assert result.version == (2 if rival else 1)
    assert added_paths(store) == Counter(["theirs", "ours"] if rival else ["ours"])
    assert len(set(committed_ids(store))) == result.version + 1
    assert load_snapshot(store).version == result.version


def test_faults_at_every_try_never_double_a_commit() -> None:
    """Each create's reply is lost, with rivals at every version: still exactly once each."""
    store = MemoryStore()
    table = create_table(store)
    store.set_faults(lambda operation, _key, _nth: Fault.after() if operation == "create" else None)
    for number in range(6):
        begin(table, ports=runtime(seed=number)).add(add(f"f{number}")).commit()
    store.set_faults(())
    assert added_paths(store) == Counter(f"f{number}" for number in range(6))


def test_an_unknown_outcome_never_leads_to_another_version() -> None:
    store = MemoryStore()
    table = create_table(store)
    store.set_faults(
        lambda operation, _key, _nth: Fault.before() if operation in ("create", "read") else None
    )
    with pytest.raises(CommitUnknown) as caught:
        begin(table, ports=runtime(seed=2)).add(add("ours")).commit()
    store.set_faults(())
    assert caught.value.fields["key"] == commit_key(1)
    assert load_snapshot(store).version == 0


def test_an_unknown_outcome_that_landed_is_there_once() -> None:
    store = MemoryStore()
    table = create_table(store)
    effects = iter([Fault.after()])

    def plan(operation: str, _key: str, _nth: int) -> Fault | None:
        if operation == "create":
            return next(effects, Fault.before())
        return Fault.before() if operation == "read" else None

    store.set_faults(plan)
    with pytest.raises(CommitUnknown):
        begin(table, ports=runtime(seed=2)).add(add("ours")).commit()
    store.set_faults(())
    assert added_paths(store) == Counter(["ours"])
    assert load_snapshot(store).version == 1


def test_a_torn_write_is_no_commit() -> None:
    """A store that is not atomic is found out: no success, no other version, no silent reading."""
    store = MemoryStore()
    table = create_table(store)
    store.set_faults([("create", 1, Fault.torn(20))])
    with pytest.raises(StorageError) as caught:
        begin(table, ports=runtime(seed=2)).add(add("ours")).commit()
    store.set_faults(())
    assert caught.value.code is Code.STORAGE
    assert "not atomic" in caught.value.why
    assert caught.value.fields["key"] == commit_key(1)
    assert caught.value.fields["kept"] == 20
    assert len(store.read(commit_key(1))) == 20
    assert store.head(commit_key(2)) is None

    # Readers are told as well, by the name of the damaged commit; the version before is whole.
    with pytest.raises(CorruptTable) as seen:
        load_snapshot(store)
    assert seen.value.code is Code.LOG_CORRUPT
    assert commit_key(1) in str(seen.value)
    assert load_snapshot(store, 0).num_files == 0

    # The advice of the error mends the table.
    store.delete([commit_key(1)])
    assert begin(table, ports=runtime(seed=3)).add(add("ours")).commit().version == 1
    assert added_paths(store) == Counter(["ours"])


def test_stale_listings_do_not_matter() -> None:
    store = MemoryStore()
    table = create_table(store)
    for number in range(3):
        begin(table, ports=runtime(seed=number)).add(add(f"f{number}")).commit()
    store.set_faults(
        lambda operation, _key, _nth: Fault.stale(9) if operation == "list_from" else None
    )
    result = begin(table, ports=runtime(seed=9)).add(add("ours")).commit()
    store.set_faults(())
    assert result.version == 4
    assert set(result.snapshot.add_files()["path"].to_pylist()) == {"f0", "f1", "f2", "ours"}


def test_a_winner_that_cannot_be_read_ends_the_transaction() -> None:
    store = MemoryStore()
    table = create_table(store)
    for number in range(2):
        begin(table, ports=runtime(seed=number)).add(add(f"f{number}")).commit()
    # The first read settles version 1; the second is the next winner.
    store.set_faults([("read", 2, Fault.before())])
    with pytest.raises(StorageError):
        begin(table, ports=runtime(seed=9)).add(add("ours")).commit()
    store.set_faults(())
    assert added_paths(store) == Counter(["f0", "f1"])


@pytest.mark.parametrize(
    "fault", [Fault.crash_before(), Fault.crash_after()], ids=["before", "after"]
)
def test_a_crash_leaves_all_or_nothing(fault: Fault) -> None:
    store = MemoryStore()
    table = create_table(store)
    store.set_faults([("create", 1, fault)])
    with pytest.raises(SimulatedCrash):
        begin(table, ports=runtime(seed=2)).add(add("ours")).commit()
    store.set_faults(())
    landed = fault == Fault.crash_after()
    assert load_snapshot(store).version == (1 if landed else 0)
    assert added_paths(store) == (Counter(["ours"]) if landed else Counter())


def test_two_threads_append_and_lose_nothing() -> None:
    store = MemoryStore()
    table = create_table(store)
    each, writers = 15, 4
    start = threading.Barrier(writers)
    results: list[int] = []

    def work(writer: int) -> None:
        start.wait()
        for number in range(each):
            ports = runtime(seed=writer * 1000 + number)
            done = begin(table, ports=ports).add(add(f"{writer}-{number}")).commit()
            results.append(done.version)

    threads = [threading.Thread(target=work, args=(writer,)) for writer in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == list(range(1, each * writers + 1))
    assert set(added_paths(store).values()) == {1}
    assert load_snapshot(store).num_files == each * writers


def test_threads_that_delete_one_file_have_one_winner() -> None:
    for seed in range(5):
        store = MemoryStore()
        table = begin(create_table(store)).add(add("f")).commit().snapshot
        start = threading.Barrier(3)
        outcomes: list[str] = []

        def work(writer: int, table=table, start=start, outcomes=outcomes, seed=seed) -> None:  # type: ignore[no-untyped-def]
            txn = begin(table, "DELETE", ports=runtime(seed=seed * 10 + writer)).add(remove("f"))
            start.wait()
            try:
                txn.commit()
                outcomes.append("won")
            except ConcurrentDeleteDeleteException:
                outcomes.append("lost")

        threads = [threading.Thread(target=work, args=(writer,)) for writer in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes) == ["lost", "lost", "won"]
        assert load_snapshot(store).version == 2


def test_threads_that_create_one_table_have_one_winner() -> None:
    store = MemoryStore()
    start = threading.Barrier(4)
    outcomes: list[str] = []

    def work(writer: int) -> None:
        txn = Transaction.for_new_table(
            store, Operation(name="CREATE TABLE"), runtime(seed=writer), ()
        )
        txn.update_metadata(Metadata(id=str(writer)))
        start.wait()
        try:
            txn.commit()
            outcomes.append("created")
        except TwinlakeError as error:
            outcomes.append(str(error.code))

    threads = [threading.Thread(target=work, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["TWIN-TABLE-EXISTS"] * 3 + ["created"]
