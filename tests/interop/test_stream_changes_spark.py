"""Streams of a change data feed beside Delta Spark's own: the same rows, one checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

from tests.interop.test_streams_spark import stream
from tests.support.spark.stream_format import TableStreams
from twinlake.errors import TwinlakeError
from twinlake.table import Table

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@dataclass
class Changes:
    """What a stream handed on: the changed rows of each batch; it may fail in one of them."""

    fails_in: int | None = None
    batches: dict[int, list[tuple[Any, ...]]] = field(default_factory=dict)
    schema: str | None = None

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        self.schema = frame.schema.json()
        rows = sorted(tuple(row) for row in frame.collect())
        if rows:
            self.batches[batch_id] = rows
        if batch_id == self.fails_in:
            raise RuntimeError("this batch is not written")

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        return sorted(row for batch in self.batches.values() for row in batch)


@pytest.fixture(scope="module")
def spark(delta_spark: SparkSession) -> SparkSession:
    delta_spark.dataSource.register(TableStreams)
    return delta_spark


@pytest.fixture(scope="module", params=["true", "false"], ids=["vectors", "rewrites"])
def changed(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A table with a commit of every kind, several files in some of them."""
    path = tmp_path_factory.mktemp("feed") / "t"
    properties = {
        "delta.enableChangeDataFeed": "true",
        "delta.enableDeletionVectors": request.param,
    }
    table = Table.create(path, "id BIGINT, v INT", properties=properties)
    for start in (0, 10):
        table = table.append({"id": [*range(start, start + 4)], "v": [start] * 4})
    rows = spark.range(20, 32, 1, 3).selectExpr("id", "cast(id % 4 as int) as v")
    rows.write.format("delta").mode("append").save(str(path))
    delta = f"delta.`{path}`"
    spark.sql(f"UPDATE {delta} SET v = v + 1 WHERE id IN (1, 11, 20, 24, 28)")
    spark.sql(f"DELETE FROM {delta} WHERE id = 2")
    spark.sql(f"DELETE FROM {delta} WHERE id < 10 OR id = 21")
    spark.sql(f"OPTIMIZE {delta}")
    Table.open(path).append({"id": [40], "v": [0]}).update({"v": "v + 1"}, where="id > 28")
    spark.sql(
        f"MERGE INTO {delta} t USING (SELECT id FROM range(30, 42)) s ON t.id = s.id "
        "WHEN MATCHED AND t.id = 31 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 100 "
        "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, -1)"
    )
    Table.open(path).delete("v = 100")
    for start in (50, 60):
        rows = spark.range(start, start + 6, 1, 3).selectExpr("id", "0 as v")
        rows.write.format("delta").mode("overwrite").save(str(path))
    Table.open(path).delete("id = 60")
    Table.open(path).delete("id > 62")
    return path


@pytest.mark.parametrize(
    "options",
    [
        {"startingVersion": 0},
        {"startingVersion": 3, "maxFilesPerTrigger": 1},
        {"startingVersion": 4, "maxFilesPerTrigger": 2},
        {"maxFilesPerTrigger": 1},
    ],
    ids=["all", "one file", "two files", "initial"],
)
def test_the_same_changes_come_in_the_same_batches(
    options: dict[str, Any], spark: SparkSession, changed: Path, tmp_path: Path
) -> None:
    found = {}
    for engine in ("delta", "follow", "tablestreams"):
        found[engine] = Changes()
        stream(
            engine, spark, changed, tmp_path / engine, found[engine], readChangeFeed=True, **options
        )
    theirs = found.pop("delta")
    for ours in found.values():
        assert list(ours.batches.values()) == list(theirs.batches.values())
        assert ours.schema == theirs.schema
    kinds = {row[2] for row in theirs.rows}
    whole = {"insert", "delete", "update_preimage", "update_postimage"}
    assert kinds == (whole if "startingVersion" in options else {"insert"})


@pytest.mark.parametrize(
    ("first", "second", "options"),
    [
        ("follow", "delta", {"startingVersion": 0}),
        ("follow", "delta", {}),
    ],
)
def test_a_checkpoint_moves(
    first: str,
    second: str,
    options: dict[str, Any],
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    path, checkpoint = tmp_path / "t", tmp_path / "c"
    table = Table.create(path, "id BIGINT", properties={"delta.enableChangeDataFeed": "true"})
    table = table.append({"id": [1, 2]}).append({"id": [3, 4]}).append({"id": [5, 6]})
    asked = {"readChangeFeed": True, "maxFilesPerTrigger": 1, **options}
    with pytest.raises(StreamingQueryException):
        stream(first, spark, path, checkpoint, begun := Changes(fails_in=1), **asked)
    spark.sql(f"UPDATE delta.`{path}` SET id = id + 10 WHERE id IN (1, 3)")
    Table.open(path).delete("id > 4 AND id < 10")
    with pytest.raises(StreamingQueryException):
        stream(second, spark, path, checkpoint, then := Changes(fails_in=4), **asked)
    stream(first, spark, path, checkpoint, last := Changes(), **asked)
    assert then.batches[1] == begun.batches[1]
    assert last.batches[4] == then.batches[4]
    told = {**begun.batches, **then.batches, **last.batches}
    stream(
        "delta",
        spark,
        path,
        tmp_path / "whole",
        whole := Changes(),
        **{**asked, "startingVersion": 0},
    )
    rows = [row for batch in told.values() for row in batch]
    if options:
        assert sorted(rows) == whole.rows
    else:
        # The rows of the snapshot are all inserted by its version.
        assert sorted(row[:2] for row in rows) == [row[:2] for row in whole.rows]


def test_versions_without_a_feed_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    Table.create(path, "id BIGINT").append({"id": [1]})
    for number, options in enumerate([{"startingVersion": 1}, {}]):
        with pytest.raises((TwinlakeError, StreamingQueryException), match="change data feed"):
            stream(
                "follow",
                spark,
                path,
                tmp_path / f"c{number}",
                Changes(),
                readChangeFeed=True,
                **options,
            )
