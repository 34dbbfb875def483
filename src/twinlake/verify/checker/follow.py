"""Running a schedule that is already known, step by step: is it a path of the model?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from twinlake.verify.checker.model import ALWAYS, Failure, Model, ModelError, plain
from twinlake.verify.checker.space import Outcome, Space
from twinlake.verify.checker.trace import Trace, told

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from twinlake.verify.checker.trace import TraceStep

__all__ = ["Followed", "Planned", "follow"]


class Planned(NamedTuple):
    """A step that is to happen; arguments that are not given may be anything."""

    actor: str
    action: str
    arguments: Mapping[str, Any] = {}


class Followed(NamedTuple):
    """Where a schedule led: its trace, and the properties that fail after each step."""

    trace: Trace
    failures: tuple[tuple[int, str, Failure], ...]


def follow(model: Model, schedule: Sequence[Planned]) -> Followed:
    """Run a schedule on a model.

    Raises:
        ModelError: if a step of it is not possible where it stands.
    """
    space = Space(model)
    start = space.starts[0]
    shared, actors = dict(start.shared), list(start.actors)
    names = _actor_names(space)
    steps: list[TraceStep] = []
    failures: list[tuple[int, str, Failure]] = []
    for number, planned in enumerate(schedule, 1):
        if planned.actor not in names:
            raise ModelError(f"step {number}: there is no actor {planned.actor!r}")
        index = names.index(planned.actor)
        outcome = _wanted(space, index, actors[index], shared, planned, number)
        steps += told(space, index, outcome, shared, number, len(steps))
        shared |= outcome.shared
        actors[index] = outcome.actor
        failures += [(number, *one) for one in _failing(model, shared, actors)]
    trace = Trace(steps=tuple(steps), shared=shared, actors=tuple(actors))
    return Followed(trace, tuple(failures))


def _actor_names(space: Space) -> list[str]:
    return [f"{role.name.lower()}-{number}" for role in space.roles for number in range(role.count)]


def _wanted(
    space: Space, index: int, local: Any, shared: Mapping[str, Any], planned: Planned, number: int
) -> Outcome:
    role = space.role_of[index]
    possible: list[str] = []
    for outcome in space.outcomes(role, local, shared):
        step = outcome.steps[0]
        given = step.next.arguments
        fits = all(
            name in given and plain(given[name]) == plain(value)
            for name, value in planned.arguments.items()
        )
        if step.action.name == planned.action and fits:
            return outcome
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
            outcomes = [one.holds(actor) for actor in actors]
        else:
            values = [tuple(actors) if name == "actors" else shared[name] for name in one.reads]
            outcomes = [one.holds(*values)]
        found += [(one.name, failure) for failure in outcomes if failure is not None]
    return found
