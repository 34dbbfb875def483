"""Which spellings of a path are one file: what Delta Spark takes for one, replay does too."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from tests.support.log_tables import add, commit, info, metadata, remove
from tests.support.path_spellings import SAME_IN_DELTA_SPARK, spellings
from twinlake.log import load_snapshot
from twinlake.protocol import Protocol
from twinlake.storage import LocalStore

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def live_in_delta_spark(spark: SparkSession, path: Path) -> set[str]:
    """The files of the latest version, by their names alone."""
    jvm: Any = spark._jvm
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, str(path))
    files = log.unsafeVolatileSnapshot().allFiles().collect()
    return {file.path().rpartition("/")[2] for file in files}


def names_of(paths: list[str]) -> set[str]:
    return {path.rpartition("/")[2] for path in paths}


def test_a_remove_hits_what_it_hits_in_delta_spark(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    store = LocalStore(tmp_path, durable=False)
    pairs = list(product(spellings(""), repeat=2))
    named = {pair: spellings(str(tmp_path), f"{n:03}.parquet") for n, pair in enumerate(pairs)}
    commit(
        store,
        0,
        info(),
        Protocol(1, 2),
        metadata(),
        *(add(named[one, other][one]) for one, other in pairs),
    )
    commit(store, 1, info(), *(remove(named[one, other][other]) for one, other in pairs))

    ours = names_of(load_snapshot(store).files()["path"].to_pylist())
    theirs = live_in_delta_spark(delta_spark, tmp_path)
    assert {name[-11:] for name in ours} == {name[-11:] for name in theirs}
    missed = [p for n, p in enumerate(pairs) if f"{n:03}.parquet" in {x[-11:] for x in theirs}]
    apart = [p for p in pairs if not any(set(p) <= group for group in SAME_IN_DELTA_SPARK)]
    assert missed == apart
