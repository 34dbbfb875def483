"""VACUUM here and by Delta Spark, on copies of one table: the same files are left."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.engines.delta_tables import delta_settings, rows
from tests.support.local_engine import rows_of
from tests.support.scale import scale
from twinlake import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

WEEK_AND_MORE = 200 * 3600
TABLE = """
CREATE TABLE delta.`{}` (id INT, d STRING) USING delta PARTITIONED BY (d)
TBLPROPERTIES ('delta.enableDeletionVectors'='true', 'delta.enableChangeDataFeed'='true')
"""
CHANGES = (
    "INSERT INTO delta.`{}` SELECT id, concat('a b', id % 3) FROM range(0, 30, 1, 1)",
    "DELETE FROM delta.`{}` WHERE id = 4",
    "UPDATE delta.`{}` SET id = id + 100 WHERE id IN (5, 6)",
    "INSERT OVERWRITE delta.`{}` SELECT id, concat('a b', id % 2) FROM range(0, 10, 1, 1)",
    "DELETE FROM delta.`{}` WHERE id = 4",
)
OLD = ("orphan.parquet", "d=a b0/orphan%20.bin", "left#1", "_delta_index/i", "sub/deep/x")
KEPT = (
    "_hidden/x", ".dot", "_under.parquet", "sub/.h", "_iceberg/v1.json", "d=only hidden/_x",
)  # fmt: skip


@pytest.fixture(scope="module")
def base(delta_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of Delta Spark with everything in its folder that a VACUUM has to judge."""
    path = tmp_path_factory.mktemp("vacuum") / "base"
    for statement in (TABLE, *CHANGES):
        delta_spark.sql(statement.format(path))
    now = time.time()
    for names, at in (
        (OLD, now - WEEK_AND_MORE),
        (KEPT, now - WEEK_AND_MORE),
        (("young.parquet", "d=young/y"), now + WEEK_AND_MORE),
    ):
        for name in names:
            target = path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(b"12345")
            os.utime(target, (at, at))
    (path / "empty").mkdir()
    # With no retention, whatever is not older than the clock's tick would count as young.
    time.sleep(0.05)
    return path


@contextmanager
def unguarded(spark: SparkSession) -> Iterator[None]:
    """Delta Spark without its retention check, and without its ten thousand listing tasks."""
    key = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
    before = spark.conf.get(key)
    spark.conf.set(key, "2")
    try:
        with delta_settings(spark, retentionDurationCheck__enabled="false"):
            yield
    finally:
        spark.conf.set(key, str(before))


def copies(base: Path, folder: Path) -> tuple[Path, Path]:
    return (
        Path(shutil.copytree(base, folder / "theirs")),
        Path(shutil.copytree(base, folder / "ours")),
    )


def tree(path: Path) -> set[str]:
    found = (p.relative_to(path).as_posix() + ("/" if p.is_dir() else "") for p in path.rglob("*"))
    return {name for name in found if not name.startswith("_delta_log/")}


def told(path: Path, count: int) -> list[dict[str, Any]]:
    """The last commits, as both sides write them into the log."""
    kept = ("operation", "operation_parameters", "operation_metrics", "isolation_level")
    records = [r.to_dict() for r in Table.open(path).history(count)]
    return [{k: r[k] for k in (*kept, "is_blind_append", "read_version")} for r in records]


def check_readable(spark: SparkSession, *paths: Path) -> None:
    expected = {(n, f"a b{n % 2}") for n in range(10) if n != 4}
    for path in paths:
        assert {(r["id"], r["d"]) for r in rows(spark, path)} == expected
        assert {(r["id"], r["d"]) for r in rows_of(Table.open(path).snapshot)} == expected


CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "full": ("RETAIN 0 HOURS", {"retention_hours": 0}),
    "lite": ("LITE RETAIN 0 HOURS", {"retention_hours": 0, "mode": "lite"}),
    "full-by-property": ("", {}),
    "lite-by-property": ("LITE", {"mode": "lite"}),
}


@pytest.mark.parametrize("case", list(CASES)[: scale(2, 4)])
def test_the_same_files_are_left(
    delta_spark: SparkSession, base: Path, tmp_path: Path, case: str
) -> None:
    clause, arguments = CASES[case]
    theirs, ours = copies(base, tmp_path)
    with unguarded(delta_spark):
        preview = delta_spark.sql(f"VACUUM delta.`{theirs}` {clause} DRY RUN").collect()
        delta_spark.sql(f"VACUUM delta.`{theirs}` {clause}")
    table = Table.open(ours)
    dry = table.vacuum(**arguments, dry_run=True, enforce_retention=False)
    prefix = f"file:{theirs}/"
    assert {*dry.files, *dry.directories} == {row.path.removeprefix(prefix) for row in preview}
    assert tree(ours) == tree(base)
    done = table.vacuum(**arguments, enforce_retention=False)
    assert done.files == dry.files
    assert tree(ours) == tree(theirs)
    assert told(ours, 2) == told(theirs, 2)
    assert all((ours / name).exists() for name in KEPT)
    check_readable(delta_spark, ours, theirs)
    if case == "lite":
        _goes_on_where_the_other_side_stopped(delta_spark, theirs, ours)


def _goes_on_where_the_other_side_stopped(spark: SparkSession, theirs: Path, ours: Path) -> None:
    """Each side vacuums what the other one did before: the hint in the log is one for both."""
    with unguarded(spark):
        for path in (theirs, ours):
            spark.sql(f"INSERT INTO delta.`{path}` VALUES (99, 'gone')")
            spark.sql(f"DELETE FROM delta.`{path}` WHERE d = 'gone'")
        time.sleep(0.05)
        spark.sql(f"VACUUM delta.`{ours}` LITE RETAIN 0 HOURS")
        Table.open(theirs).vacuum(0, mode="lite", enforce_retention=False)
    assert told(theirs, 2) == told(ours, 2)
    assert told(ours, 1)[0]["operation_metrics"]["numDeletedFiles"] == "1"
    check_readable(spark, ours, theirs)


def test_features_that_show_in_files_are_dropped_alike(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    for statement in (TABLE, *CHANGES[:2]):
        delta_spark.sql(statement.format(theirs))
    ours = Path(shutil.copytree(theirs, tmp_path / "ours"))
    delta_spark.sql(f"ALTER TABLE delta.`{theirs}` DROP FEATURE deletionVectors")
    table = Table.open(ours, policy="minimal")
    after = table.drop_feature("deletionVectors", spark=delta_spark)
    assert rows(delta_spark, ours) == rows(delta_spark, theirs)
    assert after.protocol == Table.open(theirs).protocol
    mine, other = (
        [(r.operation, dict(r.operation_parameters)) for r in Table.open(path).history()]
        for path in (ours, theirs)
    )
    assert mine == other
