"""Evaluating properties once for each combination of values they read.

A symmetry keeps one of several states. What a property says of that one must be what it says of
the others: each is asked, and a property that answers differently ends the use of the symmetry.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from twinlake.verify.checker.model import (
    ALWAYS,
    EVENTUALLY_ALWAYS,
    SOMETIMES,
    Failure,
    ModelError,
    ModelProperty,
)
from twinlake.verify.checker.value_symmetry import permute_values

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping

    from twinlake.verify.checker.state_layout import InternedValues, StateLayout

__all__ = ["AsymmetricProperty", "FailingValues", "PropertyEvaluator"]

#: What takes several states for one, and what a property must not tell apart for it.
SYMMETRY, VALUE_SYMMETRY, ALIKE = "symmetry", "value_symmetry", "merging"
TOLD_APART = {
    SYMMETRY: "actors of one role",
    VALUE_SYMMETRY: "interchangeable values",
    ALIKE: "local values that no action tells apart",
}
#: How many combinations of merged local values a lasting property is asked about.
MOST_COMBINATIONS = 10_000
#: In how many orders of a state's actors a property is asked: six different ones have 720.
MOST_ORDERS = 1_000


class AsymmetricProperty(ModelError):
    """A property tells apart what a symmetry takes for one."""

    def __init__(self, one: ModelProperty, symmetry: str, reason: str = "") -> None:
        reason = reason or f"{one.name} tells apart {TOLD_APART[symmetry]}"
        super().__init__(f"{reason}: check without {symmetry}")
        self.symmetry = symmetry


class EvaluatedSpace(Protocol):
    """What evaluation needs of the space whose values it evaluates."""

    properties: tuple[ModelProperty, ...]
    variables: tuple[str, ...]
    shared: list[InternedValues]
    actors: list[InternedValues]
    role_of: tuple[int, ...]
    layout: StateLayout
    failing_values: list[FailingValues]
    symmetric: bool
    renamings: tuple[dict[Hashable, Hashable], ...]

    def alike(self, role: int, value: Any) -> tuple[Any, ...]:
        """The local values for which this one stands."""

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
        self._seen: set[tuple[str, tuple[int, ...]]] = set()
        self._lasting: dict[tuple[str, tuple[int, ...], tuple[int, ...]], bool] = {}

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
        found = self._judged(one, tuple(values))
        if one.kind == SOMETIMES:
            self._note(one, found)
        elif found is not None:
            match = dict(zip(one.reads, numbers, strict=True))
            self._space.failing_values.append(FailingValues(one, found, match))

    def evaluate_actor(self, role: int, number: int, value: Any) -> None:
        """Evaluate a local value that was never seen before."""
        for one in self._of_actor:
            found = self._judged(one, (value,))
            if one.kind == SOMETIMES:
                self._note(one, found)
            elif found is not None:
                self._space.failing_values.append(FailingValues(one, found, {}, role, number))

    def fails_alone(self, value: Any) -> bool:
        """Whether a local value breaks a property of one actor; notes what it reaches."""
        for one in self._of_actor:
            if one.kind == SOMETIMES:
                self._note(one, self._judged(one, (value,)))
        return any(
            one.kind == ALWAYS and self._judged(one, (value,)) is not None for one in self._of_actor
        )

    def evaluate_state(self, state: int) -> list[FailingValues]:
        """Evaluate one state by the properties that look at all actors at once."""
        found: list[FailingValues] = []
        if not self.of_states:
            return found
        shared = self._space.shared_values(state)
        numbers = self._space.layout.actors(state)
        for one in self.of_states:
            if one.name in self.reached:
                continue
            said = self._judged_of_all(one, shared, numbers)
            if one.kind == SOMETIMES:
                self._note(one, said)
            elif said is not None:
                found.append(FailingValues(one, said, {}))
        return found

    def lasts_in(self, one: ModelProperty, state: int) -> bool:
        """Whether a lasting property is the case in one state, and in those it stands for."""
        space = self._space
        shared, numbers = space.shared_values(state), space.layout.actors(state)
        key = (one.name, tuple(space.layout.shared(state)), numbers)
        found = self._lasting.get(key)
        if found is not None:
            return found
        if one.reads == ("actor",):
            found = all(self._judged(one, (value,)) for value in space.actor_values(state))
            alike = (
                bool(one.holds(value))
                for role, value in zip(space.role_of, space.actor_values(state), strict=True)
                for value in space.alike(role, value)
            )
            if found and not all(alike):
                raise AsymmetricProperty(one, ALIKE)
        else:
            found = bool(self._judged_of_all(one, shared, numbers))
            for actors in self._merged_into(one, space.actor_values(state)):
                if bool(one.holds(*_values(one, shared, actors))) != found:
                    raise AsymmetricProperty(one, ALIKE)
        self._lasting[key] = found
        return found

    def _merged_into(
        self, one: ModelProperty, actors: tuple[Any, ...]
    ) -> Iterator[tuple[Any, ...]]:
        space = self._space
        if not one.sees_all_actors:
            return
        alike = [
            space.alike(role, value) for role, value in zip(space.role_of, actors, strict=True)
        ]
        for number, combined in enumerate(itertools.product(*alike)):
            if number > MOST_COMBINATIONS:
                raise AsymmetricProperty(one, ALIKE)
            yield combined

    def _judged_of_all(
        self, one: ModelProperty, shared: Mapping[str, Hashable], numbers: tuple[int, ...]
    ) -> Any:
        """What a property of all actors says, whichever of a role is which."""
        found = None
        for place, arranged in enumerate(self._arrangements(one, numbers)):
            actors = tuple(
                self._space.actors[role].values[number]
                for role, number in zip(self._space.role_of, arranged, strict=True)
            )
            said = self._judged(one, _values(one, shared, actors))
            if place == 0:
                found = said
            elif not _is_same_verdict(one, found, said):
                raise AsymmetricProperty(one, SYMMETRY)
        return found

    def _arrangements(
        self, one: ModelProperty, numbers: tuple[int, ...]
    ) -> Iterable[tuple[int, ...]]:
        """The local values of a state in every order within their roles, the given one first."""
        if not self._space.symmetric:
            return (numbers,)
        roles = self._space.role_of
        by_role = [
            tuple(number for at, number in zip(roles, numbers, strict=True) if at == role)
            for role in dict.fromkeys(roles)
        ]
        # To ask in every order takes more time than symmetry saves where the actors differ.
        if math.prod(map(_count_of_orders, by_role)) > MOST_ORDERS:
            reason = f"{one.name} sees too many different actors to be asked in every order"
            raise AsymmetricProperty(one, SYMMETRY, reason)
        orders = [tuple(_orders(group)) for group in by_role]
        return (tuple(itertools.chain(*chosen)) for chosen in itertools.product(*orders))

    def _judged(self, one: ModelProperty, values: tuple[Any, ...]) -> Any:
        """What a property says of these values, and of no renaming of them anything else."""
        found = one.holds(*values)
        for renaming in self._space.renamings:
            said = one.holds(*(permute_values(value, renaming) for value in values))
            if not _is_same_verdict(one, found, said):
                raise AsymmetricProperty(one, VALUE_SYMMETRY)
        return found

    def _note(self, one: ModelProperty, found: bool) -> None:
        if found:
            self.reached.add(one.name)

    def _value(self, name: str, number: int) -> Any:
        return self._space.shared[self._space.variables.index(name)].values[number]


def _count_of_orders(numbers: tuple[int, ...]) -> int:
    same = math.prod(math.factorial(count) for count in Counter(numbers).values())
    return math.factorial(len(numbers)) // same


def _orders(numbers: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The different orders of these numbers, the given one first."""
    if not numbers:
        yield ()
    for first in dict.fromkeys(numbers):
        at = numbers.index(first)
        for rest in _orders(numbers[:at] + numbers[at + 1 :]):
            yield (first, *rest)


def _values(
    one: ModelProperty, shared: Mapping[str, Hashable], actors: tuple[Any, ...]
) -> tuple[Any, ...]:
    return tuple(actors if name == "actors" else shared[name] for name in one.reads)


def _is_same_verdict(one: ModelProperty, found: Any, other: Any) -> bool:
    if one.kind == ALWAYS:
        return (found is None) == (other is None)
    return bool(found) == bool(other)
