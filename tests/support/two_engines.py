"""One workload on tables of Delta Spark and of twinlake, which have to agree after every step.

Delta Spark works on one table, twinlake on one for each of its writers. A step has to work on all
or fail on all with the same error class; then versions, protocols, schemas, properties, history
and rows have to be the same, whoever reads them. ``finish`` looks at change feeds, row ids and file
statistics.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from functools import reduce
from random import Random
from typing import TYPE_CHECKING, Any

from pyspark.sql import types as t

from tests.support import workloads as w
from tests.support.row_values import quoted, random_rows
from twinlake.errors import UserError
from twinlake.spark import DeltaTable, scan, write
from twinlake.spark.optimizing import optimize, reorg
from twinlake.spark.session import open_table
from twinlake.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Disagreement", "Engines", "condition_of", "frame_of", "replay", "row_keys", "settled"]

WRITER = "spark.twinlake.writer"
_SETTINGS = {
    "spark.twinlake.upgradePolicy": "minimal",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
}
#: Metrics about time and size, and about how many files the rows went into.
_VARYING = re.compile(r"TimeMs$|Bytes|FilesSize|[sS]ize|DurationMs")


class Disagreement(AssertionError):
    """The two engines did not do the same."""


# --- frames and rows ------------------------------------------------------------------------------


def frame_of(
    spark: SparkSession,
    rows: w.Rows,
    table: t.StructType | None,
    partition_by: Sequence[str] = (),
) -> DataFrame:
    """The rows as a frame of one partition."""
    schema = t.StructType.fromDDL(rows.columns) if rows.columns is not None else table
    assert schema is not None
    made = random_rows(Random(rows.seed), schema, rows.count)
    # Delta Spark keeps binary partition values as text: other bytes than text has do not survive.
    spelt = [
        index
        for index, column in enumerate(schema.fields)
        if column.name in partition_by and isinstance(column.dataType, t.BinaryType)
    ]
    if spelt:
        made = [
            tuple(_as_text(v) if index in spelt else v for index, v in enumerate(row))
            for row in made
        ]
    frame = spark.createDataFrame(made, schema).coalesce(1)
    return frame.where(rows.where) if rows.where is not None else frame


def _as_text(value: bytes | None) -> bytes | None:
    return None if value is None else value.decode(errors="replace").encode()


def _settled_value(value: Any) -> Any:
    match value:
        case float():
            return "NaN" if math.isnan(value) else value.hex()
        case Decimal():
            return str(value)
        case list() | tuple():
            return tuple(_settled_value(item) for item in value)
        case dict():
            return tuple((key, _settled_value(item)) for key, item in value.items())
        case _:
            return value


def row_keys(frames: Mapping[str, DataFrame]) -> dict[str, Counter[str]]:
    """The rows of each frame as texts that are equal only for the very same values.

    They are read by one query, because a query takes longer than all rows of all frames.
    """
    from pyspark.sql import functions as F

    tagged = [
        # Structs of one type each: frames may differ in what they say about nulls.
        frame.select(F.lit(name).alias("reader"), F.struct(*map(quoted, frame.columns)).alias("r"))
        for name, frame in frames.items()
    ]
    found: dict[str, Counter[str]] = {name: Counter() for name in frames}
    for row in reduce(lambda one, other: one.unionAll(other), tagged).toArrow().to_pylist():
        found[row["reader"]][repr(_settled_value(row["r"]))] += 1
    return found


# --- one engine each ------------------------------------------------------------------------------


@dataclass
class Side:
    """A table and the engine that changes it."""

    spark: SparkSession
    path: Path
    writer: str = ""
    """Which of our writers it is written with; none where Delta Spark writes."""
    fallbacks: int = 0
    """How often that writer could not write the table."""

    @property
    def sql_name(self) -> str:
        return f"delta.`{self.path}`"

    def table(self) -> Table:
        return Table.open(self.path, policy="minimal")

    def schema(self) -> t.StructType:
        """The columns without what column mapping says about them."""
        parsed = json.loads(
            self.table().metadata.schema_string,
            object_hook=lambda found: found | {"metadata": {}} if "metadata" in found else found,
        )
        return t.StructType.fromJson(parsed)

    def sql(self, text: str) -> None:
        self.spark.sql(text.format(t=self.sql_name)).collect()

    def run(self, step: w.Start | w.Step, versions: Sequence[int]) -> None:
        """Do one step; a writer that cannot write this table leaves it to the other one."""
        does = (_OURS if self.writer else _THEIRS)[type(step)]
        call = _Call(side=self, step=step, versions=versions)
        try:
            self.spark.conf.set(WRITER, self.writer or "auto")
            does(call)
        except UserError as error:
            if "writer" not in error.fields or "reason" not in error.fields:
                raise
            self.fallbacks += 1
            self.spark.conf.set(WRITER, "auto")
            does(call)


@dataclass(frozen=True)
class _Call:
    side: Side
    step: Any
    versions: Sequence[int]

    @property
    def spark(self) -> SparkSession:
        return self.side.spark

    def frame(self) -> DataFrame:
        rows = self.step.rows
        partition_by = self.side.table().metadata.partition_columns
        schema = None if rows.columns else self.side.schema()
        return frame_of(self.spark, rows, schema, partition_by)

    def ours(self) -> DeltaTable:
        return DeltaTable.forPath(self.spark, str(self.side.path))

    def theirs(self) -> Any:
        from delta.tables import DeltaTable as Theirs

        return Theirs.forPath(self.spark, str(self.side.path))

    def opened(self) -> Table:
        return open_table(self.spark, self.side.path)


def _listed(properties: dict[str, str]) -> str:
    return ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())


def _start_ours(call: _Call) -> None:
    start: w.Start = call.step
    if start.rows is None:
        Table.create(
            call.side.path,
            start.columns,
            partition_by=start.partition_by,
            properties=start.properties,
            policy="minimal",
        )
        return
    frame = frame_of(
        call.spark, start.rows, t.StructType.fromDDL(start.columns), start.partition_by
    )
    write(
        frame, call.side.path, partition_by=start.partition_by or None, properties=start.properties
    )


def _start_theirs(call: _Call) -> None:
    start: w.Start = call.step
    if start.rows is None:
        parts = ", ".join(quoted(name) for name in start.partition_by)
        text = f"CREATE TABLE {call.side.sql_name} ({start.columns}) USING delta"
        text += f" PARTITIONED BY ({parts})" if parts else ""
        text += f" TBLPROPERTIES ({_listed(start.properties)})" if start.properties else ""
        call.spark.sql(text)
        return
    frame = frame_of(
        call.spark, start.rows, t.StructType.fromDDL(start.columns), start.partition_by
    )
    writer = frame.write.format("delta").options(**start.properties)
    writer.partitionBy(*start.partition_by).save(str(call.side.path))


def _write_ours(call: _Call) -> None:
    step: w.Write = call.step
    write(
        call.frame(),
        call.side.path,
        step.mode,
        merge_schema=step.merge_schema,
        overwrite_schema=step.overwrite_schema,
        replace_where=step.replace_where,
        partition_overwrite="dynamic" if step.dynamic else None,
    )


def _write_theirs(call: _Call) -> None:
    step: w.Write = call.step
    given = {
        "mergeSchema": "true" if step.merge_schema else None,
        "overwriteSchema": "true" if step.overwrite_schema else None,
        "replaceWhere": step.replace_where,
        "partitionOverwriteMode": "dynamic" if step.dynamic else None,
    }
    writer = call.frame().write.format("delta").mode(step.mode)
    writer.options(**{key: value for key, value in given.items() if value is not None}).save(
        str(call.side.path)
    )


def _merge(call: _Call, table: Any) -> None:
    step: w.Merge = call.step
    builder = table.alias("t").merge(call.frame().alias("s"), step.on)
    if step.evolve:
        builder = builder.withSchemaEvolution()
    for method, arguments in step.clauses:
        builder = getattr(builder, method)(**arguments)
    builder.execute()


def _add_column(call: _Call) -> None:
    step: w.AddColumn = call.step
    call.opened().add_column(f"{quoted(*step.path)} {step.kind}", after=step.after)


def _where(text: str | None) -> str:
    return f" WHERE {text}" if text else ""


_OURS: dict[type, Callable[[_Call], Any]] = {
    w.Start: _start_ours,
    w.Write: _write_ours,
    w.Delete: lambda c: c.ours().delete(c.step.where),
    w.Update: lambda c: c.ours().update(c.step.where, c.step.set),
    w.Merge: lambda c: _merge(c, c.ours()),
    w.Optimize: lambda c: optimize(c.spark, c.side.path, c.step.where),
    w.Purge: lambda c: reorg(c.spark, c.side.path),
    w.Vacuum: lambda c: c.ours().vacuum(0),
    w.Restore: lambda c: c.ours().restoreToVersion(c.versions[c.step.step]),
    w.AddColumn: _add_column,
    w.RenameColumn: lambda c: c.opened().rename_column(quoted(*c.step.path), quoted(c.step.name)),
    w.DropColumn: lambda c: c.opened().drop_column(quoted(*c.step.path)),
    w.SetProperties: lambda c: c.opened().set_properties(c.step.properties),
    w.AddConstraint: lambda c: c.opened().add_constraint(c.step.name, c.step.expression, c.spark),
    w.WidenColumn: lambda c: c.opened().widen_column(quoted(*c.step.path), c.step.kind),
}


def _alter(call: _Call, text: str) -> None:
    call.spark.sql(f"ALTER TABLE {call.side.sql_name} {text}")


def _add_column_theirs(call: _Call) -> None:
    step: w.AddColumn = call.step
    after = f" AFTER {quoted(step.after)}" if step.after else ""
    _alter(call, f"ADD COLUMNS ({quoted(*step.path)} {step.kind}{after})")


_THEIRS: dict[type, Callable[[_Call], Any]] = {
    w.Start: _start_theirs,
    w.Write: _write_theirs,
    w.Delete: lambda c: c.theirs().delete(c.step.where),
    w.Update: lambda c: c.theirs().update(c.step.where, c.step.set),
    w.Merge: lambda c: _merge(c, c.theirs()),
    w.Optimize: lambda c: c.spark.sql(f"OPTIMIZE {c.side.sql_name}{_where(c.step.where)}"),
    w.Purge: lambda c: c.spark.sql(f"REORG TABLE {c.side.sql_name} APPLY (PURGE)"),
    w.Vacuum: lambda c: c.theirs().vacuum(0),
    w.Restore: lambda c: c.theirs().restoreToVersion(c.versions[c.step.step]),
    w.AddColumn: _add_column_theirs,
    w.RenameColumn: lambda c: _alter(
        c, f"RENAME COLUMN {quoted(*c.step.path)} TO {quoted(c.step.name)}"
    ),
    w.DropColumn: lambda c: _alter(c, f"DROP COLUMN {quoted(*c.step.path)}"),
    w.SetProperties: lambda c: _alter(c, f"SET TBLPROPERTIES ({_listed(c.step.properties)})"),
    w.AddConstraint: lambda c: _alter(
        c, f"ADD CONSTRAINT {c.step.name} CHECK ({c.step.expression})"
    ),
    w.WidenColumn: lambda c: _alter(
        c, f"ALTER COLUMN {quoted(*c.step.path)} TYPE {c.step.kind}"
    ),
}


# --- what can be compared -------------------------------------------------------------------------


def condition_of(error: Exception) -> str | None:
    """The error class, also of errors that only carry it in their text."""
    found = getattr(error, "delta_class", None)
    if found is None and hasattr(error, "getCondition"):
        found = error.getCondition()
    if found is None:
        named = re.search(r"\[([A-Z][A-Z0-9]*_[A-Z0-9_]+)", str(error))
        found = named.group(1) if named else None
    return None if found is None else str(found).partition(".")[0]


def settled(table: Table) -> dict[str, Any]:
    """What the metadata of equal tables has in common: all but names and times that were drawn."""
    drawn = "delta.columnMapping.physicalName"

    def settle(found: dict[str, Any]) -> dict[str, Any]:
        return found | {drawn: "drawn"} if found.get(drawn, "").startswith("col-") else found

    metadata, protocol = table.metadata, table.protocol
    return {
        "version": table.version,
        "protocol": (
            protocol.min_reader_version,
            protocol.min_writer_version,
            sorted(protocol.reader_features or ()),
            sorted(protocol.writer_features or ()),
        ),
        "schema": json.loads(metadata.schema_string, object_hook=settle),
        "partition columns": metadata.partition_columns,
        "properties": {
            key: "drawn" if "materialized" in key else value
            for key, value in sorted(table.properties.items())
        },
    }


def _history(table: Table) -> dict[str, Any]:
    record = table.history(1)[0]
    metrics = dict(record.operation_metrics or {})
    if metrics.get("numOutputRows") == "0":
        # Delta Spark counts a file without rows that it wrote and left out of the commit.
        metrics.pop("numFiles", None)
    return {
        "operation": record.operation,
        "metrics": {k: v for k, v in sorted(metrics.items()) if not _VARYING.search(k)},
    }


def _differences(mine: dict[str, Any], other: dict[str, Any]) -> str:
    return "\n".join(
        f"  {key}:\n    twinlake: {mine.get(key)}\n    Delta:    {other.get(key)}"
        for key in sorted({*mine, *other})
        if mine.get(key) != other.get(key)
    )


def _row_differences(mine: Counter[str], other: Counter[str]) -> str:
    more, fewer = list((mine - other).elements()), list((other - mine).elements())
    return f"{len(more)} rows too many: {more[:4]}\n  {len(fewer)} rows missing: {fewer[:4]}"


@dataclass
class Engines:
    """The tables of one workload."""

    spark: SparkSession
    folder: Path
    writers: tuple[str, ...] = ("native", "arrow")
    done: list[w.Start | w.Step] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    """After the start and each step that worked."""
    feed_from: int = 0
    """The first version whose changes can still be read."""

    def __post_init__(self) -> None:
        self.theirs = Side(self.spark, self.folder / "theirs")
        self.ours = [Side(self.spark, self.folder / name, name) for name in self.writers]
        for key, value in _SETTINGS.items():
            self.spark.conf.set(key, value)

    def shape(self) -> w.Shape:
        """What the next step can be chosen by."""
        metadata = self.theirs.table().metadata
        return w.Shape(
            schema=self.theirs.schema(),
            partition_by=tuple(metadata.partition_columns),
            properties=dict(metadata.configuration),
            steps=len(self.versions),
        )

    def run(self, step: w.Start | w.Step) -> bool:
        """One step on every table; whether it worked. Whatever differs is a ``Disagreement``."""
        self.done.append(step)
        theirs = self._attempt(self.theirs, step)
        for side in self.ours:
            mine = self._attempt(side, step)
            if (mine is None) != (theirs is None) or (
                mine is not None and theirs is not None and condition_of(mine) != condition_of(theirs)
            ):
                raise self.disagreement(
                    f"{side.writer} writer: {_told(mine)}\n  Delta: {_told(theirs)}"
                ) from (mine or theirs)
        if theirs is None:
            self.versions.append(self.theirs.table().version)
            if isinstance(step, w.Vacuum):
                self.feed_from = self.versions[-1]
        else:
            self.refused.append(f"{step}: {condition_of(theirs)}")
        if not isinstance(step, w.Start) or theirs is None:
            self.compare()
        return theirs is None

    def _attempt(self, side: Side, step: w.Start | w.Step) -> Exception | None:
        try:
            side.run(step, self.versions)
        except Exception as error:
            return error
        return None

    def compare(self, *, everybody: bool = True) -> None:
        """Everything that has to be the same after a step; ``everybody`` reads all tables."""
        theirs = self.theirs.table()
        state, told = settled(theirs), _history(theirs)
        frames = {"Delta": self.by_delta(self.theirs)}
        for side in self.ours:
            table = side.table()
            mine = {**settled(table), **_history(table)}
            if different := _differences(mine, {**state, **told}):
                raise self.disagreement(f"the {side.writer} table is another\n{different}")
            frames[f"twinlake reads the {side.writer} table"] = self.by_us(side)
        if everybody:
            frames["twinlake reads Delta's table"] = self.by_us(self.theirs)
            frames |= {f"Delta reads the {s.writer} table": self.by_delta(s) for s in self.ours}
        rows = row_keys(frames)
        for name, found in rows.items():
            if found != rows["Delta"]:
                raise self.disagreement(f"{name}: {_row_differences(found, rows['Delta'])}")

    def by_delta(self, side: Side) -> DataFrame:
        """The rows as Delta Spark reads them."""
        return self.spark.read.format("delta").load(str(side.path))

    def by_us(self, side: Side) -> DataFrame:
        """The rows as twinlake reads them."""
        return scan(self.spark, side.path)

    def disagreement(self, what: str) -> Disagreement:
        """The error, with the workload as code."""
        start, *steps = self.done
        lines = "".join(f"        {step!r},\n" for step in steps)
        return Disagreement(
            f"{what}\n  after:\n    replay(\n        spark, folder,\n        {start!r},\n"
            f"        [\n    {lines.replace(chr(10), chr(10) + '    ')}    ],\n    )"
        )


def _told(error: Exception | None) -> str:
    if error is None:
        return "worked"
    return f"{type(error).__name__} {condition_of(error)}: {str(error)[:600]}"


def replay(
    spark: SparkSession,
    folder: Path,
    start: w.Start,
    steps: Iterable[w.Step],
    writers: tuple[str, ...] = ("native", "arrow"),
) -> Engines:
    """Run a workload again, step by step."""
    engines = Engines(spark, folder, writers)
    if engines.run(start):
        for step in steps:
            engines.run(step)
    return engines
