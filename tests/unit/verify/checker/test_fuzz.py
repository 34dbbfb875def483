"""The checker against a naive search, on models that nobody thought of.

Each number of the seed is a model; run one alone with ``TWINLAKE_FUZZ_MODEL=number``.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Iterator
from typing import Any

from tests.support.naive_search import naive_search
from tests.support.scale import scale
from tests.unit.verify.checker.random_models import random_model
from twinlake.verify import Result, check, walk
from twinlake.verify.checker import Model

SEED = 20_000_000
MODELS = scale(80, 10_000)
FEWEST, MOST = 4, 150
ALL = tuple(itertools.product((False, True), repeat=3))


def test_every_way_to_search_agrees_with_the_naive_search() -> None:
    chosen = os.environ.get("TWINLAKE_FUZZ_MODEL")
    numbers = [int(chosen)] if chosen else range(SEED, SEED + MODELS)
    said: dict[str, int] = {}
    for number in numbers:
        model, states, verdicts = _drawn(number)
        for verdict in verdicts.values():
            said[verdict] = said.get(verdict, 0) + 1
        by_loop: dict[str, dict[str, Any]] = {}
        for how, result in _searches(model, number):
            # Columns find what the loop finds: the same states, in the same order, the same traces.
            found = _without_engine(result)
            ways = str({name: how[name] for name in how if name != "engine"})
            assert by_loop.setdefault(ways, found) == found, f"model {number}: {how}"
            assert result.complete, how
            assert result.verdicts == verdicts, f"model {number}: {how}"
            if not (how["symmetry"] or how["reduction"] or how["value_symmetry"]):
                assert result.states == states, f"model {number}: {how}"
            for one in result.violations:
                assert one.trace.steps or one.trace.moves == 0
        walked = walk(model, seed=number, walks=3, max_steps=20)
        if walked.violated is not None:
            assert verdicts[walked.violated] == "violated", f"model {number}: a walk"
    if not chosen:
        assert set(said) == {"holds", "violated", "reached", "not reached"}, said


def _drawn(number: int) -> tuple[Model, int, dict[str, str]]:
    """The first model of a number that is neither trivial nor large, with what it is like."""
    for attempt in itertools.count():
        model = random_model(number + attempt * 1_000_000_000)
        states, verdicts = naive_search(model, MOST)
        if FEWEST <= states <= MOST:
            return model, states, verdicts
    raise AssertionError("every draw fails")


def _searches(model: Model, number: int) -> Iterator[tuple[dict[str, Any], Result]]:
    columns = random.Random(number).sample(ALL, 2)
    for engine, ways in (("loop", ALL), ("columns", columns)):
        for symmetry, reduction, value_symmetry in ways:
            how = {
                "engine": engine,
                "symmetry": symmetry,
                "reduction": reduction,
                "value_symmetry": value_symmetry,
            }
            yield how, _decided(model, how)


def _without_engine(result: Result) -> dict[str, Any]:
    found = result.to_dict()
    for name in ("cpu_seconds", "memory_bytes"):
        del found[name]
    found["options"] = {**found["options"], "engine": None}
    return found


def _decided(model: Model, how: dict[str, Any]) -> Result:
    """A result with a verdict for every property: cycles are asked for by themselves."""
    result = check(model, stop_at_first=False, **how)
    open_ones = [name for name, verdict in result.verdicts.items() if verdict == "not checked"]
    for name in open_ones:
        others = [one.name for one in model.properties() if one.name != name]
        alone = check(model, stop_at_first=False, without=others, **how)
        result.verdicts[name] = alone.verdicts[name]  # type: ignore[index]
    return result
