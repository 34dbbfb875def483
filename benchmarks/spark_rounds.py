"""Rounds of the Spark benchmarks: both sides in turn, and what their medians say."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from benchmarks.harness import (
    CaseResult,
    Figure,
    Plan,
    Row,
    Sample,
    check_same,
    scratch_folder,
)
from benchmarks.spark_process import OURS, THEIRS, Worker

if TYPE_CHECKING:
    from benchmarks.spark_tables import SparkTable

THROWN_AWAY: Final = 2
"""Rounds before those that count: the JVM compiles what is run often."""

Quantity = Callable[[Sample], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """An engine, in the process of one side."""

    engine: str
    worker: str
    spec: Mapping[str, Any] = field(default_factory=dict)
    """What it needs to be told beside what all are told."""


BOTH: Final = (
    Contestant(engine=OURS, worker=OURS),
    Contestant(engine=THEIRS, worker=THEIRS),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The two sides and what the cases need to know of this run."""

    plan: Plan
    workers: Mapping[str, Worker]

    def table(self, recipe: SparkTable) -> str:
        """The folder of a table; Delta Spark makes it if it is not there yet."""
        folder = self.plan.data / recipe.name
        if not folder.exists():
            making = self.plan.data / f"{recipe.name}.making"
            self.workers[THEIRS].ask(**recipe.request(making))
            making.rename(folder)
        return str(folder)

    def once(
        self,
        who: Contestant,
        work: str,
        spec: Mapping[str, Any],
        *,
        check: bool = False,
        profile: bool = False,
    ) -> Sample:
        """One run of one contestant on a scratch folder of its own."""
        with scratch_folder(self.plan.data) as folder:
            answer = self.workers[who.worker].ask(
                do="work",
                work=work,
                engine=who.engine,
                spec={**spec, **who.spec},
                folder=str(folder),
                check=check,
                profile=profile,
            )
        return Sample(**answer)

    def rounds(
        self,
        work: str,
        spec: Mapping[str, Any],
        who: Sequence[Contestant] = BOTH,
        *,
        runs: int | None = None,
        thrown_away: int = THROWN_AWAY,
    ) -> dict[str, list[Sample]]:
        """All in turn, the order reversed every time. The first round is checked, not counted."""
        checked: dict[str, list[Sample]] = {}
        samples: dict[str, list[Sample]] = {one.engine: [] for one in who}
        for number in range(thrown_away + (self.plan.runs if runs is None else runs)):
            for one in who if number % 2 == 0 else tuple(reversed(who)):
                sample = self.once(one, work, spec, check=number == 0)
                if number == 0:
                    checked[one.engine] = [sample]
                if number >= thrown_away:
                    samples[one.engine].append(sample)
            if number == 0:
                check_same(checked)
        return samples


def of_rounds(
    what: str,
    samples: Mapping[str, Sequence[Sample]],
    quantity: Quantity,
    *,
    bar: float | None = None,
    limit: float | None = None,
    peer: str = THEIRS,
    one: str = OURS,
    unit: str = "s",
) -> Row:
    """A row of the table: one side over the peer, with the ratios of the single rounds."""
    ours = [quantity(sample) for sample in samples[one]]
    theirs = [quantity(sample) for sample in samples[peer]]
    return Row(
        what=what,
        unit=unit,
        ours=spread(one, ours),
        peer=spread(peer, theirs),
        bar=bar,
        limit=limit,
        ratios=tuple(a / b for a, b in zip(ours, theirs, strict=True) if b),
    )


def spread(side: str, values: Sequence[float]) -> Figure:
    """Median and range."""
    return Figure(
        side=side,
        median=statistics.median(values),
        low=min(values),
        high=max(values),
        runs=len(values),
    )


def compare(
    bench: Bench,
    case: str,
    what: str,
    work: str,
    spec: Mapping[str, Any],
    *,
    bar: float | None,
    quantity: Quantity = attrgetter("wall"),
    unit: str = "s",
    thrown_away: int = THROWN_AWAY,
) -> CaseResult:
    """One operation by both sides; where the bar is missed, also where the time goes."""
    samples = bench.rounds(work, spec, thrown_away=thrown_away)
    timed = of_rounds(f"{what}: time", samples, quantity, bar=bar, unit=unit)
    rows = (timed, of_rounds(f"{what}: CPU time", samples, attrgetter("cpu")))
    bench.plan.say(f"  {what}: {timed.ratio:.2f}, CPU {rows[1].ratio:.2f}")
    notes, breakdowns = where_it_goes(bench, work, spec) if timed.verdict == "MISS" else ((), {})
    return CaseResult(
        case=case, title=what, rows=rows, notes=notes, breakdowns=breakdowns, samples=samples
    )


def where_it_goes(
    bench: Bench, work: str, spec: Mapping[str, Any]
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """One more run of each side, looked at closely."""
    notes, breakdowns = [], {}
    for one in BOTH:
        found = bench.once(one, work, spec, profile=True).breakdown
        assert found is not None
        notes.append(
            f"{one.engine}: {found['jobs']} Spark jobs take {found['job_seconds']:.2f} s of "
            f"{found['wall']:.2f} s, {found['jvm_calls']} calls from Python to the JVM"
        )
        if one.engine == OURS:
            breakdowns[OURS] = found
    return tuple(notes), breakdowns
