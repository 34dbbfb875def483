"""Running workloads: every interleaving, every single fault, or by seed; and one run again."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from twinlake.verify.checker.model import plain
from twinlake.verify.code.execution import Execution
from twinlake.verify.code.reduction import SearchPath
from twinlake.verify.code.run_properties import RunChecker
from twinlake.verify.code.run_trace import Replay, RunViolation, build_replay
from twinlake.verify.code.schedule import Schedule, parse_schedule
from twinlake.verify.code.storage_call import FAULTS, PlacedFault, find_fault
from twinlake.verify.code.workloads import find_workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from twinlake.verify.code.execution import RunFailure
    from twinlake.verify.code.workload import Workload

__all__ = ["Exploration", "explore", "replay", "sample", "shrink", "sweep"]

_MAX_SHRINK_RUNS: Final = 150
_CallSites = dict[tuple[int, int], set[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploration:
    """What an exploration found."""

    workload: str
    mode: str
    """explore, sweep or sample."""
    schedules: int
    """Runs that were made to their end and evaluated."""
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
    violations: tuple[RunViolation, ...]
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
class _Counters:
    """What is counted while exploring; one for all the parts of a sweep."""

    workload: Workload
    limit: int | None
    stop_at: int
    progress: Callable[[int], None] | None
    checker: RunChecker = field(init=False)
    schedules: int = 0
    blocked: int = 0
    steps: int = 0
    placements: int = 0
    states: set[tuple[int, ...]] = field(default_factory=set)
    ends: set[tuple[int, ...]] = field(default_factory=set)
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[Schedule, RunFailure]] = field(default_factory=list)
    began: float = field(default_factory=time.process_time)
    complete: bool = True

    def __post_init__(self) -> None:
        self.checker = RunChecker(self.workload)

    @property
    def is_over(self) -> bool:
        """Whether to stop before the end."""
        return len(self.failures) >= self.stop_at or (
            self.limit is not None and self.schedules + self.blocked >= self.limit
        )

    def add(
        self, run: Execution, faults: tuple[PlacedFault, ...], found: RunFailure | None
    ) -> None:
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
    faults: Iterable[PlacedFault] = (),
    limit: int | None = None,
    stop_at: int = 1,
    reduce: bool = True,
    progress: Callable[[int], None] | None = None,
) -> Exploration:
    """Run every interleaving of the storage calls of a workload, and evaluate each.

    Args:
        workload: one of ``WORKLOADS``, by name or as it is.
        faults: calls that go wrong, in every run.
        limit: stop after so many runs.
        stop_at: stop after so many violations.
        reduce: False runs interleavings that differ only in the order of independent calls, too.
        progress: called with the number of runs after each.
    """
    counters = _Counters(find_workload(workload), limit, stop_at, progress)
    _explore(counters, tuple(faults), reduce=reduce)
    return counters.result("explore")


def _explore(
    counters: _Counters, faults: tuple[PlacedFault, ...], *, reduce: bool = True
) -> _CallSites:
    """Run all interleavings with these faults; which operations each call of each actor was."""
    path = SearchPath(reduce=reduce)
    sites: _CallSites = {}
    met = False
    while True:
        with Execution(counters.workload, faults) as run:
            found = _execute(run, counters.checker, partial(_next_of_path, run, path), counters)
            if run.enabled and found is None:
                counters.blocked += 1
            else:
                counters.add(run, faults, found)
            met = met or run.met_faults() > 0
            _note_sites(sites, run)
        del path.choices[len(run.events) :]
        if not path.backtrack():
            break
        if counters.is_over:
            counters.complete = False
            break
    counters.placements += met
    return sites


def _next_of_path(run: Execution, path: SearchPath, enabled: tuple[int, ...]) -> int | None:
    return path.choose(len(run.events), {number: run.touches(number) for number in enabled})


def _execute(
    run: Execution,
    checker: RunChecker,
    choose: Callable[[tuple[int, ...]], int | None],
    counters: _Counters | None = None,
) -> RunFailure | None:
    """Run to the end; it ends early where a property fails or nobody is chosen."""
    while enabled := run.enabled:
        actor = choose(enabled)
        if actor is None:
            return None
        found = checker.step(run, actor)
        if counters is not None:
            counters.steps += 1
            counters.states.add(run.state)
        if found is not None:
            return found
    return checker.check_end(run)


def sweep(
    workload: Workload | str,
    *,
    kinds: Sequence[str] = FAULTS,
    limit: int | None = None,
    stop_at: int = 1,
    runs: int | None = None,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Exploration:
    """Every interleaving, once for each kind of fault at each storage call of each actor.

    With ``runs`` there are so many random schedules for each fault instead.
    """
    counters = _Counters(find_workload(workload), limit, stop_at, progress)
    chance = random.Random(f"{counters.workload.name}/{seed}")

    def run_all(*faults: PlacedFault) -> _CallSites:
        if runs is None:
            return _explore(counters, faults)
        counters.complete = False
        return _wander(counters, faults, chance, runs)

    sites = run_all()
    wanted = [find_fault(kind) for kind in kinds]
    for actor, number in sorted(sites):
        for kind in wanted:
            # Up to its fault an actor does what it does in some run without one.
            if not any(kind.applies_to(operation) for operation in sites[actor, number]):
                continue
            if counters.is_over:
                counters.complete = False
                return counters.result("sweep")
            run_all(PlacedFault(actor, number, kind))
    return counters.result("sweep")


def _wander(
    counters: _Counters, faults: tuple[PlacedFault, ...], chance: random.Random, runs: int
) -> _CallSites:
    """Run random schedules with these faults; which operations each call of each actor was."""
    sites: _CallSites = {}
    met = False
    for _ in range(runs):
        with Execution(counters.workload, faults) as run:
            found = _execute(run, counters.checker, _random_choice(chance), counters)
            counters.add(run, faults, found)
            met = met or run.met_faults() > 0
            _note_sites(sites, run)
    counters.placements += met
    return sites


def _note_sites(sites: _CallSites, run: Execution) -> None:
    for event in run.events:
        sites.setdefault((event.actor, event.number), set()).add(event.call.operation)


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
    counters = _Counters(find_workload(workload), None, stop_at, progress)
    counters.complete = False
    chance = random.Random(f"{counters.workload.name}/{seed}")
    for _ in range(runs):
        if counters.is_over:
            break
        placed = tuple(sorted(_random_faults(chance, counters.workload, faults)))
        with Execution(counters.workload, placed) as run:
            found = _execute(run, counters.checker, _random_choice(chance), counters)
            counters.placements += run.met_faults()
            counters.add(run, placed, found)
    return counters.result("sample")


def _random_faults(chance: random.Random, workload: Workload, most: int) -> set[PlacedFault]:
    actors = len(workload.actors)
    sites = {
        (chance.randrange(actors), chance.randint(1, 25)) for _ in range(chance.randint(0, most))
    }
    return {PlacedFault(actor, call, chance.choice(FAULTS)) for actor, call in sorted(sites)}


def _random_choice(chance: random.Random) -> Callable[[tuple[int, ...]], int]:
    """The last actor continues with a probability that is drawn once for the run."""
    actor, stays = 0, chance.random()

    def choose(enabled: tuple[int, ...]) -> int:
        nonlocal actor
        if actor not in enabled or chance.random() > stays:
            actor = chance.choice(enabled)
        return actor

    return choose


# One run again


def _repeat(schedule: Schedule, checker: RunChecker) -> tuple[RunFailure | None, tuple[int, ...]]:
    """The finding of a schedule, and the moves up to it."""
    with Execution(schedule.workload, schedule.faults) as run:
        found = _run_out(schedule, run, checker)
        return found, tuple(event.actor for event in run.events)


def _run_out(schedule: Schedule, run: Execution, checker: RunChecker) -> RunFailure | None:
    return _execute(run, checker, lambda enabled: schedule.next(len(run.events), enabled))


def replay(schedule_id: str | Schedule) -> Replay:
    """Run a schedule again, with its trace."""
    schedule = parse_schedule(schedule_id) if isinstance(schedule_id, str) else schedule_id
    with Execution(schedule.workload, schedule.faults) as run:
        found = _run_out(schedule, run, RunChecker(schedule.workload))
        return build_replay(schedule, run, found)


def shrink(schedule_id: str | Schedule) -> str:
    """A schedule that fails in the same way with fewer faults, switches and steps."""
    schedule = parse_schedule(schedule_id) if isinstance(schedule_id, str) else schedule_id
    checker = RunChecker(schedule.workload)
    found, choices = _repeat(schedule, checker)
    if found is None:
        return schedule.id
    best = Schedule(schedule.workload, choices, schedule.faults)
    tries = 0
    improved = True
    while improved and tries < _MAX_SHRINK_RUNS:
        improved = False
        for candidate in _smaller(best):
            tries += 1
            again, moves = _repeat(candidate, checker)
            shorter = Schedule(best.workload, moves, candidate.faults)
            if (
                again is not None
                and again.property == found.property
                and _cost(shorter) < _cost(best)
            ):
                best, improved = shorter, True
                break
            if tries >= _MAX_SHRINK_RUNS:
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


def _violation(schedule: Schedule, found: RunFailure) -> RunViolation:
    again = replay(schedule)
    return RunViolation(
        property=found.property,
        message=found.message,
        fields=found.fields,
        schedule_id=schedule.id,
        trace=again.trace,
    )
