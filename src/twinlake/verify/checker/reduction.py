"""Partial-order reduction, derived from what the actions declare.

Two rules fuse steps so that the states between them are neither stored nor expanded.

*Private steps.* If every action of a control state reads no variable that can still change and
writes none, nobody can interfere with the actor there nor see what it does. Its steps commute with
all steps of others, so they can be taken at once: they run to the end with the step before them.
The part of a log that an action takes as frozen must be there already: what lies beyond the end
can still change.

*Steps that prepare a compare-and-swap.* If a step writes nothing, reads only the variable that
the swap compares, and a lost swap leads back exactly to where the step began, then it can be
fused with the swap. In any run the swap that follows either succeeds, and then nobody wrote the
variable in between, so the step could have come right before it; or it fails, and then step and
swap together did nothing at all.

Both need that no property looks at the local values of several actors at once; if one does,
nothing is fused. Both need that the step is fair: where an actor may stay for ever is a state of
its own. What a rule cannot derive stays as it is: a model that adds a reader of private
files or a lost reply of a swap loses the reduction and keeps its meaning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twinlake.verify.checker.state_space import ActionStep, StateSpace, Transition
from twinlake.verify.checker.value_identity import is_same_value

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping

    from twinlake.verify.checker.model import Action

__all__ = ["ReducedStateSpace"]


class ReducedStateSpace(StateSpace):
    """A space whose moves are fused by the rules of this module."""

    # A fused move goes on into steps that may see what was appended.
    shares_moves = False

    def _touched_variables(self, role: int, control: str) -> tuple[int, ...]:
        # A fused move passes several control states: what any of them needs matters at its start.
        found = self._reads[role].get(control)
        if found is None:
            own = set(super()._touched_variables(role, control))
            if not self.sees_actors:
                names = {
                    name
                    for act in self.model.actions()
                    if act.role == self.roles[role].name and (act.frozen or act.swap)
                    for name in (*act.reads, *act.writes)
                }
                own |= {index for index, name in enumerate(self.variables) if name in names}
            found = self._reads[role][control] = tuple(sorted(own))
        return found

    def is_private(self, role: int, local: Any, shared: Mapping[str, Hashable]) -> bool:
        """Whether nobody can interfere with an actor that has this value, nor see its steps."""
        acts = self.actions_at(role, local.state)
        if self.sees_actors or not acts:
            return False
        return all(
            act.is_local and act.fair and _sees_frozen_parts_only(act, local, shared)
            for act in acts
        )

    def transitions(
        self, role: int, local: Any, shared: Mapping[str, Hashable]
    ) -> Iterator[Transition]:
        """The moves of an actor, each run on through the steps that fuse with it."""
        for step in self.steps(role, local, shared):
            swapped = self._swap_after(role, step)
            if swapped is None:
                first = Transition((step,), step.next.shared, step.next.actor)
                yield from self._settled(role, first, shared)
            else:
                for transition in swapped:
                    yield from self._settled(role, transition, shared)

    def _settled(
        self, role: int, transition: Transition, shared: Mapping[str, Hashable]
    ) -> Iterator[Transition]:
        """An outcome continued through the private steps that follow it."""
        now = {**shared, **transition.shared}
        # A stack and no recursion: a private path may be long.
        todo = [transition]
        while todo:
            reached = todo.pop()
            local = reached.actor
            longer = [
                Transition((*reached.steps, step), reached.shared, step.next.actor)
                for step in (
                    () if self._stops(role, reached, now) else self.steps(role, local, now)
                )
            ]
            if longer:
                todo += reversed(longer)
            else:
                yield reached

    def _stops(self, role: int, reached: Transition, now: Mapping[str, Hashable]) -> bool:
        """Whether a move ends here: others matter, a property is broken, or it goes in circles."""
        local = reached.actor
        return (
            not self.is_private(role, local, now)
            or self.evaluator.fails_alone(local)
            or any(is_same_value(step.actor, local) for step in reached.steps)
        )

    def _swap_after(self, role: int, step: ActionStep) -> list[Transition] | None:
        """The step fused with the compare-and-swap it prepares, if the rule allows it."""
        ready = step.next.actor
        acts = self.actions_at(role, ready.state)
        if self.sees_actors or step.next.shared or len(acts) != 1 or acts[0].swap is None:
            return None
        if not acts[0].fair:
            return None
        if not self._prepares(step, acts[0]) or self.evaluator.fails_alone(ready):
            return None
        return [
            Transition((step, swapped), swapped.next.shared, swapped.next.actor)
            for swapped in self.steps(role, ready, step.shared)
        ]

    def _prepares(self, step: ActionStep, act: Action) -> bool:
        swap = act.swap
        if swap is None or not step.action.live_reads <= {swap.variable}:
            return False
        ready = step.next.actor
        current: Any = step.shared[swap.variable]
        return getattr(ready, swap.base) == len(current) - 1 and is_same_value(
            getattr(self.model, swap.otherwise)(ready), step.actor
        )


def _sees_frozen_parts_only(act: Action, local: Any, shared: Mapping[str, Any]) -> bool:
    return all(getattr(local, at) < len(shared[name]) for name, at in act.frozen.items())
