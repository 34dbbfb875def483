"""One workload on tables of Delta Spark and of twinlake, which have to agree after every step.

Delta Spark works on one table, twinlake on one for each of its writers. A step has to work on all
or fail on all with the same error class; then versions, protocols, schemas, properties, history
and rows have to be the same, whoever reads them. ``finish`` looks at change feeds, row ids and file
statistics.
"""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from tests.support.engines import workloads as w
from tests.support.engines.agreement import (
    arrow_keys,
    condition_of,
    differences,
    file_facts,
    history_of,
    row_differences,
    row_keys,
    settled,
    statistics_differences,
)
from tests.support.engines.steps import Side
from twinlake.actions import RemoveFile
from twinlake.log import read_commit
from twinlake.schema import physical_name
from twinlake.spark import scan
from twinlake.storage import decode_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from twinlake.actions import AddFile
    from twinlake.table import Table

__all__ = ["Disagreement", "Engines", "replay"]

_CHANGED = ("Inserted", "Updated", "Deleted")
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
    writers: tuple[str, ...] = ("native", "arrow", "local")
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
        tables = [side.table() for side in self.ours]
        if alone and now.metadata == earlier.metadata and _NEEDLESS[step](before, now, tables):
            before, self.theirs = self.theirs, before
        shutil.rmtree(before.path)

    def compare(self) -> None:
        """Everything that has to be the same after a step, each table read by its own engine."""
        self._compare_logs()
        frames = {"Delta": self.by_delta(self.theirs)}
        frames |= {f"twinlake reads the {s.writer} table": self.by_us(s) for s in self.ours}
        self._rows = self._compare_rows(frames)
        for side in (self.theirs, *self.ours):
            self._compare_without_spark(side, self._rows)
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
            if told["operation"] == "MERGE" and _inserts_on_condition(self.done[-1]):
                # Where the table has no files, Delta Spark counts what passes the condition.
                counts = [each["metrics"].get("numSourceRows", "0") for each in (mine, told)]
                mine["metrics"]["numSourceRows"] = min(counts, key=int)
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

    def _compare_without_spark(self, side: Side, known: _Rows) -> None:
        """The rows are the same where no Spark reads them."""
        table = side.table()
        if found := row_differences(arrow_keys(table.to_arrow()), known.keys):
            raise self.disagreement(f"{side.writer or 'Delta'} table without Spark: {found}")
        if table.count() != len(known.keys):
            raise self.disagreement(f"{table.count()} rows are counted, not {len(known.keys)}")

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
                told_as = condition_of(error) or ""
                if any(isinstance(step, w.Restore) for step in self.done):
                    # Delta's RESTORE states the metadata again, changed or not: where columns
                    # changed later, the reader stumbles over that instead of over the data.
                    told_as = told_as.replace("SCHEMA_CHANGE", "DATA_SCHEMA")
                rows = [(told_as,)]
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


def _inserts_on_condition(step: w.Start | w.Step) -> bool:
    return isinstance(step, w.Merge) and any(
        name.startswith("whenNotMatchedInsert") and "condition" in arguments
        for name, arguments in step.clauses
    )


def _took_no_row(_before: Side, now: Table, _ours: Sequence[Table]) -> bool:
    """A MERGE of no rows: Delta Spark writes files again in which rows match, taken or not."""
    metrics = now.history(1)[0].operation_metrics or {}
    return all(metrics.get(f"numTargetRows{name}") == "0" for name in _CHANGED)


def _dropped_only_change_types(before: Side, now: Table, _ours: Sequence[Table]) -> bool:
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


def _packed_already(_before: Side, now: Table, ours: Sequence[Table]) -> bool:
    """An OPTIMIZE of partitions in which we have a file each: who has written fewer packs less."""
    packed = {
        _partition(now, action)
        for action in read_commit(now.snapshot.store, now.version)
        if isinstance(action, RemoveFile)
    }
    counts = (Counter(_partition(table, add) for add in table.snapshot.adds()) for table in ours)
    return all(found[partition] < 2 for found in counts for partition in packed)


def _partition(table: Table, file: AddFile | RemoveFile) -> tuple[str | None, ...]:
    values, names = file.partition_values or {}, table.metadata.partition_columns
    return tuple(values.get(physical_name(f)) for f in table.schema if f.name in names)


#: Whether a commit that only Delta Spark made changed nothing; for the steps where it may be so.
_NEEDLESS: dict[type, Callable[[Side, Table, Sequence[Table]], bool]] = {
    w.Merge: _took_no_row,
    w.Optimize: _packed_already,
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
    writers: tuple[str, ...] = ("native", "arrow", "local"),
) -> Engines:
    """Run a workload again, step by step."""
    engines = Engines(spark, folder, writers)
    if engines.run(start):
        for step in steps:
            engines.run(step)
    return engines
