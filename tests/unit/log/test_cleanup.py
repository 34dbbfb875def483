"""Expired history goes, and never anything a reader may still need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.log_tables import (
    DAY,
    V1_PROTOCOL,
    FixedClock,
    add,
    commit,
    info,
    metadata,
    state_of,
)
from twinlake.actions import Protocol
from twinlake.errors import UserError
from twinlake.log import (
    CheckpointKind,
    CleanupPlan,
    cleanup_log,
    commit_key,
    load_snapshot,
    plan_cleanup,
    write_checkpoint,
    write_compaction,
)
from twinlake.log.names import LogFile, checksum_key, parse_log_file
from twinlake.runtime import Runtime
from twinlake.storage import Fault, MemoryStore, SimulatedCrash, Store

if TYPE_CHECKING:
    from collections.abc import Mapping

START = 1_700_000_000_000 // DAY * DAY
PROTECTED = Protocol(
    3,
    7,
    reader_features=frozenset({"v2Checkpoint"}),
    writer_features=frozenset({"v2Checkpoint", "checkpointProtection"}),
)


def daily_log(
    days: int,
    checkpoints: tuple[int, ...] = (),
    protocol: Protocol = V1_PROTOCOL,
    options: Mapping[str, Any] | None = None,
    settings: Mapping[str, str] | None = None,
) -> tuple[MemoryStore, FixedClock]:
    """One commit a day at noon, version 0 on the first; the clock stands at the last one."""
    clock = FixedClock(START)
    store = MemoryStore(clock=clock)
    for version in range(days):
        clock.now = START + version * DAY + DAY // 2
        first = (protocol, metadata(**(settings or {}))) if version == 0 else ()
        commit(store, version, info(), *first, add(f"f{version}.parquet", version))
        if version in checkpoints:
            write_checkpoint(load_snapshot(store), runtime=Runtime(clock=clock), **(options or {}))
        store.put(checksum_key(version), b"{}")
    return store, clock


def clean(store: Store, clock: FixedClock, **options: Any) -> CleanupPlan:
    return cleanup_log(load_snapshot(store), runtime=Runtime(clock=clock), **options)


def versions(store: Store, ending: str) -> list[int]:
    names = [m.key.rpartition("/")[2] for m in store.list_from("_delta_log")]
    return sorted(int(n[:20]) for n in names if n[20:] == ending)


def test_old_history_goes_and_the_base_stays() -> None:
    store, clock = daily_log(50, (10, 15, 20, 40))
    before = state_of(load_snapshot(store))
    plan = clean(store, clock)
    # At noon of day 49 the cutoff is midnight of day 19; version 18 is the newest before it, and
    # 15 the newest checkpoint up to that.
    assert plan.kept_checkpoint == 15
    assert versions(store, ".json") == list(range(15, 50))
    assert versions(store, ".crc") == list(range(15, 50))
    assert versions(store, ".checkpoint.parquet") == [15, 20, 40]
    assert state_of(load_snapshot(store)) == before
    assert load_snapshot(store, 15).num_files == 16
    assert load_snapshot(store, 17).num_files == 18
    again = clean(store, clock)
    assert (again.files, again.reason) == ((), "nothing is expired")


@pytest.mark.parametrize(
    ("days", "checkpoints", "settings", "reason"),
    [
        (50, (), {}, "no checkpoint"),
        (50, (30,), {}, "no checkpoint"),
        (20, (10,), {}, "no version is old enough"),
        (50, (10,), {"enableExpiredLogCleanup": "false"}, "enableExpiredLogCleanup"),
        (50, (10,), {"logRetentionDuration": "interval 60 days"}, "no version is old enough"),
    ],
    ids=["no-checkpoint", "only-young-checkpoint", "young", "switched-off", "longer-retention"],
)
def test_nothing_goes(
    days: int, checkpoints: tuple[int, ...], settings: dict[str, str], reason: str
) -> None:
    store, clock = daily_log(days, checkpoints, settings=settings)
    before = store.snapshot()
    plan = clean(store, clock)
    assert plan.files == ()
    assert reason in plan.reason
    assert store.snapshot() == before


def test_the_cutoff_is_a_midnight() -> None:
    store, clock = daily_log(10, (4, 5))
    # Three days before noon of day 9 is noon of day 6; only days before it count.
    clock.now = START + 9 * DAY + DAY - 1
    assert clean(store, clock, retention_ms=3 * DAY, dry_run=True).kept_checkpoint == 5
    clock.now = START + 9 * DAY
    assert clean(store, clock, retention_ms=3 * DAY, dry_run=True).kept_checkpoint == 5
    clock.now = START + 9 * DAY - 1
    assert clean(store, clock, retention_ms=3 * DAY, dry_run=True).kept_checkpoint == 4


def test_a_dry_run_deletes_nothing() -> None:
    store, clock = daily_log(50, (10,))
    before = store.snapshot()
    plan = clean(store, clock, dry_run=True)
    assert len(plan.commits) == 10
    assert plan.to_dict()["kept_checkpoint"] == 10
    assert store.snapshot() == before


def test_a_negative_retention_is_refused() -> None:
    store, clock = daily_log(2)
    with pytest.raises(UserError):
        clean(store, clock, retention_ms=-1)


def test_compactions_and_staged_commits_that_start_before_the_base_go() -> None:
    store, clock = daily_log(50, (10,))
    for start, end in ((2, 4), (9, 12), (10, 12), (11, 13)):
        write_compaction(store, start, end)
    staged = "_delta_log/_staged_commits/%020d.8d7c4f3e-0000-4000-8000-000000000001.json"
    store.put(staged % 10, b"")
    store.put(staged % 11, b"")
    before = state_of(load_snapshot(store))
    plan = clean(store, clock)
    assert [k for k in plan.beside if "compacted" in k] == [
        f"_delta_log/{s:020d}.{e:020d}.compacted.json" for s, e in ((2, 4), (9, 12), (10, 12))
    ]
    assert store.head(staged % 10) is None
    assert store.head(staged % 11) is not None
    assert state_of(load_snapshot(store)) == before


def test_an_unreadable_checkpoint_is_no_base() -> None:
    store, clock = daily_log(50, (10, 15))
    store.put(f"_delta_log/{15:020d}.checkpoint.parquet", b"junk")
    before = state_of(load_snapshot(store))
    assert clean(store, clock).kept_checkpoint == 10
    assert state_of(load_snapshot(store)) == before


def test_an_incomplete_multi_part_checkpoint_is_no_base() -> None:
    store, clock = daily_log(50, (10, 15), options={"parts": 2})
    store.delete([f"_delta_log/{15:020d}.checkpoint.{1:010d}.{2:010d}.parquet"])
    assert clean(store, clock).kept_checkpoint == 10


def test_files_are_aged_by_in_commit_timestamps_where_there_are_any() -> None:
    clock = FixedClock(START + 100 * DAY)
    store = MemoryStore(clock=clock)
    settings = {"enableInCommitTimestamps": "true"}
    for version in range(50):
        first = (V1_PROTOCOL, metadata(**settings)) if version == 0 else ()
        at = START + version * DAY + DAY // 2
        commit(store, version, info(in_commit_timestamp=at), *first, add(f"f{version}.parquet"))
        if version in (10, 15):
            write_checkpoint(load_snapshot(store), runtime=Runtime(clock=clock))
    clock.now = START + 49 * DAY + DAY // 2
    assert clean(store, clock).kept_checkpoint == 15


def test_commit_times_that_fall_back_are_made_to_rise() -> None:
    store, clock = daily_log(50, (10, 15))
    # Version 12 was copied yesterday: it and all later ones count as at least that young.
    store.set_modified(commit_key(12), clock.now - DAY)
    assert clean(store, clock).kept_checkpoint == 10


# Sidecars

V2 = Protocol(
    3, 7, reader_features=frozenset({"v2Checkpoint"}), writer_features=frozenset({"v2Checkpoint"})
)


def sidecars(store: Store) -> set[str]:
    return {m.key for m in store.list_from("_delta_log/_sidecars")}


def test_sidecars_go_with_the_last_checkpoint_that_names_them() -> None:
    options = {"kind": CheckpointKind.V2_PARQUET, "sidecars": 2}
    store, clock = daily_log(50, (5, 10, 40), V2, options)
    assert len(sidecars(store)) == 6
    store.put("_delta_log/_sidecars/young.parquet", b"")
    before = state_of(load_snapshot(store))
    plan = clean(store, clock)
    assert len(plan.sidecars) == 2
    assert len(sidecars(store)) == 5
    assert "_delta_log/_sidecars/young.parquet" in sidecars(store)
    assert state_of(load_snapshot(store)) == before
    assert load_snapshot(store, 12).num_files == 13
    # A day later the one that no checkpoint ever named goes as well.
    clock.now += 2 * DAY
    assert clean(store, clock).sidecars == ("_delta_log/_sidecars/young.parquet",)


def test_sidecars_stay_while_a_checkpoint_cannot_be_read() -> None:
    options = {"kind": CheckpointKind.V2_PARQUET, "sidecars": 1}
    store, clock = daily_log(50, (5, 10, 40), V2, options)
    (newest,) = [m.key for m in store.list_from("_delta_log") if f"{40:020d}.checkpoint" in m.key]
    store.put(newest, b"junk")
    plan = clean(store, clock)
    assert plan.kept_checkpoint == 10
    assert plan.sidecars == ()


# Checkpoint protection


@pytest.mark.parametrize(
    ("before", "kept"), [("0", 15), ("15", 15), ("12", 15), ("16", None), ("40", None)]
)
def test_protected_history_goes_as_a_whole_or_not_at_all(before: str, kept: int | None) -> None:
    settings = {"requireCheckpointProtectionBeforeVersion": before}
    store, clock = daily_log(50, (10, 15), PROTECTED, settings=settings)
    plan = clean(store, clock)
    assert bool(plan.files) == (kept is not None)
    if kept is None:
        assert f"before version {before}" in plan.reason
        assert versions(store, ".json") == list(range(50))
    else:
        assert versions(store, ".json") == list(range(kept, 50))


def test_the_property_means_nothing_without_the_feature() -> None:
    settings = {"requireCheckpointProtectionBeforeVersion": "40"}
    store, clock = daily_log(50, (10, 15), V1_PROTOCOL, settings=settings)
    assert clean(store, clock).commits


@pytest.mark.parametrize("nth", [1, 5, 10, 11, 25, 31])
def test_a_crash_in_between_leaves_a_readable_table(nth: int) -> None:
    store, clock = daily_log(50, (5, 10, 15))
    before = state_of(load_snapshot(store))
    store.set_faults([("delete", nth, Fault.crash_after())])
    with pytest.raises(SimulatedCrash):
        clean(store, clock)
    store.set_faults(())
    assert state_of(load_snapshot(store)) == before
    # No checkpoint is gone while one of its commits is still there.
    if versions(store, ".json")[0] < 15:
        assert versions(store, ".checkpoint.parquet") == [5, 10, 15]
    clean(store, clock)
    assert versions(store, ".json") == list(range(15, 50))
    assert state_of(load_snapshot(store)) == before


# The plan by itself


def log_files(*names: str) -> list[LogFile]:
    found = [parse_log_file(f"_delta_log/{name}") for name in names]
    return [f for f in found if f is not None]


@pytest.mark.parametrize(
    ("cutoff", "gone"),
    [
        (None, []),
        (0, []),
        (1, []),
        (2, [0, 1]),
        (9, [0, 1]),
    ],
)
def test_plan(cutoff: int | None, gone: list[int]) -> None:
    files = log_files(
        *(f"{v:020d}.json" for v in range(4)),
        f"{2:020d}.checkpoint.parquet",
        f"{1:020d}.checkpoint.{1:010d}.{2:010d}.parquet",
    )
    plan = plan_cleanup(files, cutoff_version=cutoff)
    assert plan.commits == tuple(f"_delta_log/{v:020d}.json" for v in gone)
    assert len(plan.checkpoints) == (1 if gone else 0)
