"""Three engines write one twin table by turns: at every version both sides have the same rows.

The table is of the shared kind, which Delta Spark may write. The rows are those of a model in
Python. A plain table, without Iceberg, is written by delta-rs as well.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.engines.three_engines import COLUMNS, ENGINES, DeltaRs, Model, Workload
from tests.support.iceberg.both_sides import iceberg_rows
from tests.support.iceberg.readers import by_delta, by_iceberg, kept
from tests.support.scale import scale
from twinlake.spark import scan
from twinlake.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_VERSIONS = scale(24, 300)
_PLAIN_VERSIONS = scale(12, 160)
_EACH = scale(4, 50)
_SAMPLES = scale(4, 30)
_SYNC_EVERY = 3


def texts(rows: Iterable[dict[str, Any]]) -> list[str]:
    return sorted(repr(row) for row in rows)


def collected(frame: DataFrame) -> list[str]:
    return texts(frame.toArrow().to_pylist())


def shown(workload: Workload, version: int) -> str:
    """The last changes before a version, newest last."""
    return "\n".join(["", *[s for s in workload.steps if int(s.partition(":")[0]) <= version][-5:]])


def run(workload: Workload, folder: Path, versions: int, *, twin: bool) -> int:
    """Changes until there are enough versions; the rows are compared after each."""
    spark = workload.engines[0].spark
    version = Table.open(folder).version
    for at in range(10 * versions):
        before, version = version, workload.step(at)
        if version > before:
            assert collected(scan(spark, folder)) == workload.versions[version], shown(
                workload, version
            )
        if twin and at % _SYNC_EVERY == 0:
            Table.open(folder).iceberg.sync()
        if version >= versions:
            break
    return version


def sampled(versions: Iterable[int]) -> list[int]:
    every = sorted(versions)
    return sorted(Random(1).sample(every, min(_SAMPLES, len(every))))


def test_three_engines_write_one_twin_table(delta_spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    delta_spark.sql(
        f"CREATE TABLE delta.`{folder}` ({COLUMNS}) USING delta PARTITIONED BY (p)"
    ).collect()
    Table.open(folder).upgrade("icebergWriterCompatV1", mode="shared", spark=delta_spark)
    engines = [engine(delta_spark, folder) for engine in ENGINES]
    workload = Workload(engines, Model(Random(20)))
    workload.note(Table.open(folder).version)

    last = run(workload, folder, _VERSIONS, twin=True)

    table = Table.open(folder)
    table.iceberg.sync()
    assert table.iceberg.lag.versions == 0
    assert table.check("icebergCompatV2", files=True).ok
    snapshots = [one for one in kept(folder) if one.version in workload.versions]
    assert len(snapshots) > _VERSIONS / 2
    for version, snapshot in snapshots:
        found = texts(iceberg_rows(folder, snapshot))
        assert found == workload.versions[version], f"PyIceberg{shown(workload, version)}"
    by_version = dict(snapshots)
    for version in sampled(by_version):
        found = collected(by_iceberg(delta_spark, folder, by_version[version]))
        assert found == workload.versions[version], f"Iceberg Spark{shown(workload, version)}"
    for version in sampled(workload.versions):
        wanted, steps = workload.versions[version], shown(workload, version)
        assert collected(by_delta(delta_spark, folder, version)) == wanted, f"Delta Spark{steps}"
        ours = scan(delta_spark, folder, version=version)
        assert collected(ours) == wanted, f"twinlake{steps}"
    assert collected(by_iceberg(delta_spark, folder)) == workload.versions[last]
    assert min(workload.done[engine.name] for engine in ENGINES) >= _EACH, workload.done


def test_four_engines_write_one_plain_table(delta_spark: SparkSession, tmp_path: Path) -> None:
    from deltalake import DeltaTable

    folder = tmp_path / "t"
    Table.create(folder, COLUMNS, partition_by=["p"], policy="minimal", durable=False)
    engines = [engine(delta_spark, folder) for engine in (*ENGINES, DeltaRs)]
    workload = Workload(engines, Model(Random(21)))
    workload.note(0)

    run(workload, folder, _PLAIN_VERSIONS, twin=False)

    for version in sampled(workload.versions):
        wanted, steps = workload.versions[version], shown(workload, version)
        assert collected(by_delta(delta_spark, folder, version)) == wanted, f"Delta Spark{steps}"
        theirs = DeltaTable(str(folder), version=version).to_pyarrow_table()
        assert texts(theirs.to_pylist()) == wanted, f"delta-rs{steps}"
    assert min(workload.done[e.name] for e in (*ENGINES, DeltaRs)) >= _EACH / 2, workload.done
