"""Iceberg clients that commit through servers: in many interleavings, and with faults."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from tests.support.scale import is_full_scale, scale
from twinlake.verify.code import GROUPS, WORKLOADS, Exploration, explore, sample, sweep
from twinlake.verify.code.server.client_statements import ClientDelete

NAMES = GROUPS["server"]
#: Few enough schedules to run all of them.
SMALL = ("request-late", "request-twice") if is_full_scale() else ("request-late",)
SWEPT = NAMES if is_full_scale() else ("client-resend", "client-vectors", "column-twice")


def told(result: Exploration) -> str:
    """The counts of an exploration, on one line."""
    return (
        f"{result.workload} ({result.mode}): {result.schedules} schedules, {result.steps} calls,"
        f" {result.placements} faults, {dict(result.outcomes)}\n"
    )


def outcomes(result: Exploration, actor: str) -> set[str]:
    """How an actor ended."""
    every = (one.split() for outcome in result.outcomes for one in outcome.split("; "))
    return {kind for name, kind in every if name == actor}


@pytest.mark.parametrize("name", NAMES)
def test_random_interleavings_break_no_property(name: str) -> None:
    result = sample(name, runs=scale(10, 1_000), faults=0)
    sys.stdout.write(told(result))
    assert not result.violations
    ends = outcomes(result, "w0") | outcomes(result, "w1")
    assert ends & {"committed", "already"}
    # Nothing failed, so nobody is left without an answer, but who does not wait for it.
    assert not outcomes(result, "w0") & {"unknown", "crashed"}
    assert "broken" not in ends


@pytest.mark.parametrize("name", SMALL)
def test_small_workloads_are_run_to_the_end(name: str) -> None:
    result = explore(name)
    sys.stdout.write(told(result))
    assert result.ok, result.violations
    assert result.schedules > 100
    if name == "request-late":
        assert outcomes(result, "w1") == {"committed", "unknown"}
    else:
        assert set(result.outcomes) == {"w0 committed; w1 committed"}


@pytest.mark.parametrize("name", SWEPT)
def test_one_fault_of_each_kind_at_every_call(name: str) -> None:
    result = sweep(name, runs=scale(1, 20))
    sys.stdout.write(told(result))
    assert not result.violations
    assert result.placements > 80
    assert "crashed" in outcomes(result, "w0") & outcomes(result, "w1")
    assert "unknown" in outcomes(result, "w0")
    assert "broken" not in outcomes(result, "w0") | outcomes(result, "w1")


def test_several_faults_at_once() -> None:
    result = sample("clients", runs=scale(20, 2_000), faults=3)
    assert not result.violations
    assert result.placements > 5
    assert len(result.outcomes) > 2


def test_a_sampled_sweep_repeats_itself_and_does_not_claim_to_be_complete() -> None:
    one, other = (sweep("request-late", runs=1, kinds=("crash",)) for _ in range(2))
    counts = [(run.placements, run.outcomes, run.ends) for run in (one, other)]
    assert counts[0] == counts[1]
    assert one.placements > 30
    assert not one.complete


def test_a_client_that_does_not_say_what_it_scanned_meets_the_anomaly() -> None:
    """It deletes a row of a file that was updated meanwhile: the new row stays."""
    real = WORKLOADS["client-anomaly"]
    assert not sample(real, runs=30, faults=0).violations
    silent = ClientDelete("a", 1, refreshes=True, names_scan=False)
    workload = replace(real, name="client-says-nothing", actors=(("w0", silent), real.actors[1]))
    found = sample(workload, runs=100, faults=0)
    assert [one.property for one in found.violations] == ["ConsistentRead"]
