"""Breadth-first search over packed states, level by level.

The levels are all that is kept besides the set of seen states: no state remembers where it came
from, so a state costs one integer. The path to a violation is found afterwards by walking the
levels backwards (:mod:`twinlake.verify.checker.trace`).
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from twinlake.verify.checker.expand import expander, representative
from twinlake.verify.checker.model import EVENTUALLY_ALWAYS, Property
from twinlake.verify.checker.space import Bad, Space, Widened

__all__ = ["Explored", "Progress", "Search", "Violation"]

#: How many states are expanded between two looks at the set of seen ones.
BATCH = 65_536

Level = Sequence[int]


class Progress(NamedTuple):
    """Where a running search is: what a progress line shows."""

    states: int
    generated: int
    depth: int
    frontier: int
    seconds: float

    def __str__(self) -> str:
        rate = self.states / self.seconds if self.seconds else 0.0
        return (
            f"{self.states:,} states, {self.generated:,} generated, depth {self.depth},"
            f" {self.frontier:,} to go, {rate:,.0f} states/s"
        )


class Violation(NamedTuple):
    """A state in which a property fails."""

    property: Property
    message: str
    fields: dict[str, object]
    state: int
    level: int


@dataclass(slots=True, kw_only=True)
class Explored:
    """What a search found; ``levels`` hold packed states of the space's present layout."""

    levels: list[Level] = field(default_factory=list)
    states: int = 0
    generated: int = 0
    complete: bool = False
    violations: list[Violation] = field(default_factory=list)
    violating_states: int = 0
    ends: int = 0


@dataclass(slots=True, kw_only=True)
class Search:
    """One search: what to explore and when to stop."""

    space: Space
    symmetry: bool
    stop_at_first: bool = True
    max_states: int | None = None
    on_progress: Callable[[Progress], None] | None = None
    found: Explored = field(default_factory=Explored)
    _seen: set[int] = field(default_factory=set)
    _started: float = 0.0

    def run(self) -> Explored:
        """Explore to the end, to the first violation, or to the limit."""
        self._started = time.perf_counter()
        fresh: Level = self._first()
        self._seen.update(fresh)
        self.found.generated = len(self.space.starts)
        while fresh:
            if not self._close_level(fresh):
                return self.found
            fresh = self._next_level()
        self.found.complete = True
        return self.found

    def _first(self) -> list[int]:
        while True:
            try:
                first = [
                    representative(self.space, state, symmetry=self.symmetry)
                    for state in self.space.initial()
                ]
            except Widened:
                continue
            return list(dict.fromkeys(first))

    def _close_level(self, fresh: Level) -> bool:
        """Judge a level and keep it; returns whether to go on."""
        found = self.found
        before, index = found.states, len(found.levels)
        found.levels.append(pack_level(fresh))
        found.states += len(fresh)
        at = self._judge(fresh, index)
        if at is not None and self.stop_at_first:
            found.states = before + at + 1
            return False
        if self.on_progress is not None:
            spent = time.perf_counter() - self._started
            self.on_progress(Progress(found.states, found.generated, index + 1, len(fresh), spent))
        if self.stop_at_first and found.violations:
            return False
        return self.max_states is None or found.states < self.max_states

    def _next_level(self) -> Level:
        while True:
            fresh: list[int] = []
            try:
                self._expand(self.found.levels[-1], fresh)
            except Widened as widened:
                self._seen.difference_update(fresh)
                self._translate(widened)
            else:
                return fresh

    def _expand(self, level: Level, fresh: list[int]) -> None:
        """The states first reached from a level, in the order in which the model yields them."""
        expand = expander(self.space, symmetry=self.symmetry)
        seen = self._seen
        ends: list[int] = []
        generated = 0
        for at in range(0, len(level), BATCH):
            successors: list[int] = []
            expand(level[at : at + BATCH], successors, ends)
            generated += len(successors)
            new = [state for state in dict.fromkeys(successors) if state not in seen]
            seen.update(new)
            fresh += new
        self.found.generated += generated
        self.found.ends += len(ends)
        self._judge_ends(ends)

    def _translate(self, widened: Widened) -> None:
        self._seen = set(widened.translate(self._seen))
        levels = self.found.levels
        levels[:] = [pack_level(list(widened.translate(level))) for level in levels]
        self.found.violations = [
            one._replace(state=next(widened.translate([one.state])))
            for one in self.found.violations
        ]

    def _judge(self, level: Level, index: int) -> int | None:
        """Report what fails in a level; returns where in it the first failure is."""
        space = self.space
        space.judge.level(level)
        failing: list[tuple[int, Bad]] = []
        if space.bad:
            failing += matches(space, level)
        if space.judge.of_states:
            for at, state in enumerate(level):
                failing += [(at, bad) for bad in space.judge.state(state)]
        self.found.violating_states += len({at for at, _ in failing})
        for at, bad in sorted(failing, key=lambda one: one[0]):
            self._report(bad, level[at], index)
        return min((at for at, _ in failing), default=None)

    def _judge_ends(self, ends: list[int]) -> None:
        """A run that has ended must satisfy what it should satisfy for good."""
        lasting = [one for one in self.space.properties if one.kind == EVENTUALLY_ALWAYS]
        if not lasting:
            return
        for state in ends:
            for one in lasting:
                if not holds_in(self.space, one, state):
                    message = f"{one.name} is false where the run ends"
                    index = len(self.found.levels) - 1
                    self._add(Violation(one, message, {}, state, index))

    def _report(self, bad: Bad, state: int, index: int) -> None:
        fields = dict(bad.failure.fields)
        self._add(Violation(bad.property, bad.failure.message, fields, state, index))

    def _add(self, violation: Violation) -> None:
        # One example a property is enough: the first found is among the shortest.
        if all(one.property.name != violation.property.name for one in self.found.violations):
            self.found.violations.append(violation)


def pack_level(states: Level) -> Level:
    """A level in eight bytes a state where the numbers allow it."""
    if isinstance(states, array):
        return states
    try:
        return array("Q", states)
    except OverflowError:
        return list(states)


def matches(space: Space, level: Level) -> Iterator[tuple[int, Bad]]:
    """Where in a level a property fails that was judged beforehand, and which."""
    layout = space.layout
    groups: dict[tuple[str, int], dict[int, Bad]] = {}
    for bad in space.bad:
        mask = key = 0
        for name, number in bad.shared.items():
            index = space.variables.index(name)
            mask |= layout.shared_masks[index] << layout.shared_shifts[index]
            key |= number << layout.shared_shifts[index]
        if bad.role < 0:
            groups.setdefault((bad.property.name, mask), {})[key] = bad
            continue
        for position, role in enumerate(space.role_of):
            if role == bad.role:
                shift = layout.actor_shifts[position]
                mask = layout.actor_masks[position] << shift
                group = groups.setdefault((bad.property.name, mask), {})
                group[bad.actor << shift] = bad
    for (_, mask), keys in groups.items():
        for at, state in enumerate(level):
            found = keys.get(state & mask)
            if found is not None:
                yield at, found


def holds_in(space: Space, one: Property, state: int) -> bool:
    """Whether a property of whole states is the case in one state."""
    shared = space.shared_values(state)
    actors = space.actor_values(state)
    return bool(one.holds(*[actors if name == "actors" else shared[name] for name in one.reads]))
