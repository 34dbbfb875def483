"""Hooks run after a commit, in order, and can fail without failing it."""

from __future__ import annotations

import logging

import pytest

from tests.unit.commit.making import add, begin, create_table
from twinlake.commit import (
    CHECKPOINT_HOOK,
    CHECKSUM_HOOK,
    DEFAULT_HOOKS,
    HookContext,
    HookWarning,
    PostCommitHook,
)
from twinlake.errors import Code, StorageError
from twinlake.log import commit_key, load_snapshot
from twinlake.storage import MemoryStore, SimulatedCrash


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
    assert [hook.name for hook in DEFAULT_HOOKS] == ["checksum", "checkpoint"]
