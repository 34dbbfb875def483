"""Streams beside Delta Spark's own: checkpoints that move, options that mean the same, sinks."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F

from tests.support.spark.stream_format import TableStreams
from twinlake.errors import UserError
from twinlake.spark import follow, into, write
from twinlake.table import Table

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

OPTIONS: dict[str, Any] = {"maxFilesPerTrigger": 2}


@dataclass
class Batches:
    """What a stream handed on: the ids of each batch; it may fail in one of them."""

    fails_in: int | None = None
    ids: dict[int, list[int]] = field(default_factory=dict)

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        found = sorted(row["id"] for row in frame.select("id").collect())
        if found:
            self.ids[batch_id] = found
        if batch_id == self.fails_in:
            raise RuntimeError("this batch is not written")

    @property
    def rows(self) -> list[int]:
        return sorted(number for batch in self.ids.values() for number in batch)


def stream(
    engine: str, spark: SparkSession, table: Path, checkpoint: Path, to: Any, **options: Any
) -> None:
    """All that is there now, by one of the sources; an error in the stream is raised."""
    if engine == "follow":
        query = follow(spark, table, to, checkpoint=checkpoint, trigger="availableNow", **options)
    else:
        reader = spark.readStream.options(**{name: str(value) for name, value in options.items()})
        if engine == "tablestreams":
            reader = reader.option("checkpointLocation", str(checkpoint))
        frame = reader.format(engine).load(str(table))
        writer = frame.writeStream.option("checkpointLocation", str(checkpoint)).foreachBatch(to)
        if engine == "delta":
            query = writer.trigger(availableNow=True).start()
        else:
            query = writer.trigger(processingTime="0 seconds").start()
            query.processAllAvailable()
            query.stop()
    query.awaitTermination()


@pytest.fixture(scope="module")
def spark(delta_spark: SparkSession) -> SparkSession:
    delta_spark.dataSource.register(TableStreams)
    return delta_spark


def append(path: Path, *batches: list[int]) -> Table:
    table = Table.open(path) if Table.exists(path) else Table.create(path, "id BIGINT")
    for ids in batches:
        table = table.append({"id": ids})
    return table


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("delta", "follow"),
        ("follow", "delta"),
        ("delta", "tablestreams"),
        ("tablestreams", "delta"),
    ],
)
def test_a_checkpoint_moves_in_the_middle_of_the_initial_snapshot(
    first: str, second: str, spark: SparkSession, tmp_path: Path
) -> None:
    table, checkpoint = tmp_path / "t %41", tmp_path / "c ü"
    append(table, [1, 2], [3], [4, 5], [6], [7])
    begun, continued = Batches(fails_in=1), Batches()
    with pytest.raises(StreamingQueryException):
        stream(first, spark, table, checkpoint, begun, **OPTIONS)
    assert begun.ids == {0: [1, 2, 3], 1: [4, 5, 6]}
    append(table, [8], [9])
    stream(second, spark, table, checkpoint, continued, **OPTIONS)
    # The batch that failed comes again as it was, and then all the rest.
    assert continued.ids[1] == begun.ids[1]
    assert continued.rows == [4, 5, 6, 7, 8, 9]
    append(table, [10])
    stream(first, spark, table, checkpoint, last := Batches(), **OPTIONS)
    assert last.rows == [10]


HISTORIES: dict[str, dict[str, Any]] = {
    "append": {},
    "limit": {"maxFilesPerTrigger": 1},
    "bytes": {"maxBytesPerTrigger": "1b"},
    "version": {"startingVersion": 2},
    "skip": {"startingVersion": 0, "skipChangeCommits": "true"},
    "changes": {"startingVersion": 0, "ignoreChanges": "true"},
    "refused": {"startingVersion": 0, "ignoreDeletes": "true"},
}


@pytest.fixture(scope="module")
def changed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with a commit of every kind."""
    path = tmp_path_factory.mktemp("changed") / "t"
    Table.create(path, "id BIGINT", properties={"delta.enableDeletionVectors": "true"})
    table = append(path, [1, 2], [3, 4], [5])
    table = table.delete("id = 2").set_properties({"owner": "us"})
    table = table.update({"id": "id + 100"}, where="id = 3").append({"id": [6]})
    table = table.optimize().append({"id": [7, 8]})
    table.delete("id = 5")
    return path


@pytest.mark.parametrize("name", HISTORIES)
def test_options_mean_what_they_mean_to_delta_spark(
    name: str, spark: SparkSession, changed: Path, tmp_path: Path
) -> None:
    results = []
    for engine in ("delta", "follow"):
        found, error = Batches(), ""
        try:
            stream(engine, spark, changed, tmp_path / engine, found, **HISTORIES[name])
        except StreamingQueryException as raised:
            error = "stopped" if "change" in str(raised).lower() else str(raised)
        results.append((list(found.ids.values()), error))
    assert results[0] == results[1]
    batches, error = results[0]
    assert (not batches) == (error == "stopped") == (name in ("version", "refused"))


def test_a_stream_of_rows_takes_any_operator(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    frame = spark.range(6).selectExpr(
        "id",
        "cast(id % 2 as int) as part",
        "timestamp_seconds(id) as at",
        "array(map('k', named_struct('n', id))) as nested",
        "cast(id as decimal(12, 2)) as price",
    )
    write(frame, path, partition_by="part", properties={"delta.columnMapping.mode": "name"})
    Table.open(path).rename_column("price", "cost").delete("id = 5")
    rows = spark.readStream.format("tablestreams").load(str(path))
    query = (
        rows.groupBy("part")
        .agg(F.sum("cost").alias("total"), F.max("at").alias("last"))
        .writeStream.outputMode("complete")
        .option("checkpointLocation", str(tmp_path / "c"))
        .format("tablestreams")
        .start(str(tmp_path / "sums"))
    )
    query.processAllAvailable()
    write(frame.where("id = 1").withColumnRenamed("price", "cost"), path, mode="append")
    query.processAllAvailable()
    query.stop()
    found = Table.open(tmp_path / "sums").to_arrow().sort_by("part").to_pylist()
    assert [(row["part"], int(row["total"])) for row in found] == [(0, 6), (1, 5)]
    last = Table.open(tmp_path / "sums").history()[0]
    assert last.operation_parameters["outputMode"] == "Complete"


def test_a_sink_writes_each_batch_once_and_as_delta_spark_records_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    append(tmp_path / "t", [1, 2], [3])
    records = []
    for sink in ("delta", "tablestreams", "into"):
        frame = spark.readStream.format("delta").load(str(tmp_path / "t"))
        writer = frame.writeStream.option("checkpointLocation", str(tmp_path / f"c-{sink}"))
        if sink == "into":
            query = writer.foreachBatch(into(tmp_path / sink)).start()
        else:
            query = writer.format(sink).start(str(tmp_path / sink))
        query.processAllAvailable()
        query.stop()
        table = Table.open(tmp_path / sink)
        record = table.history()[0]
        metrics = record.operation_metrics
        known = {
            "operation": record.operation,
            "parameters": {**record.operation_parameters, "queryId": ""},
            "metrics": sorted(metrics),
            "rows": metrics["numOutputRows"],
        }
        assert record.operation_parameters["queryId"] == query.id
        assert table.snapshot.set_transactions[query.id].version == 0
        assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 2, 3]
        records.append(known)
    assert records[0] == records[1] == records[2]


def test_a_batch_that_comes_again_is_not_written_again(spark: SparkSession, tmp_path: Path) -> None:
    def rows(*ids: int) -> DataFrame:
        return spark.createDataFrame([(n, n % 3) for n in ids], "id LONG, v INT")

    sink = into(tmp_path / "t", merge="id", latest_by="v", txn_app_id="app")
    sink(rows(1, 2), 0)
    sink(rows(3, 3), 1)
    version = Table.open(tmp_path / "t").version
    sink(rows(4), 1)
    sink(rows(5), 0)
    assert Table.open(tmp_path / "t").version == version
    # A batch without changes is remembered as well.
    sink(rows().limit(0), 2)
    sink(rows(6), 2)
    assert sorted(Table.open(tmp_path / "t").to_arrow()["id"].to_pylist()) == [1, 2, 3]
    complete = into(tmp_path / "all", mode="complete", txn_app_id="app")
    for batch in range(2):
        complete(rows(batch), batch)
    assert Table.open(tmp_path / "all").to_arrow()["id"].to_pylist() == [1]


def test_columns_that_come_later_are_in_later_batches(spark: SparkSession, tmp_path: Path) -> None:
    table, target = tmp_path / "t", tmp_path / "target"
    append(table, [1]).add_column("n INT").append({"id": [2], "n": [20]})
    sink = into(target, merge_schema=True)
    stream("follow", spark, table, tmp_path / "c", sink, startingVersion=0)
    found = Table.open(target).to_arrow().sort_by("id").to_pylist()
    assert found == [{"id": 1, "n": None}, {"id": 2, "n": 20}]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"maxFilesPerTrigger": "none"}, "maxFilesPerTrigger"),
        ({"maxFilePerTrigger": 1}, "maxFilePerTrigger"),
        ({"startingVersion": 1, "startingTimestamp": "2024-01-01"}, "startingVersion"),
        ({"trigger": {"once": True}}, "once"),
    ],
)
def test_a_mistake_in_the_call_starts_nothing(
    options: dict[str, Any], named: str, spark: SparkSession, tmp_path: Path
) -> None:
    append(tmp_path / "t", [1])
    with pytest.raises(UserError, match=named):
        follow(spark, tmp_path / "t", Batches(), checkpoint=tmp_path / "c", **options)
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("replaced", [True, False], ids=["replaced table", "another table"])
def test_a_checkpoint_of_another_table_is_refused(
    replaced: bool, spark: SparkSession, tmp_path: Path
) -> None:
    table, checkpoint = tmp_path / "t", tmp_path / "c"
    append(table, [1])
    stream("follow", spark, table, checkpoint, Batches())
    other = table if replaced else tmp_path / "other"
    if replaced:
        shutil.rmtree(table)
    append(other, [7])
    before = sorted(path.name for path in checkpoint.rglob("*"))
    with pytest.raises(UserError, match="has read another table") as raised:
        stream("follow", spark, other, checkpoint, found := Batches())
    assert raised.value.delta_class == "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"
    with pytest.raises(StreamingQueryException, match="has read another table"):
        stream("tablestreams", spark, other, checkpoint, found)
    assert found.ids == {}
    assert sorted(path.name for path in checkpoint.rglob("*")) == before


def test_a_stream_behind_a_cleanup_fails(spark: SparkSession, tmp_path: Path) -> None:
    table, checkpoint = tmp_path / "t", tmp_path / "c"
    append(table, [1])
    stream("follow", spark, table, checkpoint, Batches())
    append(table, [2], [3], [4]).checkpoint()
    for version in range(4):
        (table / f"_delta_log/{version:020}.json").unlink()
    for engine in ("follow", "tablestreams"):
        with pytest.raises(StreamingQueryException, match=r"version 2 .* whose commit is gone"):
            stream(engine, spark, table, checkpoint, found := Batches())
        assert found.ids == {}
    stream("follow", spark, table, checkpoint, found, failOnDataLoss="false")
    assert found.rows == [4]


def test_sinks_need_the_id_of_a_query(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="belongs to no stream"):
        into(tmp_path / "t")(spark.range(1), 0)
    append(tmp_path / "s", [1])
    frame = spark.readStream.format("delta").load(str(tmp_path / "s"))
    spark.conf.set("spark.sql.streaming.checkpointLocation", str(tmp_path / "all"))
    try:
        query = frame.writeStream.queryName("q").format("tablestreams").start(str(tmp_path / "t"))
        with pytest.raises(StreamingQueryException, match="where its checkpoint is"):
            query.processAllAvailable()
    finally:
        spark.conf.unset("spark.sql.streaming.checkpointLocation")
    assert Table.open(tmp_path / "t").count() == 0
