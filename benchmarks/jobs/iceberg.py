"""Convert tables to Iceberg: whole ones, and one commit after another."""

from __future__ import annotations

import shutil
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    from twinlake import Table

OUR_MODULES = (
    *COMMIT_MODULES,
    "fastavro",
    "twinlake.iceberg",
    "twinlake.log.footer_nodes",
    "twinlake.table.iceberg_face",
)
PEER_MODULES = ("pyarrow.parquet", "pyiceberg.catalog.sql", "pyiceberg.io.pyarrow", "fastavro")


def _told(location: str) -> dict[str, int]:
    """What the newest snapshot holds: by one reader for all sides, and from its manifests."""
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(location)
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


class _Commits:
    """Commits of somebody else, each converted as it comes; CPU seconds of the conversions."""

    modules = OUR_MODULES

    def __init__(self, spec: dict[str, Any]) -> None:
        self.path = Path(spec["scratch"], "table")
        self.commits: int = spec["commits"]
        self.files: int = spec["files"]
        self.seconds: list[float] = []

    def run(self) -> str:
        table, location = self.table, ""
        for _ in range(self.commits):
            self.writer.commit(self.files)
            table = table.refresh()
            start = time.process_time()
            location = self.convert(table)
            self.seconds.append(time.process_time() - start)
        return location

    def convert(self, table: Table) -> str:
        """The conversion whose time counts."""
        return table.iceberg.sync().metadata_location

    def begin(self, table: Table) -> None:
        """The first conversion, before the clock."""
        table.iceberg.sync()
        self.table = table
        self.before = len(table.files())
        self.writer = Writer(self.path, table)

    def added(self, location: str) -> dict[str, int]:
        """What was added, as the newest snapshot tells."""
        return {"files added": _told(location)["files"] - self.before}


class Appends(_Commits):
    """A few commits to a table that is kept."""

    def __init__(self, spec: dict[str, Any]) -> None:
        super().__init__(spec)
        self.log = Path(spec["path"], "_delta_log")

    def setup(self) -> None:
        from twinlake import Table

        shutil.copytree(self.log, self.path / "_delta_log")
        self.begin(Table.open(self.path, durable=False))

    def check(self, result: str) -> Outcome:
        # The first one reads from the disk what the later ones find in memory.
        seconds = statistics.median(self.seconds[1:])
        return Outcome(facts=self.added(result), metrics={"conversion": seconds})


class Row(_Commits):
    """Many commits to a new table."""

    def __init__(self, spec: dict[str, Any]) -> None:
        super().__init__(spec)
        self.window: int = spec["window"]

    def setup(self) -> None:
        self.begin(create(self.path))

    def convert(self, table: Table) -> str:
        from twinlake.iceberg import Check, keep_up

        # What follows every commit does not look for damage among the files that are there.
        return keep_up(table.snapshot, check=Check.NOTHING).metadata_location

    def check(self, result: str) -> Outcome:
        # The mean, since one in several conversions merges manifests and pays for the others.
        windows = {
            "first": self.seconds[self.window : 2 * self.window],
            "last": self.seconds[-self.window :],
        }
        metrics = {name: statistics.mean(taken) for name, taken in windows.items()}
        written = len(list((self.path / "_iceberg" / "metadata").iterdir()))
        return Outcome(facts=self.added(result), notes={"files": written}, metrics=metrics)


class OneByOne:
    """Files that are there, one a commit, the Iceberg metadata made with each."""

    modules = OUR_MODULES

    def __init__(self, spec: dict[str, Any]) -> None:
        self.source = Path(spec["path"], "table")
        self.path = Path(spec["scratch"], "table")
        self.commits: int = spec["commits"]

    def setup(self) -> None:
        settings = {"twinlake.iceberg.sync": "commit"}
        self.table = create(self.path, partitioned=False, **settings)
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
        from pyiceberg.catalog.sql import SqlCatalog

        catalog = SqlCatalog(
            "bench",
            uri=f"sqlite:///{self.scratch}/catalog.db",
            warehouse=f"file://{self.scratch}/warehouse",
        )
        catalog.create_namespace("n")
        self.table = catalog.create_table("n.t", plain_schema())
        self.files = [f"file://{path}" for path in sorted(self.plain.glob("*.parquet"))]
        self.rows = [self._rows(number) for number in range(self.commits or 0)]

    def check(self, result: object) -> Outcome:
        del result
        return Outcome(facts=_told(self.table.metadata_location))

    @staticmethod
    def _rows(number: int) -> Any:
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
