"""Counting the states that a certain kind of move reaches first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.verify.checker.expand import representative

if TYPE_CHECKING:
    from collections.abc import Callable

    from twinlake.verify.checker.search import Explored
    from twinlake.verify.checker.space import Outcome, Space

__all__ = ["first_reached_by"]


def first_reached_by(
    space: Space, found: Explored, wanted: Callable[[Outcome], bool], *, symmetry: bool
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
                    outcomes = space.outcomes(role, value, shared)
                    flagged = flags[role, key] = tuple(wanted(one) for one in outcomes)
                for (change, to), flag in zip(moves, flagged, strict=True):
                    after = state + change + ((to - local) << shift)
                    after = representative(space, after, symmetry=symmetry)
                    if after not in seen:
                        seen.add(after)
                        count += flag
                        if len(seen) == found.states:
                            return count
    return count
