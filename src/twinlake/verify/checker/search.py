"""Breadth-first search over packed states, level by level.

The levels are all that is kept besides the set of seen states: no state remembers where it came
from, so a state costs one integer. The path to a violation is found afterwards by walking the
levels backwards (:mod:`twinlake.verify.checker.trace`).

Small levels are expanded state by state, large ones as columns; what is found is the same, in the
same order.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from twinlake.verify.checker.fairness import FairMoves
from twinlake.verify.checker.model import EVENTUALLY_ALWAYS, ModelProperty
from twinlake.verify.checker.state_expansion import (
    Expander,
    Level,
    StateExpansion,
    fits_columns,
    pack_level,
)
from twinlake.verify.checker.state_space import FailingValues, LayoutWidened, StateSpace, Transition
from twinlake.verify.checker.successors import representative

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from twinlake.verify.checker.column_expansion import ColumnExpansion

__all__ = [
    "AUTO",
    "COLUMNS",
    "ENGINES",
    "LOOP",
    "Progress",
    "Search",
    "SearchResult",
    "ViolatingState",
    "count_first_reached",
]

#: How levels are expanded: state by state, as columns, or each as suits its size.
AUTO, LOOP, COLUMNS = ENGINES = ("auto", "loop", "columns")

ENDS = "{} is false where the run ends"
STAYS = "{} is false in a state that no fair action leaves: a run may stay there"

#: From how many states in a level on columns pay: NumPy has to be loaded for them, which takes as
#: long as some ten thousand states take the loop.
LARGE_LEVEL = 8_192


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


class ViolatingState(NamedTuple):
    """A state in which a property fails."""

    property: ModelProperty
    message: str
    fields: dict[str, object]
    state: int
    level: int


@dataclass(slots=True, kw_only=True)
class SearchResult:
    """What a search found; ``levels`` hold packed states of the space's present layout."""

    levels: list[Level] = field(default_factory=list)
    states: int = 0
    generated: int = 0
    complete: bool = False
    violations: list[ViolatingState] = field(default_factory=list)
    violating_states: int = 0
    ends: int = 0


@dataclass(slots=True, kw_only=True)
class Search:
    """One search: what to explore and when to stop."""

    space: StateSpace
    symmetry: bool
    stop_at_first: bool = True
    max_states: int | None = None
    engine: str = AUTO
    on_progress: Callable[[Progress], None] | None = None
    found: SearchResult = field(default_factory=SearchResult)
    _expander: Expander | None = None
    _takes_columns: bool = False
    _fair: FairMoves = field(init=False)
    _started: float = 0.0

    def __post_init__(self) -> None:
        self._fair = FairMoves(self.space)

    @property
    def engine_used(self) -> str:
        """How the last level was expanded."""
        return COLUMNS if self._takes_columns else LOOP

    def run(self) -> SearchResult:
        """Explore to the end, to the first violation, or to the limit."""
        self._started = time.perf_counter()
        fresh: Level = self._first()
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
            except LayoutWidened:
                continue
            return list(dict.fromkeys(first))

    def _close_level(self, fresh: Level) -> bool:
        """Evaluate a level and keep it; returns whether to go on."""
        found = self.found
        before, index = found.states, len(found.levels)
        found.levels.append(pack_level(fresh))
        found.states += len(fresh)
        at = self._evaluate_level(fresh, index)
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
            level = self.found.levels[-1]
            try:
                fresh, generated, ends = self._expander_of(level).expand(level)
            except LayoutWidened as widened:
                self._translate(widened)
                continue
            self.found.generated += generated
            self.found.ends += len(ends)
            self._evaluate_ends(ends)
            return fresh

    def _expander_of(self, level: Level) -> Expander:
        """What expands this level: what expanded the last one, unless that does not suit."""
        columns = self._is_for_columns(level)
        if self._expander is None or columns != self._takes_columns:
            self._takes_columns = columns
            # The set of seen states is made again from the levels, which hold them all.
            self._expander = None
            kind = _column_expansion() if columns else StateExpansion
            self._expander = kind(self.space, self.found.levels, symmetry=self.symmetry)
        return self._expander

    def _is_for_columns(self, level: Level) -> bool:
        # Renamed values are renamed state by state.
        if self.engine == LOOP or self.space.permutations or not fits_columns(self.space.layout):
            return False
        return self.engine == COLUMNS or self._takes_columns or len(level) >= LARGE_LEVEL

    def _translate(self, widened: LayoutWidened) -> None:
        self._expander = None
        levels = self.found.levels
        for index, level in enumerate(levels):
            levels[index] = self._translated(level, widened)
        self._translate_violations(widened)

    def _translated(self, level: Level, widened: LayoutWidened) -> Level:
        if self._takes_columns and fits_columns(widened.new):
            return _column_expansion().translated(level, widened)
        return pack_level(list(widened.translate(level)))

    def _translate_violations(self, widened: LayoutWidened) -> None:
        self.found.violations = [
            one._replace(state=next(widened.translate([one.state])))
            for one in self.found.violations
        ]

    def _evaluate_level(self, level: Level, index: int) -> int | None:
        """Report what fails in a level; returns where in it the first failure is."""
        space = self.space
        space.evaluator.evaluate_level(level)
        failing: list[tuple[int, FailingValues]] = []
        if space.failing_values:
            failing += matches(space, level)
        if space.evaluator.of_states:
            for at, state in enumerate(level):
                failing += [(at, one) for one in space.evaluator.evaluate_state(state)]
        self.found.violating_states += len({at for at, _ in failing})
        for at, (broken, failure, *_) in sorted(failing, key=lambda one: one[0]):
            fields = dict(failure.fields)
            self._add(ViolatingState(broken, failure.message, fields, level[at], index))
        return min((at for at, _ in failing), default=None)

    def _evaluate_ends(self, ends: list[int]) -> None:
        """A run that has ended must satisfy what it should satisfy for good."""
        lasting = [one for one in self.space.properties if one.kind == EVENTUALLY_ALWAYS]
        if not lasting:
            return
        index = len(self.found.levels) - 1
        stays = self._fair.resting(self.found.levels[-1])
        for states, text in ((ends, ENDS), (stays, STAYS)):
            for state in states:
                for one in lasting:
                    if not self.space.evaluator.lasts_in(one, state):
                        message = text.format(one.name)
                        self._add(ViolatingState(one, message, {}, state, index))

    def _add(self, violation: ViolatingState) -> None:
        # One example a property is enough: the first found is among the shortest.
        if all(one.property.name != violation.property.name for one in self.found.violations):
            self.found.violations.append(violation)


def _column_expansion() -> type[ColumnExpansion]:
    # The only part of the checker that needs NumPy: the others load in a moment.
    from twinlake.verify.checker.column_expansion import ColumnExpansion

    return ColumnExpansion


def matches(space: StateSpace, level: Level) -> Iterator[tuple[int, FailingValues]]:
    """Where in a level a property fails that was evaluated beforehand, and which."""
    layout = space.layout
    groups: dict[tuple[str, int], dict[int, FailingValues]] = {}
    for values in space.failing_values:
        mask = key = 0
        for name, number in values.shared.items():
            index = space.variables.index(name)
            mask |= layout.shared_masks[index] << layout.shared_shifts[index]
            key |= number << layout.shared_shifts[index]
        if values.role < 0:
            groups.setdefault((values.property.name, mask), {})[key] = values
            continue
        for position, role in enumerate(space.role_of):
            if role == values.role:
                shift = layout.actor_shifts[position]
                mask = layout.actor_masks[position] << shift
                group = groups.setdefault((values.property.name, mask), {})
                group[values.actor << shift] = values
    for (_, mask), keys in groups.items():
        for at, state in enumerate(level):
            found = keys.get(state & mask)
            if found is not None:
                yield at, found


def count_first_reached(
    space: StateSpace, found: SearchResult, wanted: Callable[[Transition], bool], *, symmetry: bool
) -> int:
    """How many states the search first came to by a move of the wanted kind.

    The search's own order decides which move came first: level by level, and within a level in
    the order in which the model yields. Only the states that the search counted are counted.
    """
    layout = space.layout
    flags: dict[tuple[int, int], tuple[bool, ...]] = {}
    seen = set(found.levels[0])
    count = 0
    for level in found.levels[:-1]:
        for state in level:
            for position, role in enumerate(space.role_of):
                shift = layout.actor_shifts[position]
                local = (state >> shift) & layout.actor_masks[position]
                key = (state & space.masks[role][local]) | local
                moves = space.memo[role].get(key) or ()
                if not moves:
                    continue
                flagged = flags.get((role, key))
                if flagged is None:
                    shared = space.shared_values(state)
                    value = space.actors[role].values[local]
                    transitions = space.transitions(role, value, shared)
                    flagged = flags[role, key] = tuple(wanted(one) for one in transitions)
                for (change, to), flag in zip(moves, flagged, strict=True):
                    after = state + change + ((to - local) << shift)
                    after = representative(space, after, symmetry=symmetry)
                    if after not in seen:
                        seen.add(after)
                        count += flag
                        if len(seen) == found.states:
                            return count
    return count
