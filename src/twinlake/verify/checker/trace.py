"""From a violation back to the steps that lead to it.

The search keeps levels, not parents: the path is found by asking, level by level backwards,
which state leads to the one at hand. The path of representatives is then run forward on real
values, which undoes the sorting of actors and the fusing of steps.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from twinlake.verify.checker.model import EVENTUALLY_ALWAYS, ActionCheck, plain
from twinlake.verify.checker.successors import expander, representative
from twinlake.verify.checker.value_identity import is_same_value

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from twinlake.verify.checker.state_space import ActionStep, StateSpace, Transition

__all__ = ["Trace", "TraceStep", "actor_names", "path_to", "retrace", "trace_steps"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceStep:
    """One step: who did what, with which arguments and checks, and what it changed."""

    number: int
    actor: str
    action: str
    arguments: Mapping[str, Any]
    checks: tuple[ActionCheck, ...]
    #: The actor's control state before and after.
    state: tuple[str, str]
    #: Changed shared variables, each as the model shows it.
    changes: Mapping[str, Any]
    #: Changed fields of the actor's local value: before and after.
    actor_changes: Mapping[str, Any]
    #: The number of the search's own step it belongs to; several steps may be fused into one.
    move: int

    def to_dict(self) -> dict[str, Any]:
        """The step as JSON data."""
        return {
            "number": self.number,
            "actor": self.actor,
            "action": self.action,
            "arguments": plain(self.arguments),
            "checks": [check._asdict() for check in self.checks],
            "state": list(self.state),
            "changes": plain(self.changes),
            "actor_changes": plain(self.actor_changes),
            "move": self.move,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A path from an initial state: its steps, and the values it ends with."""

    steps: tuple[TraceStep, ...]
    shared: Mapping[str, Hashable]
    actors: tuple[Any, ...]
    #: The number of the first step of those at the end that repeat for ever.
    cycle_from: int | None = None

    @property
    def moves(self) -> int:
        """How long the path is in the search's own steps, fused ones counted once."""
        return self.steps[-1].move if self.steps else 0

    @property
    def path_length(self) -> int:
        """How many steps there are before those that repeat for ever."""
        return len(self.steps) if self.cycle_from is None else self.cycle_from - 1

    def __len__(self) -> int:
        return len(self.steps)

    def to_list(self) -> list[dict[str, Any]]:
        """The steps as JSON data."""
        return [step.to_dict() for step in self.steps]


def path_to(
    space: StateSpace, levels: Sequence[Sequence[int]], state: int, level: int, *, symmetry: bool
) -> list[int]:
    """The states of a shortest path to a state of this level."""
    path = [state]
    expand = expander(space, symmetry=symmetry)
    for earlier in reversed(levels[:level]):
        for candidate in earlier:
            successors: list[int] = []
            expand((candidate,), successors, [])
            if path[-1] in successors:
                path.append(candidate)
                break
    return path[::-1]


def retrace(
    space: StateSpace, path: Sequence[int], *, symmetry: bool, cycle_at: int | None = None
) -> Trace:
    """Run a path of packed states forward on values; its end may repeat from one of its states."""
    start = next(
        start
        for start in space.starts
        if _number(space, start.shared, start.actors, symmetry=symmetry) == path[0]
    )
    shared = dict(start.shared)
    actors = list(start.actors)
    steps: list[TraceStep] = []
    for move, wanted in enumerate(path[1:], 1):
        index, transition = _matching(space, shared, actors, wanted, symmetry=symmetry)
        steps += trace_steps(space, index, transition, shared, move, len(steps))
        shared |= transition.shared
        actors[index] = transition.actor
    later = [one.number for one in steps if cycle_at is not None and one.move > cycle_at]
    trace = Trace(
        steps=tuple(steps),
        shared=shared,
        actors=tuple(actors),
        cycle_from=later[0] if later else None,
    )
    return _renumbered(space, start.actors, trace)


def _renumbered(space: StateSpace, begin: Sequence[Any], trace: Trace) -> Trace:
    """The first of a role to move is called 0, and so on, if all of it begin alike."""
    if any(one.sees_all_actors for one in space.properties if one.kind != EVENTUALLY_ALWAYS):
        return trace
    order: list[int] = []
    at = 0
    for role in space.roles:
        own = list(range(at, at + role.count))
        at += role.count
        names = [f"{role.name.lower()}-{number}" for number in range(role.count)]
        moved = dict.fromkeys(step.actor for step in trace.steps if step.actor in names)
        if all(is_same_value(begin[one], begin[own[0]]) for one in own):
            first = [own[names.index(name)] for name in moved]
            own = [*first, *(one for one in own if one not in first)]
        order += own
    called = actor_names(space)
    new = {called[old]: called[place] for place, old in enumerate(order)}
    return Trace(
        steps=tuple(replace(step, actor=new[step.actor]) for step in trace.steps),
        shared=trace.shared,
        actors=tuple(trace.actors[old] for old in order),
        cycle_from=trace.cycle_from,
    )


def actor_names(space: StateSpace) -> list[str]:
    """What traces call the actors, by their position."""
    return [f"{role.name.lower()}-{number}" for role in space.roles for number in range(role.count)]


def _number(
    space: StateSpace, shared: Mapping[str, Hashable], actors: Sequence[Any], *, symmetry: bool
) -> int:
    state = space.encode(shared, actors)
    return representative(space, state, symmetry=symmetry)


def _matching(
    space: StateSpace,
    shared: dict[str, Hashable],
    actors: list[Any],
    wanted: int,
    *,
    symmetry: bool,
) -> tuple[int, Transition]:
    for index, role in enumerate(space.role_of):
        for transition in space.transitions(role, actors[index], shared):
            after = [*actors[:index], transition.actor, *actors[index + 1 :]]
            number = _number(space, {**shared, **transition.shared}, after, symmetry=symmetry)
            if number == wanted:
                return index, transition
    raise AssertionError("a path of the search cannot be run: the model is not deterministic")


def trace_steps(
    space: StateSpace,
    index: int,
    transition: Transition,
    shared: Mapping[str, Hashable],
    move: int,
    before: int,
) -> Iterator[TraceStep]:
    """The steps of one move as a trace shows them; ``before`` steps came earlier."""
    role = space.role_of[index]
    position = index - space.role_of.index(role)
    name = f"{space.roles[role].name.lower()}-{position}"
    now = dict(shared)
    for number, step in enumerate(transition.steps, before + 1):
        yield TraceStep(
            number=number,
            actor=name,
            action=step.action.name,
            arguments=step.next.arguments,
            checks=step.next.checks,
            state=(step.actor.state, step.next.actor.state),
            changes={
                variable: space.model.show_change(variable, now[variable], value)
                for variable, value in step.next.shared.items()
                if not is_same_value(now[variable], value)
            },
            actor_changes=_changed_fields(step),
            move=move,
        )
        now |= step.next.shared


def _changed_fields(step: ActionStep) -> dict[str, Any]:
    before, after = step.actor, step.next.actor
    parts = fields(after) if is_dataclass(after) else ()
    names = getattr(after, "_fields", tuple(part.name for part in parts))
    return {
        name: {"from": getattr(before, name, None), "to": getattr(after, name)}
        for name in names
        if name != "state" and not is_same_value(getattr(before, name, None), getattr(after, name))
    }
