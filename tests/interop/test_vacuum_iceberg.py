"""VACUUM by Delta Spark, which knows nothing of Iceberg metadata, and the sync that follows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.engines.delta_tables import delta_settings
from tests.support.iceberg.both_sides import iceberg_rows, opened
from twinlake import Table

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TABLE = """
CREATE TABLE delta.`{}` (id INT, name STRING) USING delta TBLPROPERTIES
('delta.columnMapping.mode'='name', 'delta.enableIcebergCompatV2'='true')
"""


def named_files(folder: Path) -> set[str]:
    """Every data file that a retained snapshot of the Iceberg metadata names."""
    table = opened(folder)
    return {
        task.file.file_path.rpartition("/")[2]
        for snapshot in table.metadata.snapshots
        for task in table.scan(snapshot_id=snapshot.snapshot_id).plan_files()
    }


def test_no_snapshot_names_what_delta_spark_deleted(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    delta_spark.sql(TABLE.format(path))
    delta_spark.sql(f"INSERT INTO delta.`{path}` SELECT id, 'a' FROM range(0, 4, 1, 1)")
    delta_spark.sql(f"UPDATE delta.`{path}` SET name = 'b' WHERE id = 1")
    Table.open(path).iceberg.sync()
    before = named_files(path)
    assert len(before) == 2
    with delta_settings(delta_spark, retentionDurationCheck__enabled="false"):
        delta_spark.sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS")
    left = {file.name for file in path.rglob("part-*.parquet")}
    assert len(before - left) == 1
    assert "VACUUM START" in {record.operation for record in Table.open(path).history()}
    done = Table.open(path).iceberg.sync()
    assert not done.rebuilt
    assert named_files(path) == left
    theirs = [row.asDict() for row in delta_spark.read.format("delta").load(str(path)).collect()]
    assert sorted(iceberg_rows(path), key=str) == sorted(theirs, key=str)
