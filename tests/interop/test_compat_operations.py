"""Random operations on tables that Iceberg writers may write: after each one no rule is broken.

Operations go through every door: frames, DML, OPTIMIZE, REORG, RESTORE, VACUUM and ``Table``. Some
would break a rule, some make no sense; those are refused and leave the table as it was. Delta
Spark, which does not know these promises, reads the same rows.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, fields, replace
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from pyspark.sql.types import StructType

from tests.support.engines import workloads as w
from tests.support.engines.agreement import condition_of, row_differences, row_keys
from tests.support.engines.steps import Side
from tests.support.scale import scale
from twinlake import Table
from twinlake.compat import COMPATS, VERSION_TAG
from twinlake.errors import CompatViolation
from twinlake.schema import field_id, nested_ids, physical_name
from twinlake.spark import DeltaTable, scan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TABLES = scale(3, 50)
STEPS = scale(12, 20)
READ_EVERY = 4
PROMISES = ("icebergWriterCompatV1", "icebergWriterCompatV3")
KEYED = "keyed"
_KEYED = f"{KEYED} MAP<STRUCT<k: INT>, STRUCT<v: INT, l: ARRAY<STRING>>>"
_FLAT = "`id` BIGINT NOT NULL, `n` INT, `at` TIMESTAMP, `s` STRUCT<`d`: DECIMAL(5,2), `t`: STRING>"
_SETTINGS = {
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
}

S = TypeVar("S", w.Start, w.Step, w.Rows)


@pytest.fixture
def lenient_spark(delta_spark: SparkSession) -> Iterator[SparkSession]:
    before = {key: delta_spark.conf.get(key, None) for key in _SETTINGS}
    for key, value in _SETTINGS.items():
        delta_spark.conf.set(key, value)
    yield delta_spark
    for key, old in before.items():
        if old is None:
            delta_spark.conf.unset(key)
        else:
            delta_spark.conf.set(key, old)


@dataclass
class Story:
    """One table and what happened to it."""

    side: Side
    promise: str
    versions: list[int] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    broken: int = 0
    """How often a step was refused because it would break a rule."""

    def table(self) -> Table:
        return self.side.table()

    def run(self, step: w.Start | w.Step) -> None:
        """One step; either it works, or it is refused with a reason and changes nothing."""
        before = self.table().version if self.versions else None
        try:
            self.side.run(step, self.versions)
        except Exception as error:
            # Delta has no class for some of what we refuse, such as a restore after VACUUM.
            reason = condition_of(error) or getattr(error, "code", None)
            if reason is None:
                error.add_note(f"{self.account()}\n{step}")
                raise
            self.told.append(f"{step}  # refused: {reason}")
            self.broken += isinstance(error, CompatViolation)
            assert before is not None, self.account()
            assert self.table().version == before, self.account()
        else:
            self.told.append(repr(step))
            self.versions.append(self.table().version)
        report = self.table().check(self.promise, files=True)
        assert report.ok, f"{self.account()}\n{report}"
        version = COMPATS[self.promise].version
        tags = {(add.tags or {}).get(VERSION_TAG) for add in self.table().snapshot.adds()}
        assert tags <= {str(version) if version > 1 else None}, self.account()

    def read(self) -> None:
        """Delta Spark and twinlake find the same rows in the table."""
        spark, path = self.side.spark, str(self.side.path)
        frames = {
            "twinlake": scan(spark, path),
            "Delta": spark.read.format("delta").load(path),
        }
        rows = row_keys(frames)
        found = row_differences(rows["twinlake"], rows["Delta"])
        assert not found, f"{self.account()}\n{found}"

    def shape(self) -> w.Shape:
        metadata = self.table().metadata
        return w.Shape(
            schema=self.side.schema(),
            partition_by=tuple(metadata.partition_columns),
            properties=dict(metadata.configuration),
            steps=len(self.versions),
            is_bare=not self.table().snapshot.num_files,
        )

    def account(self) -> str:
        return "\n".join(["", *self.told])


def _allowed(step: S) -> S:
    """The same without types that no Iceberg writer knows."""

    def changed(value: Any) -> Any:
        if isinstance(value, str):
            return re.sub(r"\b(TINYINT|SMALLINT)\b", "INT", value)
        return _allowed(value) if isinstance(value, w.Rows) else value

    names = ("rows", "columns", "kind")
    return replace(
        step,
        **{f.name: changed(getattr(step, f.name)) for f in fields(step) if f.name in names},
    )


def _start(rng: Random, promise: str, writer: str) -> w.Start:
    start = _allowed(w.random_start(rng))
    properties = {COMPATS[promise].key: "true", w.WIDENING: "true"}
    if promise == "icebergWriterCompatV3" and rng.random() < 0.5:
        properties[w.VECTORS] = "true"
    if rng.random() < 0.3:
        properties["delta.dataSkippingNumIndexedCols"] = "0"
    if writer == "native":
        # All that Spark's own writer can give ids to; later steps add columns of other kinds.
        start = replace(start, columns=_FLAT, partition_by=())
    else:
        start = replace(start, columns=f"{start.columns}, {_KEYED}")
    rows = start.rows or w.Rows(seed=rng.randrange(10_000), count=8)
    return replace(start, properties=properties, rows=rows)


def _step(rng: Random, shape: w.Shape) -> w.Step:
    """Mostly a step that may work; a few are about the map, or would break a rule."""
    chance = rng.random()
    if chance < 0.05:
        return w.AddColumn(path=(KEYED, "key", f"x{shape.steps}"), kind="INT")
    if chance < 0.1:
        return w.AddColumn(path=(KEYED, "value", f"x{shape.steps}"), kind="ARRAY<DATE>")
    if chance < 0.13:
        return w.AddColumn(path=(f"narrow{shape.steps}",), kind="TINYINT")
    step = w.random_step(rng, shape)
    return step if chance > 0.9 else _allowed(step)


@pytest.mark.parametrize("seed", range(TABLES))
def test_promise_is_kept_by_every_operation(
    lenient_spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    rng = Random(f"promises {seed}")
    promise = PROMISES[seed % 3 == 2]
    writer = ("arrow", "native", "auto")[seed % 3]
    story = Story(side=Side(lenient_spark, tmp_path / "table", writer), promise=promise)
    story.run(_start(rng, promise, writer))
    for number in range(STEPS):
        story.run(_step(rng, story.shape()))
        if number % READ_EVERY == READ_EVERY - 1:
            story.read()
    story.read()
    assert len(story.versions) > STEPS // 3, story.account()


@pytest.mark.parametrize(
    ("promise", "writer", "partition_by"),
    [
        ("icebergCompatV1", "arrow", ("p",)),
        ("icebergCompatV2", "native", ()),
        ("icebergCompatV3", "arrow", ("p",)),
        ("icebergWriterCompatV3", "native", ()),
    ],
)
def test_writers_keep_each_promise(
    lenient_spark: SparkSession,
    tmp_path: Path,
    promise: str,
    writer: str,
    partition_by: tuple[str, ...],
) -> None:
    """Every way files come into being, on a table that asks for no statistics at all."""
    start = w.Start(
        columns="`id` BIGINT, `p` STRING, `at` TIMESTAMP, `s` STRUCT<`at`: TIMESTAMP>",
        partition_by=partition_by,
        properties={COMPATS[promise].key: "true", "delta.dataSkippingNumIndexedCols": "0"},
        rows=w.Rows(seed=1, count=20),
    )
    story = Story(side=Side(lenient_spark, tmp_path / "table", writer), promise=promise)
    story.run(start)
    rows = w.Rows(seed=2, count=9, where="id <> 5")
    merge: tuple[tuple[str, dict[str, Any]], ...]
    merge = (("whenMatchedDelete", {"condition": "t.id = 7"}), ("whenNotMatchedInsertAll", {}))
    steps: tuple[w.Step, ...] = (
        w.Write(rows=rows),
        w.Update(set={"p": "'q'"}, where="id < 3"),
        w.Delete(where="id = 4"),
        w.Merge(rows=w.Rows(seed=9, count=1), clauses=merge),
        w.Optimize(),
        w.Write(rows=rows, mode="overwrite"),
    )
    for step in steps:
        story.run(step)
    story.read()
    assert len(story.versions) == 1 + len(steps), story.account()
    assert story.side.fallbacks == 0
    for add in story.table().snapshot.adds():
        assert set(json.loads(add.stats or "{}")) >= {"numRecords"}


def test_replaced_table_goes_on_counting(lenient_spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    key = COMPATS["icebergWriterCompatV1"].key

    def make(builder: Any, columns: str) -> None:
        schema = StructType.fromDDL(columns)
        builder.location(path).property(key, "true").addColumns(schema).execute()

    make(DeltaTable.create(lenient_spark), "a INT, tags ARRAY<INT>")
    make(DeltaTable.replace(lenient_spark), "tags ARRAY<INT>, a BIGINT, b INT")
    table = Table.open(path)
    assert table.check("icebergWriterCompatV1").ok
    # A column of another type is another column; one that stays keeps its ids, all of them.
    assert {f.name: (field_id(f), physical_name(f)) for f in table.schema} == {
        "tags": (2, "col-2"),
        "a": (4, "col-4"),
        "b": (5, "col-5"),
    }
    assert nested_ids(table.schema.fields[0]) == {"col-2.element": 3}
