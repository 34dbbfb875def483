"""Evaluating properties once for each combination of values they read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from twinlake.verify.checker.model import (
    ALWAYS,
    EVENTUALLY_ALWAYS,
    SOMETIMES,
    Failure,
    ModelError,
    ModelProperty,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Mapping

    from twinlake.verify.checker.state_layout import InternedValues, StateLayout

__all__ = ["FailingValues", "PropertyEvaluator"]


class EvaluatedSpace(Protocol):
    """What evaluation needs of the space whose values it evaluates."""

    properties: tuple[ModelProperty, ...]
    variables: tuple[str, ...]
    shared: list[InternedValues]
    layout: StateLayout
    failing_values: list[FailingValues]

    def shared_values(self, state: int) -> dict[str, Hashable]:
        """The shared variables of a packed state."""

    def actor_values(self, state: int) -> tuple[Any, ...]:
        """The local values of a packed state."""


class FailingValues(NamedTuple):
    """A safety property that fails in every state that matches."""

    property: ModelProperty
    failure: Failure
    #: Shared values, by variable, that make it fail; empty for a property of one actor.
    shared: Mapping[str, int]
    role: int = -1
    actor: int = -1


class PropertyEvaluator:
    """Evaluates safety properties once for each combination of values they read.

    A property of one variable is evaluated when a value of it is first met, a property of one actor
    likewise. A property of several variables is evaluated on the states of each level: moves are
    remembered by what they touch, so a combination may be new although nothing is computed.
    """

    def __init__(self, space: EvaluatedSpace) -> None:
        self._space = space
        evaluated = [one for one in space.properties if one.kind != EVENTUALLY_ALWAYS]
        of_shared = [one for one in evaluated if one.variables == one.reads]
        self._of_one = [one for one in of_shared if len(one.reads) <= 1]
        self._of_several = [one for one in of_shared if len(one.reads) > 1]
        self._of_actor = [one for one in evaluated if one.reads == ("actor",)]
        #: Properties that look at all actors at once are left to the search, state by state.
        self.of_states = [one for one in evaluated if one.sees_all_actors]
        #: The *sometimes* properties that were the case somewhere.
        self.reached: set[str] = set()
        for one in evaluated:
            if one.reads not in (one.variables, ("actor",)) and not one.sees_all_actors:
                raise ModelError(f"{one.name} must read variables, one actor, or all actors")
        self._seen: set[tuple[str, tuple[int, ...]]] = set()

    def evaluate_shared(self, numbers: Mapping[str, int], written: Collection[str]) -> None:
        """Evaluate the values of variables that were just written."""
        for one in self._of_one:
            if all(name in written for name in one.reads):
                self._evaluate(one, tuple(numbers[name] for name in one.reads))

    def evaluate_level(self, states: Iterable[int]) -> None:
        """Evaluate every combination of values that these states have."""
        layout, variables = self._space.layout, self._space.variables
        for one in self._of_several:
            indices = [variables.index(name) for name in one.reads]
            fields = [(layout.shared_shifts[at], layout.shared_masks[at]) for at in indices]
            mask = sum(bits << shift for shift, bits in fields)
            for combined in {state & mask for state in states}:
                self._evaluate(one, tuple((combined >> shift) & bits for shift, bits in fields))

    def _evaluate(self, one: ModelProperty, numbers: tuple[int, ...]) -> None:
        key = (one.name, numbers)
        if key in self._seen:
            return
        self._seen.add(key)
        values = [
            self._value(name, number) for name, number in zip(one.reads, numbers, strict=True)
        ]
        found = one.holds(*values)
        if one.kind == SOMETIMES:
            self._note(one, found)
        elif found is not None:
            match = dict(zip(one.reads, numbers, strict=True))
            self._space.failing_values.append(FailingValues(one, found, match))

    def evaluate_actor(self, role: int, number: int, value: Any) -> None:
        """Evaluate a local value that was never seen before."""
        for one in self._of_actor:
            found = one.holds(value)
            if one.kind == SOMETIMES:
                self._note(one, found)
            elif found is not None:
                self._space.failing_values.append(FailingValues(one, found, {}, role, number))

    def fails_alone(self, value: Any) -> bool:
        """Whether a local value breaks a property of one actor; notes what it reaches."""
        for one in self._of_actor:
            if one.kind == SOMETIMES:
                self._note(one, one.holds(value))
        return any(one.kind == ALWAYS and one.holds(value) is not None for one in self._of_actor)

    def evaluate_state(self, state: int) -> list[FailingValues]:
        """Evaluate one state by the properties that look at all actors at once."""
        found: list[FailingValues] = []
        if not self.of_states:
            return found
        shared = self._space.shared_values(state)
        actors = self._space.actor_values(state)
        for one in self.of_states:
            if one.name in self.reached:
                continue
            values = [actors if name == "actors" else shared[name] for name in one.reads]
            transition = one.holds(*values)
            if one.kind == SOMETIMES:
                self._note(one, transition)
            elif transition is not None:
                found.append(FailingValues(one, transition, {}))
        return found

    def _note(self, one: ModelProperty, found: bool) -> None:
        if found:
            self.reached.add(one.name)

    def _value(self, name: str, number: int) -> Any:
        return self._space.shared[self._space.variables.index(name)].values[number]
