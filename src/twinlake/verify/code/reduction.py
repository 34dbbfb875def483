"""Which interleavings need to be run: source sets with sleep sets over declared footprints.

Two runs that differ only in the order of independent calls are one run. After a run every race in
it (two dependent calls of different actors that nothing in between orders) is turned round once,
at the call where the first of the two was made; a sleep set keeps what was explored from being
run again in another order (Abdulla, Aronsson, Jonsson, Sagonas: Optimal Dynamic Partial Order
Reduction). Nothing here knows what a call is but by its footprint.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from twinlake.verify.code.storage_call import Footprint, are_dependent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Choice", "SearchPath"]


@dataclass(slots=True)
class Choice:
    """One state of the current path: who could move, who did, who still has to."""

    enabled: Mapping[int, Footprint]
    """The actors that could move, with what their calls touch."""
    sleep: dict[int, Footprint]
    """Actors whose moves from here are covered already."""
    taken: int = -1
    wanted: set[int] = field(default_factory=set)
    """Actors that have to be tried from here."""


class SearchPath:
    """The path of choices that the depth-first search is on."""

    def __init__(self, *, reduce: bool = True) -> None:
        self.choices: list[Choice] = []
        self._reduce = reduce
        self._clocks: list[dict[int, int]] = []
        self._ranks: list[int] = []

    def choose(self, depth: int, enabled: Mapping[int, Footprint]) -> int | None:
        """Who moves at this depth; None if everything from here is covered already."""
        if depth < len(self.choices):
            if enabled != self.choices[depth].enabled:
                raise AssertionError(
                    f"the code under test does not repeat itself: at move {depth + 1} "
                    f"{enabled} instead of {self.choices[depth].enabled}"
                )
            if depth == len(self.choices) - 1:
                self._extend(depth)
            return self.choices[depth].taken
        choice = Choice(enabled, self._sleeping(depth))
        free = [actor for actor in enabled if actor not in choice.sleep]
        if not free:
            return None
        last = self.choices[-1].taken if self.choices else free[0]
        choice.taken = last if last in free else free[0]
        choice.wanted = {choice.taken} if self._reduce else set(free)
        self.choices.append(choice)
        self._extend(depth)
        return choice.taken

    def _sleeping(self, depth: int) -> dict[int, Footprint]:
        if not self._reduce or depth == 0:
            return {}
        before = self.choices[depth - 1]
        made = before.enabled[before.taken]
        return {
            actor: touched
            for actor, touched in before.sleep.items()
            if actor != before.taken and not are_dependent(touched, made)
        }

    def backtrack(self) -> bool:
        """Move on to the next path; False once there is none."""
        while self.choices:
            choice = self.choices[-1]
            choice.sleep[choice.taken] = choice.enabled[choice.taken]
            left = sorted(choice.wanted - choice.sleep.keys())
            del self._clocks[len(self.choices) - 1 :], self._ranks[len(self.choices) - 1 :]
            if left:
                choice.taken = left[0]
                return True
            self.choices.pop()
        return False

    # Happens-before

    def _extend(self, depth: int) -> None:
        """Order the newest call after what it depends on, and turn its races round."""
        if not self._reduce or len(self._clocks) > depth:
            return
        actor = self.choices[depth].taken
        own = self._last(depth, actor)
        clock = dict(self._clocks[own]) if own is not None else {}
        rank = clock.get(actor, 0) + 1
        races = []
        for earlier in range(depth - 1, -1, -1):
            other = self.choices[earlier].taken
            if other == actor or not are_dependent(self._touched(earlier), self._touched(depth)):
                continue
            if clock.get(other, 0) < self._ranks[earlier]:
                races.append(earlier)
                for name, known in self._clocks[earlier].items():
                    clock[name] = max(clock.get(name, 0), known)
        clock[actor] = rank
        self._clocks.append(clock)
        self._ranks.append(rank)
        for earlier in races:
            self._turn_round(earlier, depth)

    def _turn_round(self, earlier: int, later: int) -> None:
        """Make sure that something which leads to the other order is tried before ``earlier``."""
        first = self.choices[earlier]
        apart = [n for n in range(earlier + 1, later) if not self._before(earlier, n)]
        initials = self._initials([*apart, later])
        if not initials & (first.wanted | first.sleep.keys()):
            actor = self.choices[later].taken
            first.wanted.add(actor if actor in initials else min(initials))

    def _initials(self, calls: Sequence[int]) -> set[int]:
        """The actors that could make the first of these calls."""
        found: set[int] = set()
        met: set[int] = set()
        for position, call in enumerate(calls):
            actor = self.choices[call].taken
            if actor in met:
                continue
            met.add(actor)
            if not any(self._before(one, call) for one in calls[:position]):
                found.add(actor)
        return found

    def _before(self, one: int, other: int) -> bool:
        """Whether a call happens before another one."""
        return self._clocks[other].get(self.choices[one].taken, 0) >= self._ranks[one]

    def _touched(self, depth: int) -> Footprint:
        choice = self.choices[depth]
        return choice.enabled[choice.taken]

    def _last(self, depth: int, actor: int) -> int | None:
        return next((n for n in range(depth - 1, -1, -1) if self.choices[n].taken == actor), None)
