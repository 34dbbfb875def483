"""What differs between SQL databases: how to connect, begin to write, and spell a statement.

Statements are written once, with ``?`` for arguments and types that every database has. A database
beside SQLite is one more dialect.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from twinlake.errors import Code, UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Cursor", "Dialect", "SqliteDialect", "dialect_of"]

_URL = "sqlite:///"
_BUSY_SECONDS = 30.0


class Cursor(Protocol):
    """The part of a database's connection that statements use."""

    @property
    def rowcount(self) -> int:
        """How many rows a statement changed."""
        ...

    def fetchone(self) -> Any:
        """The next row, or None."""
        ...

    def fetchall(self) -> list[Any]:
        """All rows."""
        ...


class Dialect(Protocol):
    """One kind of database."""

    @property
    def address(self) -> str:
        """The database as errors name it: without a password."""
        ...

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """What its driver raises."""
        ...

    def exists(self) -> bool:
        """Whether somebody has made the database."""
        ...

    def without_waiting(self) -> Dialect | None:
        """The same database by statements that fail instead of waiting for a lock."""
        ...

    def execute(self, statement: str, values: Sequence[Any]) -> Cursor:
        """Run a statement on the connection of this thread."""
        ...

    def writing(self) -> contextlib.AbstractContextManager[None]:
        """One transaction that no other writer can enter."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


class SqliteDialect:
    """A file that any number of processes share, with a write-ahead log: readers never wait."""

    failures: tuple[type[Exception], ...] = (sqlite3.Error, OSError)

    def __init__(self, path: Path, *, waits: bool = True) -> None:
        self._hasty = SqliteDialect(path, waits=False) if waits else None
        self.address = str(path)
        self._path = path
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._lock = threading.Lock()

    def without_waiting(self) -> SqliteDialect | None:
        """Connections of their own, which do not wait."""
        return self._hasty

    def exists(self) -> bool:
        """Whether the file is there."""
        return self._path.exists()

    def execute(self, statement: str, values: Sequence[Any]) -> sqlite3.Cursor:
        """Run a statement on the connection of this thread."""
        return self._connection().execute(statement, values)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction, with the write lock taken at once.

        Two readers that both come to want the lock would block each other for ever.
        """
        database = self._connection()
        database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            database.execute("ROLLBACK")
            raise
        database.execute("COMMIT")

    def close(self) -> None:
        """Close the connections of all threads."""
        if self._hasty is not None:
            self._hasty.close()
        with self._lock:
            for database in self._opened:
                database.close()
            self._opened.clear()
            self._local = threading.local()

    def _connection(self) -> sqlite3.Connection:
        # Connections do not survive a fork: a child opens its own.
        found: tuple[int, sqlite3.Connection] | None = getattr(self._local, "connection", None)
        if found is not None and found[0] == os.getpid():
            return found[1]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(
            self._path,
            timeout=_BUSY_SECONDS if self._hasty else 0.0,
            isolation_level=None,
            check_same_thread=False,
        )
        database.execute("PRAGMA journal_mode = WAL")
        # A name that was acknowledged survives a power cut.
        database.execute("PRAGMA synchronous = FULL")
        database.execute("PRAGMA foreign_keys = ON")
        with self._lock:
            self._opened.append(database)
        self._local.connection = (os.getpid(), database)
        return database


def dialect_of(url: str) -> Dialect:
    """The database that a path or a URL names."""
    scheme, colon, _ = url.partition(":")
    if colon and scheme in ("postgresql", "postgres"):
        raise UserError(
            Code.NOT_YET,
            "The server cannot keep its names in PostgreSQL.",
            why="this release keeps them in SQLite",
            fix="Start the server with `--database` and the path of a file.",
        )
    path = url.removeprefix(_URL)
    if not path or path == ":memory:" or "://" in path or path.startswith("sqlite:"):
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{_without_secrets(url)!r} does not name a database.",
            why="the names of the server are in one SQLite file that its processes share",
            fix=f"Give `--database` a path, or a URL such as {_URL}/data/server.db.",
        )
    return SqliteDialect(Path(path).expanduser().absolute())


def _without_secrets(url: str) -> str:
    head, at, tail = url.rpartition("@")
    return f"{head.partition('://')[0]}://...@{tail}" if at else url
