"""One table of the matrix: write it under every setting, sync, read it with every reader.

The rows of all settings lie in one table, told apart by the column ``cell``; so a table is read
once, and readers see files of all kinds side by side. A write that the sync stops at is judged at
once and taken back, so that the next one begins from a table that is in step.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tests.support.matrix.columns import Group, padded
from tests.support.matrix.readers import READERS, Engines, Reader, Rows, comparable
from tests.support.matrix.settings import FEATURES, Setting
from tests.support.matrix.writers import Writer, session_settings
from twinlake.errors import TwinlakeError
from twinlake.log import CACHE
from twinlake.table import Table

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pyspark.sql import DataFrame

__all__ = ["Cell", "Outcome", "TableOfCells", "run_table"]

EQUAL, REFUSED, STOPPED = "equal", "refused", "stopped"
DIFFERENT, ERROR = "different", "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One write of one group of columns."""

    group: str
    feature: str
    writer: str
    setting: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a reader found of a column of a write.

    ``equal``; ``refused`` where the write or the table was; ``stopped`` where the sync named the
    file and left Iceberg behind; ``error`` where the reader failed; else ``different``.
    """

    cell: Cell
    reader: str
    column: str
    result: str
    detail: str = ""
    wrong: tuple[tuple[str, str], ...] = ()
    """Where it is ``different``: each value that was written, and what was read instead."""


@dataclass(frozen=True, slots=True)
class TableOfCells:
    """A table: one group under one feature by one writer, under settings one after the other."""

    group: Group
    feature: str
    writer: Writer
    settings: tuple[Setting, ...]

    def __str__(self) -> str:
        told = "" if len(self.settings) > 1 else f", {self.settings[0].name}"
        return f"{self.group.name}, {self.feature}, {self.writer.name}{told}"


def run_table(
    engines: Engines, folder: Path, table: TableOfCells, readers: Collection[str] = READERS
) -> list[Outcome]:
    """Everything about one table, as some readers have it."""
    run = _Run(engines, folder, table, readers)
    return list(run.outcomes())


class _Run:
    def __init__(
        self, engines: Engines, folder: Path, table: TableOfCells, readers: Collection[str]
    ) -> None:
        self.readers = [reader for name, reader in READERS.items() if name in readers]
        self.engines = engines
        self.spark = engines.spark
        self.folder = folder
        self.table = table
        self.group = table.group
        self.is_iceberg = bool(FEATURES[table.feature])
        self.expected: Rows = {}

    def outcomes(self) -> Iterator[Outcome]:
        """Create the table, then one setting after the other, then all that was written."""
        writer, feature = self.table.writer, self.table.feature
        first, *_ = self.table.settings
        properties = FEATURES[feature] if writer.finish is None else writer.first_properties
        try:
            with session_settings(self.spark, first.conf if first.at_creation else {}):
                writer.create(self.spark, self.folder, self.group, properties)
        except Exception as error:
            yield from self._refused(self.table.settings, error)
            return
        written = []
        for setting in self.table.settings:
            found = list(self._written(setting))
            yield from found
            if not found:
                written.append(setting)
        if writer.finish is not None and written:
            found = list(self._finished(written))
            yield from found
            if found:
                return
        if written:
            for reader in self._readers():
                yield from self._read(reader, written)

    def _finished(self, written: Sequence[Setting]) -> Iterator[Outcome]:
        """Give a table with files the feature; outcomes only where that did not go through."""
        assert self.table.writer.finish is not None
        try:
            self.table.writer.finish(self.spark, self.folder, self.table.feature)
        except Exception as error:
            yield from self._refused(written, error)
            return
        try:
            Table.open(self.folder).iceberg.sync()
        except TwinlakeError as error:
            for setting in written:
                yield from self._stopped(setting, {}, error)

    def _readers(self) -> list[Reader]:
        return [r for r in self.readers if self.is_iceberg or not r.is_iceberg]

    def _written(self, setting: Setting) -> Iterator[Outcome]:
        """Write and sync; outcomes only where that did not go through."""
        frame = self.spark.sql(self.group.rows(setting.name))
        rows = self._wanted(frame)
        self._keep_log()
        try:
            with session_settings(self.spark, setting.conf):
                self.table.writer.append(frame, self.folder)
        except Exception as error:
            yield from self._refused([setting], error)
            return
        if self.is_iceberg and self.table.writer.finish is None:
            try:
                Table.open(self.folder).iceberg.sync()
            except TwinlakeError as error:
                yield from self._stopped(setting, rows, error)
                self._take_back()
                return
        self.expected |= rows

    def _wanted(self, frame: DataFrame) -> Rows:
        """The rows of a frame as the table has them."""
        if "variant" in self.group.name:
            frame = frame.selectExpr("cell", "id", "to_json(v) AS v")
        data = frame.toArrow()
        for field in Table.open(self.folder).schema:
            if kind := field.metadata.get("__CHAR_VARCHAR_TYPE_STRING"):
                at, column = data.column_names.index(field.name), data[field.name]
                values = [padded(str(kind), value) for value in column.to_pylist()]
                data = data.set_column(at, field.name, pa.array(values, column.type))
        return comparable(data)

    def _stopped(self, setting: Setting, rows: Rows, error: TwinlakeError) -> Iterator[Outcome]:
        """The sync stopped: it has to say at which file or column, and Iceberg stays as it was."""
        table = Table.open(self.folder)
        lag = table.iceberg.lag
        known = set() if self.table.writer.finish else set(self._files_before)
        new = [add.path for add in table.snapshot.adds() if add.path not in known]
        parts = [*new, *(path.rpartition("/")[2] for path in new)]
        names = any(part in lag.why for part in parts) or _names_column(lag.why, self.group)
        result = STOPPED if lag.versions and names else DIFFERENT
        detail = lag.why if lag.versions else f"no lag, but {error}"
        for reader in self._readers():
            if not reader.is_iceberg:
                before = self.expected
                self.expected = {**before, **rows}
                yield from self._read(reader, [setting])
                self.expected = before
                continue
            for column in self.group.columns:
                yield self._outcome(setting, reader.name, column.name, result, detail)

    def _read(self, reader: Reader, settings: Sequence[Setting]) -> Iterator[Outcome]:
        try:
            rows = comparable(reader.read(self.engines, self.folder, None))
        except Exception as error:
            if len(settings) > 1:
                for setting in settings:
                    yield from self._read_one(reader, setting)
                return
            yield from self._failed(reader, settings[0], error)
            return
        for setting in settings:
            yield from self._compared(reader, setting, rows)

    def _read_one(self, reader: Reader, setting: Setting) -> Iterator[Outcome]:
        try:
            rows = comparable(reader.read(self.engines, self.folder, setting.name))
        except Exception as error:
            yield from self._failed(reader, setting, error)
            return
        yield from self._compared(reader, setting, rows)

    def _failed(self, reader: Reader, setting: Setting, error: Exception) -> Iterator[Outcome]:
        for column in self.group.columns:
            yield self._outcome(setting, reader.name, column.name, ERROR, _first_line(error))

    def _compared(self, reader: Reader, setting: Setting, rows: Rows) -> Iterator[Outcome]:
        wanted = {key: row for key, row in self.expected.items() if key[0] == setting.name}
        found = {key: row for key, row in rows.items() if key[0] == setting.name}
        for column in self.group.columns:
            wrong = []
            for key in sorted(wanted.keys() | found.keys()):
                one = wanted.get(key, {}).get(column.name, "no row")
                other = found.get(key, {}).get(column.name, "no row")
                if one != other:
                    wrong.append((one, other))
            result = DIFFERENT if wrong else EQUAL
            detail = "; ".join(f"{one} is {other}" for one, other in wrong[:2])
            found_one = self._outcome(setting, reader.name, column.name, result, detail)
            yield replace(found_one, wrong=tuple(wrong))

    def _refused(self, settings: Sequence[Setting], error: Exception) -> Iterator[Outcome]:
        result = REFUSED if _is_meant(error) else DIFFERENT
        detail = _first_line(error)
        for setting in settings:
            for reader in self._readers():
                for column in self.group.columns:
                    yield self._outcome(setting, reader.name, column.name, result, detail)

    def _outcome(
        self, setting: Setting, reader: str, column: str, result: str, detail: str
    ) -> Outcome:
        cell = Cell(
            group=self.group.name,
            feature=self.table.feature,
            writer=self.table.writer.name,
            setting=setting.name,
        )
        return Outcome(cell=cell, reader=reader, column=column, result=result, detail=detail)

    def _keep_log(self) -> None:
        """Keep the log and the Iceberg metadata, to take a write back."""
        self._files_before = [add.path for add in Table.open(self.folder).snapshot.adds()]
        for name in ("_delta_log", "_iceberg"):
            kept = self.folder.with_name(f"{self.folder.name}{name}")
            shutil.rmtree(kept, ignore_errors=True)
            if (self.folder / name).exists():
                shutil.copytree(self.folder / name, kept)

    def _take_back(self) -> None:
        for name in ("_delta_log", "_iceberg"):
            kept = self.folder.with_name(f"{self.folder.name}{name}")
            shutil.rmtree(self.folder / name, ignore_errors=True)
            if kept.exists():
                shutil.copytree(kept, self.folder / name)
        CACHE.forget(Table.open(self.folder).location)
        jvm: Any = self.spark._jvm
        jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def _names_column(why: str, group: Group) -> bool:
    """Whether a stop is about the schema: ``... has no Iceberg form: c is char(5), ...``."""
    return any(f"has no Iceberg form: {column.name} " in why for column in group.columns)


def _is_meant(error: Exception) -> bool:
    """Whether it is a refusal: with a code of ours, of Spark's or Delta's, or of an argument."""
    condition = getattr(error, "getCondition", None)
    return (
        getattr(error, "code", None) is not None
        or (callable(condition) and condition() is not None)
        or type(error).__name__ == "IllegalArgumentException"
    )


def _first_line(error: BaseException) -> str:
    """The first line of the deepest cause, which for errors of the JVM lies there."""
    cause = getattr(error, "java_exception", None)
    if cause is None:
        text = str(error).strip()
        return f"{type(error).__name__}: {text.splitlines()[0][:300] if text else ''}"
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.toString()).splitlines()[0][:300]
