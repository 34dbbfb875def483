"""``dropFeatureSupport`` leaves the protocol that Delta Spark leaves (policy ``minimal``)."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from twinlake import Table
from twinlake.protocol import keys

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Case:
    """A table of Delta Spark, and the features that are dropped from it one after another."""

    properties: str
    drop: tuple[str, ...]
    then: tuple[str, ...] = ()
    """Statements after the first rows; ``{}`` is the table."""
    truncate: bool | None = None


CASES = {
    "constraints": Case(
        "'k' = 'v'",
        ("checkConstraints",),
        ("ALTER TABLE {} ADD CONSTRAINT c CHECK (id > 0)", "ALTER TABLE {} DROP CONSTRAINT c"),
    ),
    "legacy writer": Case("'delta.minWriterVersion' = '4'", ("checkConstraints",)),
    "vectors": Case(
        "'delta.enableDeletionVectors' = 'true'",
        ("deletionVectors",),
        ("DELETE FROM {} WHERE id = 1",),
    ),
    "vectors and timestamps": Case(
        "'delta.enableDeletionVectors' = 'true', 'delta.enableInCommitTimestamps' = 'true'",
        ("inCommitTimestamp", "deletionVectors"),
    ),
    "row tracking": Case("'delta.enableRowTracking' = 'true'", ("rowTracking", "domainMetadata")),
    "mapping": Case("'delta.columnMapping.mode' = 'name'", ("columnMapping",)),
    "widening": Case(
        "'delta.enableTypeWidening' = 'true'",
        ("typeWidening",),
        ("ALTER TABLE {} ALTER COLUMN id TYPE BIGINT",),
    ),
    "checkpoints": Case("'delta.checkpointPolicy' = 'v2'", ("v2Checkpoint",)),
    "vacuum check": Case(
        "'delta.feature.vacuumProtocolCheck' = 'supported'", ("vacuumProtocolCheck",)
    ),
    "change feed stays": Case(
        "'delta.enableChangeDataFeed' = 'true', 'delta.enableInCommitTimestamps' = 'true'",
        ("inCommitTimestamp",),
    ),
}


@pytest.fixture(scope="module")
def spark(delta_spark: SparkSession) -> Iterator[SparkSession]:
    delta_spark.conf.set("spark.twinlake.upgradePolicy", "minimal")
    yield delta_spark
    delta_spark.conf.unset("spark.twinlake.upgradePolicy")


def _dropped(package: Any, spark: SparkSession, path: Path, case: Case) -> list[Any]:
    """After each drop: the protocol, the properties and the number of rows."""
    seen = []
    for feature in case.drop:
        package.DeltaTable.forPath(spark, str(path)).dropFeatureSupport(feature, case.truncate)
        table = Table.open(path)
        properties = dict(table.properties)
        if keys.REQUIRE_CHECKPOINT_PROTECTION in properties:
            # A version: how many commits the steps take is for each side to choose.
            properties[keys.REQUIRE_CHECKPOINT_PROTECTION] = "set"
        detail = package.DeltaTable.forPath(spark, str(path)).detail().collect()[0]
        seen.append(
            (
                feature,
                (detail.minReaderVersion, detail.minWriterVersion),
                sorted(detail.tableFeatures or ()),
                str(table.protocol),
                properties,
                table.count(),
            )
        )
    return seen


@pytest.mark.parametrize("name", list(CASES))
def test_the_protocol_that_delta_spark_leaves(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    import delta.tables as theirs

    import twinlake.spark as ours

    case, base = CASES[name], tmp_path / "base"
    table = f"delta.`{base}`"
    spark.sql(
        f"CREATE TABLE {table} (id INT, s STRING) USING delta TBLPROPERTIES ({case.properties})"
    )
    spark.sql(
        f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ CAST(id AS INT), 'x' FROM range(1, 5)"
    )
    for statement in case.then:
        spark.sql(statement.format(table))
    for side in ("theirs", "ours"):
        shutil.copytree(base, tmp_path / side)
    expected = _dropped(theirs, spark, tmp_path / "theirs", case)
    assert _dropped(ours, spark, tmp_path / "ours", case) == expected
