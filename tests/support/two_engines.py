"""One workload on tables of Delta Spark and of twinlake, which have to agree after every step.

Delta Spark works on one table, twinlake on one for each of its writers. A step has to work on all
or fail on all with the same error class; then versions, protocols, schemas, properties, history
and rows have to be the same, whoever reads them. ``finish`` looks at change feeds, row ids and file
statistics.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from pyspark.sql import types as t

from tests.support import workloads as w
from tests.support.agreement import (
    condition_of,
    differences,
    file_facts,
    history_of,
    row_differences,
    row_keys,
    settled,
    statistics_differences,
)
from tests.support.row_values import quoted, random_rows
from twinlake.actions import RemoveFile
from twinlake.errors import UserError
from twinlake.log import read_commit
from twinlake.schema import physical_name
from twinlake.spark import DeltaTable, scan, write
from twinlake.spark.session import open_table
from twinlake.spark.upkeep.optimizing import optimize, reorg
from twinlake.storage import decode_path
from twinlake.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Disagreement", "Engines", "Side", "frame_of", "replay"]

_CHANGED = ("Inserted", "Updated", "Deleted")
WRITER = "spark.twinlake.writer"
_SETTINGS = {
    "spark.twinlake.upgradePolicy": "minimal",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    # The sources of MERGE here are always the same rows, so Delta Spark need not keep them.
    "spark.databricks.delta.merge.materializeSource": "none",
    # Delta Spark's VACUUM lists folders in as many tasks as this says, and the default is 10,000.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
}


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
    schema = _parsed(rows.columns) if rows.columns is not None else table
    assert schema is not None
    made = random_rows(Random(rows.seed), schema, rows.count)
    # Binary partition values are text in the log. Delta Spark takes bytes for UTF-8, the protocol
    # each byte for a character; they agree on ASCII. No bytes at all are null to both. Zeros are
    # left out: Spark puts them into the names of folders as they are, which no file system takes.
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
    frame: DataFrame = spark.createDataFrame(made, schema).coalesce(1)
    return frame.where(rows.where) if rows.where is not None else frame


def _parsed(columns: str) -> t.StructType:
    schema = t.StructType.fromDDL(columns)
    assert isinstance(schema, t.StructType)
    return schema


def _as_text(value: bytes | None) -> bytes | None:
    if value is None:
        return None
    return value.decode("ascii", "ignore").replace("\0", "").encode() or None


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
        finally:
            # Other tests share the session.
            self.spark.conf.unset(WRITER)


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
    frame = frame_of(call.spark, start.rows, _parsed(start.columns), start.partition_by)
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
    frame = frame_of(call.spark, start.rows, _parsed(start.columns), start.partition_by)
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
    w.WidenColumn: lambda c: _alter(c, f"ALTER COLUMN {quoted(*c.step.path)} TYPE {c.step.kind}"),
}


# --- all of them ---------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """What was read from a table."""

    columns: str
    keys: list[tuple[Any, ...]]


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
    in_full: bool = False
    """Whether rows are known to share files in the same way: then all metrics are compared."""

    def __post_init__(self) -> None:
        self.theirs = Side(self.spark, self.folder / "theirs")
        self.ours = [Side(self.spark, self.folder / name, name) for name in self.writers]
        for key, value in _SETTINGS.items():
            self.spark.conf.set(key, value)
        self._had_feed = False
        self._rows: _Rows | None = None
        self._files: set[Path] = set()
        self._ids: dict[str, tuple[str, dict[int, tuple[str, int]]]] = {}

    def shape(self) -> w.Shape:
        """What the next step can be chosen by."""
        metadata = self.theirs.table().metadata
        return w.Shape(
            schema=self.theirs.schema(),
            partition_by=tuple(metadata.partition_columns),
            properties=dict(metadata.configuration),
            steps=len(self.versions),
            is_bare=len(self.done) == 1 and not self.theirs.table().snapshot.num_files,
        )

    def run(self, step: w.Start | w.Step) -> bool:
        """One step on every table; whether it worked. Whatever differs is a ``Disagreement``."""
        self.done.append(step)
        before = self._copied(self.theirs) if type(step) in _NEEDLESS else None
        theirs = self._attempt(self.theirs, step)
        for side in self.ours:
            mine = self._attempt(side, step)
            if (mine and condition_of(mine), mine is None) != (
                theirs and condition_of(theirs),
                theirs is None,
            ):
                raise self.disagreement(
                    f"{side.writer} writer: {_told(mine)}\n  Delta: {_told(theirs)}"
                ) from (mine or theirs)
        if before is not None:
            self._take_back_if_needless(before, type(step))
        if theirs is None:
            self.versions.append(self.theirs.table().version)
            self.compare()
            self._watch(step)
            return True
        self.refused.append(f"{step}: {condition_of(theirs)}")
        # Whoever refused may still have changed something.
        if self.versions:
            self._compare_logs()
            if lost := self._files - self._found_files():
                raise self.disagreement(f"a refused step deleted {sorted(lost)[:4]}")
        return False

    def _attempt(self, side: Side, step: w.Start | w.Step) -> Exception | None:
        try:
            side.run(step, self.versions)
        except Exception as error:
            return error
        return None

    def _copied(self, side: Side) -> Side:
        """The table at another place."""
        name = f"{side.writer or 'theirs'} before step {len(self.done)}"
        copied = replace(side, path=self.folder / name)
        shutil.copytree(side.path, copied.path)
        return copied

    def _take_back_if_needless(self, before: Side, step: type) -> None:
        """Go on with Delta's table before a commit that changed nothing, if we made none."""
        earlier, now = before.table(), self.theirs.table()
        alone = now.version > earlier.version
        alone = alone and all(side.table().version == earlier.version for side in self.ours)
        if alone and now.metadata == earlier.metadata and _NEEDLESS[step](before, now):
            before, self.theirs = self.theirs, before
        shutil.rmtree(before.path)

    def compare(self) -> None:
        """Everything that has to be the same after a step, each table read by its own engine."""
        self._compare_logs()
        frames = {"Delta": self.by_delta(self.theirs)}
        frames |= {f"twinlake reads the {s.writer} table": self.by_us(s) for s in self.ours}
        self._rows = self._compare_rows(frames)
        self._files = self._found_files()

    def _compare_logs(self) -> None:
        theirs = self.theirs.table()
        told = {**settled(theirs), **history_of(theirs, in_full=self.in_full)}
        for side in self.ours:
            table = side.table()
            mine = {**settled(table), **history_of(table, in_full=self.in_full)}
            if told["operation"] == "WRITE" and not told["metrics"]:
                # Delta Spark has none for replaceWhere without new rows where the feed is on.
                mine["metrics"] = {}
            if found := differences(mine, told):
                raise self.disagreement(f"the {side.writer} table is another\n{found}")

    def _compare_rows(self, frames: dict[str, DataFrame], known: _Rows | None = None) -> _Rows:
        """The columns and rows of all frames are those known, or else those of the first."""
        columns = {name: frame.schema.simpleString() for name, frame in frames.items()}
        first = known.columns if known else next(iter(columns.values()))
        if {*columns.values()} != {first}:
            raise self.disagreement(f"columns as they are read: {columns}, not {first}")
        rows = row_keys(frames)
        known = known or _Rows(columns=first, keys=next(iter(rows.values())))
        for name, own in rows.items():
            if found := row_differences(own, known.keys):
                raise self.disagreement(f"{name}: {found}")
        return known

    def _found_files(self) -> set[Path]:
        """All files there are: with the same log and the same files the rows are the same."""
        return {path for path in self.folder.rglob("*") if path.is_file()}

    def finish(self) -> None:
        """What is looked at once, after the last step: each table is read by the other engine."""
        frames = {"twinlake reads Delta's table": self.by_us(self.theirs)}
        frames |= {f"Delta reads the {s.writer} table": self.by_delta(s) for s in self.ours}
        self._compare_rows(frames, self._rows)
        if self._is_on(w.TRACKING):
            self._compare_row_ids()
        if self._is_on(w.FEED):
            self._compare_feeds()
        self._compare_statistics()

    def _is_on(self, key: str) -> bool:
        return self.theirs.table().properties.get(key) == "true"

    def _watch(self, step: w.Start | w.Step) -> None:
        """Whether row ids stayed, and from where on the change feed can be read."""
        version, feed = self.versions[-1], self._is_on(w.FEED)
        if isinstance(step, w.Vacuum) or (feed and not self._had_feed):
            self.feed_from = version
        self._had_feed = feed
        if not self._is_on(w.TRACKING):
            self._ids = {}
            return
        frames = {s.writer: scan(self.spark, s.path, row_ids=True) for s in self.ours}
        schema = self.theirs.table().metadata.schema_string
        for writer, rows in row_keys(frames, ("_row_id", "_row_commit_version")).items():
            ids = {row_id: (text, at) for text, row_id, at in rows}
            if len(ids) != len(rows) or None in ids:
                raise self.disagreement(f"row ids of the {writer} table are not unique: {rows}")
            known, before = self._ids.get(writer, ("", {}))
            moved = [
                (row_id, old, ids[row_id])
                for row_id, old in before.items()
                if known == schema and row_id in ids and ids[row_id][1] == old[1]
                if ids[row_id] != old
            ]
            if isinstance(step, (w.Optimize, w.Purge, w.Vacuum)) and before != ids:
                moved = moved or [(-1, ("", -1), ("some rows have other ids", -1))]
            if moved:
                raise self.disagreement(f"row ids of the {writer} table moved: {moved[:4]}")
            self._ids[writer] = (schema, ids)

    def _compare_row_ids(self) -> None:
        """The rows are of the same versions, and whoever reads a table finds the same ids."""
        names = ("row_id", "row_commit_version")
        frames = {
            side.writer or "Delta": self.by_delta(side).select(
                "*", *(f"_metadata.{name}" for name in names)
            )
            for side in (self.theirs, *self.ours)
        }
        for side in self.ours:
            ours = scan(self.spark, side.path, row_ids=True)
            frames[f"{side.writer} by twinlake"] = ours.withColumnsRenamed(
                {"_row_id": names[0], "_row_commit_version": names[1]}
            )
        rows = row_keys(frames, names)
        versions = {name: [(text, at) for text, _, at in own] for name, own in rows.items()}
        for side in self.ours:
            name = side.writer
            if found := row_differences(versions[name], versions["Delta"]):
                raise self.disagreement(f"row versions of the {name} table: {found}")
            if found := row_differences(rows[f"{name} by twinlake"], rows[name]):
                raise self.disagreement(f"row ids of the {name} table as Delta reads them: {found}")

    def _compare_feeds(self) -> None:
        """The same changes in the same versions, or the same refusal to tell them."""
        told: dict[str, Any] = {}
        for side in (self.theirs, *self.ours):
            reader = self.spark.read.format("delta").option("readChangeFeed", "true")
            frame = reader.option("startingVersion", self.feed_from).load(str(side.path))
            try:
                rows = row_keys({"": frame.drop("_commit_timestamp")})[""]
            except Exception as error:
                rows = [(condition_of(error),)]
            told[side.writer] = rows
            if found := row_differences(rows, told[""]):
                raise self.disagreement(f"change feed of the {side.writer} table: {found}")

    def _compare_statistics(self) -> None:
        theirs = file_facts(self.theirs.table(), self.theirs.path)
        for side in self.ours:
            for file, stats in file_facts(side.table(), side.path).items():
                other = theirs.get(file)
                wrong = statistics_differences(stats, other) if other is not None else []
                if wrong:
                    raise self.disagreement(
                        f"statistics of the {side.writer} table (ours / Delta's): {wrong}"
                    )

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


def _took_no_row(_before: Side, now: Table) -> bool:
    """A MERGE of no rows: Delta Spark writes files again in which rows match, taken or not."""
    metrics = now.history(1)[0].operation_metrics or {}
    return all(metrics.get(f"numTargetRows{name}") == "0" for name in _CHANGED)


def _dropped_only_change_types(before: Side, now: Table) -> bool:
    """A PURGE of columns that nobody dropped.

    Where the feed is on, data files of Delta Spark have columns for change files too, without
    values; it then takes them for columns that were dropped.
    """
    needless = {"_change_type", "__is_cdc"}
    named = {physical_name(column) for column in now.schema}
    for action in read_commit(now.snapshot.store, now.version):
        if isinstance(action, RemoveFile):
            found = pq.read_schema(before.path / decode_path(action.path)).names
            extra = {name for name in found if not name.startswith("_row-")} - named
            if action.deletion_vector is not None or not extra or extra - needless:
                return False
    return True


#: Whether a commit that only Delta Spark made changed nothing; for the steps where it may be so.
_NEEDLESS: dict[type, Callable[[Side, Table], bool]] = {
    w.Merge: _took_no_row,
    w.Purge: _dropped_only_change_types,
}


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
