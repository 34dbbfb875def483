"""Random workloads: Delta Spark and twinlake, with each of its writers, agree after every step.

Delta Spark has a table, and so has each writer; how they are compared is said in
``tests.support.engines.two_engines``. A failure prints the workload as a call of ``replay`` that
runs it again, and ends only its own part of them. Nothing is shrunk: a workload takes seconds, and
its list of steps is short.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.support.engines.two_engines import Engines, replay
from tests.support.engines.workloads import (
    Merge,
    Rows,
    Start,
    Step,
    Update,
    Write,
    random_start,
    random_step,
)
from tests.support.scale import is_full_scale, scale

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_STEPS = 6
_TRIES = 20
_PARTS = scale(1, 20)
_WORKLOADS = scale(2, 15)
"""How many there are in each part, those whose start is refused or that stay short not counted."""

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
    "an empty string where a partition is replaced": (
        Start(columns="`id` BIGINT, `p` STRING", partition_by=("p",), rows=Rows(seed=1, count=4)),
        [
            Write(
                rows=Rows(seed=1580, count=40, where="`p` < '/a=b'"),
                mode="overwrite",
                replace_where="`p` < '/a=b'",
            )
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
    "matches in files that no clause is about": (
        Start(columns="`id` BIGINT, `a` BIGINT", rows=Rows(seed=1, count=0)),
        [
            Write(rows=Rows(seed=2451, count=20, where="`id` < 5")),
            Merge(
                rows=Rows(seed=6762, count=40),
                clauses=(("whenMatchedDelete", {"condition": "t.`id` >= 5"}),),
            ),
        ],
    ),
    "new columns by a merge that finds nothing in an empty table": (
        Start(columns="`id` BIGINT, `a` STRING"),
        [
            Merge(
                rows=Rows(seed=4129, count=5, columns="`id` BIGINT, `a` STRING, `b` DECIMAL(18,6)"),
                clauses=(("whenMatchedUpdateAll", {}),),
                evolve=True,
            )
        ],
    ),
    "null for a column that has to have a value": (
        Start(columns="`id` BIGINT NOT NULL, `a` BIGINT", rows=Rows(seed=5204, count=6)),
        [Update(set={"`id`": "null"})],
    ),
    "nothing but partition columns": (
        Start(
            columns="`id` BIGINT, `p` BOOLEAN", partition_by=("p",), rows=Rows(seed=9775, count=3)
        ),
        [Write(rows=Rows(seed=9699, count=4, columns="`p` BOOLEAN"))],
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
        max_examples=2 * _WORKLOADS,
        derandomize=not is_full_scale(),
        database=None,
        phases=[Phase.generate],
    )
    @given(rng=st.randoms(use_true_random=True))
    def run(rng: Random) -> None:
        if tally["workloads"] == _WORKLOADS:
            return
        engines = Engines(delta_spark, tmp_path_factory.mktemp(f"workload{part}-"))
        if not engines.run(random_start(rng)):
            return
        for _ in range(_TRIES):
            engines.run(random_step(rng, engines.shape()))
            # The start is a version too.
            if len(engines.versions) > _STEPS:
                break
        engines.finish()
        tally["workloads"] += len(engines.versions) > _STEPS
        tally["steps"] += len(engines.versions)
        tally["refused"] += len(engines.refused)
        tally["fallbacks"] += sum(side.fallbacks for side in engines.ours)

    run()
    assert tally["workloads"] == _WORKLOADS, tally
    # Writers that left the work to the other one prove little.
    assert tally["fallbacks"] < tally["steps"] / 2, tally
