"""Checkpoints, clean-up, VACUUM and Iceberg metadata while writers commit."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.support.scale import is_full_scale, scale
from tests.unit.verify.code.test_pairs import told
from twinlake.iceberg.sync.metadata_cache import CachedState
from twinlake.verify.code import GROUPS, WORKLOADS, explore, replay, sample, sweep

#: Explored to the end in every run; the others take longer and are sampled by seed.
SMALL = (
    "clean-log-append",
    "clean-log-bare",
    "clean-log-checkpoint",
    "restarts",
    "sync-append",
    "sync-update",
    "sync-rest",
    "sync-sync",
)
#: Too many interleavings even for long runs.
ENDLESS = ("vacuum-sync", "everybody")
ALL = (*GROUPS["upkeep"], *GROUPS["twin"], *GROUPS["all"])
#: Also run with every single fault.
FAULTY = (
    (*SMALL, "clean-log-delete", "vacuum-append", "vacuum-update")
    if is_full_scale()
    else ("clean-log-bare",)
)
LARGE = tuple(name for name in ALL if name not in (*SMALL, *ENDLESS))


@pytest.mark.parametrize("name", SMALL)
def test_every_interleaving(name: str) -> None:
    result = explore(name)
    sys.stdout.write(f"{told(result)}\n")
    assert result.ok, result.violations


@pytest.mark.parametrize("name", LARGE)
def test_larger_workloads(name: str) -> None:
    result = explore(name) if is_full_scale() else sample(name, runs=3, faults=1)
    sys.stdout.write(f"{told(result)}\n")
    assert not result.violations
    assert result.complete is is_full_scale()


@pytest.mark.parametrize("name", ENDLESS)
def test_endless_workloads_by_seed(name: str) -> None:
    result = sample(name, seed=3, runs=scale(2, 600))
    sys.stdout.write(f"{told(result)}\n")
    assert not result.violations
    assert result.schedules == scale(2, 600)


@pytest.mark.parametrize("name", FAULTY)
def test_every_single_fault_at_every_call(name: str) -> None:
    result = sweep(name)
    sys.stdout.write(f"{told(result)}\n")
    assert result.ok, result.violations


def test_an_application_that_starts_again_commits_once() -> None:
    result = sweep("restarts", kinds=("crash",))
    assert result.ok, result.violations
    assert any(outcome.startswith("w0 already") for outcome in result.outcomes)


def test_a_writer_whose_base_was_cleaned_up_goes_on_or_fails_but_never_forks_the_log() -> None:
    # The update loads version 0; then comes an append with a checkpoint and a clean-up.
    held = replay("left-behind~a5b40")
    assert not held.violations
    assert held.replies["w1"] == "committed 1"
    assert held.replies["w0"].startswith(("committed 2", "refused"))
    deleted = [
        step
        for step in held.trace.steps
        if step.changes.values() and "deleted" in str(step.changes)
    ]
    assert deleted, "the clean-up did nothing"


def test_a_reader_is_not_stopped_by_a_clean_up_between_its_listing_and_its_reads() -> None:
    # The update has listed version 0 when a checkpoint takes its place.
    held = replay("left-behind~a2b40")
    assert not held.violations
    reads = [(s.action, s.arguments["result"]) for s in held.trace.steps if s.actor == "w0"]
    assert ("read", "not there") in reads[2:]
    assert sum(action == "list_from" for action, _ in reads) == 2
    assert held.replies == {"w0": "committed 2", "w1": "committed 1"}


def test_a_converter_goes_on_from_what_it_made(monkeypatch: pytest.MonkeyPatch) -> None:
    real, held = CachedState.is_current, []

    def is_current(self: CachedState, *arguments: Any) -> bool:
        held.append(real(self, *arguments))
        return held[-1]

    monkeypatch.setattr(CachedState, "is_current", is_current)
    assert explore("sync-rest").ok
    assert any(held)


def test_actors_do_what_their_workload_is_about() -> None:
    """Nothing passes because nothing happened: each does change the store in some run."""
    for name in ("clean-log-append", "vacuum-append", "sync-append"):
        run = replay(name)
        changed = {step.actor for step in run.trace.steps if step.changes}
        assert changed == set(WORKLOADS[name].names), name
