"""Snapshots that outlive a cleanup of the log, or the table: nothing acknowledged gets lost."""

from __future__ import annotations

import errno
from itertools import count
from typing import TYPE_CHECKING

import pytest

from tests.unit.commit.making import add, begin, create_table, remove, runtime
from twinlake.actions import CommitInfo, encode_lines
from twinlake.commit import Operation, Transaction
from twinlake.errors import (
    Code,
    CommitUnknown,
    ConcurrentDeleteDeleteException,
    ConcurrentWriteException,
    StorageError,
    UserError,
)
from twinlake.log import (
    Counters,
    Snapshot,
    commit_key,
    load_snapshot,
    update_snapshot,
    write_checkpoint,
)
from twinlake.log.counters import count_files
from twinlake.protocol import Metadata
from twinlake.storage import Fault, LocalStore, MemoryStore, local

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from twinlake.storage import Store


SEEDS = count(1000)


def appended(table: Snapshot, *names: str) -> Snapshot:
    for name in names:
        # No two commits may have one id, not even in another table of the same place.
        ports = runtime(seed=next(SEEDS))
        table = begin(table, ports=ports).add(add(name)).commit().snapshot
    return table


def commits(store: Store) -> list[str]:
    return [m.key for m in store.list_from("_delta_log") if m.key.endswith(".json")]


def clean_up(table: Snapshot, *, keep: int) -> None:
    """A checkpoint of ``table``, and the commits before ``keep`` gone."""
    write_checkpoint(table)
    table.store.delete(commit_key(version) for version in range(keep))


Opening = pytest.mark.parametrize(
    "reopen", [False, True], ids=["from-own-commit", "loaded-from-the-log"]
)


@Opening
def test_a_cleaned_up_version_is_no_ground_to_commit_on(reopen: bool) -> None:
    store = MemoryStore()
    held = appended(create_table(store), "a", "b", "c")
    held = load_snapshot(store) if reopen else held
    table = appended(held, *(f"f{number}" for number in range(6)))
    clean_up(table, keep=9)
    before = store.snapshot()
    with pytest.raises(ConcurrentWriteException) as caught:
        begin(held).add(add("ours")).commit()
    assert caught.value.code is Code.CONFLICT_WRITE
    assert caught.value.winner == 9
    assert "cleaned up" in caught.value.why
    assert "version 9" in caught.value.fix
    assert store.snapshot() == before
    done = begin(load_snapshot(store)).add(add("ours")).commit()
    assert load_snapshot(store).version == done.version == 10


def test_winners_that_can_still_be_read_are_followed() -> None:
    store = MemoryStore()
    held = appended(create_table(store), "a", "b")
    clean_up(appended(held, "c", "d"), keep=3)
    done = begin(held, ports=runtime(seed=2)).add(add("ours")).commit()
    assert done.version == 5
    assert set(load_snapshot(store).add_files()["path"].to_pylist()) == {"a", "b", "c", "d", "ours"}
    assert set(done.snapshot.add_files()["path"].to_pylist()) == {"a", "b", "c", "d", "ours"}


def test_winners_still_conflict() -> None:
    store = MemoryStore()
    held = appended(create_table(store), "a", "b")
    gone = begin(held, ports=runtime(seed=1)).add(remove("a", size=100)).commit().snapshot
    clean_up(gone, keep=3)
    with pytest.raises(ConcurrentDeleteDeleteException):
        begin(held, "DELETE", ports=runtime(seed=2)).add(remove("a", size=100)).commit()
    assert load_snapshot(store).version == 3


class CleanedWhileRead(MemoryStore):
    """The log is cleaned up the moment somebody reads one key."""

    trigger: str = ""
    clean: Callable[[], None] | None = None

    def read(self, key: str) -> bytes:
        if key == self.trigger and self.clean is not None:
            clean, self.clean = self.clean, None
            clean()
        return super().read(key)


def ready_to_clean() -> tuple[CleanedWhileRead, Snapshot]:
    store = CleanedWhileRead()
    held = appended(create_table(store), "a")
    table = appended(held, "b", "c", "d", "e", "f")
    store.trigger = commit_key(4)
    store.clean = lambda: clean_up(table, keep=6)
    return store, held


def test_a_cleanup_while_winners_are_read() -> None:
    store, held = ready_to_clean()
    with pytest.raises(ConcurrentWriteException):
        begin(held, ports=runtime(seed=2)).add(add("ours")).commit()
    assert store.clean is None
    assert commits(store) == [commit_key(6)]
    assert load_snapshot(store).version == 6


def test_a_cleanup_while_a_snapshot_is_brought_up_to_date() -> None:
    store, held = ready_to_clean()
    assert update_snapshot(held).version == 6
    assert store.clean is None


def test_a_cleanup_just_before_a_snapshot_is_brought_up_to_date() -> None:
    store, held = ready_to_clean()
    store.trigger = commit_key(held.version + 1)
    assert update_snapshot(held).version == 6


@Opening
@pytest.mark.parametrize("versions", [0, 3, 5], ids=["shorter", "equal", "longer"])
def test_another_table_in_the_same_place_is_left_alone(reopen: bool, versions: int) -> None:
    store = MemoryStore()
    held = appended(create_table(store), "a", "b", "c")
    if reopen:
        for version in range(4):
            store.set_modified(commit_key(version), 1_000)
        held = load_snapshot(store)
    store.delete(commits(store))
    txn = Transaction.for_new_table(store, Operation(name="CREATE TABLE"), runtime(seed=3), ())
    other = txn.update_metadata(Metadata(id="other")).commit().snapshot
    appended(other, *(f"n{number}" for number in range(versions)))
    before = store.snapshot()
    with pytest.raises(UserError) as caught:
        begin(held, ports=runtime(seed=4)).add(add("ours")).commit()
    assert caught.value.code is Code.TABLE_NOT_FOUND
    assert "replaced" in caught.value.what
    assert "'other'" in caught.value.why
    assert store.snapshot() == before
    assert update_snapshot(held).metadata.id == "other"
    assert update_snapshot(held).num_files == versions


@Opening
def test_a_deleted_table_does_not_come_back(reopen: bool) -> None:
    store = MemoryStore()
    held = appended(create_table(store), "a")
    held = load_snapshot(store) if reopen else held
    store.delete(commits(store))
    with pytest.raises(UserError) as caught:
        begin(held, ports=runtime(seed=2)).add(add("ours")).commit()
    assert caught.value.code is Code.TABLE_NOT_FOUND
    assert "gone" in caught.value.what
    assert store.snapshot() == ()


def test_a_rewritten_commit_is_no_ground_to_commit_on() -> None:
    store = MemoryStore()
    held = appended(create_table(store), "a")
    store.put(commit_key(1), encode_lines([CommitInfo(operation="WRITE"), add("x")]))
    with pytest.raises(ConcurrentWriteException) as caught:
        begin(held, ports=runtime(seed=2)).add(add("ours")).commit()
    assert "not the one that was read" in caught.value.why
    assert load_snapshot(store).version == 1


def test_a_version_that_only_a_checkpoint_stands_for_can_be_followed() -> None:
    store = MemoryStore()
    clean_up(appended(create_table(store), "a", "b"), keep=3)
    table = load_snapshot(store)
    assert table.version == 2
    assert begin(table).add(add("ours")).commit().version == 3
    assert load_snapshot(store).num_files == 3


def test_a_table_whose_first_versions_are_gone_is_not_created_again() -> None:
    store = MemoryStore()
    clean_up(appended(create_table(store), "a", "b"), keep=2)
    txn = Transaction.for_new_table(store, Operation(name="CREATE TABLE"), runtime(seed=3), ())
    with pytest.raises(UserError) as caught:
        txn.update_metadata(Metadata(id="other")).commit()
    assert caught.value.code is Code.TABLE_EXISTS
    assert commits(store) == [commit_key(2)]


def test_times_told_to_the_second_do_not_make_another_commit() -> None:
    store = MemoryStore()
    create_table(store)
    store.set_modified(commit_key(0), 5_432)
    held = load_snapshot(store)
    store.set_modified(commit_key(0), 5_000)
    assert held.is_still_there()
    store.set_modified(commit_key(0), 6_000)
    assert not held.is_still_there()


def test_a_large_commit_is_known_by_its_beginning() -> None:
    store = MemoryStore()
    table = create_table(store)
    names = [f"file-{number}" for number in range(500)]
    held = begin(table).add(*map(add, names)).commit().snapshot
    whole: list[str] = []
    store.set_faults(
        lambda operation, key, _nth: whole.append(key) if operation == "read" else None
    )
    assert held.is_still_there()
    assert whole == []


# The first snapshot


def test_a_created_table_is_not_looked_for() -> None:
    """What fails after version 0 is written must not look like a table that was not created."""
    store, fails = MemoryStore(), Fault.before()

    def plan(operation: str, _key: str, nth: int) -> Fault | None:
        # The one listing before the commit is fine; everything after it fails.
        return None if operation == "create" or (operation, nth) == ("list_from", 1) else fails

    store.set_faults(plan)
    table = create_table(store)
    store.set_faults(())
    fresh = load_snapshot(store)
    assert table.version == fresh.version == 0
    assert table.metadata == fresh.metadata
    assert table.protocol == fresh.protocol
    assert table.commit_info == fresh.commit_info
    assert table.timestamp_ms == fresh.timestamp_ms
    assert table.num_files == fresh.num_files == 0


def test_a_table_created_with_files_knows_them() -> None:
    store = MemoryStore()
    txn = Transaction.for_new_table(store, Operation(name="CREATE TABLE"), runtime(), ())
    table = txn.update_metadata(Metadata(id="t")).add(add("a"), add("b")).commit().snapshot
    assert table.known_counters == Counters(2, 200, 0, 0)
    assert table.add_files().equals(load_snapshot(store).add_files())


# Totals


Held = pytest.mark.parametrize("how", ["from-own-commit", "raw-in-memory", "lean-in-memory"])


def held_like(how: str, table: Snapshot) -> Snapshot:
    if how == "from-own-commit":
        return table
    loaded = load_snapshot(table.store)
    if how == "raw-in-memory":
        loaded.add_files()
    else:
        loaded.files()
    assert loaded.num_files == table.num_files
    return loaded


@Held
def test_a_path_that_is_added_again_counts_once(how: str) -> None:
    table = held_like(how, appended(create_table(MemoryStore()), "a", "b"))
    again = begin(table, ports=runtime(seed=5)).add(add("a", size=70)).commit().snapshot
    assert again.known_counters == Counters(2, 170, 0, 0)
    assert again.known_counters == count_files(load_snapshot(again.store).add_files())


@Held
def test_a_remove_of_an_unknown_path_counts_nothing(how: str) -> None:
    table = held_like(how, appended(create_table(MemoryStore()), "a", "b"))
    txn = begin(table, "DELETE", ports=runtime(seed=5)).add(remove("nope", size=50))
    done = txn.commit().snapshot
    assert done.known_counters == Counters(2, 200, 0, 0)
    assert done.known_counters == count_files(load_snapshot(done.store).add_files())


def test_totals_of_two_ways_on_from_one_snapshot() -> None:
    table = appended(create_table(MemoryStore()), "a")
    one = table.advance(2, [add("b"), add("c")])
    other = table.advance(2, [add("b"), remove("a", size=100)])
    assert one.num_files == 3
    assert other.num_files == 1
    assert one.advance(3, [remove("c", size=100)]).num_files == 2


def test_totals_below_zero_are_not_believed() -> None:
    assert Counters(1, 10, 0, 0).after([remove("a", size=20)]) is None
    assert Counters(0, 0, 0, 0).after([remove("a", size=0)]) is None
    assert Counters(1, 10, 0, 0).after([remove("a", size=10)]) == Counters(0, 0, 0, 0)


# Durability


def test_a_commit_that_is_not_on_disk_is_not_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create_table(LocalStore(tmp_path))

    def fail(_path: str) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(local, "_sync_folder", fail)
        with pytest.raises(CommitUnknown) as caught:
            begin(table, ports=runtime(seed=2)).add(add("ours")).commit()
    assert caught.value.code is Code.COMMIT_UNKNOWN
    assert "power cut" in caught.value.what
    assert "input/output error" in caught.value.why
    assert caught.value.fields["key"] == commit_key(1)


def test_a_commit_that_gets_to_disk_the_second_time_is_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create_table(LocalStore(tmp_path))
    real, calls = local._sync_folder, list[str]()

    def fail_once(path: str) -> None:
        calls.append(path)
        if len(calls) == 1:
            raise OSError(errno.EIO, "Input/output error")
        real(path)

    monkeypatch.setattr(local, "_sync_folder", fail_once)
    assert begin(table, ports=runtime(seed=2)).add(add("ours")).commit().version == 1
    assert len(calls) == 2


def test_a_failing_last_look_leaves_the_table_alone() -> None:
    store = MemoryStore()
    table = create_table(store)
    store.set_faults([("read_range", 1, Fault.before())])
    with pytest.raises(StorageError):
        begin(table, ports=runtime(seed=2)).add(add("ours")).commit()
    store.set_faults(())
    assert load_snapshot(store).version == 0
