"""Bronze, silver and gold: JSON files become tables by streams that write each batch once."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from twinlake import Table, TwinlakeError
from twinlake.spark import follow, into, scan, sql

from .step import Step, grid, prose, run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

COLUMNS: Final = "id BIGINT, customer STRING, amount DOUBLE, at TIMESTAMP"
RULES: Final = "id IS NOT NULL AND customer IS NOT NULL AND amount > 0"
TABLES: Final = ("bronze", "silver", "quarantine", "gold")

SILVER: Final = (
    """
CREATE TABLE delta.`{lake}/silver`
  (id BIGINT NOT NULL, customer STRING NOT NULL, amount DOUBLE, at TIMESTAMP) USING delta""",
    """
ALTER TABLE delta.`{lake}/silver` ADD CONSTRAINT positive CHECK (amount > 0)""",
)
BAD_INSERT: Final = """
INSERT INTO delta.`{lake}/silver` VALUES (9, 'eve', -1.0, TIMESTAMP'2026-03-01')"""
GOLD: Final = """
CREATE OR REPLACE TABLE delta.`{lake}/gold` USING delta AS
SELECT customer, count(*) AS orders, sum(amount) AS amount
FROM delta.`{lake}/silver` GROUP BY customer"""

STREAMS: Final = f"""\
>>> def merge(rows, batch_id):
...     passes = "coalesce({RULES}, false)"
...     into("lake/silver", merge="id", latest_by="at")(rows.where(passes), batch_id)
...     into("lake/quarantine")(rows.where(f"NOT {{passes}}"), batch_id)
>>> columns = "{COLUMNS}"
>>> files = spark.readStream.schema(columns).json("lake/landing")
>>> writer = files.writeStream.foreachBatch(into("lake/bronze"))
>>> writer = writer.option("checkpointLocation", "lake/checkpoints/bronze")
>>> writer.trigger(availableNow=True).start().awaitTermination()
>>> silver = "lake/checkpoints/silver"
>>> query = follow(spark, "lake/bronze", merge, checkpoint=silver, trigger="availableNow")
>>> query.awaitTermination()"""

FIRST: Final = (
    {"id": 1, "customer": "ada", "amount": 10.0, "at": "2026-03-01T09:00:00Z"},
    {"id": 2, "customer": "bob", "amount": 20.0, "at": "2026-03-01T09:01:00Z"},
    {"id": 3, "customer": "ada", "amount": -5.0, "at": "2026-03-01T09:02:00Z"},
    {"id": 2, "customer": "bob", "amount": 25.0, "at": "2026-03-01T09:03:00Z"},
)
SECOND: Final = (
    {"id": 1, "customer": "ada", "amount": 12.0, "at": "2026-03-02T09:00:00Z"},
    {"id": 4, "customer": "eve", "amount": 40.0, "at": "2026-03-02T09:01:00Z"},
    {"id": 5, "amount": 50.0, "at": "2026-03-02T09:02:00Z"},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """Two streams and a query, each run from where it was to what there is now."""

    spark: SparkSession
    lake: Path
    #: The rows of each batch that a stream handed on: (stream, batch id, rows).
    batches: list[tuple[str, int, int]] = field(default_factory=list)

    def run(self) -> list[tuple[str, int, int]]:
        """Take in what is new; the batches that this took."""
        self.batches.clear()
        self.ingest()
        self.refine()
        self.statement(GOLD)
        return list(self.batches)

    def ingest(self) -> None:
        """Bronze: every row of every file, as it came."""
        files = self.spark.readStream.schema(COLUMNS).json(str(self.lake / "landing"))
        writer = files.writeStream.foreachBatch(self.append)
        writer = writer.option("checkpointLocation", str(self.checkpoint("bronze")))
        writer.trigger(availableNow=True).start().awaitTermination()

    def append(self, rows: DataFrame, batch_id: int) -> None:
        """Write a batch of the files."""
        self.batches.append(("bronze", batch_id, rows.count()))
        into(self.lake / "bronze")(rows, batch_id)

    def refine(self) -> None:
        """Silver: the latest state of each order; what breaks a rule is put aside."""
        follow(
            self.spark,
            self.lake / "bronze",
            self.merge,
            checkpoint=self.checkpoint("silver"),
            trigger="availableNow",
        ).awaitTermination()

    def merge(self, rows: DataFrame, batch_id: int) -> None:
        """Write a batch of bronze to two tables. Each of them knows the batches it has."""
        self.batches.append(("silver", batch_id, rows.count()))
        passes = f"coalesce({RULES}, false)"
        into(self.lake / "silver", merge="id", latest_by="at")(rows.where(passes), batch_id)
        into(self.lake / "quarantine")(rows.where(f"NOT {passes}"), batch_id)

    def statement(self, text: str) -> None:
        """Run SQL on the tables of the lake."""
        sql(self.spark, text.format(lake=self.lake))

    def checkpoint(self, stream: str) -> Path:
        """Where a stream keeps how far it is."""
        return self.lake / "checkpoints" / stream

    def rows(self, table: str) -> list[list[Any]]:
        """The rows of a table, in order."""
        found = scan(self.spark, self.lake / table)
        columns = [name for name in found.columns if name != "at"]
        return sorted((list(row) for row in found.select(*columns).collect()), key=str)

    def state(self) -> list[tuple[str, int, int]]:
        """Each table with its version and its number of rows."""
        return [
            (name, Table.open(self.lake / name).version, len(self.rows(name))) for name in TABLES
        ]


def steps(folder: Path, spark: SparkSession) -> Iterator[Step]:
    """The tables, two runs with new files, and a run after a crash."""
    pipeline = Pipeline(spark=spark, lake=folder / "lake")
    yield tables(pipeline)
    land(pipeline.lake, "orders-1.json", FIRST)
    yield first(pipeline)
    land(pipeline.lake, "orders-2.json", SECOND)
    yield second(pipeline)
    forget_last_batch(pipeline)
    yield after_crash(pipeline)


def land(lake: Path, name: str, rows: Sequence[Mapping[str, object]]) -> None:
    """Put a file into the folder that the first stream reads."""
    (lake / "landing").mkdir(parents=True, exist_ok=True)
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    (lake / "landing" / name).write_text(text, encoding="utf-8")


def forget_last_batch(pipeline: Pipeline) -> None:
    """Leave the checkpoints as a crash does that comes after the write of a batch.

    A stream records a batch as done after its function has returned. Without the record it hands
    the batch on again, with the same id.
    """
    for stream in ("bronze", "silver"):
        records = pipeline.checkpoint(stream) / "commits"
        last = max(int(one.name) for one in records.iterdir() if one.name.isdecimal())
        (records / f"{last}").unlink()
        (records / f".{last}.crc").unlink(missing_ok=True)


def tables(pipeline: Pipeline) -> Step:
    """A table with rules, and a row that breaks one."""
    for text in SILVER:
        pipeline.statement(text)
    refusal = None
    try:
        pipeline.statement(BAD_INSERT)
    except TwinlakeError as error:
        refusal = error
    return Step(
        name="medallion_rules",
        title="A pipeline of JSON files: the rules of silver, by SQL",
        data={
            "error": refusal and refusal.to_dict(),
            "version": Table.open(pipeline.lake / "silver").version,
        },
        parts=[
            *map(shown, SILVER),
            prose("NOT NULL and CHECK hold for every writer. A row that breaks one is refused:"),
            shown(BAD_INSERT),
            str(refusal),
        ],
    )


def shown(text: str) -> str:
    """A statement as it was run, with the lake as a folder of the reader's."""
    return f'>>> sql(spark, """{text.format(lake="lake")}""")'


def first(pipeline: Pipeline) -> Step:
    """All tables are filled."""
    batches = pipeline.run()
    return Step(
        name="medallion_first",
        title="Bronze, silver and gold from the first file",
        data=data(pipeline, batches),
        parts=[
            prose(
                "A stream appends the rows of the file to bronze. Another follows bronze, merges "
                "the rows that keep the rules into silver by id, and puts the others into a table "
                "of their own. `into` writes each batch once. Gold is an aggregate in SQL."
            ),
            STREAMS,
            shown(GOLD),
            *grids(pipeline, batches),
            grid("id customer amount", pipeline.rows("silver"), title="silver"),
            grid("id customer amount", pipeline.rows("quarantine"), title="quarantine"),
            grid("customer orders amount", pipeline.rows("gold"), title="gold"),
        ],
    )


def second(pipeline: Pipeline) -> Step:
    """Only the new rows are read."""
    batches = pipeline.run()
    return Step(
        name="medallion_second",
        title="A second file: only its rows are read",
        data=data(pipeline, batches),
        parts=[
            *grids(pipeline, batches),
            grid("customer orders amount", pipeline.rows("gold"), title="gold"),
        ],
    )


def after_crash(pipeline: Pipeline) -> Step:
    """The last batch of both streams comes again, and adds nothing."""
    batches = pipeline.run()
    return Step(
        name="medallion_crash",
        title="A crash between a write and its record: the batch comes again and adds nothing",
        data=data(pipeline, batches),
        parts=[
            prose(
                "Both checkpoints have lost the record that batch 1 is done, so both streams hand "
                "it on again. Each table finds the id of the stream and of the batch in its log, "
                "and nothing is committed. Gold is made anew from the same rows."
            ),
            *grids(pipeline, batches),
            grid("customer orders amount", pipeline.rows("gold"), title="gold"),
        ],
    )


def data(pipeline: Pipeline, batches: list[tuple[str, int, int]]) -> dict[str, Any]:
    """What a run took in, and the tables after it."""
    return {
        "batches": batches,
        "versions": {name: version for name, version, _ in pipeline.state()},
        "rows": {name: pipeline.rows(name) for name in TABLES},
    }


def grids(pipeline: Pipeline, batches: list[tuple[str, int, int]]) -> tuple[str, str]:
    """The same, to be read."""
    return (
        grid("stream batch rows", batches, title="batches of this run"),
        grid("table version rows", pipeline.state(), title="tables"),
    )


if __name__ == "__main__":
    run(steps, on_spark=True)
