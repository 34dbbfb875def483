"""From one level to the next on whole columns of states.

For every actor the key of its remembered moves is computed for a column of states and looked up;
keys that were never met are computed one by one as always, in the order in which the loop over
single states meets them. Successors, and the look at what was seen before, are column operations.
The levels are the same as those of the loop, state by state and in the same order, so that traces
are the same, too.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from twinlake.verify.checker.number_table import NumberTable
from twinlake.verify.checker.state_expansion import Expansion

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from twinlake.verify.checker.state_expansion import Level
    from twinlake.verify.checker.state_layout import LayoutWidened
    from twinlake.verify.checker.state_space import Moves, StateSpace

__all__ = ["ColumnExpansion"]

#: How many states are expanded at once: enough to be fast, few enough to stay in the cache.
ROWS: Final = 1 << 15


class ColumnExpansion:
    """The states that were seen, and the moves of all roles, as columns."""

    def __init__(self, space: StateSpace, levels: Iterable[Level], *, symmetry: bool) -> None:
        self._space = space
        self._moves = [_MoveColumns(space, role) for role in range(len(space.roles))]
        self._shifts = np.array(space.layout.actor_shifts, np.int64)
        self._seen = NumberTable()
        for level in levels:
            for part in _parts(level):
                self._seen.add(part)
        positions = range(len(space.role_of))
        groups = [
            [at for at in positions if space.role_of[at] == role]
            for role in range(len(space.roles))
        ]
        #: The positions of interchangeable actors, role by role.
        self._groups = [group for group in groups if symmetry and len(group) > 1]
        #: The positions of actors that do not move where the one before them is the same.
        self._followers = {at for group in self._groups for at in group[1:]}

    def expand(self, level: Level) -> Expansion:
        """The states first reached from a level."""
        fresh = array("Q")
        ends: list[int] = []
        generated = 0
        for states in _parts(level):
            successors = self._successors(states, ends)
            generated += len(successors)
            fresh.frombytes(successors[self._seen.add(successors)].tobytes())
        return Expansion(fresh, generated, ends)

    @staticmethod
    def translated(level: Level, widened: LayoutWidened) -> Level:
        """A level under the new layout."""
        packed = array("Q")
        fields = widened.old.fields_in(widened.new)
        for states in _parts(level):
            parts = (((states >> shift) & mask) << to for shift, mask, to in fields)
            packed.frombytes(sum(parts, np.zeros_like(states)).tobytes())
        return packed

    def _successors(self, states: Any, ends: list[int]) -> Any:
        """The successors of a column; those of its states that have none are added to the ends."""
        locals_, found = self._remembered(states)
        # One row for each state and actor, as the loop takes them.
        counts = np.empty(found.shape, np.int64)
        starts = np.empty(found.shape, np.int64)
        for position, role in enumerate(self._space.role_of):
            moves = self._moves[role]
            counts[:, position] = moves.counts[found[:, position]]
            starts[:, position] = moves.starts[found[:, position]]
        ends += states[counts.sum(axis=1) == 0].tolist()
        for position in self._followers:
            # Equal actors are side by side; the first of them moves for all.
            counts[locals_[:, position] == locals_[:, position - 1], position] = 0
        return self._moved(states, counts, starts)

    def _remembered(self, states: Any) -> tuple[Any, Any]:
        """Of each state and actor the local value, and where its moves are."""
        shape = len(states), len(self._space.role_of)
        locals_, keys = np.empty(shape, np.int64), np.empty(shape, np.int64)
        found = np.empty(shape, np.int64)
        for position, role in enumerate(self._space.role_of):
            mask = self._space.layout.actor_masks[position]
            local = (states >> self._shifts[position]) & mask
            key = (states & self._moves[role].masks[local]) | local
            locals_[:, position], keys[:, position] = local, key
            found[:, position] = self._moves[role].find(key)
        unknown = np.flatnonzero(found.ravel() < 0)
        if len(unknown):
            self._compute(states, keys, unknown)
            for position, role in enumerate(self._space.role_of):
                found[:, position] = self._moves[role].find(keys[:, position])
        return locals_, found

    def _compute(self, states: Any, keys: Any, unknown: Any) -> None:
        """Compute moves that were never needed before, in the order of states and actors."""
        space = self._space
        learned: list[dict[int, Moves]] = [{} for _ in space.roles]
        low = (1 << space.layout.shared_shift) - 1
        rows, positions = np.divmod(unknown, len(space.role_of))
        wanted = zip(
            states[rows].tolist(), positions.tolist(), keys.ravel()[unknown].tolist(), strict=True
        )
        for state, position, key in wanted:
            role = space.role_of[position]
            if key not in learned[role]:
                learned[role][key] = space.compute(role, key & low, state)
        for role, moves in enumerate(learned):
            self._moves[role].put(moves)

    def _moved(self, states: Any, counts: Any, starts: Any) -> Any:
        """The states after every move: ``counts`` of them for each row, from ``starts`` on."""
        actors = counts.shape[1]
        each = counts.ravel()
        total = np.cumsum(each)
        move = np.repeat(starts.ravel() - (total - each), each)
        move += np.arange(len(move))
        row = np.repeat(np.arange(len(each)), each)
        role_of = self._space.role_of
        moved = states[row // actors]
        if len(self._moves) == 1:
            moves = self._moves[0]
            position = row % actors
            moved += moves.changes[move] + (moves.turns[move] << self._shifts[position])
        else:
            position = row % actors
            for at, role in enumerate(role_of):
                chosen = np.flatnonzero(position == at)
                moves, index = self._moves[role], move[chosen]
                moved[chosen] += moves.changes[index] + (moves.turns[index] << self._shifts[at])
        for group in self._groups:
            moved = self._sorted(moved, group)
        return moved

    def _sorted(self, states: Any, group: list[int]) -> Any:
        """Put interchangeable actors in the order of their local values."""
        layout = self._space.layout
        values = [(states >> self._shifts[at]) & layout.actor_masks[at] for at in group]
        for last in range(len(group) - 1, 0, -1):
            for at in range(last):
                values[at], values[at + 1] = (
                    np.minimum(values[at], values[at + 1]),
                    np.maximum(values[at], values[at + 1]),
                )
        packed = states & ~sum(layout.actor_masks[at] << layout.actor_shifts[at] for at in group)
        for at, value in zip(group, values, strict=True):
            packed |= value << self._shifts[at]
        return packed


class _MoveColumns:
    """The remembered moves of one role as columns; the dictionary of the space stays the truth."""

    def __init__(self, space: StateSpace, role: int) -> None:
        self._space = space
        self._role = role
        self._keys = NumberTable()
        #: By place in the table of keys: which of the keys it is, in the order in which they came.
        self._numbers = np.empty(0, np.int64)
        self._all_keys = np.empty(0, np.int64)
        self.masks = np.empty(0, np.int64)
        #: By key: how many moves there are, and where they begin.
        self.counts = np.empty(0, np.int64)
        self.starts = np.empty(0, np.int64)
        #: By move: the change to the shared variables, and to the number of the local value.
        self.changes = np.empty(0, np.int64)
        self.turns = np.empty(0, np.int64)
        self.put(space.memo[role])

    def find(self, keys: Any) -> NDArray[np.int64]:
        """Which of the known keys each is, -1 for those that are not known."""
        if not len(self._all_keys):
            return np.full(len(keys), -1, np.int64)
        places = self._keys.find(keys)
        return np.where(places < 0, -1, self._numbers[places])

    def put(self, more: dict[int, Moves]) -> None:
        """Add the moves of further keys."""
        self.masks = np.array(self._space.masks[self._role], np.int64)
        if not more:
            return
        low = (1 << self._space.layout.shared_shift) - 1
        keys = np.fromiter(more, np.int64, len(more))
        counts = np.fromiter((len(moves) for moves in more.values()), np.int64, len(more))
        ends = np.cumsum(counts) + len(self.changes)
        flat = [(change, to - (key & low)) for key, moves in more.items() for change, to in moves]
        moves = np.array(flat, np.int64).reshape(-1, 2)
        self.counts = np.concatenate([self.counts, counts])
        self.starts = np.concatenate([self.starts, ends - counts])
        self.changes = np.concatenate([self.changes, moves[:, 0]])
        self.turns = np.concatenate([self.turns, moves[:, 1]])
        self._all_keys = np.concatenate([self._all_keys, keys])
        self._keys.add(keys)
        if len(self._numbers) == self._keys.places:
            first = len(self._all_keys) - len(keys)
            self._numbers[self._keys.find(keys)] = np.arange(first, len(self._all_keys))
        else:
            # The table has grown, and every key lies elsewhere.
            self._numbers = np.full(self._keys.places, -1, np.int64)
            self._numbers[self._keys.find(self._all_keys)] = np.arange(len(self._all_keys))


def _parts(level: Level) -> Iterable[Any]:
    column = (
        np.frombuffer(level, np.int64) if isinstance(level, array) else np.array(level, np.int64)
    )
    return (column[at : at + ROWS] for at in range(0, len(column), ROWS))
