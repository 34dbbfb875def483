"""``format("twinlake")``: rows by Spark's Python workers, read and written, beside Delta Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

from tests.support.engines.delta_tables import KINDS, PeerTables, arrow_rows
from tests.support.scale import is_full_scale
from twinlake import Table
from twinlake.errors import Code
from twinlake.spark import enable, scan, write

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

#: What asks most of a reader; each table takes three Python processes of Spark's.
_SMALL = (
    "deletion_vectors",
    "column_mapping_upgraded",
    "type_widening",
    "partitioned",
)
_ALL_TYPES = (
    "id",
    "CAST(id AS INT) AS i",
    "CAST(id % 3 AS INT) AS p",
    "concat('ü', id) AS s",
    "CAST(id AS DECIMAL(12, 3)) AS d",
    "timestamp_seconds(id * 86400) AS at",
    "CAST(timestamp_seconds(id) AS TIMESTAMP_NTZ) AS ntz",
    "date_add(DATE'1960-01-01', CAST(id AS INT)) AS day",
    "CAST(concat('b', id) AS BINARY) AS b",
    "IF(id % 2 = 0, NULL, struct(id AS x, array(map('k', id)) AS l)) AS n",
    "IF(id = 1, NULL, parse_json(concat('{\"a\":', id, '}'))) AS v",
    "array(parse_json(concat('[', id, ']'))) AS vs",
)


@pytest.fixture(scope="module")
def spark(delta_spark: SparkSession) -> SparkSession:
    return enable(delta_spark)


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """All types, in three files of each of three partitions."""
    path = str(tmp_path_factory.mktemp("source") / "t")
    for part in range(3):
        rows = spark.range(part * 100, (part + 1) * 100, 1, 1).selectExpr(*_ALL_TYPES)
        write(rows, path, "append", partition_by="p")
    return path


def _load(spark: SparkSession, path: str, **options: Any) -> DataFrame:
    return spark.read.format("twinlake").options(**options).load(path)


def _rows(frame: DataFrame) -> list[str]:
    return sorted(str(row) for row in frame.collect())


@pytest.mark.parametrize("kind", KINDS if is_full_scale() else _SMALL)
def test_tables_of_delta_spark_are_read(
    kind: str, spark: SparkSession, peer_tables: PeerTables
) -> None:
    path = peer_tables.path(kind)
    rows = _load(spark, str(path)).toArrow().to_pylist()
    assert sorted(rows, key=str) == arrow_rows(spark, path)


def test_every_type_is_read_as_scan_reads_it(spark: SparkSession, table: str) -> None:
    frame, own = _load(spark, table), scan(spark, table)
    assert frame.schema == own.schema
    assert _rows(frame) == _rows(own)


@pytest.mark.parametrize(
    "where",
    [
        "id > 290 AND p = 1",
        "id IN (5, 150, 299)",
        "s LIKE 'ü29%'",
        "at = TIMESTAMP'1970-04-11 00:00:00' OR id < 0",
        "ntz >= TIMESTAMP_NTZ'1970-01-01 00:04:55'",
        "day < DATE'1960-01-04'",
        "d > 296.5",
        "NOT (id >= 3)",
        "n IS NULL AND id < 9",
        "n.x = 7",
        "b = CAST('b17' AS BINARY)",
        "i <=> 12",
        "v IS NULL",
    ],
)
def test_filters_find_the_rows_that_scan_finds(where: str, spark: SparkSession, table: str) -> None:
    found = _rows(_load(spark, table, columns="id,i,s,at,ntz,day,d,n,b,p,v").where(where))
    assert found == _rows(
        scan(
            spark, table, columns=["id", "i", "s", "at", "ntz", "day", "d", "n", "b", "p", "v"]
        ).where(where)
    )
    assert found


def test_filters_skip_files(spark: SparkSession, table: str, tmp_path: Path) -> None:
    copy = tmp_path / "t"
    Table.create(str(copy), "id BIGINT").append({"id": [1, 2]}).append({"id": [8, 9]})
    first = next(file for file in copy.glob("*.parquet") if _ids(file) == [1, 2])
    first.write_bytes(b"not a Parquet file")
    assert _rows(_load(spark, str(copy)).where("id > 5")) == ["Row(id=8)", "Row(id=9)"]
    with pytest.raises(Exception, match="cannot be read"):
        _load(spark, str(copy)).collect()


def _ids(file: Path) -> list[int]:
    import pyarrow.parquet as pq

    found: list[int] = pq.read_table(file)["id"].to_pylist()
    return found


def test_columns_and_versions(spark: SparkSession, table: str) -> None:
    frame = _load(spark, table, columns="s, `id`", versionAsOf=0)
    assert frame.columns == ["s", "id"]
    assert frame.count() == 100


def test_the_version_that_was_planned_is_read(spark: SparkSession, tmp_path: Path) -> None:
    table = Table.create(str(tmp_path / "t"), "id BIGINT").append({"id": [1]})
    frame = _load(spark, str(tmp_path / "t"))
    table.append({"id": [2]})
    assert _rows(frame) == ["Row(id=1)"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"columns": "id, nothing"}, "The table has no column nothing"),
        ({"versionAsOf": "77"}, "77"),
        ({"versionAsOf": "x"}, "Invalid value 'x' for option 'versionAsOf'"),
        ({"readChangeFeed": "true", "columns": "id"}, "columns and readChangeFeed"),
    ],
    ids=["column", "version", "number", "feed of columns"],
)
def test_options_that_cannot_be_meant_say_so(
    options: dict[str, str], text: str, spark: SparkSession, table: str
) -> None:
    with pytest.raises(AnalysisException, match=text):
        _load(spark, table, **options)


def test_changes_are_for_streams(spark: SparkSession, table: str) -> None:
    with pytest.raises(Exception, match="change data feed as a stream only"):
        _load(spark, table, readChangeFeed="true").collect()


def test_no_table_is_said(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(AnalysisException, match=Code.TABLE_NOT_FOUND.value):
        _load(spark, str(tmp_path / "none"))


def test_without_its_setting_reading_says_which(spark: SparkSession, table: str) -> None:
    setting = "spark.sql.python.filterPushdown.enabled"
    spark.conf.set(setting, "false")
    try:
        with pytest.raises(Exception, match=setting):
            _load(spark, table).collect()
    finally:
        spark.conf.set(setting, "true")


def test_appends_and_overwrites_are_tables_for_delta_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    rows = spark.range(0, 50, 1, 2).selectExpr(*_ALL_TYPES)
    other = spark.range(50, 60, 1, 1).selectExpr(*_ALL_TYPES)
    rows.write.format("twinlake").mode("append").save(path)
    other.write.format("twinlake").mode("append").save(path)
    theirs = spark.read.format("delta").load(path)
    assert _rows(theirs) == _rows(rows.union(other))
    other.write.format("twinlake").mode("overwrite").option("userMetadata", "all").save(path)
    table = Table.open(path)
    assert _rows(spark.read.format("delta").load(path)) == _rows(other)
    newest = table.history(1)[0]
    assert (newest.operation, newest.user_metadata) == ("WRITE", "all")
    assert (newest.operation_metrics or {})["numRemovedFiles"] == "3"
    stats = json.loads(next(iter(table.snapshot.adds())).stats or "")
    assert (stats["numRecords"], stats["minValues"]["id"], stats["maxValues"]["id"]) == (10, 50, 59)


def test_options_of_writes(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    rows = spark.range(0, 4, 1, 1).selectExpr("id", "id % 2 AS p")
    write(rows, path, partition_by="p")
    more = rows.where("p = 1").selectExpr("id + 10 AS id", "p", "'x' AS s")
    for _ in range(2):
        more.write.format("twinlake").mode("append").options(
            mergeSchema=True, txnAppId="job", txnVersion=3
        ).save(path)
    assert Table.open(path).count() == 6
    more.write.format("twinlake").mode("overwrite").option(
        "partitionOverwriteMode", "dynamic"
    ).save(path)
    assert sorted(row["id"] for row in scan(spark, path).collect()) == [0, 2, 11, 13]


def test_rules_are_kept_or_name_write(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    table = Table.create(path, "id BIGINT, s STRING").add_constraint("few", "id < 5")
    good, bad = (spark.range(n, n + 2, 1, 1).selectExpr("id", "'x' AS s") for n in (1, 4))
    good.write.format("twinlake").mode("append").save(path)
    with pytest.raises(Exception, match="few"):
        bad.write.format("twinlake").mode("append").save(path)
    files = set((tmp_path / "t").glob("*.parquet"))
    assert len(files) == len(Table.open(path).files())
    table.refresh().add_constraint("short", "length(s) < 9", spark=spark)
    with pytest.raises(AnalysisException, match=r"twinlake\.spark\.write"):
        good.write.format("twinlake").mode("append").save(path)
    with pytest.raises(AnalysisException, match=r"replace_where="):
        good.write.format("twinlake").mode("overwrite").option("replaceWhere", "id = 1").save(path)
    assert Table.open(path).count() == 2
