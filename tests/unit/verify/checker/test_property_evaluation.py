"""No reached combination of values escapes a safety property, however it was reached."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import pytest

from twinlake.verify import check, walk
from twinlake.verify.checker import (
    Failure,
    InitialState,
    Model,
    Next,
    Role,
    action,
    always,
    sometimes,
)

GO, STAY = "GO", "STAY"


class Actor(NamedTuple):
    state: str = GO
    seen: int = 0


@dataclass(frozen=True, kw_only=True)
class TwoCounters(Model):
    """Two actors that each count in a variable the other never looks at."""

    title: ClassVar[str] = "two counters"
    only_grows: ClassVar[tuple[str, ...]] = ("left", "right")

    most: int = 3

    @property
    def roles(self) -> tuple[Role, ...]:
        return (Role(name="Left"), Role(name="Right"))

    def initial(self) -> Iterator[InitialState]:
        yield InitialState({"left": (0,), "right": (0,)}, (Actor(), Actor()))

    @action(role="Left", at=GO, writes=("left",))
    def count_left(self, _actor: Actor, left: tuple[int]) -> Iterator[Next]:
        if left[0] < self.most:
            yield Next(Actor(), {"left": (left[0] + 1,)})

    @action(role="Right", at=GO, writes=("right",))
    def count_right(self, _actor: Actor, right: tuple[int]) -> Iterator[Next]:
        if right[0] < self.most:
            yield Next(Actor(), {"right": (right[0] + 1,)})

    @always
    def never_two_and_three(self, left: tuple[int], right: tuple[int]) -> Failure | None:
        return Failure("two and three") if (left[0], right[0]) == (2, 3) else None

    @sometimes
    def both_at_the_end(self, left: tuple[int], right: tuple[int]) -> bool:
        return left[0] == right[0] == self.most


@pytest.mark.parametrize("engine", ["loop", "columns"])
@pytest.mark.parametrize("reduction", [False, True])
@pytest.mark.parametrize("symmetry", [False, True])
def test_property_of_two_variables_sees_every_combination(
    symmetry: bool, reduction: bool, engine: str
) -> None:
    options: dict[str, Any] = {"symmetry": symmetry, "reduction": reduction}
    result = check(TwoCounters(), engine=engine, **options)
    assert result.violated == "NeverTwoAndThree"
    assert result.trace is not None
    assert len(result.trace) == 5
    everything = check(TwoCounters(), engine=engine, stop_at_first=False, **options)
    assert everything.states == 16
    assert everything.violating_states == 1
    assert everything.verdicts["BothAtTheEnd"] == "reached"
    assert check(TwoCounters(most=2), engine=engine, **options).ok


def test_walk_sees_every_combination_it_passes() -> None:
    result = walk(TwoCounters(), seed=1, walks=50, max_steps=10)
    assert result.violated == "NeverTwoAndThree"


@dataclass(frozen=True, kw_only=True)
class Forgetful(Model):
    """An actor that remembers something, but whose next step does not look at it."""

    title: ClassVar[str] = "forgetful"

    actors: int = 2

    @property
    def roles(self) -> tuple[Role, ...]:
        return (Role(name="Actor", count=self.actors),)

    def initial(self) -> Iterator[InitialState]:
        yield InitialState({"value": 0}, (Actor(),) * self.actors)

    @action(at=(GO, STAY), writes=("value",))
    def look(self, _actor: Actor, value: int) -> Iterator[Next]:
        yield Next(Actor(STAY, value), {"value": min(value + 1, 3)})

    @always
    def never_sees_three(self, actor: Actor) -> Failure | None:
        return Failure("three") if actor.seen == 3 else None

    @sometimes
    def sees_two(self, actor: Actor) -> bool:
        return actor.seen == 2


@pytest.mark.parametrize("symmetry", [False, True])
def test_property_of_an_actor_sees_values_that_symmetry_takes_for_one(symmetry: bool) -> None:
    result = check(Forgetful(), symmetry=symmetry)
    assert result.violated == "NeverSeesThree"
    assert result.trace is not None
    assert len(result.trace) == 4
    assert result.verdicts["SeesTwo"] == "reached"
