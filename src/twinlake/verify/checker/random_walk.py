"""Random walks: what can be said of a model that is too big to be searched to the end."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from twinlake.verify.checker.fairness import FairMoves
from twinlake.verify.checker.model import EVENTUALLY_ALWAYS, Model
from twinlake.verify.checker.result import Counterexample, Result
from twinlake.verify.checker.search import ENDS, STAYS, matches
from twinlake.verify.checker.state_space import LayoutWidened, StateSpace
from twinlake.verify.checker.successors import expander
from twinlake.verify.checker.trace import retrace

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["walk"]


def walk(
    model: Model,
    *,
    seed: int,
    walks: int = 100,
    max_steps: int = 1000,
    without: Collection[str] = (),
) -> Result:
    """Follow random paths and evaluate the states they pass; the same seed gives the same paths.

    The result is never complete. Its trace is the walk that broke a property, not a shortest one.
    """
    clock = time.process_time()
    walker = _RandomWalks(StateSpace(model, without=without), random.Random(seed))
    violated: Counterexample | None = None
    for _ in range(walks):
        violated = walker.go(max_steps)
        if violated is not None:
            break
    space = walker.space
    return Result(
        model=model.title,
        parameters=model.parameters(),
        states=len(walker.seen),
        generated=walker.generated,
        depth=walker.longest,
        complete=False,
        verdicts={one.name: walker.verdict(one.name, violated) for one in space.properties},
        violations=() if violated is None else (violated,),
        violating_states=int(violated is not None),
        ends=walker.ends,
        actions={act.name: space.fired.get(act.name, 0) for act in model.actions()},
        branches=space.coverage(),
        options={"seed": seed, "walks": walks, "max_steps": max_steps, "without": tuple(without)},
        cpu_seconds=time.process_time() - clock,
        memory_bytes=None,
    )


class _RandomWalks:
    def __init__(self, space: StateSpace, chance: random.Random) -> None:
        self.space = space
        self.seen: set[int] = set()
        self.generated = self.longest = self.ends = 0
        self._chance = chance
        self._expand = expander(space, symmetry=False)
        self._fair = FairMoves(space)

    def go(self, max_steps: int) -> Counterexample | None:
        """Take one walk from an initial state; returns what it broke."""
        path = [self._chance.choice(self.space.initial())]
        while True:
            self.seen.add(path[-1])
            self.longest = max(self.longest, len(path))
            violated = self._violation(path)
            if violated is not None or len(path) > max_steps:
                return violated
            following = self._following(path)
            if not following:
                self.ends += 1
                return self._wrong(path, ENDS)
            if self._fair.resting(path[-1:]):
                violated = self._wrong(path, STAYS)
                if violated is not None:
                    return violated
            path.append(self._chance.choice(following))

    def verdict(self, name: str, violated: Counterexample | None) -> str:
        """What a walk can say of a property: that it fails, or that something was reached."""
        if violated is not None and violated.property == name:
            return "violated"
        return "reached" if name in self.space.evaluator.reached else "not checked"

    def _following(self, path: list[int]) -> list[int]:
        while True:
            successors: list[int] = []
            try:
                self._expand((path[-1],), successors, [])
            except LayoutWidened as widened:
                path[:] = widened.translate(path)
                self.seen = set(widened.translate(self.seen))
                self._expand = expander(self.space, symmetry=False)
            else:
                self.generated += len(successors)
                return successors

    def _violation(self, path: list[int]) -> Counterexample | None:
        state = path[-1]
        self.space.evaluator.evaluate_level((state,))
        failing = [one for _, one in matches(self.space, [state])]
        failing += self.space.evaluator.evaluate_state(state)
        if not failing:
            return None
        return Counterexample(
            property=failing[0].property.name,
            message=failing[0].failure.message,
            fields=failing[0].failure.fields,
            trace=retrace(self.space, path, symmetry=False),
        )

    def _wrong(self, path: list[int], text: str) -> Counterexample | None:
        """A lasting property that is false where a run ends or may stay."""
        for one in self.space.properties:
            if one.kind != EVENTUALLY_ALWAYS:
                continue
            if not self.space.evaluator.lasts_in(one, path[-1]):
                return Counterexample(
                    property=one.name,
                    message=text.format(one.name),
                    fields={},
                    trace=retrace(self.space, path, symmetry=False),
                )
        return None
