"""Running a schedule that is already known, step by step: is it a path of the model?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from twinlake.verify.checker.model import ALWAYS, Failure, Model, ModelError, plain
from twinlake.verify.checker.state_space import StateSpace, Transition
from twinlake.verify.checker.trace import Trace, actor_names, trace_steps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from twinlake.verify.checker.trace import TraceStep

__all__ = ["ScheduledRun", "ScheduledStep", "run_schedule"]


class ScheduledStep(NamedTuple):
    """A step that is to happen; arguments that are not given may be anything."""

    actor: str
    action: str
    arguments: Mapping[str, Any] = {}


class ScheduledRun(NamedTuple):
    """Where a schedule led: its trace, and the properties that fail after each step."""

    trace: Trace
    failures: tuple[tuple[int, str, Failure], ...]


def run_schedule(model: Model, schedule: Sequence[ScheduledStep]) -> ScheduledRun:
    """Run a schedule on a model.

    Raises:
        ModelError: if a step of it is not possible where it stands.
    """
    space = StateSpace(model)
    start = space.starts[0]
    shared, actors = dict(start.shared), list(start.actors)
    names = actor_names(space)
    steps: list[TraceStep] = []
    failures: list[tuple[int, str, Failure]] = []
    for number, planned in enumerate(schedule, 1):
        if planned.actor not in names:
            raise ModelError(f"step {number}: there is no actor {planned.actor!r}")
        index = names.index(planned.actor)
        transition = _wanted(space, index, actors[index], shared, planned, number)
        steps += trace_steps(space, index, transition, shared, number, len(steps))
        shared |= transition.shared
        actors[index] = transition.actor
        failures += [(number, *one) for one in _failing(model, shared, actors)]
    trace = Trace(steps=tuple(steps), shared=shared, actors=tuple(actors))
    return ScheduledRun(trace, tuple(failures))


def _wanted(
    space: StateSpace,
    index: int,
    local: Any,
    shared: Mapping[str, Any],
    planned: ScheduledStep,
    number: int,
) -> Transition:
    role = space.role_of[index]
    possible: list[str] = []
    for transition in space.transitions(role, local, shared):
        step = transition.steps[0]
        given = step.next.arguments
        fits = all(
            name in given and plain(given[name]) == plain(value)
            for name, value in planned.arguments.items()
        )
        if step.action.name == planned.action and fits:
            return transition
        possible.append(f"{step.action.name} {plain(given)}")
    options = "; ".join(dict.fromkeys(possible)) or "nothing"
    raise ModelError(
        f"step {number}: {planned.actor} cannot take {planned.action} {plain(planned.arguments)};"
        f" it can take: {options}"
    )


def _failing(
    model: Model, shared: Mapping[str, Any], actors: Sequence[Any]
) -> list[tuple[str, Failure]]:
    found: list[tuple[str, Failure]] = []
    for one in model.properties():
        if one.kind != ALWAYS:
            continue
        if one.reads == ("actor",):
            transitions = [one.holds(actor) for actor in actors]
        else:
            values = [tuple(actors) if name == "actors" else shared[name] for name in one.reads]
            transitions = [one.holds(*values)]
        found += [(one.name, failure) for failure in transitions if failure is not None]
    return found
