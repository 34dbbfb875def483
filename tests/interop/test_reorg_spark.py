"""REORG as function, builder and command, compared with Delta Spark's on copies of a table."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import IllegalArgumentException

from tests.unit.cli.running import run as run_command
from twinlake import Table
from twinlake.spark import DeltaTable, reorg
from twinlake.table import Catalog

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROPERTIES = "'delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name'"


def _make(spark: SparkSession, path: Path) -> None:
    """Three partitions: one with deleted rows, all with a dropped column but the last."""
    table = f"delta.`{path}`"
    spark.sql(
        f"CREATE TABLE {table} (id INT, old STRING, tags ARRAY<STRING>, g STRING) USING delta "
        f"PARTITIONED BY (g) TBLPROPERTIES ({PROPERTIES})"
    )
    for group in ("a", "b"):
        spark.sql(
            f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ CAST(id AS INT), 'x', array('t'), "
            f"'{group}' FROM range(10)"
        )
    spark.sql(f"DELETE FROM {table} WHERE g = 'a' AND id < 3")
    spark.sql(f"ALTER TABLE {table} DROP COLUMN old")
    spark.sql(f"INSERT INTO {table} VALUES (99, array('u'), 'c')")


def _rows(spark: SparkSession, path: Path) -> list[str]:
    return sorted(str(row) for row in spark.read.format("delta").load(str(path)).collect())


def _recorded(path: Path) -> dict[str, Any]:
    """What the newest commit says, without what is the writer's own business."""
    newest = max(path.glob("_delta_log/*.json"))
    actions = [json.loads(line) for line in newest.read_text().splitlines()]
    info = next(action["commitInfo"] for action in actions if "commitInfo" in action)
    kept = ("operation", "operationParameters", "isBlindAppend", "readVersion")
    metrics = {
        key: "bytes" if "Size" in key or key == "numAddedBytes" else value
        for key, value in info["operationMetrics"].items()
    }
    return {**{key: info.get(key) for key in kept}, "metrics": metrics}


def _by_name(spark: SparkSession, path: Path, where: str) -> None:
    names = Catalog(path.parent / "names.db")
    names.register("orders", str(path))
    spark.conf.set("spark.twinlake.catalog", str(path.parent / "names.db"))
    try:
        reorg(spark, "orders", where or None)
    finally:
        spark.conf.unset("spark.twinlake.catalog")


def _by_builder(spark: SparkSession, path: Path, where: str) -> None:
    builder = DeltaTable.forPath(spark, str(path)).reorg()
    report = (builder.where(where) if where else builder).executePurge().collect()
    assert [row["metrics"]["numFilesRemoved"] for row in report] == [1 if where else 2]


def _by_command(spark: SparkSession, path: Path, where: str) -> None:
    del spark
    words = ["reorg", path, *(["--where", where] if where else []), "--purge", "--yes", "--json"]
    result = run_command(*words)
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["files"] == (1 if where else 2)


DOORS: dict[str, Callable[[SparkSession, Path, str], object]] = {
    "function by path": lambda spark, path, where: reorg(spark, path, where or None),
    "function by name": _by_name,
    "builder": _by_builder,
    "command": _by_command,
}


@pytest.mark.parametrize("where", ["", "g = 'a'"], ids=["all", "a partition"])
def test_every_door_purges_as_delta_spark_does(
    delta_spark: SparkSession, tmp_path: Path, where: str
) -> None:
    theirs = tmp_path / "theirs"
    _make(delta_spark, theirs)
    for door in DOORS:
        shutil.copytree(theirs, tmp_path / door)
    before = _rows(delta_spark, theirs)
    clause = f"WHERE {where}" if where else ""
    delta_spark.sql(f"REORG TABLE delta.`{theirs}` {clause} APPLY (PURGE)").collect()
    wanted = _recorded(theirs)
    assert wanted["operation"] == "REORG"
    for door, purge in DOORS.items():
        ours = tmp_path / door
        purge(delta_spark, ours, where)
        assert _recorded(ours) == wanted, door
        assert _rows(delta_spark, ours) == before, door
        assert reorg(delta_spark, ours, where or None).version is None, door


def test_upgrade_uniform_leaves_what_delta_sparks_leaves(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    spark, theirs = delta_spark, tmp_path / "theirs"
    _make(spark, theirs)

    def build(path: Path) -> object:
        return DeltaTable.forPath(spark, str(path)).reorg().executeUpgradeUniform()

    doors: dict[str, Callable[[Path], object]] = {
        "function": lambda path: reorg(spark, path, upgrade_uniform=2),
        "builder": lambda path: (
            DeltaTable.forPath(spark, str(path)).reorg().executeUpgradeUniform()
        ),
        "command": lambda path: run_command("reorg", path, "--upgrade-uniform", 2, "--yes"),
    }
    for door in doors:
        shutil.copytree(theirs, tmp_path / door)
    before = _rows(spark, theirs)
    command = "APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))"
    spark.sql(f"REORG TABLE delta.`{theirs}` {command}").collect()
    asked = ("delta.enableIcebergCompatV2", "delta.enableDeletionVectors")
    keys = (*asked, "delta.columnMapping.mode", "delta.universalFormat.enabledFormats")
    wanted = Table.open(theirs).properties
    for door, upgrade in doors.items():
        ours = tmp_path / door
        upgrade(ours)
        table = Table.open(ours)
        assert {k: table.properties[k] for k in keys} == {k: wanted[k] for k in keys}, door
        operations = {record.operation for record in table.history()}
        assert "REORG TABLE UPGRADE UNIFORM" in operations, door
        assert table.check("icebergCompatV2", files=True).ok, door
        assert _rows(spark, ours) == before, door
        # Delta's own command finds nothing left to rewrite.
        files = {add.path for add in table.snapshot.adds()}
        spark.sql(f"REORG TABLE delta.`{ours}` {command}").collect()
        assert {add.path for add in Table.open(ours).snapshot.adds()} == files, door
        again = reorg(spark, ours, upgrade_uniform=2)
        assert (again.added, again.removed) == ((), ())


@pytest.mark.parametrize(
    "arguments", [{"where": "g = 'a'", "upgrade_uniform": 2}, {"purge": False}], ids=str
)
def test_arguments_that_contradict_each_other_are_refused(
    delta_spark: SparkSession, tmp_path: Path, arguments: dict[str, Any]
) -> None:
    with pytest.raises(IllegalArgumentException, match="REORG cannot run"):
        reorg(delta_spark, tmp_path / "nowhere", **arguments)
