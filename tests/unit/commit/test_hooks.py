"""Hooks run after a commit, in order, and can fail without failing it."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.unit.commit.making import StillClock, add, begin, create_table, runtime
from twinlake.commit import (
    CHECKPOINT_HOOK,
    CHECKSUM_HOOK,
    CLEANUP_HOOK,
    DELTA_HOOKS,
    CommitResult,
    HookContext,
    HookWarning,
    PostCommitHook,
)
from twinlake.errors import Code, StorageError
from twinlake.log import commit_key, load_snapshot
from twinlake.storage import Fault, MemoryStore, SimulatedCrash

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from twinlake.storage import ObjectMeta


def keys(store: MemoryStore) -> list[str]:
    return [key for key, _ in store.snapshot()]


def test_hooks_run_in_order_after_the_commit() -> None:
    store = MemoryStore()
    seen: list[tuple[str, int, bool]] = []

    def note(name: str) -> PostCommitHook:
        def run(context: HookContext) -> None:
            there = commit_key(context.version) in keys(store)
            seen.append((name, context.version, there))

        return PostCommitHook(name=name, run=run)

    table = create_table(store)
    result = begin(table, hooks=(note("one"), note("two"))).add(add("f")).commit()
    assert seen == [("one", 1, True), ("two", 1, True)]
    assert result.warnings == ()


def test_a_failing_hook_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_context: HookContext) -> None:
        raise StorageError(Code.STORAGE, "The disk is full.")

    def crash(_context: HookContext) -> None:
        raise ZeroDivisionError

    ran = []
    hooks = (
        PostCommitHook(name="first", run=fail),
        PostCommitHook(name="second", run=crash),
        PostCommitHook(name="third", run=lambda context: ran.append(context.version)),
    )
    store = MemoryStore()
    with caplog.at_level(logging.WARNING, logger="twinlake.commit"):
        result = begin(create_table(store), hooks=hooks).add(add("f")).commit()
    assert result.version == 1
    assert load_snapshot(store).version == 1
    assert result.warnings == (
        HookWarning(hook="first", version=1, error="The disk is full."),
        HookWarning(hook="second", version=1, error="ZeroDivisionError()"),
    )
    assert str(result.warnings[0]) == "Version 1 is committed, but first failed: The disk is full."
    assert ran == [1]
    records = [record.__dict__ for record in caplog.records]
    assert [record["twinlake_hook"] for record in records] == ["first", "second"]
    assert {record["twinlake_version"] for record in records} == {1}


def test_a_crash_in_a_hook_is_a_crash_after_the_commit() -> None:
    def die(_context: HookContext) -> None:
        raise SimulatedCrash("here")

    store = MemoryStore()
    table = create_table(store)
    with pytest.raises(SimulatedCrash):
        begin(table, hooks=(PostCommitHook(name="die", run=die),)).add(add("f")).commit()
    assert load_snapshot(store).version == 1


def test_checkpoint_every_so_many_commits() -> None:
    store = MemoryStore()
    table = create_table(store, {"delta.checkpointInterval": "3"})
    for number in range(7):
        result = begin(table, hooks=(CHECKPOINT_HOOK,)).add(add(f"f{number}")).commit()
        assert result.warnings == ()
        table = result.snapshot
    written = [key for key in keys(store) if ".checkpoint" in key]
    assert [key.split("/")[1][:20] for key in written] == [f"{v:020d}" for v in (3, 6)]
    assert load_snapshot(store).num_files == 7


def test_checksum_of_every_commit() -> None:
    store = MemoryStore()
    table = create_table(store)
    for number in range(2):
        result = begin(table, hooks=(CHECKSUM_HOOK,)).add(add(f"f{number}")).commit()
        assert result.warnings == ()
        table = result.snapshot
    assert [key for key in keys(store) if key.endswith(".crc")] == [
        f"_delta_log/{version:020d}.crc" for version in (1, 2)
    ]


def test_the_default_hooks() -> None:
    assert [hook.name for hook in DELTA_HOOKS] == ["checksum", "checkpoint", "cleanup"]


# Cleanup

DAY = 86_400_000


class CountingStore(MemoryStore):
    listings = 0

    def list_from(self, folder: str, start_after: str = "") -> Iterator[ObjectMeta]:
        self.listings += 1
        return super().list_from(folder, start_after)


class Writer:
    """One commit a day by a writer that keeps its snapshot; version n is made on day n - 1."""

    def __init__(
        self,
        hooks: tuple[PostCommitHook, ...] = DELTA_HOOKS,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.hooks = hooks
        self.clock = StillClock(100 * DAY)
        self.store = CountingStore(clock=self.clock)
        table = create_table(
            self.store,
            {"delta.checkpointInterval": "10"}
            | {f"delta.{key}": value for key, value in (settings or {}).items()},
        )
        young = replace(table.metadata, created_time=self.clock.now)
        self.table = begin(table).update_metadata(young).commit().snapshot

    def write_up_to(self, version: int) -> CommitResult:
        while True:
            self.clock.now += DAY
            transaction = begin(self.table, hooks=self.hooks, ports=runtime(self.clock))
            result = transaction.add(add(f"f{self.table.version}")).commit()
            self.table = result.snapshot
            if result.version == version:
                return result

    @property
    def commits(self) -> list[int]:
        names = [key.rpartition("/")[2] for key in keys(self.store)]
        return sorted(int(name[:20]) for name in names if name[20:] == ".json")


@pytest.mark.parametrize(
    ("version", "settings", "first"),
    [
        (39, {}, 0),
        (40, {}, 10),
        (49, {}, 10),
        (50, {}, 20),
        (50, {"enableExpiredLogCleanup": "false"}, 0),
        (50, {"logRetentionDuration": "interval 60 days"}, 0),
    ],
    ids=["young", "expired", "no-checkpoint-due", "again", "switched-off", "longer-retention"],
)
def test_expired_history_goes_after_a_checkpoint(
    version: int, settings: dict[str, str], first: int
) -> None:
    writer = Writer(settings=settings)
    result = writer.write_up_to(version)
    assert result.warnings == ()
    assert writer.commits == list(range(first, version + 1))
    assert load_snapshot(writer.store).num_files == version - 1
    # The writer's own value was made from commits that may be gone now.
    assert result.snapshot.files().num_rows == version - 1


@pytest.mark.parametrize(
    ("version", "hooks"),
    [(30, (CHECKPOINT_HOOK,)), (50, (CHECKSUM_HOOK,))],
    ids=["young-table", "no-checkpoint-written"],
)
def test_cleanup_lists_nothing_when_it_cannot_have_work(
    version: int, hooks: tuple[PostCommitHook, ...]
) -> None:
    without, with_cleanup = Writer(hooks), Writer((*hooks, CLEANUP_HOOK))
    for writer in (without, with_cleanup):
        writer.write_up_to(version)
    assert with_cleanup.store.listings == without.store.listings


def test_a_cleanup_that_fails_is_a_warning() -> None:
    writer = Writer((CHECKPOINT_HOOK, CLEANUP_HOOK))
    writer.write_up_to(39)
    writer.store.set_faults(
        lambda operation, _key, _nth: Fault.before() if operation == "list_from" else None
    )
    result = writer.write_up_to(40)
    assert [warning.hook for warning in result.warnings] == ["cleanup"]
    writer.store.set_faults(())
    assert load_snapshot(writer.store).version == 40
    assert writer.commits == list(range(41))
