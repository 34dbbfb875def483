"""One schedule on real engines: a DELETE and an UPDATE of the same row that both read version 1.

Both statements are the engine's own. A function in the condition of each holds it after its scan
was planned and before it commits, so that the order of events is the same in every run: both read
version 1, one of them commits version 2, and then the other one goes on. Whether it may commit is
the question. In either serial order the row is gone at the end.
"""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from tests.support.iceberg.both_sides import twin
from tests.support.iceberg.catalog import iceberg_session
from twinlake.spark import DeltaTable
from twinlake.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

__all__ = ["DeltaSpark", "IcebergSpark", "Outcome", "Twinlake", "one_by_one", "replay"]

Row = tuple[str, str, str]

#: A second row in the file: without it a plain DELETE would drop the file as a whole.
ROWS: tuple[Row, ...] = (("jack", "red", "A"), ("sarah", "red", "A"))
_COLUMNS = "name STRING, color STRING, grade STRING"
_SQL = {
    "DELETE": "DELETE FROM {table} WHERE {condition}",
    "UPDATE": "UPDATE {table} SET color = 'blue' WHERE {condition}",
}
_JACK = "name = 'jack'"
_HELD = "held"
_PATIENCE = 240.0


class Engine(Protocol):
    """A table with three columns, which two writers change."""

    @property
    def about(self) -> str:
        """Which engine it is, on what table."""

    def create(self) -> None:
        """Make the table; its version 1 has the rows."""

    def run(self, writer: int, statement: str, condition: str) -> None:
        """Run DELETE or UPDATE for the rows of a condition."""

    def register(self, function: Callable[[str, str, str], bool]) -> None:
        """Let conditions call a function as ``held``."""

    def versions(self) -> list[tuple[str, list[Row]]]:
        """What made each version, from 1 on, and its rows."""

    def evidence(self) -> list[str]:
        """What else is worth to be told of the files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of it."""

    refused: str
    """The error of the statement that went second; empty if it committed."""
    versions: tuple[tuple[str, tuple[Row, ...]], ...]
    """What made each version, and its rows."""
    evidence: tuple[str, ...]
    """What the files say."""

    @property
    def rows(self) -> tuple[Row, ...]:
        """Of the newest version."""
        return self.versions[-1][1]

    @property
    def made_by(self) -> tuple[str, ...]:
        """What made each version."""
        return tuple(name for name, _ in self.versions)


def replay(engine: Engine, folder: Path, *, first: str = "UPDATE") -> Outcome:
    """Both statements read version 1; ``first`` commits, then the other one goes on."""
    second = "DELETE" if first == "UPDATE" else "UPDATE"
    engine.create()
    engine.register(_gatekeeper())
    story = [engine.about, f"Writer-0  INSERT {ROWS}: committed version 1"]
    held = [
        _Held(partial(engine.run, writer, statement), folder / f"{statement}-{writer}")
        for writer, statement in enumerate((first, second))
    ]
    try:
        for writer, (one, statement) in enumerate(zip(held, (first, second), strict=True)):
            one.start()
            told = _SQL[statement].format(table="t", condition=_JACK)
            story.append(f"Writer-{writer}  {told}: reads version 1, is held before its commit")
        failed = held[0].let_go()
        if failed is not None:
            raise failed
        story.append(f"Writer-0  {first} goes on: committed version 2")
        error = held[1].let_go()
    finally:
        for one in held:
            one.let_go()
    refused = "" if error is None else _first_line(error)
    ending = f"REFUSED: {refused}" if error is not None else "committed version 3"
    story.append(f"Writer-1  {second} goes on: {ending}")
    return _outcome(engine, refused, story)


def one_by_one(engine: Engine, *order: str) -> Outcome:
    """The same statements, one after the other: what any schedule has to look like."""
    engine.create()
    story = [engine.about, f"Writer-0  INSERT {ROWS}: committed version 1"]
    for writer, statement in enumerate(order):
        engine.run(writer, statement, _JACK)
        story.append(f"Writer-{writer}  {statement}: done")
    return _outcome(engine, "", story)


def _outcome(engine: Engine, refused: str, story: list[str]) -> Outcome:
    """Look at all versions, and print the story for whoever wants to read it."""
    versions = tuple((name, tuple(rows)) for name, rows in engine.versions())
    evidence = tuple(engine.evidence())
    story += [f"version {at}  {name}: {rows}" for at, (name, rows) in enumerate(versions, 1)]
    sys.stdout.write("\n".join([*story, *evidence, ""]))
    return Outcome(refused=refused, versions=versions, evidence=evidence)


def _gatekeeper() -> Callable[[str, str, str], bool]:
    """The function of conditions: it says that it was reached and waits to be let go.

    Made here, so that Python workers get it by value and need not find this module. It takes a
    column because Spark wants to know which side of a join it belongs to.
    """
    patience = _PATIENCE

    def held(name: str, reached: str, opened: str) -> bool:
        import pathlib
        import time

        del name
        pathlib.Path(reached).touch()
        until = time.monotonic() + patience
        while not pathlib.Path(opened).exists():
            if time.monotonic() > until:
                raise TimeoutError(f"nobody made {opened}")
            time.sleep(0.02)
        return True

    return held


class _Held:
    """A statement in a thread of its own that stands still in its scan until it is let go."""

    def __init__(self, run: Callable[[str], None], mark: Path) -> None:
        self._run = run
        self._reached = mark.with_suffix(".reached")
        self._opened = mark.with_suffix(".opened")
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._error: Exception | None = None

    def _work(self) -> None:
        try:
            self._run(f"{_JACK} AND {_HELD}(name, '{self._reached}', '{self._opened}')")
        except Exception as error:
            self._error = error

    def start(self) -> None:
        """Returns once the statement is being held."""
        self._thread.start()
        until = time.monotonic() + _PATIENCE
        while not self._reached.exists():
            if not self._thread.is_alive():
                raise AssertionError("the statement ended before it was held") from self._error
            if time.monotonic() > until:
                raise TimeoutError("the statement did not get to its scan")
            time.sleep(0.02)

    def let_go(self) -> Exception | None:
        """Returns when the statement is done, with its error."""
        self._opened.touch()
        if self._thread.ident is not None:
            self._thread.join(_PATIENCE)
            if self._thread.is_alive():
                raise TimeoutError("the statement did not come to an end")
        return self._error


def _first_line(error: Exception) -> str:
    java = getattr(error, "java_exception", None)
    text = str(error) if java is None else str(java)
    return text.strip().splitlines()[0]


@dataclass(kw_only=True)
class IcebergSpark:
    """A table of Iceberg Spark in a Hadoop catalog that two sessions share."""

    spark: SparkSession
    folder: Path
    format_version: int = 2
    isolation: str = "snapshot"
    mode: str = "merge-on-read"
    sessions: list[SparkSession] = field(init=False)
    table: str = field(init=False, default="lake.db.t")

    def __post_init__(self) -> None:
        self.sessions = [iceberg_session(self.spark, self.folder) for _ in range(2)]

    @property
    def about(self) -> str:
        """The release, by its own words, and the settings."""
        jvm: Any = self.spark._jvm
        release = jvm.org.apache.iceberg.IcebergBuild.version()
        return (
            f"Iceberg Spark {release}, format version {self.format_version}, {self.mode}, "
            f"isolation level {self.isolation}"
        )

    def create(self) -> None:
        """Version 1 is the first snapshot, of one data file."""
        properties = {"format-version": str(self.format_version)}
        for command in ("delete", "update"):
            properties[f"write.{command}.mode"] = self.mode
            properties[f"write.{command}.isolation-level"] = self.isolation
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        first = self.sessions[0]
        first.sql(f"CREATE TABLE {self.table} ({_COLUMNS}) USING iceberg TBLPROPERTIES ({listed})")
        first.createDataFrame(ROWS, _COLUMNS).coalesce(1).writeTo(self.table).append()

    def run(self, writer: int, statement: str, condition: str) -> None:
        """As SQL of the writer's session."""
        self.sessions[writer].sql(_SQL[statement].format(table=self.table, condition=condition))

    def register(self, function: Callable[[str, str, str], bool]) -> None:
        """In both sessions."""
        for session in self.sessions:
            session.udf.register(_HELD, function, "boolean")

    def versions(self) -> list[tuple[str, list[Row]]]:
        """Versions are snapshots, oldest first."""
        session = self.sessions[0]
        snapshots = session.sql(
            f"SELECT snapshot_id, operation FROM {self.table}.snapshots ORDER BY committed_at"
        ).collect()
        return [
            (one.operation, _rows(session, f"{self.table} VERSION AS OF {one.snapshot_id}"))
            for one in snapshots
        ]

    def evidence(self) -> list[str]:
        """Which positions the delete files name, and how many delete files name each."""
        found = self.sessions[0].sql(
            "SELECT file_path, pos, count(DISTINCT delete_file_path) AS files "
            f"FROM {self.table}.position_deletes GROUP BY file_path, pos ORDER BY file_path, pos"
        )
        names: dict[str, str] = {}
        told = []
        for one in found.collect():
            name = names.setdefault(one.file_path, f"data-{len(names) + 1}")
            told.append(f"position {one.pos} of {name} is in {one.files} delete files")
        return told


@dataclass(kw_only=True)
class _Twin:
    """A twin table, which two sessions change."""

    engine: ClassVar[str]

    spark: SparkSession
    folder: Path
    properties: Mapping[str, str]
    sessions: list[SparkSession] = field(init=False)

    def __post_init__(self) -> None:
        self.sessions = [self.spark.newSession() for _ in range(2)]

    @property
    def about(self) -> str:
        """The engine and the compat feature of the table."""
        compat = next(key for key in self.properties if "Compat" in key)
        return f"{self.engine} on a twin with {compat.removeprefix('delta.enable')}"

    def create(self) -> None:
        """Version 1 is one data file; version 0 has none."""
        twin(self.folder, _COLUMNS, properties=self.properties)
        frame = self.sessions[0].createDataFrame(ROWS, _COLUMNS).coalesce(1)
        frame.write.format("delta").mode("append").save(str(self.folder))

    def register(self, function: Callable[[str, str, str], bool]) -> None:
        """In both sessions."""
        for session in self.sessions:
            session.udf.register(_HELD, function, "boolean")

    def versions(self) -> list[tuple[str, list[Row]]]:
        """As Delta Spark reads them."""
        commits = list(Table.open(self.folder).history())
        return [
            (commit.operation or "", self._at(commit.version))
            for commit in reversed(commits)
            if commit.version
        ]

    def _at(self, version: int) -> list[Row]:
        return _rows(self.sessions[0], f"delta.`{self.folder}` VERSION AS OF {version}")

    def evidence(self) -> list[str]:
        """The rows are all."""
        return []


@dataclass(kw_only=True)
class Twinlake(_Twin):
    """Changed by twinlake's own engine."""

    engine: ClassVar[str] = "twinlake"

    def run(self, writer: int, statement: str, condition: str) -> None:
        """Through ``DeltaTable``."""
        table = DeltaTable.forPath(self.sessions[writer], str(self.folder))
        if statement == "DELETE":
            table.delete(condition)
        else:
            table.update(condition, {"color": "'blue'"})


@dataclass(kw_only=True)
class DeltaSpark(_Twin):
    """Changed by Delta Spark."""

    engine: ClassVar[str] = "Delta Spark"

    def run(self, writer: int, statement: str, condition: str) -> None:
        """As SQL of the writer's session."""
        text = _SQL[statement].format(table=f"delta.`{self.folder}`", condition=condition)
        self.sessions[writer].sql(text)


def _rows(session: SparkSession, relation: str) -> list[Row]:
    found = session.sql(f"SELECT name, color, grade FROM {relation} ORDER BY name, color")
    return [(one.name, one.color, one.grade) for one in found.collect()]
