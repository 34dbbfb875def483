"""Spark drivers as processes of their own, to be raced against each other or killed.

A driver is one Python process with its own JVM, in a process group of its own. It starts its
session, says that it is ready, waits for the word and then works on one table. Before each
operation it writes down what it is about to do, and afterwards that it was told it is done, each
in one line of JSON synced to disk: a driver killed at any moment leaves exactly what it knew. Every
operation carries a tag that its commit repeats as ``userMetadata``.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "PARTS",
    "Driver",
    "Seen",
    "apply",
    "assert_both_engines_read",
    "drivers",
    "new_table",
    "notes_of",
    "rows_by_plain_reader",
    "see",
    "strays",
]

PARTS = 2
"""Rows are in partition ``id % PARTS``."""

LIMIT = 600.0
"""Seconds after which a driver that nobody stopped gives up."""

_LEAD = 3
"""How far a driver may get ahead of the others."""

_DELTA = "spark.databricks.delta."
_SETTINGS = {
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": (
        "-Duser.timezone=UTC -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    ),
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.catalogImplementation": "in-memory",
    # The rows are few: compiling, re-planning and spreading queries costs more than running them.
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    f"{_DELTA}retentionDurationCheck.enabled": "false",
    f"{_DELTA}schema.autoMerge.enabled": "false",
}


# The side of the test.


class Driver:
    """A driver seen from the test: started, told to go, read, stopped."""

    def __init__(self, role: str, name: str, table: Path, folder: Path, **more: object) -> None:
        self.name, self.folder = name, folder
        self.journal = folder / f"{name}.notes"
        self._log = folder / f"{name}.log"
        self._ready = folder / f"{name}.ready"
        task = {"role": role, "name": name, "table": str(table), "folder": str(folder), **more}
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        environment |= {"PYSPARK_PYTHON": sys.executable, "PYTHONWARNINGS": "ignore"}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.spark.workers", json.dumps(task)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )

    def wait_ready(self) -> None:
        """Until its session is up and has done some work."""
        deadline = time.monotonic() + LIMIT
        while not self._ready.exists():
            self.check_alive()
            assert time.monotonic() < deadline, f"{self.name} never got ready: {self.said()}"
            time.sleep(0.02)

    def go(self) -> None:
        """Let it work."""
        pipe = self._process.stdin
        assert pipe is not None
        pipe.write(b"go\n")
        pipe.close()

    def notes(self) -> list[dict[str, Any]]:
        """What it has written down so far."""
        return notes_of(self.journal)

    def check_alive(self) -> None:
        """It works until somebody stops it."""
        code = self._process.poll()
        assert code is None, f"{self.name} ended with {code}: {self.said()}"

    def join(self) -> None:
        """Wait for a driver that was asked to stop."""
        assert self._process.wait(LIMIT) == 0, f"{self.name} failed: {self.said()}"

    def kill(self) -> None:
        """End Python and Java at once; neither gets to clean up."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()

    def said(self) -> str:
        """The end of its output."""
        return self._log.read_text(errors="replace")[-4000:]


@contextlib.contextmanager
def drivers() -> Iterator[list[Driver]]:
    """A list for the drivers of a test; whichever still run at its end are killed."""
    started: list[Driver] = []
    try:
        yield started
    finally:
        for driver in started:
            driver.kill()


def notes_of(journal: Path) -> list[dict[str, Any]]:
    """The lines of a journal; one that was being written when its writer died is left out."""
    if not journal.exists():
        return []
    whole = journal.read_bytes().rpartition(b"\n")[0]
    return [json.loads(line) for line in whole.splitlines()]


def new_table(path: Path, **properties: str) -> None:
    """The empty table that drivers work on."""
    from twinlake.table import Table

    Table.create(
        path,
        "id BIGINT, value BIGINT, part INT",
        partition_by=("part",),
        properties={"delta.enableDeletionVectors": "true", **properties},
    )


def apply(op: str, what: Mapping[str, Any], rows: dict[int, int]) -> None:
    """What an operation does to the rows, id to value, as the notes describe it."""
    if op == "write":
        rows |= dict.fromkeys(range(*what["insert"]), what["value"])
    elif op == "delete":
        for number in range(*what["gone"]):
            if number % PARTS == what["only"]:
                rows.pop(number, None)
    elif op == "merge":
        only = what.get("only")
        for number in range(*what["source"]):
            if only not in (None, number % PARTS):
                continue
            if number not in rows:
                rows[number] = what["value"]
            elif number < what.get("drop", 0):
                del rows[number]
            else:
                rows[number] += what["value"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A table as a newcomer finds it, and what lies in its folder."""

    version: int
    rows: dict[int, int]
    commits: tuple[Any, ...]
    """The history, oldest first."""
    strays: dict[str, float]
    """Files that no version ever named, with the time they were written."""

    def tagged(self) -> dict[str, int]:
        """The versions by tag; no tag is there twice."""
        found: dict[str, int] = {}
        for commit in self.commits:
            if commit.user_metadata is not None:
                assert commit.user_metadata not in found, f"{commit.user_metadata} is there twice"
                found[commit.user_metadata] = commit.version
        return found


def see(path: Path) -> Seen:
    """Open the table from scratch and read all of it, without Spark."""
    from twinlake.log import CACHE
    from twinlake.table import Table

    CACHE.forget(Table.open(path).location)
    table = Table.open(path)
    return Seen(
        version=table.version,
        rows=rows_by_plain_reader(path, table),
        commits=tuple(reversed(table.history())),
        strays=strays(path, table),
    )


def rows_by_plain_reader(path: Path, table: Any) -> dict[int, int]:
    """The rows by pyarrow, file after file; an id that is there twice is an error."""
    import numpy as np
    import pyarrow.parquet as pq

    from twinlake.spark.read.packed_positions import read_deletion_vectors

    files = table.snapshot.files()
    hidden = read_deletion_vectors(table.snapshot.store, files)
    rows: dict[int, int] = {}
    for file in files.select(["path", "partition_values"]).to_pylist():
        found = pq.ParquetFile(path / file["path"]).read(["id", "value"])
        kept = np.ones(len(found), bool)
        kept[list(hidden.get(file["path"], ()))] = False
        for number, value in zip(
            *(c.to_numpy()[kept].tolist() for c in found.columns), strict=True
        ):
            assert number not in rows, f"row {number} is there twice"
            assert file["partition_values"]["part"] == number % PARTS
            rows[number] = value
    return rows


def assert_both_engines_read(spark: SparkSession, table: Path, rows: dict[int, int]) -> None:
    """Ours and Delta Spark find these rows and no others."""
    from twinlake.spark import scan

    wanted = sorted(rows.items())
    theirs = spark.read.format("delta").load(str(table))
    for frame in (scan(spark, str(table)), theirs):
        assert sorted(tuple(row) for row in frame.select("id", "value").collect()) == wanted


def strays(path: Path, table: Any) -> dict[str, float]:
    """Files beside the logs that no version ever named, with the time they were written."""
    from twinlake.actions import AddCDCFile, AddFile
    from twinlake.log import read_commit
    from twinlake.log.deletion_vectors import dv_path

    named: set[str] = set()
    for version in range(table.version + 1):
        for action in read_commit(table.snapshot.store, version):
            if isinstance(action, AddFile | AddCDCFile):
                named.add(action.path)
            if isinstance(action, AddFile) and action.deletion_vector is not None:
                named.add(dv_path(action.deletion_vector) or "")
    found: dict[str, float] = {}
    for folder, folders, files in os.walk(path):
        folders[:] = [f for f in folders if f not in ("_delta_log", "_iceberg")]
        for file in files:
            key = os.path.relpath(os.path.join(folder, file), path)  # noqa: PTH118
            if key not in named:
                found[key] = Path(folder, file).stat().st_mtime
    return found


# The side of the driver.


@dataclass(slots=True)
class _Work:
    """What a driver works with."""

    spark: SparkSession
    task: Mapping[str, Any]
    journal: int
    path: str
    deadline: float = field(default_factory=lambda: time.monotonic() + LIMIT)

    @property
    def name(self) -> str:
        return str(self.task["name"])

    def note(self, **fields: object) -> None:
        """One line that outlives this process, and the machine."""
        os.write(self.journal, json.dumps({**fields, "at": time.time()}).encode() + b"\n")
        os.fsync(self.journal)

    def is_over(self) -> bool:
        """Whether it is told to stop, or forgotten."""
        return Path(self.task["folder"], "stop").exists() or time.monotonic() > self.deadline

    def table(self) -> Any:
        from twinlake.spark import DeltaTable

        return DeltaTable.forPath(self.spark, self.path)

    def rows(self, ids: list[int], value: int) -> DataFrame:
        """The ids from the first up to the last, which is not among them, as rows of the table."""
        from pyspark.sql import functions as F

        first, last = ids
        part = (F.col("id") % PARTS).cast("int").alias("part")
        return self.spark.range(first, last, 1, 1).select(
            "id", F.lit(value).cast("bigint").alias("value"), part
        )

    def version(self) -> int:
        """The newest version there is."""
        from twinlake.table import Table

        return int(Table.open(self.path).version)

    def tag(self, tag: str) -> None:
        self.spark.conf.set(f"{_DELTA}commitInfo.userMetadata", tag)

    # The operations, as the notes describe them.

    def write(self, insert: list[int], value: int) -> None:
        from twinlake.spark import write

        write(self.rows(insert, value), self.path, mode="append")

    def merge(self, source: list[int], value: int, drop: int = 0, only: int | None = None) -> None:
        """Add to what is there, insert what is not, drop what is below a number.

        With ``only`` just one partition is looked at, and the statement says so.
        """
        given = self.rows(source, value)
        on = "t.id = s.id and t.part = s.part"
        if only is not None:
            given, on = given.where(f"part = {only}"), f"{on} and t.part = {only}"
        merging = self.table().alias("t").merge(given.alias("s"), on)
        if drop:
            merging = merging.whenMatchedDelete(f"t.id < {drop}")
        merging = merging.whenMatchedUpdate(set={"value": "t.value + s.value"})
        merging.whenNotMatchedInsertAll().execute()

    def delete(self, gone: list[int], only: int) -> None:
        first, last = gone
        self.table().delete(f"part = {only} and id >= {first} and id < {last}")

    def optimize(self, only: int | None = None) -> None:
        packing = self.table().optimize()
        (packing if only is None else packing.where(f"part = {only}")).executeCompaction()

    def vacuum(self) -> None:
        self.table().vacuum(0)


def _until_killed(work: _Work) -> None:
    """Write, merge, delete, optimize and vacuum, over and over; the order is the dice's."""
    dice = random.Random(work.name)
    start = base = int(work.task["base"])
    numbers = count()
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        for op in dice.sample(("write", "merge", "delete", "optimize", "vacuum"), 5):
            tag = f"{work.name}-{next(numbers)}"
            what: dict[str, Any] = {}
            if op == "write":
                what = {"insert": [base, base + 40], "value": 1}
                base += 40
            elif op == "merge":
                # Some rows of this driver go, some change, some are new.
                what = {"source": [max(start, base - 30), base + 10], "value": 7}
                what["drop"] = max(start, base - 20)
                base += 10
            elif op == "delete":
                what = {"gone": [max(start, base - 15), base], "only": dice.randrange(PARTS)}
            work.tag(tag)
            work.note(begin=tag, op=op, what=what)
            getattr(work, op)(**what)
            work.note(done=tag)


def _contend(work: _Work) -> None:
    """One kind of operation until told to stop; a loser starts again from the newest version."""
    dice = random.Random(work.name)
    kind = str(work.task["kind"])
    for number in count():
        while _lead(work) > _LEAD and not work.is_over():
            time.sleep(0.02)
        if not _try(work, kind, _ROLES[kind](work, number, dice), f"{work.name}-{number}", dice):
            return


def _beside(work: _Work) -> None:
    """Write rows and delete some of them until told to stop, beside writers without Spark."""
    dice = random.Random(work.name)
    base = int(work.task["base"])
    for number in count():
        if work.is_over():
            return
        first = base + number * 20
        op, what = "write", {"insert": [first, first + 20], "value": number}
        if number % 3 == 2:
            op, what = "delete", {"gone": [first - 30, first - 10], "only": number // 3 % PARTS}
        # Writers without a JVM are quicker: against all of them a DELETE may never win.
        _try(work, op, what, f"{work.name}-{number}", dice, attempts=3)


def _try(
    work: _Work,
    op: str,
    what: dict[str, Any],
    stem: str,
    dice: random.Random,
    attempts: int | None = None,
) -> bool:
    """Whether it was committed, before it was told to stop and within the attempts."""
    from twinlake.errors import ConflictError

    for attempt in count() if attempts is None else range(attempts):
        if work.is_over():
            return False
        tag = f"{stem}-{attempt}"
        work.tag(tag)
        work.note(begin=tag, op=op, what=what, version=work.version())
        try:
            getattr(work, op)(**what)
        except ConflictError as error:
            work.note(lost=tag, error=_told(error))
            time.sleep(dice.uniform(0, 0.05 * (attempt + 1)))
        else:
            work.note(done=tag, version=work.version())
            return True
    return False


def _lead(work: _Work) -> int:
    """How many more operations this driver has landed than the last of them.

    Conflicts are won by the quick: left alone, a short operation can keep a long one out for ever.
    """
    folder = Path(work.task["folder"])
    notes = {kind: folder / f"{kind}.notes" for kind in _ROLES}
    landed = {kind: path.read_bytes().count(b'"done"') for kind, path in notes.items()}
    return landed[work.task["kind"]] - min(landed.values())


def _told(error: Any) -> dict[str, Any]:
    """What a loser gets to know."""
    return {
        "class": type(error).__name__,
        "winner": error.winner,
        "operation": error.fields.get("operation"),
        "delta_class": error.delta_class,
        "text": str(error),
    }


def _appended(work: _Work) -> int:
    """How far the ids go that the writing driver was told are in the table."""
    notes = notes_of(Path(work.task["folder"], "write.notes"))
    done = {note["done"] for note in notes if "done" in note}
    return max((n["what"]["insert"][1] for n in notes if n.get("begin") in done), default=0)


def _next_write(_: _Work, number: int, __: random.Random) -> dict[str, Any]:
    return {"insert": [number * 20, number * 20 + 20], "value": 0}


def _next_merge(work: _Work, number: int, dice: random.Random) -> dict[str, Any]:
    """Every other time rows that were appended, else rows of its own: some known, some new.

    Only ids that were acknowledged before: a row that is appended meanwhile may or may not be
    seen, and both are right.
    """
    only = dice.randrange(PARTS)
    known = _appended(work)
    if number % 2 and known:
        first = dice.randrange(known)
        return {"source": [first, min(first + 100, known)], "value": 1, "only": only}
    own = int(work.task["base"]) + number * 20
    return {"source": [max(own - 80, int(work.task["base"])), own + 20], "value": 1, "only": only}


def _next_delete(work: _Work, _: int, dice: random.Random) -> dict[str, Any]:
    known = _appended(work)
    first = dice.randrange(max(known - 200, 0), max(known, 1))
    return {"gone": [first, min(first + 40, known)], "only": dice.randrange(PARTS)}


def _next_optimize(_: _Work, __: int, dice: random.Random) -> dict[str, Any]:
    return {"only": dice.randrange(PARTS)}


_ROLES: Mapping[str, Callable[[_Work, int, random.Random], dict[str, Any]]] = {
    "write": _next_write,
    "merge": _next_merge,
    "delete": _next_delete,
    "optimize": _next_optimize,
}


def _streams(work: _Work) -> None:
    """Streams between tables in the folder of the notes."""
    from tests.support.spark.stream_programs import run_streams

    run_streams(work.spark, Path(work.task["folder"]), work.is_over)


_PROGRAMS = {
    "until killed": _until_killed,
    "contend": _contend,
    "beside": _beside,
    "streams": _streams,
}


def _session(folder: Path, writer: str) -> SparkSession:
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder.master("local[1]").appName("twinlake-driver")
    settings = {"spark.sql.warehouse.dir": str(folder / "warehouse"), **_SETTINGS}
    for key, value in {**settings, "spark.twinlake.writer": writer}.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    return session


def _warm_up(work: _Work) -> None:
    """Each operation once on a table of its own: the first ones of a JVM take seconds."""
    new_table(Path(work.path))
    work.write([0, 40], 0)
    work.write([40, 80], 0)
    for op in work.task["warm"]:
        _WARM[op](work)


_WARM: Mapping[str, Callable[[_Work], None]] = {
    "write": lambda work: work.write([80, 90], 0),
    "merge": lambda work: work.merge([0, 100], 1, only=1),
    "delete": lambda work: work.delete([0, 20], 1),
    "optimize": lambda work: work.optimize(0),
    "vacuum": lambda work: work.vacuum(),
}


def _main(task: Mapping[str, Any]) -> None:
    folder, name = Path(task["folder"]), str(task["name"])
    spark = _session(folder, str(task.get("writer", "auto")))
    journal = os.open(folder / f"{name}.notes", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    _warm_up(_Work(spark, task, journal, str(folder / f"{name}.warm")))
    (folder / f"{name}.ready").touch()
    if sys.stdin.readline() == "go\n":
        _PROGRAMS[task["role"]](_Work(spark, task, journal, str(task["table"])))
    spark.stop()


if __name__ == "__main__":
    _main(json.loads(sys.argv[1]))
