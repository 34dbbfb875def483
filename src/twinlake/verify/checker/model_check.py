"""``check``: explore a model and say which of its properties hold."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinlake.verify.checker.liveness import has_no_cycle, violations_on_cycles
from twinlake.verify.checker.model import ALWAYS, EVENTUALLY_ALWAYS, Model, ModelError
from twinlake.verify.checker.property_evaluator import VALUE_SYMMETRY, AsymmetricProperty
from twinlake.verify.checker.reduction import ReducedStateSpace
from twinlake.verify.checker.result import Counterexample, Result
from twinlake.verify.checker.search import (
    AUTO,
    ENGINES,
    Progress,
    Search,
    SearchResult,
    ViolatingState,
    count_first_reached,
)
from twinlake.verify.checker.state_space import StateSpace
from twinlake.verify.checker.trace import path_to, retrace

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from twinlake.verify.checker.model import ModelProperty
    from twinlake.verify.checker.state_space import Transition

__all__ = ["check", "explore"]

#: Up to how many states the cycles of a model that has some are looked at.
CYCLE_LIMIT = 500_000


def check(
    model: Model,
    *,
    symmetry: bool = False,
    value_symmetry: bool = False,
    reduction: bool = False,
    without: Collection[str] = (),
    stop_at_first: bool = True,
    max_states: int | None = None,
    engine: str = AUTO,
    on_progress: Callable[[Progress], None] | None = None,
    tally: Callable[[Transition], bool] | None = None,
) -> Result:
    """Explore every state of a model, breadth first, and evaluate its properties.

    Args:
        model: the model.
        symmetry: treat actors of one role as interchangeable, and local values that no action
            can tell apart as one. Where a property tells them apart, it is not used; the
            result's options say so under ``given_up``.
        value_symmetry: treat data values as interchangeable that the model says are; not used
            where a property tells them apart.
        reduction: fuse steps by partial order; derived from what the actions declare.
        without: names of properties to leave out.
        stop_at_first: stop at the first violation instead of exploring on.
        max_states: give up after so many states; the result is then not complete.
        engine: ``loop`` takes state by state; ``columns`` takes whole levels by NumPy; ``auto``
            begins with the first and goes over to the second where levels are large. All find the
            same. The result's options say which one it ended with.
        on_progress: called after every level.
        tally: moves of which to count the states that they reach first.
    """
    names = [one.name for one in model.properties()]
    unknown = [name for name in without if name not in names]
    if unknown:
        raise ModelError(f"{unknown[0]!r} is no property of {model.title}: {', '.join(names)}")
    if engine not in ENGINES:
        raise ModelError(f"the engine is one of {', '.join(ENGINES)}")
    memory, clock = _memory(), time.process_time()
    chosen = {
        "symmetry": symmetry,
        "value_symmetry": value_symmetry,
        "reduction": reduction,
        "without": tuple(without),
        "engine": engine,
        "given_up": (),
    }
    limits = {
        "stop_at_first": stop_at_first,
        "max_states": max_states,
        "engine": engine,
        "on_progress": on_progress,
    }
    space, found = _explored(model, chosen, limits)
    after, spent = _memory(), time.process_time() - clock
    used = bool(chosen["symmetry"])
    violations = [_violated(space, found, one, symmetry=used) for one in found.violations]
    verdicts, on_cycles = _verdicts(space, found)
    return Result(
        model=model.title,
        parameters=model.parameters(),
        states=found.states,
        generated=found.generated,
        depth=len(found.levels),
        complete=found.complete,
        verdicts=verdicts,
        violations=(*violations, *on_cycles),
        violating_states=found.violating_states,
        ends=found.ends,
        actions={act.name: space.fired.get(act.name, 0) for act in model.actions()},
        branches=space.coverage(),
        options=chosen,
        cpu_seconds=spent,
        memory_bytes=None if memory is None or after is None else max(after - memory, 0),
        tally=None if tally is None else count_first_reached(space, found, tally, symmetry=used),
    )


def _explored(
    model: Model, chosen: dict[str, Any], limits: dict[str, Any]
) -> tuple[StateSpace, SearchResult]:
    """Search as chosen, without the symmetries that a property does not keep, which is noted."""
    merge = chosen["symmetry"]
    while True:
        try:
            return _searched(model, chosen, limits, merge=merge)
        except AsymmetricProperty as broken:
            chosen["given_up"] = (*chosen["given_up"], str(broken))
            if broken.symmetry in chosen:
                chosen[broken.symmetry] = False
            merge = merge and broken.symmetry == VALUE_SYMMETRY


def _searched(
    model: Model, chosen: dict[str, Any], limits: dict[str, Any], *, merge: bool
) -> tuple[StateSpace, SearchResult]:
    """Search as chosen; notes which engine it ended with."""
    kind = ReducedStateSpace if chosen["reduction"] else StateSpace
    space = kind(
        model,
        symmetric=chosen["symmetry"],
        merge_alike=merge,
        interchange_values=chosen["value_symmetry"],
        without=chosen["without"],
    )
    search = Search(space=space, symmetry=chosen["symmetry"], **limits)
    found = search.run()
    chosen["engine"] = search.engine_used
    return space, found


def explore(
    model: Model, *, symmetry: bool = False, reduction: bool = False, without: Collection[str] = ()
) -> tuple[StateSpace, SearchResult]:
    """All reachable states of a model, violations or not: for comparing searches."""
    kind = ReducedStateSpace if reduction else StateSpace
    space = kind(model, symmetric=symmetry, merge_alike=symmetry, without=without)
    return space, Search(space=space, symmetry=symmetry, stop_at_first=False).run()


def _violated(
    space: StateSpace, found: SearchResult, one: ViolatingState, *, symmetry: bool
) -> Counterexample:
    path = path_to(space, found.levels, one.state, one.level, symmetry=symmetry)
    return Counterexample(
        property=one.property.name,
        message=one.message,
        fields=one.fields,
        trace=retrace(space, path, symmetry=symmetry),
    )


def _verdicts(
    space: StateSpace, found: SearchResult
) -> tuple[dict[str, str], list[Counterexample]]:
    """One word a property; and what fails on cycles, which only a complete search can decide."""
    failed = {one.property.name for one in found.violations}
    lasting = [one for one in space.properties if one.kind == EVENTUALLY_ALWAYS]
    cycles: list[Counterexample] | None = None
    if lasting and found.complete and not failed:
        cycles = _cycles(space, lasting, found)
        failed |= {one.property for one in cycles or ()}
    verdicts: dict[str, str] = {}
    for one in space.properties:
        if one.name in failed:
            verdict = "violated"
        elif one.kind == ALWAYS:
            verdict = "holds" if found.complete else "not checked"
        elif one.kind == EVENTUALLY_ALWAYS:
            verdict = "not checked" if cycles is None else "holds"
        elif one.name in space.evaluator.reached:
            verdict = "reached"
        else:
            verdict = "not reached" if found.complete else "not checked"
        verdicts[one.name] = verdict
    return verdicts, cycles or []


def _cycles(
    space: StateSpace, lasting: list[ModelProperty], found: SearchResult
) -> list[Counterexample] | None:
    """Lasting properties that fail on a cycle; ``None`` if there are too many states to decide."""
    # Where values are renamed on the way, remembered moves do not link up to cycles.
    if not space.permutations and has_no_cycle(space):
        return []
    if found.states > CYCLE_LIMIT:
        return None
    wrong = violations_on_cycles(space.model, lasting, CYCLE_LIMIT)
    if wrong is None:
        return None
    return [
        Counterexample(
            property=one.property.name,
            message=f"{one.property.name} is false again and again on a cycle",
            fields={"cycle": one.cycle},
            trace=one.trace,
        )
        for one in wrong
    ]


def _memory() -> int | None:
    """The resident size of this process, where the system reports it."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
