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
from tests.support.two_engines import Engines, replay
from tests.support.workloads import Rows, Start, Step, Update, Write, random_start, random_step

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

_STEPS = 6
_TRIES = 10
_PARTS = scale(1, 20)
_WORKLOADS = 15
"""How many there are in each part."""

_FEED = {"delta.enableChangeDataFeed": "true"}
_MAPPED_FEED = {**_FEED, "delta.columnMapping.mode": "name"}
_ONCE: dict[str, tuple[Start, list[Step]]] = {
    "a feed of changes made while the table was partitioned": (
        Start(
            columns="`id` BIGINT, `p` TIMESTAMP_NTZ, `q` DOUBLE",
            partition_by=("p", "q"),
            properties={"delta.enableDeletionVectors": "true", **_FEED},
            rows=Rows(seed=2343, count=7),
        ),
        [
            Update(set={"`q`": "-`q`"}, where="`id` <> 10"),
            Write(
                rows=Rows(seed=5475, count=3, columns="`id` BIGINT, `p` TIMESTAMP_NTZ, `r` FLOAT"),
                mode="overwrite",
                overwrite_schema=True,
            ),
        ],
    ),
    "columns that need a feature and would break the feed": (
        Start(columns="`c` BOOLEAN, `id` BIGINT", properties=_MAPPED_FEED),
        [
            Write(rows=Rows(seed=1116, count=4)),
            Write(
                rows=Rows(seed=4136, count=4, columns="`id` BIGINT, `at` TIMESTAMP_NTZ"),
                mode="overwrite",
                overwrite_schema=True,
            ),
        ],
    ),
    "null for a column that has to have a value": (
        Start(columns="`id` BIGINT NOT NULL, `a` BIGINT", rows=Rows(seed=5204, count=6)),
        [Update(set={"`id`": "null"})],
    ),
    "one partition of days before 1582": (
        Start(
            columns="`id` BIGINT, `d` DATE, `at` TIMESTAMP",
            partition_by=("d", "at"),
            properties={"delta.columnMapping.mode": "name"},
            rows=Rows(seed=5204, count=6),
        ),
        [Update(set={"`d`": "DATE'0001-02-03'", "`at`": "TIMESTAMP'1000-01-01 01:02:03.456'"})],
    ),
}
"""What random workloads found once, cut down."""


@pytest.mark.parametrize(("start", "steps"), list(_ONCE.values()), ids=list(_ONCE))
def test_workloads_that_once_disagreed(
    delta_spark: SparkSession, tmp_path: Path, start: Start, steps: list[Step]
) -> None:
    engines = replay(delta_spark, tmp_path, start, steps)
    assert engines.versions
    engines.finish()


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
