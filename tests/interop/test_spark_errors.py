"""What Delta Spark raises, met for real, and errors of ours that come out of real jobs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from twinlake.errors import Code, CorruptTable, TwinlakeError, UserError
from twinlake.spark.errors import (
    encode_error_around_row,
    encoded_errors,
    spark_error,
    spark_errors,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def tables(delta_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of Delta Spark with rules that can be broken."""
    folder = tmp_path_factory.mktemp("rules")
    for name, columns, rest in (
        ("plain", "id INT, s STRING", ""),
        ("strict", "id INT NOT NULL", ""),
        ("checked", "id INT", ""),
        ("growing", "id INT", "TBLPROPERTIES ('delta.appendOnly' = 'true')"),
    ):
        delta_spark.sql(f"CREATE TABLE delta.`{folder / name}` ({columns}) USING delta {rest}")
    delta_spark.sql(f"ALTER TABLE delta.`{folder / 'checked'}` ADD CONSTRAINT pos CHECK (id > 0)")
    delta_spark.sql(f"INSERT INTO delta.`{folder / 'plain'}` VALUES (1, 'a')")
    delta_spark.sql(f"INSERT INTO delta.`{folder / 'growing'}` VALUES (1)")
    return folder


def append(spark: SparkSession, query: str, path: Path, mode: str = "append") -> None:
    spark.sql(query).write.format("delta").mode(mode).save(str(path))


REFUSED: dict[str, Callable[[SparkSession, Path], object]] = {
    "DELTA_VERSION_NOT_FOUND": lambda spark, at: (
        spark.read.format("delta").option("versionAsOf", 99).load(str(at / "plain"))
    ),
    "DELTA_NOT_NULL_CONSTRAINT_VIOLATED": lambda spark, at: append(
        spark, "SELECT CAST(NULL AS INT) id", at / "strict"
    ),
    "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES": lambda spark, at: append(
        spark, "SELECT -1 id", at / "checked"
    ),
    "DELTA_CANNOT_MODIFY_APPEND_ONLY": lambda spark, at: spark.sql(
        f"DELETE FROM delta.`{at / 'growing'}` WHERE id = 1"
    ),
    "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE": lambda spark, at: spark.sql(
        f"MERGE INTO delta.`{at / 'plain'}` t USING (SELECT explode(array(1, 1)) id) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET s = 'b'"
    ),
    "DELTA_METADATA_MISMATCH": lambda spark, at: append(
        spark, "SELECT 1 id, 'a' s, 2 more", at / "plain"
    ),
    "DELTA_PATH_EXISTS": lambda spark, at: append(spark, "SELECT 1 id", at / "plain", "error"),
    "DELTA_UNKNOWN_CONFIGURATION": lambda spark, at: spark.sql(
        f"ALTER TABLE delta.`{at / 'plain'}` SET TBLPROPERTIES ('delta.nope' = '1')"
    ),
    "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT": lambda spark, at: spark.sql(
        f"VACUUM delta.`{at / 'plain'}` RETAIN 0 HOURS"
    ),
    "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG": lambda spark, at: spark.sql(
        f"ALTER TABLE delta.`{at / 'plain'}` SET TBLPROPERTIES ('delta.feature.zz' = 'supported')"
    ),
    "UNRESOLVED_COLUMN.WITH_SUGGESTION": lambda spark, at: spark.sql(
        f"DELETE FROM delta.`{at / 'plain'}` WHERE zz = 1"
    ),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_delta_spark_raises_what_our_table_says(
    delta_spark: SparkSession, tables: Path, name: str
) -> None:
    with pytest.raises((PySparkException, Py4JJavaError)) as caught:
        REFUSED[name](delta_spark, tables)
    theirs = caught.value
    ours = spark_error(UserError(Code.INTERNAL, "What.", delta_class=name))
    assert isinstance(ours, PySparkException)
    if isinstance(theirs, PySparkException):
        assert (theirs.getCondition(), theirs.getSqlState()) == (name, ours.getSqlState())
        assert type(ours).__name__ == type(theirs).__name__
    else:
        assert theirs.java_exception.getCondition() == name
        assert theirs.java_exception.getSqlState() == ours.getSqlState()
        assert isinstance(ours, Py4JJavaError)


def rows_of_a_job(spark: SparkSession, how: str) -> Any:
    """Three rows through an expression, a worker or an RDD that fails on one of them."""
    from pyspark.sql import functions as F

    if how == "expression":
        violated = UserError(Code.CONSTRAINT, "It's violated.", fields={"constraint": "pos"})
        before, after = encode_error_around_row(violated)
        text = F.concat(F.lit(before), F.to_json(F.struct("*")), F.lit(after))
        checked = F.when(F.col("id") < 2, F.col("id")).otherwise(F.raise_error(text).cast("long"))
        return spark.range(3).withColumn("id", checked).collect()

    def fails(value: Any) -> int:
        with encoded_errors():
            raise CorruptTable(Code.DV_CORRUPT, "Damaged.", fields={"n": 1})

    if how == "worker":
        return spark.range(3).select(F.udf(fails, "int", useArrow=False)("id")).collect()
    return spark.range(3).rdd.map(fails).collect()


@pytest.mark.parametrize(
    ("how", "expected", "fields"),
    [
        ("expression", UserError, {"constraint": "pos", "row": {"id": 2}}),
        ("worker", CorruptTable, {"n": 1}),
        ("rdd", CorruptTable, {"n": 1}),
    ],
)
def test_an_error_of_ours_comes_out_of_a_job(
    delta_spark: SparkSession, how: str, expected: type[TwinlakeError], fields: dict[str, Any]
) -> None:
    with pytest.raises(expected) as caught, spark_errors():
        rows_of_a_job(delta_spark, how)
    assert caught.value.fields == fields
    assert isinstance(caught.value, PySparkException)


def test_a_short_retention_names_the_setting_of_the_session(
    delta_spark: SparkSession, tables: Path
) -> None:
    from twinlake.spark import DeltaTable

    with pytest.raises(UserError) as caught:
        DeltaTable.forPath(delta_spark, str(tables / "plain")).vacuum(0)
    assert "retentionDurationCheck.enabled" in caught.value.fix
    assert "enforce_retention" not in caught.value.fix
