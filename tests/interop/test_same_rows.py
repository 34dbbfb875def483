"""Random workloads: Delta Spark and twinlake, with each of its writers, agree after every step.

Delta Spark has a table, and so has each writer; how they are compared is said in
``tests.support.two_engines``. A failure prints the workload as a call of ``replay`` that runs it
again, and ends only its own part of them. Nothing is shrunk: a workload takes seconds, and its
list of steps is short.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.support.scale import is_full_scale, scale
from tests.support.two_engines import Engines
from tests.support.workloads import random_start, random_step

if TYPE_CHECKING:
    from random import Random

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

_STEPS = 6
_TRIES = 10
_PARTS = scale(1, 20)
_WORKLOADS = 15
"""How many there are in each part."""


@pytest.mark.parametrize("part", range(_PARTS))
def test_random_workloads_leave_the_same_tables(
    delta_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, part: int
) -> None:
    tally: Counter[str] = Counter()

    @settings(
        max_examples=_WORKLOADS,
        derandomize=not is_full_scale(),
        database=None,
        phases=[Phase.generate],
    )
    @given(rng=st.randoms(use_true_random=True))
    def run(rng: Random) -> None:
        engines = Engines(delta_spark, tmp_path_factory.mktemp(f"workload{part}-"))
        if not engines.run(random_start(rng)):
            return
        for _ in range(_TRIES):
            engines.run(random_step(rng, engines.shape()))
            # The start is a version too.
            if len(engines.versions) > _STEPS:
                break
        engines.finish()
        tally["workloads"] += 1
        tally["steps"] += len(engines.versions)
        tally["refused"] += len(engines.refused)
        tally["fallbacks"] += sum(side.fallbacks for side in engines.ours)

    run()
    # Tables that were refused, and writers that left the work to the other one, prove little.
    assert tally["workloads"] >= 0.8 * _WORKLOADS, tally
    assert tally["steps"] >= 5 * tally["workloads"], tally
    assert tally["fallbacks"] < tally["steps"] / 2, tally
