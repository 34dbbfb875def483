"""Tables that Delta Spark made, upgraded: it still reads the same rows, and writes where it may."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.iceberg.both_sides import as_text, iceberg_rows
from tests.support.iceberg.readers import by_delta, by_iceberg, texts
from twinlake import Table
from twinlake.errors import CompatViolation
from twinlake.schema import ColumnMappingMode, physical_name, walk_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

STRICT = "icebergWriterCompatV1"
COLUMNS = (
    "id BIGINT, b TINYINT, sh SMALLINT, name STRING, p STRING, q TINYINT, d DATE, at TIMESTAMP, "
    "arr ARRAY<STRUCT<x: SMALLINT, y: STRING>>, m MAP<STRING, ARRAY<INT>>, "
    "s STRUCT<u: TINYINT, v: DECIMAL(10, 2)>"
)
MESSY = {
    "delta.enableDeletionVectors": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.dropFeatureTruncateHistory.retentionDuration": "interval 0 hours",
}
NAME_MODE = {"delta.columnMapping.mode": "name"}
VALUES = """
    id,
    CAST(id % 100 AS TINYINT) b,
    CAST(id * 3 AS SMALLINT) sh,
    CASE WHEN id % 4 = 0 THEN NULL ELSE concat('n', id) END name,
    element_at(array('a b', 'ü/x', NULL), CAST(id % 3 + 1 AS INT)) p,
    CAST(id % 2 AS TINYINT) q,
    date_add(DATE'2024-01-01', CAST(id AS INT)) d,
    timestampadd(SECOND, CAST(id AS INT), TIMESTAMP'2024-01-01 12:00:00.123456') at,
    CASE WHEN id % 5 = 0 THEN NULL
         ELSE array(named_struct('x', CAST(id AS SMALLINT), 'y', 'z'), NULL) END arr,
    map('k', array(CAST(id AS INT), NULL)) m,
    named_struct('u', CAST(1 AS TINYINT), 'v', CAST(id AS DECIMAL(10, 2))) s
"""


def create(
    spark: SparkSession,
    path: Path,
    properties: dict[str, str],
    *,
    columns: str = COLUMNS,
    partitions: str = "",
) -> None:
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    by = f"PARTITIONED BY ({partitions})" if partitions else ""
    spark.sql(
        f"CREATE TABLE delta.`{path}` ({columns}) USING delta {by} TBLPROPERTIES ({listed})"
    ).collect()


def insert(spark: SparkSession, path: Path, start: int, end: int) -> None:
    names = [column.name for column in spark.read.format("delta").load(str(path)).schema]
    frame = spark.range(start, end, numPartitions=1).selectExpr(
        *[line.strip() for line in VALUES.strip().split(",\n    ")]
    )
    frame.select(*names).write.format("delta").mode("append").save(str(path))


def messy(spark: SparkSession, path: Path, mode: dict[str, str], partitions: str) -> None:
    """Files of several commits, some of them with deletion vectors."""
    create(spark, path, {**MESSY, **mode}, partitions=partitions)
    insert(spark, path, 0, 12)
    insert(spark, path, 12, 20)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id IN (1, 2, 13)").collect()
    spark.sql(f"UPDATE delta.`{path}` SET name = 'new' WHERE id = 5").collect()


def rows(spark: SparkSession, path: Path) -> list[Any]:
    """As Delta Spark reads them."""
    found = spark.read.format("delta").load(str(path)).orderBy("id").collect()
    return [row.asDict(recursive=True) for row in found]


def ours(spark: SparkSession, path: Path) -> list[Any]:
    from twinlake.spark import scan

    found = scan(spark, str(path)).orderBy("id").collect()
    return [row.asDict(recursive=True) for row in found]


def assert_named_by_id(table: Table) -> None:
    assert table.metadata.column_mapping_mode is ColumnMappingMode.ID
    for _, field in walk_fields(table.schema):
        assert physical_name(field).removeprefix("col-").isdigit()


@pytest.mark.parametrize(
    ("mode", "partitions"),
    [({}, "q"), (NAME_MODE, "")],
    ids=["unmapped and partitioned", "by name"],
)
def test_strict(
    delta_spark: SparkSession, tmp_path: Path, mode: dict[str, str], partitions: str
) -> None:
    path = tmp_path / "t"
    messy(delta_spark, path, mode, partitions)
    before = rows(delta_spark, path)
    assert len(before) == 17
    table = Table.open(path)
    assert table.snapshot.counters.num_deletion_vectors
    with pytest.raises(CompatViolation) as refused:
        table.set_properties({"delta.enableIcebergWriterCompatV1": "true"})
    assert len({v["rule"] for v in refused.value.report["violations"]}) >= 6
    plan = table.upgrade(STRICT, spark=delta_spark)
    assert plan.done, str(plan)
    after = Table.open(path)
    report = after.check(STRICT, files=True)
    assert report.ok, str(report)
    assert_named_by_id(after)
    assert rows(delta_spark, path) == before
    assert ours(delta_spark, path) == before
    # Delta Spark does not know the promise, so it must not write.
    with pytest.raises(Exception, match="icebergWriterCompatV1"):
        insert(delta_spark, path, 100, 101)
    assert after.upgrade(STRICT).steps == ()


def test_shared_and_then_strict(delta_spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    messy(delta_spark, path, {}, "p")
    before = rows(delta_spark, path)
    plan = Table.open(path).upgrade(STRICT, mode="shared", spark=delta_spark)
    assert plan.done, str(plan)
    assert rows(delta_spark, path) == before
    assert_named_by_id(Table.open(path))
    insert(delta_spark, path, 100, 102)
    assert Table.open(path).check("icebergCompatV2", files=True).ok
    delta_spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 3").collect()
    # With the change data feed on, Delta Spark leaves its own columns in files, without ids.
    left = Table.open(path).check("icebergCompatV2", files=True)
    assert {v.path.rpartition(" ")[2] for v in left.violations} == {"_change_type", "__is_cdc"}
    mended = Table.open(path).upgrade(STRICT, mode="shared", spark=delta_spark)
    assert mended.done
    assert mended.steps[0].cost.files == 1
    after = Table.open(path)
    assert after.check("icebergCompatV2", files=True).ok
    found = rows(delta_spark, path)
    assert [row["id"] for row in found] == [
        *(row["id"] for row in before if row["id"] != 3),
        100,
        101,
    ]
    assert ours(delta_spark, path) == found
    strict = after.upgrade(STRICT, spark=delta_spark)
    assert strict.done, str(strict)
    assert Table.open(path).check(STRICT, files=True).ok
    assert rows(delta_spark, path) == found


def test_in_place(delta_spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    compatible = {**NAME_MODE, "delta.enableIcebergCompatV2": "true"}
    create(delta_spark, path, compatible, partitions="p")
    insert(delta_spark, path, 0, 9)
    before = rows(delta_spark, path)
    table = Table.open(path)
    files = {add.path for add in table.snapshot.adds()}
    plan = table.upgrade(STRICT, in_place=True)
    assert plan.done, str(plan)
    after = Table.open(path)
    assert {add.path for add in after.snapshot.adds()} == files
    report = after.check(STRICT, files=True)
    assert report.ok, str(report)
    assert_named_by_id(after)
    assert rows(delta_spark, path) == before
    assert ours(delta_spark, path) == before
    # Files are skipped by statistics and partition values under their new names.
    chosen = delta_spark.read.format("delta").load(str(path)).where("id = 4 AND p = 'ü/x'")
    assert [row["id"] for row in chosen.collect()] == [4]


def test_in_place_takes_ids_on_every_node(delta_spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    create(delta_spark, path, NAME_MODE)
    insert(delta_spark, path, 0, 3)
    table = Table.open(path)
    with pytest.raises(CompatViolation) as refused:
        table.upgrade(STRICT, in_place=True)
    assert "cannot stay as it is" in refused.value.why
    assert Table.open(path).version == table.version


def test_third_version_keeps_row_ids(delta_spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    tracked = {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true"}
    create(delta_spark, path, tracked, columns="id BIGINT, name STRING")
    insert(delta_spark, path, 0, 6)
    delta_spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 2").collect()

    def with_ids() -> list[tuple[int, str, int]]:
        frame = delta_spark.read.format("delta").load(str(path))
        chosen = frame.selectExpr("id", "name", "_metadata.row_id").orderBy("id")
        return [tuple(row) for row in chosen.collect()]

    before = with_ids()
    plan = Table.open(path).upgrade("icebergWriterCompatV3", spark=delta_spark)
    assert plan.done, str(plan)
    report = Table.open(path).check("icebergWriterCompatV3", files=True)
    assert report.ok, str(report)
    assert with_ids() == before


def test_uniform(delta_spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    messy(delta_spark, path, {}, "")
    before = rows(delta_spark, path)
    plan = Table.open(path).upgrade_uniform(2, delta_spark)
    assert plan.done, str(plan)
    after = Table.open(path)
    assert after.check("icebergCompatV2", files=True).ok
    assert rows(delta_spark, path) == before
    # It is Delta's own format of the matter: its writers go on, and its command finds it done.
    insert(delta_spark, path, 50, 51)
    assert Table.open(path).check("icebergCompatV2", files=True).ok
    assert Table.open(path).upgrade_uniform(2, delta_spark).steps == ()


LEGACY = {
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
}
OLD_VALUES = """
    id, DATE'1500-03-01' d, TIMESTAMP'1500-03-01 12:34:56.789012' t,
    named_struct('d', DATE'0999-12-31', 't', TIMESTAMP'1890-01-01 00:00:00') s
"""


@contextlib.contextmanager
def settings(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """Settings of the session for the block."""
    before = {key: spark.conf.get(key) for key in wanted}
    for key, value in wanted.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            spark.conf.set(key, str(old))


WAYS: dict[str, Callable[[Table, Any], Any]] = {
    "strict": lambda table, spark: table.upgrade(STRICT, spark=spark),
    "in place": lambda table, spark: table.upgrade(STRICT, in_place=True, spark=spark),
    "uniform": lambda table, spark: table.upgrade_uniform(2, spark),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stored", ["INT96", "TIMESTAMP_MICROS"])
def test_values_of_the_legacy_calendar_are_kept(
    delta_spark: SparkSession, tmp_path: Path, stored: str, way: str
) -> None:
    """What Delta Spark reads in such files is what both sides read in those of the upgrade."""
    path = tmp_path / "t"
    columns = "id BIGINT, d DATE, t TIMESTAMP, s STRUCT<d: DATE, t: TIMESTAMP>"
    create(delta_spark, path, NAME_MODE, columns=columns)
    with settings(delta_spark, {**LEGACY, "spark.sql.parquet.outputTimestampType": stored}):
        frame = delta_spark.range(0, 3, numPartitions=1).selectExpr(
            *[part.strip() for part in re.split(r",(?![^(]*\))", OLD_VALUES)]
        )
        frame.write.format("delta").mode("append").save(str(path))
    before = texts(by_delta(delta_spark, path, 1))
    table = Table.open(path)
    legacy_files = {add.path for add in table.snapshot.adds()}
    assert not table.check("icebergCompatV2", files=True).ok
    plan = WAYS[way](table, delta_spark)
    assert plan.done, str(plan)
    table = Table.open(path)
    assert legacy_files.isdisjoint(add.path for add in table.snapshot.adds())
    assert table.check("icebergCompatV2", files=True).ok
    table.iceberg.sync()
    assert texts(by_delta(delta_spark, path, table.version)) == before
    assert texts(by_iceberg(delta_spark, path)) == before
    assert as_text(iceberg_rows(path)) == before
