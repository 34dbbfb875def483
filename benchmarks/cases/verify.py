"""The model checker: how soon it finds the anomaly, and what a state costs it."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from benchmarks.harness import CaseResult, Figure, Plan, Row, Side, alternate, figure

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.harness import Sample

SEED_LIMIT: Final = 0.1
LARGE_LIMIT: Final = 21.0
"""CPU seconds on one core: 250,000 distinct states a second."""
LOOP_LIMIT: Final = 60.0
BYTES_LIMIT: Final = 100.0
STORED_LIMIT: Final = 524_000.0
MOONSHOT: Final = 500_000
# Half a minute each, and the same work every time.
_RUNS: Final = 2


def run_seed(plan: Plan) -> list[CaseResult]:
    """The published model's configuration, from nothing to the trace."""
    sides = [
        Side(name="to the violation", job="benchmarks.jobs.verify:Seed", spec={"fix": None}),
        Side(name="with the fix", job="benchmarks.jobs.verify:Seed", spec={"fix": "A"}),
    ]
    samples = alternate(sides, plan)
    found, fixed = (samples[side.name][0].notes for side in sides)
    row = Row(
        what="verify iceberg --config seed: CPU time",
        unit="s",
        ours=figure(sides[0].name, samples, attrgetter("cpu")),
        peer=figure(sides[1].name, samples, attrgetter("cpu")),
        limit=SEED_LIMIT,
    )
    return [
        CaseResult(
            case="verify-seed",
            title="the model of Iceberg v2 with the parameters of the published one",
            rows=(row,),
            notes=(
                f"{found['states']:,} states to a trace of {found['steps']} steps; beside it the "
                f"same with the fix, {fixed['states']:,} states, all properties; twinlake on both "
                "sides",
            ),
            samples=samples,
        )
    ]


def run_large(plan: Plan) -> list[CaseResult]:
    """A large configuration: all states, and those that the reduction stores."""
    spec = {"parameters": plan.sizes.model}
    runs = min(plan.runs, _RUNS)
    usual = Side(name="as by default", job="benchmarks.jobs.verify:Large", spec=spec)
    by_state = Side(name="state by state", job="benchmarks.jobs.verify:Loop", spec=spec)
    samples = {
        **alternate([usual], plan, runs),
        **alternate([by_state], plan, runs),
    }
    facts = samples[usual.name][0].facts
    states, stored = facts["states"], facts["stored"]
    peaks = figure(
        by_state.name,
        samples,
        lambda sample: (sample.peak_mb - sample.base_mb) * 1024 * 1024 / states,
    )
    full = figure(usual.name, samples, _metric("all"))
    loop = figure(by_state.name, samples, _metric("all"))
    what = f"{states:,} states"
    rows = (
        Row(
            what=f"{what} over reduced: CPU time",
            unit="s",
            ours=full,
            peer=figure(usual.name, samples, _metric("reduced")),
            limit=LARGE_LIMIT,
        ),
        Row(
            what=f"{what} over state by state: memory a state",
            unit="B",
            ours=figure(usual.name, samples, _metric("bytes a state")),
            peer=peaks,
            limit=BYTES_LIMIT,
        ),
        Row(
            what=f"{what}, state by state over as by default: CPU time",
            unit="s",
            ours=loop,
            peer=full,
            limit=LOOP_LIMIT,
        ),
        Row(
            what=f"{what}: stored by the reduction",
            unit="states",
            ours=_exactly("reduced", stored),
            peer=_exactly("all", states),
            limit=STORED_LIMIT,
        ),
    )
    return [
        CaseResult(
            case="verify-large",
            title=f"the model of Iceberg v2 with {_told(plan.sizes.model)}",
            rows=rows,
            notes=(
                f"distinct states a CPU second on one core: {states / full.median:,.0f} as by "
                f"default, {states / loop.median:,.0f} state by state (moonshot {MOONSHOT:,})",
                f"all searches find no violation, and both kinds the same {facts['tables']:,} "
                "committed tables",
            ),
            samples=samples,
        )
    ]


def _metric(name: str) -> Callable[[Sample], float]:
    return lambda sample: sample.metrics[name]


def _exactly(side: str, value: float) -> Figure:
    return Figure(side=side, median=value, low=value, high=value, runs=1)


def _told(parameters: dict[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in parameters.items())
