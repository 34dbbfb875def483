"""Writers of one table through catalog servers that die: every one notes what it was told.

A writer appends batches of rows, each with ids of its own, and deletes some of them later. What it
notes of an attempt is ``done``, ``failed`` (it was told that nothing happened) or ``unknown``. The
rows of a batch are there all or not at all, and the notes say which of the two it must be.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["BATCH", "COLUMNS", "RestWriter", "change_through_servers", "check_notes"]

COLUMNS = "id BIGINT, batch BIGINT, writer STRING"
BATCH = 5
_MOST_PAUSE = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class RestWriter:
    """What a process is told."""

    kind: str
    name: str
    number: int
    servers: tuple[str, ...]
    """The addresses of the servers; after an error the next one is asked."""
    warehouse: str
    table: str
    folder: str
    """Where the table is, for those who write to the log themselves."""
    notes: str
    """Where the notes go."""
    until: str
    """A file that ends it all."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the object store, if the table is in one."""

    @property
    def journal(self) -> Path:
        """The file of its notes."""
        return Path(self.notes, f"{self.name}.notes")


class Session(Protocol):
    """How one engine appends a batch and deletes it."""

    def append(self, rows: list[dict[str, Any]]) -> None:
        """Commit new rows."""

    def delete(self, batch: int) -> None:
        """Delete the rows of a batch."""

    def outcome(self, error: Exception) -> str:
        """Whether an error says that nothing was done."""


def change_through_servers(writer: RestWriter) -> None:
    """Append and delete until told to stop."""
    run_writer(writer, _SESSIONS[writer.kind])


def run_writer(writer: RestWriter, connect: Callable[[RestWriter, str], Session]) -> None:
    """The same with a session that is given."""
    dice = random.Random(writer.name)
    journal = os.open(writer.journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(**fields: object) -> None:
        os.write(journal, json.dumps({**fields, "at": time.time()}).encode() + b"\n")

    session: Session | None = None
    turn, number, mine = writer.number, 0, list[int]()
    while not Path(writer.until).exists():
        op, batch = "append", writer.number * 1_000_000 + number
        if mine and dice.random() < 0.3:
            op, batch = "delete", mine.pop(dice.randrange(len(mine)))
        else:
            number += 1
        said, why = "failed", ""
        try:
            if session is None:
                session = connect(writer, writer.servers[turn % len(writer.servers)])
        except Exception as error:
            # Nothing was sent yet.
            why = f"{type(error).__name__}: {error}"
        else:
            note(begin=batch, op=op)
            try:
                if op == "append":
                    session.append(_rows(writer, batch))
                else:
                    session.delete(batch)
                said = "done"
            except Exception as error:
                said, why = session.outcome(error), f"{type(error).__name__}: {error}"
            note(end=batch, op=op, said=said, why=why[:300])
        if said != "done":
            session, turn = None, turn + 1
        elif op == "append":
            mine.append(batch)
        time.sleep(dice.uniform(0, _MOST_PAUSE))
    os.close(journal)


def _rows(writer: RestWriter, batch: int) -> list[dict[str, Any]]:
    return [{"id": batch * 100 + at, "batch": batch, "writer": writer.name} for at in range(BATCH)]


class _PyIceberg:
    def __init__(self, writer: RestWriter, url: str) -> None:
        from pyiceberg.catalog import load_catalog

        more = {f"s3.{key}": value for key, value in writer.options.get("pyiceberg", {}).items()}
        catalog = load_catalog("lake", type="rest", uri=url, warehouse=writer.warehouse, **more)
        self.table = catalog.load_table(writer.table)

    def append(self, rows: list[dict[str, Any]]) -> None:
        import pyarrow as pa

        self.table.refresh()
        self.table.append(pa.Table.from_pylist(rows, self.table.schema().as_arrow()))

    def delete(self, batch: int) -> None:
        self.table.refresh()
        self.table.delete(f"batch = {batch}")

    def outcome(self, error: Exception) -> str:
        from pyiceberg import exceptions as told

        known = (
            told.CommitFailedException,
            told.BadRequestError,
            told.ServiceUnavailableError,
            told.ValidationException,
        )
        return "failed" if isinstance(error, known) else "unknown"


class _DuckDb:
    def __init__(self, writer: RestWriter, url: str) -> None:
        from tests.support.rest_clients.clients import CatalogAddress, duckdb_on_catalog

        address = CatalogAddress(url=url, warehouse=writer.warehouse)
        connection = duckdb_on_catalog(address)
        assert not isinstance(connection, str), connection
        self.connection: Any = connection
        for statement in writer.options.get("duckdb", ()):
            self.connection.execute(statement)
        self.table = f"lake.{writer.table}"

    def append(self, rows: list[dict[str, Any]]) -> None:
        values = ", ".join(f"({row['id']}, {row['batch']}, '{row['writer']}')" for row in rows)
        self.connection.execute(f"INSERT INTO {self.table} VALUES {values}")

    def delete(self, batch: int) -> None:
        self.connection.execute(f"DELETE FROM {self.table} WHERE batch = {batch}")

    def outcome(self, error: Exception) -> str:
        text = str(error)
        known = ("Conflict_409", "BadRequest_400", "ServiceUnavailable_503")
        return "failed" if any(status in text for status in known) else "unknown"


class _Twinlake:
    """Straight on the log; a conflict is tried again as anybody would."""

    def __init__(self, writer: RestWriter, url: str) -> None:
        del url
        from twinlake import Table

        self.table = Table.open(writer.folder, options=writer.options.get("twinlake"))

    def append(self, rows: list[dict[str, Any]]) -> None:
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        self.table = self.table.refresh().append(columns)

    def delete(self, batch: int) -> None:
        self.table = self.table.refresh().delete(f"batch = {batch}")

    def outcome(self, error: Exception) -> str:
        from twinlake import ConflictError

        return "failed" if isinstance(error, ConflictError) else "unknown"


class SparkSessionWriter:
    """Iceberg Spark with one catalog a server; errors of the JVM are told by their class."""

    def __init__(self, lakes: Mapping[str, Any], url: str, table: str) -> None:
        self.spark = lakes[url]
        self.place = f"lake.{table}"

    def append(self, rows: list[dict[str, Any]]) -> None:
        values = ", ".join(f"({row['id']}, {row['batch']}, '{row['writer']}')" for row in rows)
        self.spark.sql(f"INSERT INTO {self.place} VALUES {values}")

    def delete(self, batch: int) -> None:
        self.spark.sql(f"DELETE FROM {self.place} WHERE batch = {batch}")

    def outcome(self, error: Exception) -> str:
        text = str(error)
        if "CommitStateUnknownException" in text:
            return "unknown"
        known = ("CommitFailedException", "ValidationException", "BadRequestException")
        return "failed" if any(name in text for name in known) else "unknown"


_SESSIONS: Mapping[str, Callable[[RestWriter, str], Session]] = {
    "PyIceberg": _PyIceberg,
    "DuckDB": _DuckDb,
    "twinlake": _Twinlake,
}


# The side of the test.


def check_notes(writers: Iterable[RestWriter], rows: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Hold the rows of the table against all notes; counts what each kind of writer was told."""
    found = Counter(row["id"] for row in rows)
    doubled = [number for number, times in found.items() if times > 1]
    assert not doubled, f"rows {sorted(doubled)[:5]} are there twice"
    told: Counter[str] = Counter()
    known: set[int] = set()
    for writer in writers:
        lines = writer.journal.read_text().splitlines() if writer.journal.exists() else []
        notes = [json.loads(line) for line in lines]
        told.update(f"{writer.kind} {note['op']} {note['said']}" for note in notes if "end" in note)
        batches: dict[int, dict[str, str]] = {}
        for note in notes:
            if "begin" in note:
                batches.setdefault(note["begin"], {})[note["op"]] = "unknown"
            else:
                batches[note["end"]][note["op"]] = note["said"]
        for batch, said in batches.items():
            ids = range(batch * 100, batch * 100 + BATCH)
            known |= set(ids)
            here = sum(number in found for number in ids)
            assert here in (0, BATCH), f"{writer.name}: {here} rows of batch {batch}, {said}"
            match said.get("append"), said.get("delete"):
                case ("failed", _) | ("done", "done"):
                    assert here == 0, f"{writer.name}: batch {batch} came all the same, {said}"
                case ("done", None | "failed"):
                    assert here == BATCH, f"{writer.name}: batch {batch} is lost, {said}"
    strangers = found.keys() - known
    assert not strangers, f"nobody wrote rows {sorted(strangers)[:5]}"
    return told
