"""Iceberg's own Spark reader on what the metadata says of a table: names, orders, defaults."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError

from tests.support.data_files import append
from tests.support.iceberg.both_sides import (
    V3,
    agree,
    as_text,
    iceberg_rows,
    opened,
    remove_files,
    twin,
)
from tests.support.iceberg.readers import by_delta, by_iceberg, texts
from tests.support.log_tables import commit
from twinlake import Table
from twinlake.iceberg import sync_table
from twinlake.protocol import ICEBERG_PREFIX

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def loaded(spark: SparkSession, folder: Path) -> Any:
    """The table as Iceberg's own library opens it."""
    jvm: Any = spark._jvm
    session: Any = spark._jsparkSession
    tables = jvm.org.apache.iceberg.hadoop.HadoopTables(session.sessionState().newHadoopConf())
    return tables.load(f"{folder}/_iceberg")


def same(spark: SparkSession, folder: Path) -> Table:
    """All readers return the same rows: ours and PyIceberg at every version, Spark now."""
    table = Table.open(folder)
    agree(table, folder)
    assert texts(by_iceberg(spark, folder)) == texts(by_delta(spark, folder, table.version))
    return table


def test_a_name_that_went_to_another_column(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Files from before the ids, read by Iceberg through the name mapping alone."""
    where = f"delta.`{tmp_path}`"
    delta_spark.sql(f"CREATE TABLE {where} (id INT, a STRING) USING delta")
    delta_spark.sql(f"INSERT INTO {where} VALUES (1, 'old')")
    delta_spark.sql(
        f"ALTER TABLE {where} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '7')"
    )
    table = Table.open(tmp_path)
    promise = {**table.metadata.configuration, "delta.enableIcebergCompatV2": "true"}
    promised = replace(table.metadata, configuration=promise)
    model = Table.create(
        tmp_path / "model",
        "id INT",
        properties={"delta.columnMapping.mode": "name", "delta.enableIcebergCompatV2": "true"},
    )
    commit(table.snapshot.store, table.version + 1, model.protocol, promised)
    delta_spark.sql(f"ALTER TABLE {where} RENAME COLUMN a TO b")
    delta_spark.sql(f"ALTER TABLE {where} ADD COLUMN a INT")
    delta_spark.sql(f"INSERT INTO {where} VALUES (2, 'new', 5)")

    table = same(delta_spark, tmp_path)

    assert texts(by_iceberg(delta_spark, tmp_path).where("b = 'old'")) == texts(
        by_delta(delta_spark, tmp_path, table.version).where("b = 'old'")
    )


def test_a_table_that_delta_spark_clusters(delta_spark: SparkSession, tmp_path: Path) -> None:
    where = f"delta.`{tmp_path}`"
    delta_spark.sql(
        f"CREATE TABLE {where} (id INT, s STRUCT<x: DATE>) USING delta CLUSTER BY (s.x, id) "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.enableIcebergCompatV2' = 'true', 'delta.enableDeletionVectors' = 'false')"
    )
    delta_spark.sql(f"INSERT INTO {where} VALUES (1, named_struct('x', DATE'2024-01-01'))")
    same(delta_spark, tmp_path)
    found = loaded(delta_spark, tmp_path)
    assert [field.sourceId() for field in found.sortOrder().fields()] == [3, 1]
    assert {str(field.direction()) for field in found.sortOrder().fields()} == {"ASC"}
    assert {str(field.nullOrder()) for field in found.sortOrder().fields()} == {"NULLS FIRST"}

    snapshots = len(opened(tmp_path).metadata.snapshots)
    delta_spark.sql(f"ALTER TABLE {where} CLUSTER BY (id)")
    same(delta_spark, tmp_path)
    found = loaded(delta_spark, tmp_path)
    assert [field.sourceId() for field in found.sortOrder().fields()] == [1]
    assert found.sortOrders().size() == 3
    assert len(opened(tmp_path).metadata.snapshots) == snapshots

    # An order of the past may name a column that is gone.
    delta_spark.sql(f"ALTER TABLE {where} CLUSTER BY NONE")
    delta_spark.sql(f"ALTER TABLE {where} DROP COLUMN s")
    same(delta_spark, tmp_path)
    assert loaded(delta_spark, tmp_path).sortOrder().isUnsorted()


DEFAULTS = {
    "i INT": "7",
    "l BIGINT": "-7L",
    "f FLOAT": "0.1",
    "d DOUBLE": "0.1",
    "n DECIMAL(12,3)": "1.5",
    "s STRING": "'it''s'",
    "b BOOLEAN": "true",
    "x BINARY": "X'00ff'",
    "day DATE": "DATE'2024-02-29'",
    "ts TIMESTAMP": "TIMESTAMP'2024-02-29 12:00:00.000001+02:00'",
    "ntz TIMESTAMP_NTZ": "TIMESTAMP_NTZ'2024-02-29 12:00:00'",
    "nothing INT": "NULL",
}


def test_defaults_of_columns(delta_spark: SparkSession, tmp_path: Path) -> None:
    columns = ", ".join(f"{column} DEFAULT {text}" for column, text in DEFAULTS.items())
    properties = {
        **V3,
        "delta.feature.allowColumnDefaults": "supported",
        f"{ICEBERG_PREFIX}write.distribution-mode": "none",
    }
    table = twin(tmp_path, f"id INT, {columns}", properties=properties)
    table = append(table, tmp_path, [{"id": 1}])
    sync_table(table.snapshot)

    assert texts(by_iceberg(delta_spark, tmp_path)) == as_text(iceberg_rows(tmp_path))
    fields = {
        field.name(): field.writeDefault()
        for field in loaded(delta_spark, tmp_path).schema().columns()
    }
    shown = {name: None if value is None else str(value) for name, value in fields.items()}
    assert shown.pop("x") is not None
    assert shown == {
        "id": None,
        "i": "7",
        "l": "-7",
        "f": "0.1",
        "d": "0.1",
        "n": "1.500",
        "s": "it's",
        "b": "True",
        "day": "19782",
        "ts": "1709200800000001",
        "ntz": "1709208000000000",
        "nothing": None,
    }
    assert all(f.initialDefault() is None for f in loaded(delta_spark, tmp_path).schema().columns())


def test_properties_of_the_face(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Both engines live with what a table asks for; what it may not have is not shown."""
    table = append(twin(tmp_path, "id INT"), tmp_path, [{"id": 1}])
    table = table.set_properties({f"{ICEBERG_PREFIX}write.distribution-mode": "hash"})
    week = 7 * 24 * 60 * 60 * 1000
    where = f"delta.`{tmp_path}`"
    wishes = {
        "write.parquet.compression-codec": "zstd",
        "history.expire.max-snapshot-age-ms": str(week + 1),
        "twinlake.leftovers": "x",
        "read.split.target-size": "big",
    }
    listed = ", ".join(f"'{ICEBERG_PREFIX}{key}' = '{value}'" for key, value in wishes.items())
    delta_spark.sql(f"ALTER TABLE {where} SET TBLPROPERTIES ({listed})")
    delta_spark.sql(f"INSERT INTO {where} VALUES (2)")

    same(delta_spark, tmp_path)

    found = loaded(delta_spark, tmp_path).properties()
    assert found.get("write.distribution-mode") == "hash"
    assert found.get("write.parquet.compression-codec") == "zstd"
    assert found.get("history.expire.max-snapshot-age-ms") == str(week)
    assert found.get("write.data.path") == loaded(delta_spark, tmp_path).location()
    assert found.get("twinlake.leftovers") is None
    assert found.get("read.split.target-size") is None


def test_iceberg_deletes_no_data_of_delta(delta_spark: SparkSession, tmp_path: Path) -> None:
    table = append(twin(tmp_path, "id INT"), tmp_path, [{"id": 1}])
    table = remove_files(table)
    table = append(table, tmp_path, [{"id": 2}])
    sync_table(table.snapshot)
    data = sorted(path.name for path in tmp_path.glob("*.parquet"))
    found = loaded(delta_spark, tmp_path)

    with pytest.raises(Py4JJavaError, match="GC is disabled"):
        found.expireSnapshots()
    jvm: Any = delta_spark._jvm
    jvm.org.apache.iceberg.CatalogUtil.dropTableData(found.io(), found.operations().current())

    assert sorted(path.name for path in tmp_path.glob("*.parquet")) == data
    assert len(data) == 2
    same(delta_spark, tmp_path)
