"""What the sides are asked to do: prepared and checked outside the clock, run under it."""

from __future__ import annotations

import datetime as dt
import shutil
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.spark_tables import (
    CHANGED_COLUMNS,
    COLUMNS,
    FABRICATED_ROW,
    ONE_ROW,
    link_copy,
    rows,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from benchmarks.spark_sides import Engine

_ALL_COLUMNS: Final = (
    "count(*) as n",
    "sum(id) as id",
    "sum(number) as number",
    "max(amount) as amount",
    "max(name) as name",
    "min(kind) as kind",
    "max(day) as day",
    "max(at) as at",
)
_ONE_VALUES: Final = (
    1,
    2,
    0.5,
    "name-1",
    "kind-1",
    dt.date(2024, 1, 2),
    dt.datetime(2024, 1, 2, 3, 4, 5),
)
_ONE_SCHEMA: Final = (
    "id long, number int, amount double, name string, kind string, day date, at timestamp"
)


class Work:
    """Prepare, run, check; the folder is new every time and goes away afterwards."""

    def __init__(self, engine: Engine, spec: dict[str, Any]) -> None:
        self.engine = engine
        self.spec = spec
        self.path = ""
        self.metrics: dict[str, float] = {}

    @property
    def spark(self) -> SparkSession:
        """The session."""
        return self.engine.spark

    def prepare(self, folder: Path) -> None:
        """A copy of the table of its own."""
        self.path = str(folder / "t")
        link_copy(Path(self.spec["table"]), Path(self.path))

    def run(self) -> Any:
        """What is timed."""
        raise NotImplementedError

    def check(self, _: Any) -> dict[str, Any]:
        """What must be the same on all sides: here, the rows that are in the table now."""
        return _facts(self.engine.read(self.path))


def _facts(frame: DataFrame) -> dict[str, Any]:
    row = frame.selectExpr(*_ALL_COLUMNS).first()
    assert row is not None
    return {name: str(value) for name, value in row.asDict().items()}


class Append(Work):
    """Many rows, made by Spark as they are written."""

    def prepare(self, folder: Path) -> None:
        super().prepare(folder)
        if self.spec.get("bare"):
            # Files without a table go into a folder without one.
            shutil.rmtree(self.path)

    def run(self) -> None:
        self.engine.append(rows(self.spark, self.spec["rows"]), self.path)


class Read(Work):
    """Rows that are read, every column of them, and reduced to one."""

    def prepare(self, folder: Path) -> None:  # noqa: ARG002
        self.path = self.spec["table"]

    def run(self) -> dict[str, Any]:
        return _facts(self.frame())

    def frame(self) -> DataFrame:
        """The rows."""
        return self.engine.read(self.path)

    def check(self, result: Any) -> dict[str, Any]:
        found: dict[str, Any] = result
        return found


class Selective(Read):
    """Some rows, said at once."""

    def frame(self) -> DataFrame:
        return self.engine.scan(self.path, self.spec["where"])


class Filtered(Read):
    """Some rows, by a filter on the table's frame."""

    def frame(self) -> DataFrame:
        return self.engine.filtered(self.path, self.spec["where"])


class Changes(Read):
    """Rows that changed, every column of them, and reduced to one."""

    def run(self) -> dict[str, Any]:
        feed = self.frame().selectExpr(
            *CHANGED_COLUMNS, "max(_change_type)", "sum(_commit_version)", "max(_commit_timestamp)"
        )
        row = feed.first()
        assert row is not None
        return {name: str(value) for name, value in row.asDict().items()}

    def frame(self) -> DataFrame:
        return self.engine.changes(self.path)


class ReadLog(Work):
    """The part of a feed that Python does alone: from the log to the files to read."""

    def prepare(self, folder: Path) -> None:  # noqa: ARG002
        self.path = self.spec["table"]

    def run(self) -> dict[str, Any]:
        from twinlake import Table
        from twinlake.commit.plans import check_change_feed, plan_change_feed
        from twinlake.log import read_commits

        start = time.process_time()
        latest = Table.open(self.path).snapshot
        commits = read_commits(latest.store, range(1, latest.version + 1))
        check_change_feed(commits, latest.metadata, latest.metadata, read_version=latest.version)
        found = plan_change_feed(commits)
        self.metrics = {"log": time.process_time() - start}
        return {"files": len(found.added)}

    def check(self, result: Any) -> dict[str, Any]:
        return dict(result)


class Delete(Work):
    """Rows that go."""

    def run(self) -> None:
        self.engine.delete(self.path, self.spec["where"])


class Merge(Work):
    """One row in ten is in the source, and as many in a hundred are new."""

    def run(self) -> None:
        count = self.spec["rows"]
        source = self.spark.range(0, count + count // 10, 10).selectExpr(
            *COLUMNS[:2], "-1D as amount", *COLUMNS[3:]
        )
        self.engine.merge(self.path, source)


class Optimize(Work):
    """Small files into large ones."""

    def run(self) -> None:
        self.engine.optimize(self.path)


class OneRow(Work):
    """One row after the other; the seconds are those of one of them."""

    def run(self) -> None:
        taken = []
        for _ in range(self.spec["appends"]):
            start = time.perf_counter()
            self.engine.append(self._frame(), self.path)
            taken.append(time.perf_counter() - start)
        self.metrics = {"each": statistics.median(taken)}

    def _frame(self) -> DataFrame:
        if self.spec["source"] == "sql":
            return self.spark.sql(ONE_ROW)
        return self.spark.createDataFrame([_ONE_VALUES], _ONE_SCHEMA)


class PlanScan(Work):
    """From an open table to a planned frame."""

    def prepare(self, folder: Path) -> None:  # noqa: ARG002
        self.path = self.spec["table"]

    def run(self) -> Any:
        frame: Any = self.engine.read(self.path)
        return frame._jdf.queryExecution().executedPlan()

    def check(self, result: Any) -> dict[str, Any]:
        return {"columns": result.output().size()}


class Appends(Work):
    """One row at a time to a large and a small table in turn; checkpoints are counted apart."""

    def prepare(self, folder: Path) -> None:
        self.paths = {name: folder / name for name in self.spec["tables"]}
        self.versions = {}
        for name, path in self.paths.items():
            shutil.copytree(self.spec["tables"][name], path)
            self._append(name)
            commits = (path / "_delta_log").glob("*.json")
            self.versions[name] = max(int(c.stem) for c in commits if c.stem.isdigit())

    def _append(self, name: str) -> float:
        frame = self.spark.sql(FABRICATED_ROW)
        start = time.perf_counter()
        self.engine.append(frame, str(self.paths[name]))
        return time.perf_counter() - start

    def run(self) -> None:
        taken: dict[str, list[float]] = {}
        for _ in range(self.spec["appends"]):
            for name in self.paths:
                self.versions[name] += 1
                checkpoint = self.versions[name] % 10 == 0
                kind = f"{name} checkpoint" if checkpoint else name
                taken.setdefault(kind, []).append(self._append(name))
        self.metrics = {kind: statistics.median(values) for kind, values in taken.items()}

    def check(self, _: Any) -> dict[str, Any]:
        return {
            f"checkpoints of {name}": len(list((path / "_delta_log").glob("*.checkpoint*.parquet")))
            for name, path in self.paths.items()
        }


class StreamFrom(Work):
    """A table of many commits as a stream, one file a batch."""

    def run(self) -> list[int]:
        found: list[int] = []
        self.engine.stream_from(
            self.path, f"{self.path}-checkpoint", lambda frame, _: found.append(frame.count())
        )
        return found

    def check(self, result: Any) -> dict[str, Any]:
        return {"batches": len(result), "rows": sum(result)}


class StreamInto(Work):
    """Files of Parquet as a stream into a table, one file a batch."""

    def run(self) -> None:
        # The data files of a table; Delta Spark refuses the folder with the log as such a source.
        files = f"{self.spec['files']}/*.parquet"
        source = self.spark.read.parquet(files)
        stream = self.spark.readStream.schema(source.schema).option("maxFilesPerTrigger", 1)
        frame = stream.parquet(files)
        self.engine.stream_into(frame, self.path, f"{self.path}-checkpoint")


WORKS: Final[dict[str, type[Work]]] = {
    "append": Append,
    "full scan": Read,
    "scan": Selective,
    "filtered": Filtered,
    "changes": Changes,
    "read log": ReadLog,
    "delete": Delete,
    "merge": Merge,
    "optimize": Optimize,
    "one row": OneRow,
    "plan": PlanScan,
    "appends": Appends,
    "stream from": StreamFrom,
    "stream into": StreamInto,
}
