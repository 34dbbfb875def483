"""The change data feed of one table, read by twinlake and by Delta Spark, whoever wrote it."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable as RustTable
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.support.engines.agreement import condition_of, row_differences, row_keys
from tests.support.engines.steps import Side
from tests.support.engines.workloads import FEED, Vacuum, random_start, random_step
from tests.support.scale import is_full_scale, scale
from twinlake.errors import TwinlakeError
from twinlake.spark import DeltaTable, changes
from twinlake.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from random import Random

    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_WORKLOADS = scale(3, 60)
_STEPS = 6
_TRIES = 20
_RANGES = 3
_SETTINGS = {
    "spark.twinlake.upgradePolicy": "minimal",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.databricks.delta.merge.materializeSource": "none",
}
_OPTIONS = {
    "from_version": "startingVersion",
    "to_version": "endingVersion",
    "from_timestamp": "startingTimestamp",
    "to_timestamp": "endingTimestamp",
}
_SCHEMA_CLASS = "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA"


@pytest.fixture
def spark(delta_spark: SparkSession) -> Iterator[SparkSession]:
    for key, value in _SETTINGS.items():
        delta_spark.conf.set(key, value)
    yield delta_spark
    for key in _SETTINGS:
        delta_spark.conf.unset(key)


def by_delta(spark: SparkSession, path: Path, **asked: Any) -> DataFrame:
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    for name, value in asked.items():
        reader = reader.option(_OPTIONS[name], value)
    return reader.load(str(path))


def outcome(make: Callable[[], DataFrame]) -> tuple[str, Any]:
    """Columns and rows, or the class of the error."""
    try:
        frame = make()
        return frame.schema.json(), sorted(row_keys({"": frame})[""])
    except Exception as error:
        return "error", condition_of(error)


def assert_same_feed(spark: SparkSession, path: Path, **asked: Any) -> str:
    """Both read the same, or refuse for the same reason; how it ended."""
    theirs = outcome(lambda: by_delta(spark, path, **asked))
    ours = outcome(lambda: changes(spark, path, **asked))
    if ours == ("error", _SCHEMA_CLASS) and theirs[0] != "error":
        # Delta Spark reads files of another partitioning as null; that is refused here.
        assert len({t.metadata.partition_columns for t in _versions(path, **asked)}) > 1
        return "partitioned by other columns"
    assert ours[0] == theirs[0], (asked, ours, theirs)
    if ours[0] == "error":
        assert ours == theirs, asked
        return "refused"
    assert not row_differences(ours[1], theirs[1]), asked
    return "rows" if ours[1] else "no rows"


def _versions(path: Path, from_version: int, to_version: int | None = None) -> list[Table]:
    latest = Table.open(path).version
    first = max(from_version - 1, 0)
    return [Table.open(path, v) for v in range(first, latest + 1)] if to_version != -1 else []


def sql(spark: SparkSession, path: Path, text: str) -> None:
    spark.sql(text.format(t=f"delta.`{path}`"))


def test_random_workloads_have_the_same_feed(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    tally: Counter[str] = Counter()

    @settings(
        max_examples=2 * _WORKLOADS,
        derandomize=not is_full_scale(),
        database=None,
        phases=[Phase.generate],
    )
    @given(rng=st.randoms(use_true_random=True))
    def run(rng: Random) -> None:
        if tally["workloads"] == _WORKLOADS:
            return
        path = tmp_path_factory.mktemp("feed") / "t"
        versions = _workload(spark, path, rng)
        if len(versions) < 2:
            return
        first, last = versions[0], versions[-1]
        tally[assert_same_feed(spark, path, from_version=first)] += 1
        for _ in range(_RANGES):
            start = rng.randint(first, last)
            end = rng.randint(start, last + 1)
            found = assert_same_feed(spark, path, from_version=start, to_version=end)
            tally[found] += 1
        tally["workloads"] += 1

    run()
    assert tally["workloads"] == _WORKLOADS, tally
    # Comparing errors only would prove little.
    assert tally["rows"] > tally["refused"] / 2, tally


def _workload(spark: SparkSession, path: Path, rng: Random) -> list[int]:
    """Steps of both engines on one table; the versions whose changes can still be read."""
    sides = [Side(spark, path, writer) for writer in ("", "native", "arrow")]
    start = random_start(rng)
    start = replace(start, properties={**start.properties, FEED: "true"}, rows=None)
    if not _works(rng.choice(sides), start, []):
        return []
    versions = [sides[0].table().version]
    readable = list(versions)
    for _ in range(_TRIES):
        side = rng.choice(sides)
        step = random_step(rng, _shape(side, versions))
        if _works(side, step, versions):
            version = side.table().version
            versions.append(version)
            readable = [version] if isinstance(step, Vacuum) else [*readable, version]
        if len(versions) > _STEPS:
            break
    return readable


def _shape(side: Side, versions: list[int]) -> Any:
    from tests.support.engines.workloads import Shape

    table = side.table()
    return Shape(
        schema=side.schema(),
        partition_by=tuple(table.metadata.partition_columns),
        properties=dict(table.metadata.configuration),
        steps=len(versions),
        is_bare=len(versions) == 1,
    )


def _works(side: Side, step: Any, versions: list[int]) -> bool:
    try:
        side.run(step, versions)
    except Exception:
        # What one engine refuses is judged elsewhere.
        return False
    return True


def test_files_that_come_and_go_are_read_once_for_each_version(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    sql(
        spark,
        path,
        "CREATE TABLE {t} (id BIGINT, day INT) USING delta PARTITIONED BY (day) TBLPROPERTIES "
        "('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true')",
    )
    sql(spark, path, "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, id % 2 FROM range(12)")
    table = DeltaTable.forPath(spark, str(path))
    for step in ("DELETE FROM {t} WHERE id = 2", "DELETE FROM {t} WHERE id = 5"):
        sql(spark, path, step)
    table.delete("id = 4")
    table.delete("day = 1")
    for version in (2, 1, 4, 1):
        table.restoreToVersion(version)
    table.optimize().executeCompaction()
    table.update("id < 3", {"id": "id + 100"})
    table.restoreToVersion(4)
    latest = Table.open(path).version
    for start in range(0, latest + 1, scale(4, 1)):
        assert assert_same_feed(spark, path, from_version=start) == "rows"
    plan: Any = changes(spark, path, from_version=0)._jdf.queryExecution().optimizedPlan()
    # Change files, added, removed, and those with other vectors.
    assert 3 <= len(re.findall(r"Relation \[[^\]]*\] parquet", str(plan.toString()))) <= 4
    of_partition = changes(spark, path, from_version=0).where("day = 1 AND _commit_version > 3")
    theirs = by_delta(spark, path, from_version=0).where("day = 1 AND _commit_version > 3")
    assert sorted(row_keys({"": of_partition})[""]) == sorted(row_keys({"": theirs})[""])


ALTERED: dict[str, tuple[str, list[str]]] = {
    "add": ("", ["ALTER TABLE {t} ADD COLUMNS (w INT)", "INSERT INTO {t} VALUES (3, 3, 's', 4)"]),
    "widen": (
        "'delta.enableTypeWidening' = 'true', ",
        [
            "ALTER TABLE {t} ALTER COLUMN v TYPE BIGINT",
            "INSERT INTO {t} VALUES (3, 33333333333, 's')",
            "DELETE FROM {t} WHERE id = 1",
        ],
    ),
    "rename": (
        "'delta.columnMapping.mode' = 'name', ",
        ["ALTER TABLE {t} RENAME COLUMN v TO w", "INSERT INTO {t} VALUES (3, 3, 's')"],
    ),
    "drop": (
        "'delta.columnMapping.mode' = 'id', ",
        ["ALTER TABLE {t} DROP COLUMN v", "INSERT INTO {t} VALUES (3, 's')"],
    ),
    "map": (
        "",
        [
            "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
            "INSERT INTO {t} VALUES (3, 3, 's')",
            "ALTER TABLE {t} RENAME COLUMN v TO w",
        ],
    ),
    "off": (
        "",
        [
            "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')",
            "INSERT INTO {t} VALUES (3, 3, 's')",
            "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
            "INSERT INTO {t} VALUES (4, 3, 's')",
        ],
    ),
}


@pytest.mark.parametrize("name", ALTERED)
def test_altered_tables_have_the_same_feed(spark: SparkSession, tmp_path: Path, name: str) -> None:
    path = tmp_path / "t"
    properties, steps = ALTERED[name]
    sql(
        spark,
        path,
        "CREATE TABLE {t} (id BIGINT, v INT, s STRING) USING delta TBLPROPERTIES "
        f"({properties}'delta.enableChangeDataFeed' = 'true')",
    )
    sql(spark, path, "INSERT INTO {t} VALUES (1, 1, 'a'), (2, 2, 'b')")
    for step in steps:
        sql(spark, path, step)
    latest = Table.open(path).version
    found = Counter(
        assert_same_feed(spark, path, from_version=first, to_version=last)
        for first, last in [(0, latest), (0, 1), (1, 2), (2, latest), (latest, latest)]
    )
    assert found["rows"] >= 1
    assert name in ("add", "map") or found["refused"] >= 1


@pytest.fixture(scope="module")
def followed(delta_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of four versions; no test changes it."""
    path = tmp_path_factory.mktemp("followed") / "t"
    sql(
        delta_spark,
        path,
        "CREATE TABLE {t} (id BIGINT) USING delta "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
    )
    for number in range(3):
        sql(delta_spark, path, f"INSERT INTO {{t}} VALUES ({number})")
    return path


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"from_version": 9},
        {"from_version": 9, "to_version": 2},
        {"from_version": 3, "to_version": 2},
        {"from_version": 2, "to_version": 50},
        {"from_version": -1},
        {"from_timestamp": "2020-01-01"},
        {"from_timestamp": "2020-01-01", "to_version": 1},
        {"from_timestamp": "2090-01-01"},
        {"from_timestamp": "nonsense"},
        {"from_timestamp": "2021-01-01", "to_timestamp": "2020-01-01"},
        {"from_version": 0, "to_timestamp": "2090-01-01"},
        {"from_version": 0, "to_timestamp": "2020-01-01"},
    ],
    ids=str,
)
def test_ranges_mean_the_same(spark: SparkSession, followed: Path, asked: dict[str, Any]) -> None:
    assert_same_feed(spark, followed, **asked)
    spark.conf.set("spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled", "true")
    try:
        assert_same_feed(spark, followed, **asked)
    finally:
        spark.conf.unset("spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled")


def test_timestamps_are_inclusive_in_the_zone_of_the_session(
    spark: SparkSession, followed: Path
) -> None:
    made = [row.timestamp for row in reversed(Table.open(followed).history())]
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        texts = [
            row[0]
            for row in spark.sql(
                "SELECT CAST(timestamp_millis(ms) AS STRING) FROM VALUES "
                + ", ".join(f"({ms - 1}L), ({ms}L), ({ms + 1}L)" for ms in made)
                + " AS t (ms)"
            ).collect()
        ]
        for text in texts[1:-1]:
            assert_same_feed(spark, followed, from_timestamp=text)
        for text in texts[1:-1:2]:
            assert_same_feed(spark, followed, from_version=0, to_timestamp=text)
            assert_same_feed(spark, followed, from_timestamp=texts[4], to_timestamp=text)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_commits_that_are_gone(spark: SparkSession, followed: Path, tmp_path: Path) -> None:
    cleaned, torn = tmp_path / "cleaned", tmp_path / "torn"
    for path in (cleaned, torn):
        shutil.copytree(followed, path)
    Table.open(cleaned).checkpoint()
    sql(spark, cleaned, "INSERT INTO {t} VALUES (7)")
    for version in range(3):
        (cleaned / f"_delta_log/{version:020}.json").unlink()
        (cleaned / f"_delta_log/.{version:020}.json.crc").unlink(missing_ok=True)
    assert assert_same_feed(spark, cleaned, from_version=1) == "refused"
    assert assert_same_feed(spark, cleaned, from_version=4) == "rows"
    (torn / f"_delta_log/{1:020}.json").unlink()
    with pytest.raises(TwinlakeError) as refused:
        changes(spark, torn, from_version=0)
    assert refused.value.delta_class == "DELTA_VERSIONS_NOT_CONTIGUOUS"


def test_both_bounds_of_one_end_are_refused(spark: SparkSession, followed: Path) -> None:
    with pytest.raises(TwinlakeError) as refused:
        changes(spark, followed, from_version=0, from_timestamp="2020-01-01")
    assert refused.value.delta_class == "DELTA_MULTIPLE_CDC_BOUNDARY"


def test_delta_rs_reads_the_same_feed(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = Table.create(
        path,
        "id BIGINT, v STRING, day INT",
        partition_by=("day",),
        properties={"delta.enableChangeDataFeed": "true"},
        policy="minimal",
    )
    made = DeltaTable.forPath(spark, str(path))
    rows = spark.range(10).selectExpr("id", "CAST(id AS STRING) v", "CAST(id % 2 AS INT) day")
    rows.coalesce(1).write.format("delta").mode("append").save(str(path))
    made.update("id < 3", {"v": "'changed'"})
    made.delete("day = 1")
    read = pa.table(RustTable(str(path)).load_cdf(starting_version=1).read_all())
    theirs = sorted(
        tuple(row[name] for name in ("id", "v", "day", "_change_type", "_commit_version"))
        for row in read.to_pylist()
    )
    ours = changes(spark, path, from_version=1).drop("_commit_timestamp").collect()
    assert sorted(tuple(row) for row in ours) == theirs
    assert table.version == 0
