"""From one level to the next, state by state, with the set of those that were seen."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from twinlake.verify.checker.successors import expander

if TYPE_CHECKING:
    from twinlake.verify.checker.state_layout import StateLayout
    from twinlake.verify.checker.state_space import StateSpace

__all__ = ["Expander", "Expansion", "Level", "StateExpansion", "fits_columns", "pack_level"]

#: How many states are expanded between two looks at the set of seen ones.
BATCH = 65_536

Level = Sequence[int]


class Expansion(NamedTuple):
    """What came of a level."""

    #: The states first reached from it, in the order in which the model yields them.
    fresh: Level
    generated: int
    #: Its states that have no successor.
    ends: list[int]


class Expander(Protocol):
    """Takes level after level and remembers what was seen; for one layout of the states."""

    def expand(self, level: Level) -> Expansion:
        """The states first reached from a level."""


class StateExpansion:
    """Expands one state at a time; states may be integers of any size."""

    def __init__(self, space: StateSpace, levels: Iterable[Level], *, symmetry: bool) -> None:
        self._expand = expander(space, symmetry=symmetry)
        self._seen = {state for level in levels for state in level}

    def expand(self, level: Level) -> Expansion:
        """The states first reached from a level."""
        expand, seen = self._expand, self._seen
        fresh: list[int] = []
        ends: list[int] = []
        generated = 0
        for at in range(0, len(level), BATCH):
            successors: list[int] = []
            expand(level[at : at + BATCH], successors, ends)
            generated += len(successors)
            new = [state for state in dict.fromkeys(successors) if state not in seen]
            seen.update(new)
            fresh += new
        return Expansion(fresh, generated, ends)


def fits_columns(layout: StateLayout) -> bool:
    """Whether packed states are small enough for a column of 64-bit integers."""
    return all(mask << shift < 1 << 63 for shift, mask, _ in layout.fields_in(layout))


def pack_level(states: Level) -> Level:
    """A level in eight bytes a state where the numbers allow it."""
    if isinstance(states, array):
        return states
    try:
        return array("Q", states)
    except OverflowError:
        return list(states)
