"""``check`` on Spark's workers, and on tables that Delta Spark wrote with and without a promise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from twinlake import Table
from twinlake.runtime import Runtime
from twinlake.spark.executor import SparkExecutor
from twinlake.table.operations.check import check_snapshot
from twinlake.table.operations.context import OperationContext

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from twinlake.compat import Report

pytestmark = pytest.mark.spark

SELECT = """
SELECT id, timestamp_seconds(id) AS at, array(id, id + 1) AS tags, date '2024-01-01' AS day,
       map('a', named_struct('n', id)) AS props
FROM range(40)
"""


def make(spark: SparkSession, path: Path, *properties: str) -> Table:
    """A partitioned table of several files by Delta Spark."""
    listed = ", ".join(properties)
    spark.sql(
        f"CREATE TABLE delta.`{path}` USING delta PARTITIONED BY (day) "
        f"{f'TBLPROPERTIES ({listed})' if properties else ''} AS {SELECT}"
    )
    return Table.open(path)


def broken(report: Report) -> set[str]:
    return {violation.rule for violation in report.violations}


def test_what_delta_spark_writes_under_compat_v2_is_clean(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    table = make(
        delta_spark,
        tmp_path / "t",
        "'delta.enableIcebergCompatV2' = 'true'",
        "'delta.columnMapping.mode' = 'name'",
    )
    report = table.check("icebergCompatV2", files=True, spark=delta_spark)
    assert (report.ok, report.enabled) == (True, True), str(report)
    assert report.files == table.snapshot.num_files > 0


def test_what_delta_spark_writes_without_a_promise_breaks_rules_of_files(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    table = make(
        delta_spark,
        tmp_path / "t",
        "'delta.columnMapping.mode' = 'name'",
        "'delta.writePartitionColumnsToParquet' = 'false'",
    )
    report = table.check("icebergCompatV2", files=True)
    assert not report.enabled
    # Elements without ids, timestamps of 96 bits, no partition column.
    assert {"ICV2-11", "ICV2-12", "ICV2-14"} <= broken(report)
    assert not broken(table.check("icebergCompatV2")) & {"ICV2-11", "ICV2-12", "ICV2-14"}


def test_workers_find_what_this_process_finds(delta_spark: SparkSession, tmp_path: Path) -> None:
    table = make(delta_spark, tmp_path / "t")
    next((tmp_path / "t").rglob("part-*.parquet")).write_bytes(b"PAR1 torn")
    here = check_snapshot(OperationContext(), table.snapshot, "icebergCompatV2", files=True)
    workers = OperationContext(runtime=Runtime(executor=SparkExecutor(delta_spark, few=1)))
    there = check_snapshot(workers, table.snapshot, "icebergCompatV2", files=True)
    assert here == there
    assert "ICV2-25" in broken(there)
