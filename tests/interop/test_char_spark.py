"""CHAR and VARCHAR: what Delta Spark stores, what it reads, and what Iceberg may be told of it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from tests.support.data_files import append
from tests.support.matrix.writers import session_settings
from twinlake import Table
from twinlake.errors import CompatViolation
from twinlake.log import CACHE
from twinlake.spark import DeltaTable, scan

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

COLUMNS = (
    "id INT, c CHAR(5), v VARCHAR(5), cs ARRAY<CHAR(5)>, sc STRUCT<x: INT, c: CHAR(5)>, "
    "mc MAP<CHAR(5), CHAR(5)>, p CHAR(5)"
)
V2 = {"delta.columnMapping.mode": "id", "delta.enableIcebergCompatV2": "true"}
UNPADDED: dict[str, dict[str, str]] = {
    "default": {},
    "char as string": {"spark.sql.legacy.charVarcharAsString": "true"},
    "no padding by readers": {"spark.sql.readSideCharPadding": "false"},
}


def create(spark: SparkSession, path: Path, properties: dict[str, str]) -> None:
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    told = f"TBLPROPERTIES ({listed})" if listed else ""
    spark.sql(
        f"CREATE TABLE delta.`{path}` ({COLUMNS}) USING delta PARTITIONED BY (p) {told}"
    ).collect()


def insert(spark: SparkSession, path: Path, number: int, text: str) -> None:
    values = (
        f"{number}, {text}, {text}, array({text}, NULL), named_struct('x', 1, 'c', {text}), "
        f"map('k', {text}), {text}"
    )
    spark.sql(f"INSERT INTO delta.`{path}` VALUES ({values})").collect()


def delta_rows(spark: SparkSession, path: Path) -> list[Any]:
    return spark.read.format("delta").load(str(path)).orderBy("id").collect()


def iceberg_rows(spark: SparkSession, path: Path) -> list[Any]:
    return spark.read.format("iceberg").load(f"{path}/_iceberg").orderBy("id").collect()


def stored(path: Path) -> list[Any]:
    """The first value of every column in the newest file."""
    add = max(Table.open(path).snapshot.adds(), key=lambda add: add.modification_time)
    row = pq.read_table(path / add.path, partitioning=None).to_pylist()[0]
    return list(row.values())[1:]


@pytest.mark.parametrize("setting", UNPADDED)
def test_delta_spark_stores_char_as_it_is_given(
    delta_spark: SparkSession, tmp_path: Path, setting: str
) -> None:
    path = tmp_path / "t"
    create(delta_spark, path, V2)
    with session_settings(delta_spark, UNPADDED[setting]):
        insert(delta_spark, path, 1, "'ab'")

    assert "'ab'" in repr(stored(path)) and "'ab " not in repr(stored(path))
    (row,) = delta_rows(delta_spark, path)
    assert (row.c, row.v, row.cs, row.sc.c, row.p) == (
        "ab   ", "ab", ["ab   ", None], "ab   ", "ab   ",
    )  # fmt: skip
    table = Table.open(path)
    with pytest.raises(CompatViolation, match=r"c is char\(5\), which Spark pads"):
        table.iceberg.sync()
    assert "c is char(5)" in table.iceberg.lag.why
    report = table.check("icebergCompatV2")
    found = [v.path for v in report.violations if v.rule == "ICV2-27"]
    assert found == ["c", "cs", "sc", "mc", "p"]


@pytest.mark.parametrize("setting", UNPADDED)
@pytest.mark.parametrize("target", ["icebergCompatV2", "icebergWriterCompatV1"])
def test_an_upgrade_stores_what_readers_saw(
    delta_spark: SparkSession, tmp_path: Path, target: str, setting: str
) -> None:
    path = tmp_path / "t"
    create(delta_spark, path, {})
    for number, text in enumerate(("'ab'", "'abcde'", "'ü '", "NULL")):
        insert(delta_spark, path, number, text)
    # A row that is written again has its padding already.
    delta_spark.sql(f"UPDATE delta.`{path}` SET v = 'new' WHERE id = 0").collect()
    before = delta_rows(delta_spark, path)
    refused = Table.open(path).upgrade(target, dry_run=True)
    assert {violation.rule for violation in refused.blockers} == {"ICV2-27"}
    assert "--give-up char" in refused.advice

    with session_settings(delta_spark, UNPADDED[setting]):
        plan = Table.open(path).upgrade(target, give_up=["char"], spark=delta_spark)

    assert plan.done
    table = Table.open(path)
    table.iceberg.sync()
    after = delta_rows(delta_spark, path)
    assert after == before == scan(delta_spark, path).orderBy("id").collect()
    assert iceberg_rows(delta_spark, path) == before
    kinds = [f.metadata.get("__CHAR_VARCHAR_TYPE_STRING") for f in table.schema]
    assert kinds[:4] == [None, "varchar(5)", "varchar(5)", "array<varchar(5)>"]
    assert table.check(target).ok
    with session_settings(delta_spark, UNPADDED["no padding by readers"]):
        assert delta_rows(delta_spark, path) == before


def test_char_columns_do_not_stay_in_place(delta_spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    create(delta_spark, path, {"delta.columnMapping.mode": "name"})
    insert(delta_spark, path, 1, "'ab'")

    plan = Table.open(path).upgrade(
        "icebergCompatV2", in_place=True, give_up=["char"], dry_run=True
    )

    assert {violation.rule for violation in plan.blockers} == {"ICV2-27"}
    assert "in place" in plan.blockers[0].fix


def test_varchar_is_the_same_on_both_sides_whoever_checks_its_length(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    Table.create(
        path, "id INT, v VARCHAR(3), vs ARRAY<VARCHAR(3)>", properties=V2, policy="minimal"
    )
    rows = delta_spark.sql("SELECT 1 id, 'ab ' v, array('', 'ü') vs")
    rows.write.format("delta").mode("append").save(str(path))
    # Delta Spark checks the length under every setting; not every writer does.
    append(Table.open(path), path, [{"id": 2, "v": "too long", "vs": ["too long"]}])

    Table.open(path).iceberg.sync()

    found = delta_rows(delta_spark, path)
    assert [row.v for row in found] == ["ab ", "too long"]
    assert iceberg_rows(delta_spark, path) == found
    # Delta Spark checks the rows that it writes again as well, and OPTIMIZE fails; ours moves them.
    with pytest.raises(Exception, match="DELTA_EXCEED_CHAR_VARCHAR_LIMIT"):
        delta_spark.sql(f"OPTIMIZE delta.`{path}`").collect()
    DeltaTable.forPath(delta_spark, str(path)).optimize().executeCompaction()
    Table.open(path).iceberg.sync()
    assert iceberg_rows(delta_spark, path) == delta_rows(delta_spark, path) == found


@pytest.mark.parametrize("mode", ["none", "name"])
@pytest.mark.parametrize("setting", UNPADDED)
def test_we_read_what_delta_spark_reads(
    delta_spark: SparkSession, tmp_path: Path, mode: str, setting: str
) -> None:
    path = tmp_path / "t"
    create(delta_spark, path, {"delta.columnMapping.mode": mode})
    for number, text in enumerate(("'ab'", "'abcde'")):
        insert(delta_spark, path, number, text)
        with session_settings(delta_spark, UNPADDED[setting]):
            for condition in ("true", "p = 'ab'", "p = 'ab   '", "sc.c = 'ab   '", "length(c) = 5"):
                ours = scan(delta_spark, path).where(condition).orderBy("id").collect()
                theirs = delta_spark.read.format("delta").load(str(path)).where(condition)
                assert ours == theirs.orderBy("id").collect(), condition


def with_existence_default(spark: SparkSession, path: Path) -> None:
    """A table whose first file lacks a column that has a value for such files."""
    Table.create(path, "id INT", policy="minimal")
    spark.sql("SELECT 1 id").write.format("delta").mode("append").save(str(path))
    Table.open(path).add_column("y INT")
    log = max((path / "_delta_log").glob("*.json"))
    text = log.read_text()
    before = '{\\"name\\":\\"y\\",\\"type\\":\\"integer\\",\\"nullable\\":true,\\"metadata\\":{'
    assert before in text
    log.write_text(text.replace(before, before + '\\"EXISTS_DEFAULT\\":\\"8\\"'))
    for checksum in (path / "_delta_log").glob("*.crc"):
        checksum.unlink()
    CACHE.forget(Table.open(path).location)
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    spark.sql("SELECT 2 id, 3 y").write.format("delta").mode("append").save(str(path))


def test_values_for_files_that_lack_a_column_are_written_by_an_upgrade(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    path, other = tmp_path / "t", tmp_path / "o"
    with_existence_default(delta_spark, path)
    shutil.copytree(path, other)
    before = delta_rows(delta_spark, path)
    assert [tuple(row) for row in before] == [(1, 8), (2, 3)]

    plan = Table.open(path).upgrade("icebergCompatV2", spark=delta_spark)

    assert plan.done
    Table.open(path).iceberg.sync()
    assert delta_rows(delta_spark, path) == before == iceberg_rows(delta_spark, path)
    # Nor does another rewrite lose them.
    DeltaTable.forPath(delta_spark, str(other)).optimize().executeCompaction()
    assert delta_rows(delta_spark, other) == before
