"""The shipped commit path: two writers in every interleaving, and again with faults."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from tests.support.scale import is_full_scale
from twinlake.verify.code import (
    FAULTS,
    GROUPS,
    WORKLOADS,
    Exploration,
    FaultName,
    PlacedFault,
    explore,
    replay,
    sample,
    sweep,
)

#: Workloads of three writers or more are sampled by seed, all others run to the end.
ASKED = ("append", "delete", "update", "optimize")
PAIRS = [
    name
    for name in GROUPS["pairs"]
    if is_full_scale() or "merge" not in name or name.endswith(".shared.vectors")
]
SWEPT = GROUPS["pairs"] if is_full_scale() else ("delete-update.shared.copy",)


def told(result: Exploration) -> str:
    """The counts of an exploration, on one line."""
    return (
        f"{result.workload} ({result.mode}): {result.schedules} schedules,"
        f" {result.blocked} blocked, {result.steps} calls, {result.states} states,"
        f" {len(result.ends)} ends, {result.placements} faults, {dict(result.outcomes)}"
    )


def test_every_pair_is_there_with_shared_and_disjoint_targets() -> None:
    asked = {
        f"{one}-{other}.{target}.{layout}"
        for n, one in enumerate(ASKED)
        for other in ASKED[n:]
        for target in ("shared", "disjoint")
        for layout in ("vectors", "copy")
    }
    assert len(asked) == 40
    assert asked <= set(PAIRS)


@pytest.mark.parametrize("name", PAIRS)
def test_two_writers_in_every_interleaving(name: str) -> None:
    result = explore(name)
    sys.stdout.write(f"{told(result)}\n")
    assert result.ok, result.violations
    # Each may come wholly before the other, and they race for the version: lost by either.
    assert result.schedules == len(result.ends) == 6
    assert not any("failed" in outcome or "unknown" in outcome for outcome in result.outcomes)


@pytest.mark.parametrize("name", GROUPS["isolation"])
def test_a_serializable_table_has_the_effects_in_the_order_of_the_log(name: str) -> None:
    result = explore(name)
    assert result.ok, result.violations
    refused = [outcome for outcome in result.outcomes if "w1 refused" in outcome]
    # Rearranging rows reads nothing that an append could change.
    assert bool(refused) is ("optimize" not in name)


def test_a_blind_append_passes_a_statement_that_read_only_where_the_table_lets_it() -> None:
    """The same workload under the weaker level has effects in another order than the log's."""
    weaker = WORKLOADS["append-delete.shared.copy"]
    assert explore(weaker).ok
    strict = replace(weaker, layout=replace(weaker.layout, serializable=True))
    assert [one.property for one in explore(strict).violations] == ["Serializable"]


@pytest.mark.parametrize("name", SWEPT)
def test_two_writers_with_every_single_fault_at_every_call(name: str) -> None:
    result = sweep(name)
    sys.stdout.write(f"{told(result)}\n")
    assert result.ok, result.violations
    assert result.placements > 30
    kinds = {kind for outcome in result.outcomes for kind in outcome.replace(";", "").split()}
    assert {"committed", "crashed", "failed"} <= kinds
    # One lost reply is always settled: nobody is left without an answer.
    assert not kinds & {"unknown", "broken"}


@pytest.mark.parametrize("kind", FAULTS)
def test_every_kind_of_fault_is_met_and_changes_something(kind: FaultName) -> None:
    name = "append-append.shared.copy"
    plain, calls = explore(name), replay(f"{name}~a40").trace.steps
    first = next(
        number
        for number, step in enumerate(calls, 1)
        if step.actor == "w0" and kind.applies_to(step.action)
    )
    faulty = explore(name, faults=(PlacedFault(0, first, kind),))
    assert faulty.ok, faulty.violations
    assert faulty.placements == 1
    seen = replay(f"{name}~a{first}:{kind}~a40").trace.steps[first - 1].arguments
    assert seen["fault"] == kind
    assert faulty.ends != plain.ends


def test_random_schedules_end_where_the_exploration_ended() -> None:
    """The reduction left out nothing that chance can find."""
    name = "delete-update.shared.copy"
    explored = explore(name)
    wandered = sample(name, seed=7, runs=25, faults=0)
    assert not wandered.violations
    assert wandered.ends <= explored.ends
    assert len(wandered.ends) > 2


def test_the_full_search_ends_where_the_reduced_one_does() -> None:
    """All orders of the calls, also of those that cannot matter, as far as they can be run."""
    reduced = explore("optimize-optimize.shared.vectors")
    full = explore("optimize-optimize.shared.vectors", reduce=False, limit=40)
    assert not full.complete
    assert not full.violations
    assert full.ends <= reduced.ends


@pytest.mark.parametrize("name", GROUPS["three"])
def test_three_writers(name: str) -> None:
    result = explore(name) if is_full_scale() else sample(name, runs=5, faults=1)
    sys.stdout.write(f"{told(result)}\n")
    assert not result.violations
    assert result.complete is is_full_scale()


def test_workloads_have_names_and_titles_of_their_own() -> None:
    assert sum(map(len, GROUPS.values())) == len(WORKLOADS)
    assert len({one.title for one in WORKLOADS.values()}) == len(WORKLOADS)
