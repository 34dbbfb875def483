"""From the packed states of one level to those of the next: the loops that must be fast.

Without symmetry, each actor moves in its own field. With symmetry, actors of
one role are interchangeable, so their fields are kept sorted, and one of several equal actors
moves for all of them. Roles of two and three actors, the common cases, have their own loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twinlake.verify.checker.state_space import StateSpace

__all__ = ["Expander", "expander", "representative"]

#: Takes states; appends their successors to the first list and states without any to the second.
Expander = Callable[[Iterable[int], list[int], list[int]], None]


def expander(space: StateSpace, *, symmetry: bool) -> Expander:
    """The fastest loop that fits the model's roles and the present layout."""
    if space.permutations:
        return _permuted(space, symmetry=symmetry)
    counts = [role.count for role in space.roles]
    if not symmetry or max(counts) == 1:
        return _plain(space)
    if counts == [2]:
        return _pair(space)
    if counts == [3]:
        return _triple(space)
    return _sorted(space)


def sort_actors(space: StateSpace, state: int) -> int:
    """The representative of a state: actors of each role in the order of their numbers."""
    numbers = list(space.layout.actors(state))
    at = 0
    for role in space.roles:
        numbers[at : at + role.count] = sorted(numbers[at : at + role.count])
        at += role.count
    return space.layout.pack(space.layout.shared(state), numbers)


def representative(space: StateSpace, state: int, *, symmetry: bool) -> int:
    """The one of all states that a symmetry turns into one another which is kept."""
    best = sort_actors(space, state) if symmetry else state
    for permutation in space.permutations:
        renamed = permutation.apply(state)
        best = min(best, sort_actors(space, renamed) if symmetry else renamed)
    return best


def _permuted(space: StateSpace, *, symmetry: bool) -> Expander:
    plain = _plain(space)

    def expand(states: Iterable[int], found: list[int], ends: list[int]) -> None:
        raw: list[int] = []
        plain(states, raw, ends)
        found += [representative(space, state, symmetry=symmetry) for state in raw]

    return expand


def _plain(space: StateSpace) -> Expander:
    layout = space.layout
    fields = tuple(
        (role, space.memo[role], space.masks[role], layout.actor_shifts[i], layout.actor_masks[i])
        for i, role in enumerate(space.role_of)
    )
    compute = space.compute

    def expand(states: Iterable[int], found: list[int], ends: list[int]) -> None:
        for state in states:
            before = len(found)
            for role, memo, masks, shift, bits in fields:
                local = (state >> shift) & bits
                moves = memo.get((state & masks[local]) | local)
                if moves is None:
                    moves = compute(role, local, state)
                if moves:
                    base = state - (local << shift)
                    found += [base + change + (to << shift) for change, to in moves]
            if len(found) == before:
                ends.append(state)

    return expand


def _sorted(space: StateSpace) -> Expander:
    layout = space.layout
    fields = tuple(
        (role, layout.actor_shifts[i], layout.actor_masks[i])
        for i, role in enumerate(space.role_of)
    )

    def expand(states: Iterable[int], found: list[int], ends: list[int]) -> None:
        for state in states:
            before = len(found)
            moved: set[tuple[int, int]] = set()
            for role, shift, bits in fields:
                local = (state >> shift) & bits
                if (role, local) in moved:
                    continue
                moved.add((role, local))
                moves = space.memo[role].get((state & space.masks[role][local]) | local)
                if moves is None:
                    moves = space.compute(role, local, state)
                base = state - (local << shift)
                found += [sort_actors(space, base + change + (to << shift)) for change, to in moves]
            if len(found) == before:
                ends.append(state)

    return expand


def _pair(space: StateSpace) -> Expander:
    layout = space.layout
    shift, bits = layout.actor_shifts[0], layout.actor_masks[0]
    high = -1 << layout.shared_shift
    memo, masks, compute = space.memo[0], space.masks[0], space.compute

    def expand(states: Iterable[int], found: list[int], ends: list[int]) -> None:
        get = memo.get
        for state in states:
            before = len(found)
            a, b = (state >> shift) & bits, state & bits
            base = state & high
            moves = get((state & masks[a]) | a)
            if moves is None:
                moves = compute(0, a, state)
            if moves:
                found += [
                    base + change + ((to << shift | b) if to <= b else (b << shift | to))
                    for change, to in moves
                ]
            if a != b:
                moves = get((state & masks[b]) | b)
                if moves is None:
                    moves = compute(0, b, state)
                if moves:
                    found += [
                        base + change + ((a << shift | to) if a <= to else (to << shift | a))
                        for change, to in moves
                    ]
            if len(found) == before:
                ends.append(state)

    return expand


def _triple(space: StateSpace) -> Expander:
    layout = space.layout
    far, near, bits = layout.actor_shifts[0], layout.actor_shifts[1], layout.actor_masks[0]
    high = -1 << layout.shared_shift
    memo, masks, compute = space.memo[0], space.masks[0], space.compute

    def expand(states: Iterable[int], found: list[int], ends: list[int]) -> None:
        get = memo.get
        for state in states:
            before = len(found)
            a, b, c = (state >> far) & bits, (state >> near) & bits, state & bits
            base = state & high
            # x moves while y <= z stay; equal actors move once.
            for x, y, z in (
                ((a, b, c), (b, a, c), (c, a, b))
                if a != b != c
                else ((a, b, c), (c, a, b))
                if b != c
                else ((a, b, c), (b, a, c))
                if a != b
                else ((a, b, c),)
            ):
                moves = get((state & masks[x]) | x)
                if moves is None:
                    moves = compute(0, x, state)
                if not moves:
                    continue
                first = base + (y << near | z)
                middle = base + (y << far | z)
                last = base + (y << far | z << near)
                found += [
                    change
                    + (
                        first + (to << far)
                        if to <= y
                        else middle + (to << near)
                        if to <= z
                        else last + to
                    )
                    for change, to in moves
                ]
            if len(found) == before:
                ends.append(state)

    return expand
