"""Running workloads: every interleaving, every single fault, or by seed; and one run again."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from twinlake.verify.checker.model import plain
from twinlake.verify.code.calls import FAULTS, Placed, find_fault
from twinlake.verify.code.execution import Execution
from twinlake.verify.code.history import Judge
from twinlake.verify.code.reduction import Path
from twinlake.verify.code.schedules import Schedule, parse_schedule
from twinlake.verify.code.telling import Replay, Violation, told
from twinlake.verify.code.workloads import find_workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from twinlake.verify.code.history import Finding
    from twinlake.verify.code.workload import Workload

__all__ = ["Exploration", "explore", "replay", "sample", "shrink", "sweep"]

_SHRINKING: Final = 150
_Places = dict[tuple[int, int], set[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploration:
    """What an exploration found."""

    workload: str
    mode: str
    """explore, sweep or sample."""
    schedules: int
    """Runs that were made to their end and judged."""
    blocked: int
    """Runs that were left because everything after was covered."""
    steps: int
    """Storage calls in all of them."""
    states: int
    """Different states: the objects, and all that each actor has seen."""
    ends: frozenset[tuple[int, ...]] = field(repr=False)
    """The different states that runs ended in, as fingerprints of this process."""
    placements: int
    """Places and kinds of faults that were tried, and met."""
    complete: bool
    """Whether there was nothing left to run."""
    outcomes: Mapping[str, int]
    """How often the actors ended how."""
    violations: tuple[Violation, ...]
    cpu_seconds: float

    @property
    def ok(self) -> bool:
        """Whether everything was run and everything holds."""
        return self.complete and not self.violations

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON data."""
        return {
            "workload": self.workload,
            "mode": self.mode,
            "ok": self.ok,
            "schedules": self.schedules,
            "blocked": self.blocked,
            "steps": self.steps,
            "states": self.states,
            "ends": len(self.ends),
            "placements": self.placements,
            "complete": self.complete,
            "outcomes": plain(dict(self.outcomes)),
            "violations": [one.to_dict() for one in self.violations],
            "cpu_seconds": round(self.cpu_seconds, 3),
        }


@dataclass(slots=True)
class _Tally:
    """What is counted while exploring; one for all the parts of a sweep."""

    workload: Workload
    limit: int | None
    stop_at: int
    progress: Callable[[int], None] | None
    judge: Judge = field(init=False)
    schedules: int = 0
    blocked: int = 0
    steps: int = 0
    placements: int = 0
    states: set[tuple[int, ...]] = field(default_factory=set)
    ends: set[tuple[int, ...]] = field(default_factory=set)
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[Schedule, Finding]] = field(default_factory=list)
    began: float = field(default_factory=time.process_time)
    complete: bool = True

    def __post_init__(self) -> None:
        self.judge = Judge(self.workload)

    @property
    def is_over(self) -> bool:
        """Whether to stop before the end."""
        return len(self.failures) >= self.stop_at or (
            self.limit is not None and self.schedules + self.blocked >= self.limit
        )

    def add(self, run: Execution, faults: tuple[Placed, ...], found: Finding | None) -> None:
        self.schedules += 1
        self.ends.add(run.state)
        replies = run.replies()
        self.outcomes["; ".join(f"{name} {reply.kind}" for name, reply in replies.items())] += 1
        if found is not None:
            choices = tuple(event.actor for event in run.events)
            self.failures.append((Schedule(self.workload, choices, faults), found))
        if self.progress is not None:
            self.progress(self.schedules)

    def result(self, mode: str) -> Exploration:
        violations = tuple(_violation(schedule, found) for schedule, found in self.failures)
        return Exploration(
            workload=self.workload.name,
            mode=mode,
            schedules=self.schedules,
            blocked=self.blocked,
            steps=self.steps,
            states=len(self.states),
            ends=frozenset(self.ends),
            placements=self.placements,
            complete=self.complete,
            outcomes=dict(sorted(self.outcomes.items())),
            violations=violations,
            cpu_seconds=time.process_time() - self.began,
        )


def explore(
    workload: Workload | str,
    *,
    faults: Iterable[Placed] = (),
    limit: int | None = None,
    stop_at: int = 1,
    reduce: bool = True,
    progress: Callable[[int], None] | None = None,
) -> Exploration:
    """Run every interleaving of the storage calls of a workload, and judge each.

    Args:
        workload: one of ``WORKLOADS``, by name or as it is.
        faults: calls that go wrong, in every run.
        limit: stop after so many runs.
        stop_at: stop after so many violations.
        reduce: False runs interleavings that differ only in the order of independent calls, too.
        progress: told the number of runs after each.
    """
    tally = _Tally(find_workload(workload), limit, stop_at, progress)
    _explore(tally, tuple(faults), reduce=reduce)
    return tally.result("explore")


def _explore(tally: _Tally, faults: tuple[Placed, ...], *, reduce: bool = True) -> _Places:
    """Run all interleavings with these faults; which operations each call of each actor was."""
    path = Path(reduce=reduce)
    places: _Places = {}
    met = False
    while True:
        with Execution(tally.workload, faults) as run:
            found = _follow(tally, run, path)
            if run.enabled and found is None:
                tally.blocked += 1
            else:
                tally.add(run, faults, found)
            met = met or run.met_faults() > 0
            for event in run.events:
                places.setdefault((event.actor, event.number), set()).add(event.call.operation)
        del path.choices[len(run.events) :]
        if not path.backtrack():
            break
        if tally.is_over:
            tally.complete = False
            break
    tally.placements += met
    return places


def _follow(tally: _Tally, run: Execution, path: Path) -> Finding | None:
    """One run along a path; it ends early where something is wrong or nothing is new."""
    depth = 0
    while enabled := run.enabled:
        actor = path.choose(depth, {number: run.touches(number) for number in enabled})
        if actor is None:
            return None
        found = _step(tally.judge, run, actor)
        tally.steps += 1
        tally.states.add(run.state)
        if found is not None:
            return found
        depth += 1
    return tally.judge.end(run)


def _step(judge: Judge, run: Execution, actor: int) -> Finding | None:
    return judge.moment(run) if run.step(actor).shows else None


def sweep(
    workload: Workload | str,
    *,
    kinds: Sequence[str] = FAULTS,
    limit: int | None = None,
    stop_at: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Exploration:
    """Every interleaving, once for each kind of fault at each storage call of each actor."""
    tally = _Tally(find_workload(workload), limit, stop_at, progress)
    places = _explore(tally, ())
    wanted = [find_fault(kind) for kind in kinds]
    for actor, number in sorted(places):
        for kind in wanted:
            # Up to its fault an actor does what it does in some run without one.
            if not any(kind.applies_to(operation) for operation in places[actor, number]):
                continue
            if tally.is_over:
                tally.complete = False
                return tally.result("sweep")
            _explore(tally, (Placed(actor, number, kind),))
    return tally.result("sweep")


def sample(
    workload: Workload | str,
    *,
    seed: int = 0,
    runs: int = 100,
    faults: int = 2,
    stop_at: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Exploration:
    """Random schedules with up to so many random faults; the same seed makes the same runs."""
    tally = _Tally(find_workload(workload), None, stop_at, progress)
    tally.complete = False
    chance = random.Random(f"{tally.workload.name}/{seed}")
    for _ in range(runs):
        if tally.is_over:
            break
        placed = tuple(sorted(_random_faults(chance, tally.workload, faults)))
        with Execution(tally.workload, placed) as run:
            found = _wander(tally, run, chance)
            tally.placements += run.met_faults()
            tally.add(run, placed, found)
    return tally.result("sample")


def _random_faults(chance: random.Random, workload: Workload, most: int) -> set[Placed]:
    actors = len(workload.actors)
    places = {
        (chance.randrange(actors), chance.randint(1, 25)) for _ in range(chance.randint(0, most))
    }
    return {Placed(actor, call, chance.choice(FAULTS)) for actor, call in sorted(places)}


def _wander(tally: _Tally, run: Execution, chance: random.Random) -> Finding | None:
    actor = 0
    stays = chance.random()
    while enabled := run.enabled:
        if actor not in enabled or chance.random() > stays:
            actor = chance.choice(enabled)
        found = _step(tally.judge, run, actor)
        tally.steps += 1
        tally.states.add(run.state)
        if found is not None:
            return found
    return tally.judge.end(run)


# One run again


def _repeat(schedule: Schedule, judge: Judge) -> tuple[Finding | None, tuple[int, ...]]:
    """The finding of a schedule, and the moves up to it."""
    with Execution(schedule.workload, schedule.faults) as run:
        found = _run_out(schedule, run, judge)
        return found, tuple(event.actor for event in run.events)


def _run_out(schedule: Schedule, run: Execution, judge: Judge) -> Finding | None:
    while enabled := run.enabled:
        found = _step(judge, run, schedule.next(len(run.events), enabled))
        if found is not None:
            return found
    return judge.end(run)


def replay(schedule_id: str | Schedule) -> Replay:
    """Run a schedule again, and tell it step by step."""
    schedule = parse_schedule(schedule_id) if isinstance(schedule_id, str) else schedule_id
    with Execution(schedule.workload, schedule.faults) as run:
        found = _run_out(schedule, run, Judge(schedule.workload))
        return told(schedule, run, found)


def shrink(schedule_id: str | Schedule) -> str:
    """A schedule that fails in the same way with fewer faults, switches and steps."""
    schedule = parse_schedule(schedule_id) if isinstance(schedule_id, str) else schedule_id
    judge = Judge(schedule.workload)
    found, choices = _repeat(schedule, judge)
    if found is None:
        return schedule.id
    best = Schedule(schedule.workload, choices, schedule.faults)
    tries = 0
    improved = True
    while improved and tries < _SHRINKING:
        improved = False
        for candidate in _smaller(best):
            tries += 1
            again, moves = _repeat(candidate, judge)
            shorter = Schedule(best.workload, moves, candidate.faults)
            if (
                again is not None
                and again.property == found.property
                and _cost(shorter) < _cost(best)
            ):
                best, improved = shorter, True
                break
            if tries >= _SHRINKING:
                break
    return best.id


def _cost(schedule: Schedule) -> tuple[int, int, int]:
    return len(schedule.faults), schedule.switches, len(schedule.choices)


def _smaller(schedule: Schedule) -> Iterator[Schedule]:
    """Schedules with a fault less, with blocks of moves joined, or with moves put off."""
    workload, choices, faults = schedule.workload, schedule.choices, schedule.faults
    for number in range(len(faults)):
        yield Schedule(workload, choices, faults[:number] + faults[number + 1 :])
    starts = [n for n in range(1, len(choices)) if choices[n] != choices[n - 1]]
    bounds = [0, *starts, len(choices)]
    for bound in bounds[:-1]:
        yield Schedule(workload, choices[:bound], faults)
    for left, middle, right in zip(bounds, bounds[1:], bounds[2:], strict=False):
        swapped = choices[middle:right] + choices[left:middle]
        yield Schedule(workload, choices[:left] + swapped + choices[right:], faults)
    for left, right in pairwise(bounds):
        for cut in (left, (left + right) // 2, right - 1):
            yield Schedule(workload, choices[:cut] + choices[right:], faults)


def _violation(schedule: Schedule, found: Finding) -> Violation:
    again = replay(schedule)
    return Violation(
        property=found.property,
        message=found.message,
        fields=found.fields,
        schedule_id=schedule.id,
        trace=again.trace,
    )
