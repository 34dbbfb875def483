"""Columns with a DEFAULT: the same writes by Delta Spark and by twinlake store the same rows.

What Delta Spark 4.4.0 does, measured here: it takes DEFAULT under icebergCompatV1 and V2, fills it
in on every way to insert rows, goes by the metadata of the column even where the feature is
missing, and refuses ADD COLUMN with a DEFAULT.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from twinlake import Table
from twinlake.errors import CompatViolation, UserError
from twinlake.spark import DeltaTable, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FEATURES: dict[str, dict[str, str]] = {
    "none": {},
    "icebergCompatV1": {
        "delta.columnMapping.mode": "name",
        "delta.enableIcebergCompatV1": "true",
    },
    "icebergCompatV2": {
        "delta.columnMapping.mode": "id",
        "delta.enableIcebergCompatV2": "true",
    },
}
COLUMNS = (
    "id INT, x INT NOT NULL DEFAULT 5, p STRING DEFAULT 'pp', day DATE DEFAULT DATE'2020-01-01', "
    "t STRING DEFAULT concat('a', 'b'), n DECIMAL(5, 2) DEFAULT 1.5, l BIGINT DEFAULT 3, "
    "s STRUCT<a: INT> DEFAULT named_struct('a', 1), plain INT"
)

Write = Callable[["SparkSession", str, "DataFrame"], None]


def delta_create(spark: SparkSession, path: Path, properties: Mapping[str, str]) -> None:
    every = {**properties, "delta.feature.allowColumnDefaults": "supported"}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in every.items())
    spark.sql(
        f"CREATE TABLE delta.`{path}` ({COLUMNS}) USING delta PARTITIONED BY (p) "
        f"TBLPROPERTIES ({listed})"
    ).collect()


def delta_write(
    frame: DataFrame, path: str, mode: str, by: Sequence[str] = (), **options: str
) -> None:
    writer = frame.write.format("delta").mode(mode)
    writer = writer.partitionBy(*by) if by else writer
    for key, value in options.items():
        writer = writer.option(key, value)
    writer.save(path)


def delta_merge(spark: SparkSession, path: str, source: DataFrame) -> Any:
    from delta.tables import DeltaTable as TheirTable

    return TheirTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.id = s.id")


def our_merge(spark: SparkSession, path: str, source: DataFrame) -> Any:
    return DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.id = s.id")


def their_update(spark: SparkSession, path: str, _: DataFrame) -> None:
    from delta.tables import DeltaTable as TheirTable

    TheirTable.forPath(spark, path).update("id = 0", {"x": "DEFAULT", "plain": "default"})


#: The frame; then the write by Delta Spark, and by twinlake.
WRITES: dict[str, tuple[str, Write, Write]] = {
    "append": (
        "SELECT 1 id",
        lambda _, p, f: delta_write(f, p, "append"),
        lambda _, p, f: void(write(f, p, "append")),
    ),
    "append of some": (
        "SELECT 1 id, 9 x, CAST(NULL AS BIGINT) l",
        lambda _, p, f: delta_write(f, p, "append"),
        lambda _, p, f: void(write(f, p, "append")),
    ),
    "append with a new column": (
        "SELECT 1 id, 1 new",
        lambda _, p, f: delta_write(f, p, "append", mergeSchema="true"),
        lambda _, p, f: void(write(f, p, "append", merge_schema=True)),
    ),
    "overwrite": (
        "SELECT 1 id",
        lambda _, p, f: delta_write(f, p, "overwrite"),
        lambda _, p, f: void(write(f, p, "overwrite")),
    ),
    "replaceWhere": (
        "SELECT 1 id",
        lambda _, p, f: delta_write(f, p, "overwrite", replaceWhere="x = 5"),
        lambda _, p, f: void(write(f, p, "overwrite", replace_where="x = 5")),
    ),
    "overwrite of the default's partition": (
        "SELECT 1 id",
        lambda _, p, f: delta_write(f, p, "overwrite", partitionOverwriteMode="dynamic"),
        lambda _, p, f: void(write(f, p, "overwrite", partition_overwrite="dynamic")),
    ),
    "overwrite with another schema": (
        "SELECT 1 id, 2 x, 'b' p",
        lambda _, p, f: delta_write(f, p, "overwrite", by=["p"], overwriteSchema="true"),
        lambda _, p, f: void(write(f, p, "overwrite", partition_by="p", overwrite_schema=True)),
    ),
    "merge": (
        "SELECT 1 id, 7 y",
        lambda s, p, f: void(
            delta_merge(s, p, f).whenNotMatchedInsert(values={"id": "s.id"}).execute()
        ),
        lambda s, p, f: void(
            our_merge(s, p, f).whenNotMatchedInsert(values={"id": "s.id"}).execute()
        ),
    ),
    "merge with a new column": (
        "SELECT 1 id, 7 new",
        lambda s, p, f: void(
            delta_merge(s, p, f).withSchemaEvolution().whenNotMatchedInsertAll().execute()
        ),
        lambda s, p, f: void(
            our_merge(s, p, f).withSchemaEvolution().whenNotMatchedInsertAll().execute()
        ),
    ),
    "update to the default": (
        "SELECT 1 id",
        their_update,
        lambda s, p, _: void(
            DeltaTable.forPath(s, p).update("id = 0", {"x": "DEFAULT", "plain": "default"})
        ),
    ),
}


def void(_: object) -> None:
    """A call for what it does."""


def rows(spark: SparkSession, path: Path, format_name: str = "delta") -> list[Any]:
    return spark.read.format(format_name).load(str(path)).orderBy("id").collect()


def start(spark: SparkSession, path: Path, feature: str) -> None:
    """A table of Delta Spark with a row."""
    delta_create(spark, path, FEATURES[feature])
    first = "SELECT 0 id, 0 x, 'pp' p, 0L l, 0 plain"
    delta_write(spark.sql(first), str(path), "append")


#: Every write on a plain table, and those on the others that go different ways.
CELLS = [
    *(("none", name) for name in WRITES),
    ("icebergCompatV1", "append"),
    ("icebergCompatV2", "append with a new column"),
    ("icebergCompatV2", "overwrite with another schema"),
    ("icebergCompatV2", "merge"),
]


@pytest.mark.parametrize(("feature", "name"), CELLS)
def test_both_store_the_same_rows(
    delta_spark: SparkSession, tmp_path: Path, feature: str, name: str
) -> None:
    query, theirs, ours = WRITES[name]
    one, other = tmp_path / "theirs", tmp_path / "ours"
    start(delta_spark, one, feature)
    shutil.copytree(one, other)

    theirs(delta_spark, str(one), delta_spark.sql(query))
    ours(delta_spark, str(other), delta_spark.sql(query))

    found = rows(delta_spark, one)
    assert rows(delta_spark, other) == found
    for path in (one, other) if FEATURES[feature] else ():
        Table.open(path).iceberg.sync()
        assert rows(delta_spark, path / "_iceberg", "iceberg") == found


def test_delta_spark_and_we_write_a_table_of_ours(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    properties = FEATURES["icebergCompatV2"]
    Table.create(tmp_path, "id INT, x INT DEFAULT 5", properties=properties, policy="minimal")
    frame = delta_spark.sql("SELECT 1 id")
    write(frame, tmp_path, "append")
    # Delta Spark refuses this, and reads it: rows from before have no value.
    Table.open(tmp_path).add_column("y INT DEFAULT 7")
    delta_write(delta_spark.sql("SELECT 2 id"), str(tmp_path), "append")
    write(delta_spark.sql("SELECT 3 id"), tmp_path, "append")
    Table.open(tmp_path).alter_column("y", default="8")
    delta_write(delta_spark.sql("SELECT 4 id"), str(tmp_path), "append")
    Table.open(tmp_path).alter_column("y", default="")
    delta_write(delta_spark.sql("SELECT 5 id"), str(tmp_path), "append")

    found = rows(delta_spark, tmp_path)

    assert [tuple(row) for row in found] == [
        (1, 5, None), (2, 5, 7), (3, 5, 7), (4, 5, 8), (5, 5, None),
    ]  # fmt: skip
    Table.open(tmp_path).iceberg.sync()
    assert rows(delta_spark, tmp_path / "_iceberg", "iceberg") == found


@pytest.mark.parametrize(
    ("text", "error"),
    [("id", "cannot be computed"), ("nope()", "cannot be computed"), ("'x'", "cannot be stored")],
)
def test_a_default_that_is_no_value_of_the_column_is_refused(
    delta_spark: SparkSession, tmp_path: Path, text: str, error: str
) -> None:
    Table.create(tmp_path, f"id INT, x INT DEFAULT {text}")
    with pytest.raises(Exception, match=error) as refused:
        write(delta_spark.sql("SELECT 1 id"), tmp_path, "append")
    assert isinstance(refused.value, UserError)
    write(delta_spark.sql("SELECT 1 id, 2 x"), tmp_path, "append")


def test_the_upgrade_for_iceberg_writers_is_refused(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    start(delta_spark, path, "none")
    with pytest.raises(CompatViolation) as refused:
        Table.open(path).upgrade("icebergWriterCompatV1", spark=delta_spark)
    assert "IWC1-17: feature allowColumnDefaults" in refused.value.why
