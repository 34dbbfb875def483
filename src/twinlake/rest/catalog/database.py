"""The database of names: reading, one transaction at a time for changes, and its failures."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinlake.errors import Code, StorageError, UserError
from twinlake.rest.catalog.dialect import dialect_of
from twinlake.rest.catalog.migrations import migrate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from twinlake.rest.catalog.dialect import Cursor, Dialect

__all__ = ["CatalogDatabase", "Connection", "check_database", "open_database"]


@dataclass(frozen=True, slots=True)
class Connection:
    """Statements on the database, of the transaction that is open in this thread if one is."""

    dialect: Dialect

    def row(self, statement: str, *values: Any) -> Any:
        """The first row, or None."""
        return self.dialect.execute(statement, values).fetchone()

    def rows(self, statement: str, *values: Any) -> list[Any]:
        """All rows."""
        return self.dialect.execute(statement, values).fetchall()

    def change(self, statement: str, *values: Any) -> int:
        """How many rows a statement changed."""
        cursor: Cursor = self.dialect.execute(statement, values)
        return cursor.rowcount


@dataclass(frozen=True, slots=True)
class CatalogDatabase:
    """One database that the processes of a server share."""

    dialect: Dialect

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """Statements that only look."""
        with self._failures():
            yield Connection(self.dialect)

    def glance(self) -> Connection | None:
        """Statements that fail where others would wait; None where the database has no such."""
        dialect = self.dialect.without_waiting()
        return None if dialect is None else Connection(dialect)

    @contextlib.contextmanager
    def changing(self) -> Iterator[Connection]:
        """One transaction that no other writer can enter; nothing stays if it fails."""
        with self._failures(), self.dialect.writing():
            yield Connection(self.dialect)

    def close(self) -> None:
        """Close the connections."""
        self.dialect.close()

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except self.dialect.failures as error:
            raise StorageError(
                Code.STORAGE,
                f"The database {self.dialect.address} cannot be used.",
                why=str(error),
                fix="Check the file and the access to it, or start the server with another "
                "`--database`.",
                fields={"database": self.dialect.address},
            ) from error


def check_database(url: str) -> None:
    """Refuse what does not name a database; nothing is opened."""
    dialect_of(url)


def open_database(url: str, *, create: bool = True) -> CatalogDatabase:
    """The database at a path or URL, brought to the newest layout; made if there is none."""
    database = CatalogDatabase(dialect_of(url))
    if not create and not database.dialect.exists():
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"There is no database {database.dialect.address}.",
            why="no server was started with it",
            fix="Give `--database` the file that the server was started with.",
            fields={"database": database.dialect.address},
        )
    with database._failures():
        migrate(database.dialect)
    return database
