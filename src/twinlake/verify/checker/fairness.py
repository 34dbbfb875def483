"""Where a run may stay for ever: weak fairness makes nobody take an unfair step."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from twinlake.verify.checker.state_layout import StateLayout
    from twinlake.verify.checker.state_space import StateSpace

__all__ = ["FairMoves"]


class FairMoves:
    """Which states a fair action leads out of, asked once for each combination of values."""

    def __init__(self, space: StateSpace) -> None:
        self._space = space
        self._layout: StateLayout | None = None
        self._known: dict[tuple[int, int], bool] = {}
        #: Whether there is anything to ask: without unfair actions, only an end is stayed in.
        self.matter = any(not act.fair for act in space.model.actions())

    def resting(self, states: Iterable[int]) -> list[int]:
        """Those of these states in which no fair action is possible."""
        if not self.matter:
            return []
        return [state for state in states if not self._is_left(state)]

    def _is_left(self, state: int) -> bool:
        space, layout = self._space, self._space.layout
        if self._layout is not layout:
            self._layout = layout
            self._known.clear()
        for position, role in enumerate(space.role_of):
            local = (state >> layout.actor_shifts[position]) & layout.actor_masks[position]
            key = (role, (state & space.masks[role][local]) | local)
            found = self._known.get(key)
            if found is None:
                value = space.actors[role].values[local]
                steps = space.steps(role, value, space.shared_values(state))
                found = self._known[key] = any(step.action.fair for step in steps)
            if found:
                return True
        return False
