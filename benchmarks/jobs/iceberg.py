"""Convert tables to Iceberg: whole ones, and one commit after another."""

from __future__ import annotations

import multiprocessing
import shutil
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks.iceberg_tables import (
    Writer,
    add_of,
    create,
    file_name,
    plain_schema,
    rows_of,
)
from benchmarks.jobs.commits import OUR_MODULES as COMMIT_MODULES
from benchmarks.jobs.interface import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from twinlake import Table

OUR_MODULES = (
    *COMMIT_MODULES,
    "fastavro",
    "twinlake.iceberg",
    "twinlake.log.footer.nodes",
    "twinlake.table.iceberg_view",
)
#: As many as Iceberg keeps unless it is told otherwise.
_KEPT_METADATA = 100
_AGE = "delta.universalFormat.config.iceberg.history.expire.max-snapshot-age-ms"
PEER_MODULES = ("pyarrow.parquet", "pyiceberg.catalog.sql", "pyiceberg.io.pyarrow", "fastavro")


def _told(location: str, **properties: str) -> dict[str, int]:
    """What the newest snapshot holds: by one reader for all sides, and from its manifests."""
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(location, properties)
    snapshot = table.current_snapshot()
    if snapshot is None:
        return {"files": 0, "records": 0}
    found = snapshot.manifests(table.io)
    return {
        "files": sum((m.added_files_count or 0) + (m.existing_files_count or 0) for m in found),
        "records": sum((m.added_rows_count or 0) + (m.existing_rows_count or 0) for m in found),
    }


class First:
    """``iceberg.sync()`` of a table that has no Iceberg metadata yet."""

    modules = OUR_MODULES

    def __init__(self, spec: dict[str, Any]) -> None:
        self.source = Path(spec["path"], "_delta_log")
        self.path = Path(spec["scratch"], "table")

    def setup(self) -> None:
        from twinlake import Table

        shutil.copytree(self.source, self.path / "_delta_log")
        self.table = Table.open(self.path, durable=False)

    def run(self) -> str:
        return self.table.iceberg.sync().metadata_location

    def check(self, result: str) -> Outcome:
        return Outcome(facts=_told(result))


class _TwoProcesses:
    """An executor for two cores."""

    def __init__(self) -> None:
        self.pool = ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork"))

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        return self.pool.map(function, items)


class FirstOnTwo(First):
    """The same, its manifests written by two processes."""

    def setup(self) -> None:
        super().setup()
        self.executor = _TwoProcesses()
        # They start with the first task.
        list(self.executor.map(abs, range(4)))

    def run(self) -> str:
        from twinlake.iceberg import sync_and_record

        return sync_and_record(self.table.snapshot, executor=self.executor).metadata_location


class Actions:
    """All files of the log as Python has them: what any conversion starts with."""

    modules = OUR_MODULES

    def __init__(self, spec: dict[str, Any]) -> None:
        self.path: str = spec["path"]

    def setup(self) -> None:
        from twinlake import Table

        self.table = Table.open(self.path, durable=False)

    def run(self) -> int:
        return sum(1 for _ in self.table.snapshot.adds())

    def check(self, result: int) -> Outcome:
        return Outcome(facts={"files": result, "records": result * 1000})


class Appends:
    """A few commits of somebody else to a table that is kept, each converted as it comes."""

    modules = OUR_MODULES

    def __init__(self, spec: dict[str, Any]) -> None:
        self.log = Path(spec["path"], "_delta_log")
        self.path = Path(spec["scratch"], "table")
        self.commits: int = spec["commits"]
        self.files: int = spec["files"]
        self.seconds: dict[str, list[float]] = {"conversion": [], "cold conversion": []}

    def setup(self) -> None:
        from twinlake import Table

        shutil.copytree(self.log, self.path / "_delta_log")
        self.table = Table.open(self.path, durable=False)
        self.table.iceberg.sync()
        self.before = len(self.table.files())
        self.writer = Writer(self.path, self.table)

    def run(self) -> str:
        from twinlake.iceberg.sync.metadata_cache import METADATA_CACHE

        table, location = self.table, ""
        # One more, which reads from the disk what the others find in memory.
        for _ in range(self.commits + 1):
            for name, seconds in self.seconds.items():
                self.writer.commit(self.files)
                table = table.refresh()
                if name == "cold conversion":
                    # As by a process that has not seen the table yet.
                    METADATA_CACHE.take(table.snapshot.store)
                start = time.process_time()
                location = table.iceberg.sync().metadata_location
                seconds.append(time.process_time() - start)
        return location

    def check(self, result: str) -> Outcome:
        added = {"files added": _told(result)["files"] - self.before}
        metrics = {name: statistics.median(found[1:]) for name, found in self.seconds.items()}
        return Outcome(facts=added, metrics=metrics)


class _Rows:
    """Two tables, one with few commits and one with many, and the next commits of both.

    They take turns, so that what the machine does meanwhile falls on both.
    """

    before: ClassVar[int] = 1
    """How many windows of commits the younger table has behind it."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.scratch = Path(spec["scratch"])
        self.commits: int = spec["commits"]
        self.window: int = spec["window"]
        self.seconds: dict[str, list[float]] = {"early": [], "late": []}

    def setup(self) -> None:
        young = min(self.before * self.window, self.commits - self.window)
        for name, count in (("early", young), ("late", self.commits - self.window)):
            self.begin(name)
            for _ in range(count):
                self.step(name)

    def run(self) -> None:
        for _ in range(self.window):
            for name, seconds in self.seconds.items():
                seconds.append(self.step(name))

    def begin(self, name: str) -> None:
        """Make a table without commits."""
        raise NotImplementedError

    def step(self, name: str) -> float:
        """One commit more; the CPU seconds that count."""
        raise NotImplementedError

    def location(self, name: str) -> str:
        """Where the metadata of a table is."""
        raise NotImplementedError

    def check(self, result: None) -> Outcome:
        del result
        # The mean, since one in several conversions merges manifests and pays for the others.
        metrics = {name: statistics.mean(seconds) for name, seconds in self.seconds.items()}
        return Outcome(facts=self.told("late"), metrics=self.figures(metrics))

    def told(self, name: str) -> dict[str, int]:
        """What the newest snapshot of a table holds."""
        return _told(self.location(name))

    def figures(self, means: dict[str, float]) -> dict[str, float]:
        """What the means of the conversions come to."""
        return means


class Rows(_Rows):
    """Commits of somebody else, each converted as it comes."""

    modules = OUR_MODULES

    def __init__(self, spec: dict[str, Any]) -> None:
        super().__init__(spec)
        self.tables: dict[str, Table] = {}
        self.writers: dict[str, Writer] = {}
        self.bytes: dict[str, _Bytes] = {}

    properties: ClassVar[Mapping[str, str]] = {}

    def begin(self, name: str) -> None:
        self.tables[name] = create(self.scratch / name, properties=self.properties)
        self.tables[name].iceberg.sync()
        self.writers[name] = Writer(self.scratch / name, self.tables[name])
        self.bytes[name] = _Bytes(self.scratch / f"{name}-bytes")

    def step(self, name: str) -> float:
        seconds = self.convert(name)
        self.bytes[name].write(Path(self.location(name).removeprefix("file://")))
        return seconds

    def convert(self, name: str) -> float:
        """One commit and its conversion, which alone counts."""
        self.writers[name].commit(1)
        self.tables[name] = self.tables[name].refresh()
        return self.sync(name)

    def sync(self, name: str) -> float:
        """Its CPU seconds."""
        start = time.process_time()
        self.tables[name].iceberg.sync()
        return time.process_time() - start

    def location(self, name: str) -> str:
        return self.tables[name].iceberg.metadata_location or ""

    def figures(self, means: dict[str, float]) -> dict[str, float]:
        """With their share of a look at all files, and also without what the bytes cost."""
        whole = self.with_looks(means)
        bytes_ = {name: statistics.mean(self.bytes[name].seconds[-self.window :]) for name in whole}
        return {**whole, **{f"{name} without bytes": whole[name] - bytes_[name] for name in whole}}

    def with_looks(self, means: dict[str, float]) -> dict[str, float]:
        """Now and then a conversion looks at all files; one that has nothing to do does, too."""
        from twinlake.iceberg.sync.metadata_cache import MAX_REUSES

        return {
            name: mean + statistics.median(self.sync(name) for _ in range(3)) / MAX_REUSES
            for name, mean in means.items()
        }


class RowsOfShortHistory(Rows):
    """The same on tables that have reached their retention, as every table does in time."""

    properties: ClassVar[Mapping[str, str]] = {_AGE: "300"}
    # Until snapshots expire, and then metadata files that reach some which have expired.
    before = 3

    def step(self, name: str) -> float:
        return self.convert(name)

    def figures(self, means: dict[str, float]) -> dict[str, float]:
        return self.with_looks(means)


class _Bytes:
    """Metadata files copied byte by byte and deleted as late: what the format alone asks for."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.seconds: list[float] = []

    def write(self, source: Path) -> None:
        data = source.read_bytes()
        number = len(self.seconds)
        new, old = self.folder / str(number), self.folder / str(number - _KEPT_METADATA)
        start = time.process_time()
        new.write_bytes(data)
        old.unlink(missing_ok=True)
        self.seconds.append(time.process_time() - start)


class RowsOnS3(Rows):
    """The same on a real S3 server, whose own work is not counted."""

    def setup(self) -> None:
        import atexit
        from contextlib import ExitStack

        from tests.support.servers.s3 import find_binary, s3_server

        binary = find_binary()
        if binary is None:
            raise AssertionError("there is no S3 server")
        stack = ExitStack()
        atexit.register(stack.close)
        self.server = stack.enter_context(s3_server(binary))
        super().setup()

    def begin(self, name: str) -> None:
        from tests.support.servers.s3 import BUCKET

        self.tables[name] = create(self.server.url(name), options=self.server.options)
        self.tables[name].iceberg.sync()
        # Where the server keeps them: the commits of somebody else are not what is measured.
        self.writers[name] = Writer(self.server.data / BUCKET / name, self.tables[name])

    def step(self, name: str) -> float:
        return self.convert(name)

    def told(self, name: str) -> dict[str, int]:
        options = self.server.options
        return _told(
            self.location(name),
            **{
                "s3.endpoint": options["endpoint"],
                "s3.access-key-id": options["access_key_id"],
                "s3.secret-access-key": options["secret_access_key"],
                "s3.region": options["region"],
            },
        )

    def figures(self, means: dict[str, float]) -> dict[str, float]:
        return self.with_looks(means)


class PeerRows(_Rows):
    """PyIceberg's ``append`` of a few rows, which writes their file as well."""

    modules = PEER_MODULES

    def __init__(self, spec: dict[str, Any]) -> None:
        super().__init__(spec)
        self.tables: dict[str, Any] = {}

    def begin(self, name: str) -> None:
        self.tables[name] = _peer_table(self.scratch / name)

    def step(self, name: str) -> float:
        start = time.process_time()
        self.tables[name].append(_peer_rows(0))
        return time.process_time() - start

    def location(self, name: str) -> str:
        found: str = self.tables[name].metadata_location
        return found


class OneByOne:
    """Files that are there, one a commit, the Iceberg metadata made with each."""

    modules = OUR_MODULES

    def __init__(self, spec: dict[str, Any]) -> None:
        self.source = Path(spec["path"], "table")
        self.path = Path(spec["scratch"], "table")
        self.commits: int = spec["commits"]

    def setup(self) -> None:
        settings = {"twinlake.iceberg.sync": "commit"}
        self.table = create(self.path, partitioned=False, properties=settings)
        for number in range(self.commits):
            shutil.copy(self.source / file_name(number), self.path)
        self.adds = [add_of(self.table, self.path, number) for number in range(self.commits)]

    def run(self) -> str:
        table = self.table
        for add in self.adds:
            table = table.commit("WRITE", [add], parameters={"mode": "Append"})
        return table.iceberg.metadata_location or ""

    def check(self, result: str) -> Outcome:
        return Outcome(facts=_told(result))


class _Peer:
    """A table of PyIceberg in an SQLite catalog."""

    modules = PEER_MODULES

    def __init__(self, spec: dict[str, Any]) -> None:
        self.plain = Path(spec["path"], "plain")
        self.scratch = Path(spec["scratch"])
        self.commits: int | None = spec.get("commits")

    def setup(self) -> None:
        self.table = _peer_table(self.scratch)
        self.files = [f"file://{path}" for path in sorted(self.plain.glob("*.parquet"))]
        self.rows = [_peer_rows(number) for number in range(self.commits or 0)]

    def check(self, result: object) -> Outcome:
        del result
        return Outcome(facts=_told(self.table.metadata_location))


def _peer_table(folder: Path) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    folder.mkdir(exist_ok=True)
    catalog = SqlCatalog(
        "bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse"
    )
    catalog.create_namespace("n")
    return catalog.create_table("n.t", plain_schema())


def _peer_rows(number: int) -> Any:
    import pyarrow as pa

    return pa.table(rows_of(number), schema=plain_schema())


class PeerFirst(_Peer):
    """``add_files`` of all files at once."""

    def run(self) -> None:
        self.table.add_files(self.files)


class PeerOneByOne(_Peer):
    """``add_files`` of one file after the other."""

    def run(self) -> None:
        for file in self.files[: self.commits]:
            self.table.add_files([file])


class PeerAppends(_Peer):
    """``append`` of the rows of one file after the other, which writes the file as well."""

    def run(self) -> None:
        for rows in self.rows:
            self.table.append(rows)
