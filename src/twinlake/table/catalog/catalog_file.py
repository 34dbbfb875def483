"""The SQLite file of the catalog of names: its layout, its transactions, its failures.

The layout is the one PyIceberg's SQL catalog creates (two tables, these columns and keys).
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from twinlake.errors import Code, StorageError, UserError

if TYPE_CHECKING:
    import os
    import sqlite3
    from collections.abc import Iterator

__all__ = ["VARIABLE", "CatalogFile", "catalog_file"]

#: The environment variable that names the file.
VARIABLE = "TWINLAKE_CATALOG"

_BUSY_SECONDS = 30.0
_URL = "sqlite:///"

_TABLES = """CREATE TABLE IF NOT EXISTS iceberg_tables (
    catalog_name VARCHAR(255) NOT NULL,
    table_namespace VARCHAR(255) NOT NULL,
    table_name VARCHAR(255) NOT NULL,
    metadata_location VARCHAR(1000),
    previous_metadata_location VARCHAR(1000),
    iceberg_type VARCHAR(5),
    PRIMARY KEY (catalog_name, table_namespace, table_name)
)"""
_NAMESPACES = """CREATE TABLE IF NOT EXISTS iceberg_namespace_properties (
    catalog_name VARCHAR(255) NOT NULL,
    namespace VARCHAR(255) NOT NULL,
    property_key VARCHAR(255) NOT NULL,
    property_value VARCHAR(1000) NOT NULL,
    PRIMARY KEY (catalog_name, namespace, property_key)
)"""


@dataclass(frozen=True, slots=True)
class CatalogFile:
    """One file that any number of processes may share."""

    path: Path

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A look at the file, which is not made by looking."""
        with (
            self._database_errors(),
            contextlib.closing(_connect(self.path, create=False)) as database,
        ):
            if not database.execute(
                "SELECT 1 FROM sqlite_master WHERE name = 'iceberg_tables'"
            ).fetchone():
                for statement in (_TABLES, _NAMESPACES):
                    database.execute(statement.replace("CREATE TABLE", "CREATE TEMP TABLE"))
            yield database

    @contextlib.contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """One transaction that no other writer can enter; nothing stays if it fails."""
        with self._database_errors():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.closing(_connect(self.path, create=True)) as database:
                # Taking the write lock at once avoids the deadlock of two readers that both
                # want to write, which no busy timeout resolves.
                database.execute("BEGIN IMMEDIATE")
                try:
                    database.execute(_TABLES)
                    database.execute(_NAMESPACES)
                    yield database
                except BaseException:
                    database.execute("ROLLBACK")
                    raise
                database.execute("COMMIT")

    @contextlib.contextmanager
    def _database_errors(self) -> Iterator[None]:
        import sqlite3

        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StorageError(
                Code.STORAGE,
                f"The catalog of names {self.path} cannot be used.",
                why=str(error),
                fix=f"Check the file and the access to it, or set `{VARIABLE}` to another one.",
                fields={"catalog_file": str(self.path)},
            ) from error


def catalog_file(path_or_url: str | os.PathLike[str]) -> CatalogFile:
    """The file at a path, or at a URL as SQLAlchemy writes it."""
    text = str(path_or_url)
    path = text.removeprefix(_URL)
    if not path or path == ":memory:" or "://" in path or path.startswith("sqlite:"):
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{text!r} does not name a catalog file.",
            why="the catalog of names is one SQLite file that processes share",
            fix=f"Give a path, or a URL such as `{_URL}/data/catalog.db`.",
            fields={"catalog_file": text},
        )
    return CatalogFile(Path(path).expanduser().absolute())


def _connect(path: Path, *, create: bool) -> sqlite3.Connection:
    import sqlite3

    # Never read-only: what a killed writer left half done is rolled back by whoever comes next.
    there = create or path.exists()
    target = f"{path.as_uri()}?mode={'rwc' if create else 'rw'}" if there else ":memory:"
    database = sqlite3.connect(target, timeout=_BUSY_SECONDS, isolation_level=None, uri=there)
    # SQLite's own lower() knows ASCII only.
    database.create_function("fold", 1, str.lower, deterministic=True)
    return database
