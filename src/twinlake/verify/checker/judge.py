"""Judging properties once for each combination of values they read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from twinlake.verify.checker.model import (
    ALWAYS,
    EVENTUALLY_ALWAYS,
    SOMETIMES,
    Failure,
    ModelError,
    Property,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from twinlake.verify.checker.layout import Interned, Layout

__all__ = ["Bad", "Judge"]


class Judged(Protocol):
    """What judging needs of the space whose values it judges."""

    properties: tuple[Property, ...]
    variables: tuple[str, ...]
    shared: list[Interned]
    layout: Layout
    bad: list[Bad]

    def shared_values(self, state: int) -> dict[str, Hashable]:
        """The shared variables of a packed state."""

    def actor_values(self, state: int) -> tuple[Any, ...]:
        """The local values of a packed state."""


class Bad(NamedTuple):
    """A safety property that fails in every state that matches."""

    property: Property
    failure: Failure
    #: Shared values, by variable, that make it fail; empty for a property of one actor.
    shared: Mapping[str, int]
    role: int = -1
    actor: int = -1


class Judge:
    """Evaluates safety properties once for each combination of values they read."""

    def __init__(self, space: Judged) -> None:
        self._space = space
        judged = [one for one in space.properties if one.kind != EVENTUALLY_ALWAYS]
        self._of_shared = [one for one in judged if one.variables == one.reads]
        self._of_actor = [one for one in judged if one.reads == ("actor",)]
        #: Properties that look at all actors at once are left to the search, state by state.
        self.of_states = [one for one in judged if one.sees_all_actors]
        #: The *sometimes* properties that were the case somewhere.
        self.reached: set[str] = set()
        for one in judged:
            if one.reads not in (one.variables, ("actor",)) and not one.sees_all_actors:
                raise ModelError(f"{one.name} must read variables, one actor, or all actors")
        self._seen: set[tuple[str, tuple[int, ...]]] = set()

    def shared(self, numbers: dict[str, int], written: Iterable[str], state: int) -> None:
        """Judge a combination of shared values some of which were just written.

        ``numbers`` may lack variables that the step did not touch: they are as in ``state``.
        """
        fresh = set(written)
        layout = self._space.layout
        for one in self._of_shared:
            if fresh.isdisjoint(one.reads):
                continue
            for name in one.reads:
                if name not in numbers:
                    index = self._space.variables.index(name)
                    shift, mask = layout.shared_shifts[index], layout.shared_masks[index]
                    numbers[name] = (state >> shift) & mask
            key = (one.name, tuple(numbers[name] for name in one.reads))
            if key in self._seen:
                continue
            self._seen.add(key)
            values = [self._value(name, numbers[name]) for name in one.reads]
            found = one.holds(*values)
            if one.kind == SOMETIMES:
                self._note(one, found)
            elif found is not None:
                match = dict(zip(one.reads, key[1], strict=True))
                self._space.bad.append(Bad(one, found, match))

    def actor(self, role: int, number: int, value: Any) -> None:
        """Judge a local value that was never seen before."""
        for one in self._of_actor:
            found = one.holds(value)
            if one.kind == SOMETIMES:
                self._note(one, found)
            elif found is not None:
                self._space.bad.append(Bad(one, found, {}, role, number))

    def fails_alone(self, value: Any) -> bool:
        """Whether a local value breaks a property of one actor."""
        return any(one.kind == ALWAYS and one.holds(value) is not None for one in self._of_actor)

    def state(self, state: int) -> list[Bad]:
        """Judge one state by the properties that look at all actors at once."""
        found: list[Bad] = []
        if not self.of_states:
            return found
        shared = self._space.shared_values(state)
        actors = self._space.actor_values(state)
        for one in self.of_states:
            if one.name in self.reached:
                continue
            values = [actors if name == "actors" else shared[name] for name in one.reads]
            outcome = one.holds(*values)
            if one.kind == SOMETIMES:
                self._note(one, outcome)
            elif outcome is not None:
                found.append(Bad(one, outcome, {}))
        return found

    def _note(self, one: Property, found: bool) -> None:
        if found:
            self.reached.add(one.name)

    def _value(self, name: str, number: int) -> Any:
        return self._space.shared[self._space.variables.index(name)].values[number]
