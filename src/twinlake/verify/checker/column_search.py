"""The same search on whole columns of states at a time, with Arrow's compute functions.

A level is one column of 64-bit integers. For every actor the key of its remembered moves is
computed for the whole column and looked up; keys that were never met are computed one by one as
always, and there are few of them. Successors, their sorting, and the look at what was seen
before are column operations too: they run outside the interpreter, on several threads if asked.
A state costs eight bytes. Within a level the order of states differs from the plain search, so
a different one of several shortest traces may be shown.
"""

from __future__ import annotations

from array import array
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from twinlake.verify.checker.search import Level, Search
from twinlake.verify.checker.state_space import LayoutWidened, StateSpace

if TYPE_CHECKING:
    from twinlake.verify.checker.state_layout import StateLayout

__all__ = ["ColumnSearch", "StateTooWide", "fits_columns"]

#: How many states are expanded at once: enough to be fast, few enough to stay small.
ROWS = 1 << 18


class StateTooWide(Exception):
    """States do not fit into columns of 64 bits, or are renamed: only the loop can go on."""


def fits_columns(layout: StateLayout) -> bool:
    """Whether packed states are small enough for a column of 64-bit integers."""
    return all(mask << shift < 1 << 63 for shift, mask, _ in layout.fields_in(layout))


@dataclass(slots=True, kw_only=True)
class ColumnSearch(Search):
    """A search that expands columns instead of single states."""

    workers: int = 1
    _moves: list[_MoveColumns] = field(default_factory=list)
    _layout: StateLayout | None = None

    def _next_level(self) -> Level:
        while True:
            try:
                return self._expand_column(_column(self.found.levels[-1]))
            except LayoutWidened as widened:
                levels = self.found.levels
                self._translate_violations(widened)
                if not fits_columns(self.space.layout):
                    raise StateTooWide from None
                levels[:] = [
                    _level(_translated(_column(level), widened.old, widened.new))
                    for level in levels
                ]

    def _expand_column(self, states: Any) -> Level:
        if not fits_columns(self.space.layout) or self.space.permutations:
            raise StateTooWide
        if self._layout is not self.space.layout:
            self._moves = [_MoveColumns(self.space, role) for role in range(len(self.space.roles))]
            self._layout = self.space.layout
        parts = [states.slice(at, ROWS) for at in range(0, len(states), ROWS)]
        for part in parts:
            self._learn(part)
        with ThreadPoolExecutor(self.workers) as pool:
            expanded = list(pool.map(self._successors, parts))
        self.found.generated += sum(len(found) for found, _ in expanded)
        ends = [state for _, ended in expanded for state in ended.to_pylist()]
        self.found.ends += len(ends)
        self._evaluate_ends(ends)
        fresh = pc.unique(pa.chunked_array([found for found, _ in expanded], pa.int64()))
        return _level(self._unseen(fresh))

    def _learn(self, states: Any) -> None:
        """Compute the moves that these states need and that were never needed before."""
        for position, role in enumerate(self.space.role_of):
            _, key = self._keys(states, position)
            self._moves[role].learn(states, key)

    def _keys(self, states: Any, position: int) -> tuple[Any, Any]:
        layout = self.space.layout
        mask, shift = layout.actor_masks[position], layout.actor_shifts[position]
        local = pc.bit_wise_and(pc.shift_right(states, shift), mask)
        touched = self._moves[self.space.role_of[position]].masks.take(local)
        return local, pc.bit_wise_or(pc.bit_wise_and(states, touched), local)

    def _successors(self, states: Any) -> tuple[Any, Any]:
        """The successors of a column, and those of its states that have none."""
        found: list[Any] = []
        total: Any = None
        before: Any = None
        for position, role in enumerate(self.space.role_of):
            local, key = self._keys(states, position)
            at = self._moves[role].find(key)
            counts = self._moves[role].counts.take(at)
            total = counts if total is None else pc.add(total, counts)
            wanted = pc.greater(counts, 0)
            first = position == 0 or self.space.role_of[position - 1] != role
            if self.symmetry and not first:
                # Equal actors are side by side; the first of them moves for all.
                wanted = pc.and_(wanted, pc.not_equal(local, before))
            before = local
            movers = states.filter(wanted)
            if len(movers):
                found.append(self._moved(movers, local.filter(wanted), at.filter(wanted), position))
        ended = states.filter(pc.equal(total, 0))
        if not found:
            return pa.array([], pa.int64()), ended
        return pa.concat_arrays(found), ended

    def _moved(self, states: Any, local: Any, at: Any, position: int) -> Any:
        """The states after every move of one actor."""
        role = self.space.role_of[position]
        parent, change, to = self._moves[role].explode(at)
        shift = self.space.layout.actor_shifts[position]
        moved = pc.add(states.take(parent), change)
        moved = pc.add(moved, pc.shift_left(pc.subtract(to, local.take(parent)), shift))
        return self._sorted(moved, role, position) if self.symmetry else moved

    def _sorted(self, states: Any, role: int, position: int) -> Any:
        """Put the actors of one role in order, given that all but one are."""
        layout = self.space.layout
        group = [index for index, one in enumerate(self.space.role_of) if one == role]
        if len(group) == 1:
            return states
        values = [
            pc.bit_wise_and(
                pc.shift_right(states, layout.actor_shifts[index]), layout.actor_masks[index]
            )
            for index in group
        ]
        mine = values.pop(group.index(position))
        clear = sum(layout.actor_masks[index] << layout.actor_shifts[index] for index in group)
        packed = pc.bit_wise_and(states, ~clear)
        for index in group[:-1]:
            # What moved sinks in from the left until it meets a greater one.
            following = values.pop(0)
            small = pc.min_element_wise(mine, following)
            mine = pc.max_element_wise(mine, following)
            packed = pc.add(packed, pc.shift_left(small, layout.actor_shifts[index]))
        return pc.add(packed, pc.shift_left(mine, layout.actor_shifts[group[-1]]))

    def _unseen(self, fresh: Any) -> Any:
        columns = [_column(level) for level in self.found.levels]
        with ThreadPoolExecutor(self.workers) as pool:
            # Looking the seen ones up among the fresh ones needs a small table, not a big one.
            known = list(
                pool.map(lambda seen: seen.filter(pc.is_in(seen, value_set=fresh)), columns)
            )
        return fresh.filter(pc.invert(pc.is_in(fresh, value_set=pa.concat_arrays(known))))


class _MoveColumns:
    """The remembered moves of one role as columns; the dictionary of the space stays the truth."""

    def __init__(self, space: StateSpace, role: int) -> None:
        self._space = space
        self._role = role
        self.masks = pa.array([], pa.int64())
        self._keys = pa.array([], pa.int64())
        self.counts = pa.array([], pa.int64())
        self._offsets = pa.array([0], pa.int32())
        self._changes = pa.array([], pa.int64())
        self._to = pa.array([], pa.int64())
        self._grow(list(space.memo[role].items()))

    def _grow(self, more: list[tuple[int, tuple[tuple[int, int], ...]]]) -> None:
        self.masks = pa.array(self._space.masks[self._role], pa.int64())
        if not more:
            return
        keys = pa.array([key for key, _ in more], pa.int64())
        self._keys = pa.concat_arrays([self._keys, keys])
        counts = pa.array([len(moves) for _, moves in more], pa.int64())
        self.counts = pa.concat_arrays([self.counts, counts])
        changes = pa.array([change for _, moves in more for change, _ in moves], pa.int64())
        self._changes = pa.concat_arrays([self._changes, changes])
        to = pa.array([to for _, moves in more for _, to in moves], pa.int64())
        self._to = pa.concat_arrays([self._to, to])
        ends = pc.cumulative_sum(self.counts).cast(pa.int32())
        self._offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])

    def learn(self, states: Any, key: Any) -> None:
        """Compute the moves of the keys that are not known yet."""
        missing = pc.invert(pc.is_in(key, value_set=self._keys))
        table = pa.table({"key": key.filter(missing), "state": states.filter(missing)})
        if not len(table):
            return
        firsts = table.group_by("key", use_threads=False).aggregate([("state", "min")])
        low = (1 << self._space.layout.shared_shift) - 1
        more: list[tuple[int, tuple[tuple[int, int], ...]]] = []
        columns = (firsts["key"].to_pylist(), firsts["state_min"].to_pylist())
        for one, state in zip(*columns, strict=True):
            more.append((one, self._space.compute(self._role, one & low, state)))
        self._grow(more)

    def find(self, key: Any) -> Any:
        """Where the moves of each key are."""
        return pc.index_in(key, value_set=self._keys)

    def explode(self, at: Any) -> tuple[Any, Any, Any]:
        """All moves at these indices: the row they belong to, their change, the new local value."""
        moves = pa.StructArray.from_arrays([self._changes, self._to], ["change", "to"])
        taken = pa.ListArray.from_arrays(self._offsets, moves).take(at)
        flat = taken.flatten()
        return pc.list_parent_indices(taken), flat.field(0), flat.field(1)


def _column(level: Level) -> Any:
    kept = level if isinstance(level, array) else array("Q", level)
    return pa.Array.from_buffers(pa.int64(), len(kept), [None, pa.py_buffer(kept)])


def _level(column: Any) -> Level:
    level = array("Q")
    if len(column):
        flat = column.combine_chunks() if hasattr(column, "combine_chunks") else column
        start = flat.offset * 8
        level.frombytes(memoryview(flat.buffers()[1])[start : start + len(flat) * 8])
    return level


def _translated(states: Any, old: StateLayout, new: StateLayout) -> Any:
    total: Any = pc.subtract(states, states)
    for shift, mask, to in old.fields_in(new):
        part = pc.shift_left(pc.bit_wise_and(pc.shift_right(states, shift), mask), to)
        total = pc.add(total, part)
    return total
