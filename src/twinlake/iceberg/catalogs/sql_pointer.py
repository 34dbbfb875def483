"""Names in an SQL catalog, whose layout PyIceberg and Iceberg's JDBC catalog share.

Imports PyIceberg and SQLAlchemy, which come with ``twinlake[catalogs]``.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import NoSuchNamespaceError, TableAlreadyExistsError
from sqlalchemy import select, update
from sqlalchemy.exc import SQLAlchemyError

from twinlake.errors import Code, UserError
from twinlake.iceberg.catalogs.pointer import overtaken, refused_catalog, unusable_catalog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import ColumnElement

__all__ = ["SqlPointer", "open_sql_pointer"]

_DIALECTS: Final = ("sqlite", "postgresql")
"""Databases whose conditional updates were raced against each other."""


@contextlib.contextmanager
def open_sql_pointer(
    catalog: str, settings: dict[str, Any], namespace: tuple[str, ...], table: str
) -> Iterator[SqlPointer]:
    """The pointer of a table in an SQL catalog with these settings."""
    try:
        opened = SqlCatalog(catalog, **settings)
    except (SQLAlchemyError, ImportError) as error:
        raise unusable_catalog(catalog, error) from error
    try:
        dialect = opened.engine.dialect.name
        if dialect not in _DIALECTS:
            raise refused_catalog(catalog, f"conditional updates are not tested on {dialect}")
        yield SqlPointer(opened, namespace, table)
    finally:
        opened.engine.dispose()


class SqlPointer:
    """A row of the SQL catalog whose layout PyIceberg and Iceberg's JDBC catalog share."""

    def __init__(self, catalog: SqlCatalog, namespace: tuple[str, ...], table: str) -> None:
        self._catalog = catalog
        self._identifier = (*namespace, table)

    def metadata_location(self) -> str | None:
        """Where it points."""
        with self._database_errors(), self._catalog.engine.connect() as connection:
            found: str | None = connection.execute(
                select(IcebergTables.metadata_location).where(*self._row())
            ).scalar()
            return found

    def swap(self, expected: str | None, metadata_location: str) -> None:
        """Move it, if it still is where it is expected."""
        moved = (
            update(IcebergTables)
            .where(*self._row(), IcebergTables.metadata_location == expected)
            .values(metadata_location=metadata_location, previous_metadata_location=expected)
        )
        with self._database_errors(), self._catalog.engine.begin() as connection:
            rows = connection.execute(moved).rowcount
        if rows == 1 or (expected is None and self._register(metadata_location)):
            return
        raise overtaken(".".join(self._identifier), expected, self.metadata_location())

    def _register(self, metadata_location: str) -> bool:
        """Give a name its first pointer; whether nobody else did."""
        namespace = ".".join(self._identifier[:-1])
        try:
            with self._database_errors():
                self._catalog.register_table(self._identifier, metadata_location)
        except TableAlreadyExistsError:
            return False
        except NoSuchNamespaceError as error:
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"There is no namespace {namespace} in the catalog {self._catalog.name}.",
                why="a table is published in a namespace that exists",
                fix="Create it with an Iceberg client first, in PyIceberg with "
                f"`load_catalog({self._catalog.name!r}).create_namespace({namespace!r})`.",
                delta_class="SCHEMA_NOT_FOUND",
                fields={"catalog": self._catalog.name, "namespace": namespace},
            ) from error
        except Exception:
            # The row is written before PyIceberg opens the table, which it may have no access to.
            if self.metadata_location() != metadata_location:
                raise
        return True

    def _row(self) -> tuple[ColumnElement[bool], ...]:
        *namespace, table = self._identifier
        return (
            IcebergTables.catalog_name == self._catalog.name,
            IcebergTables.table_namespace == ".".join(namespace),
            IcebergTables.table_name == table,
        )

    @contextlib.contextmanager
    def _database_errors(self) -> Iterator[None]:
        """An error of the database as one of ours."""
        try:
            yield
        except SQLAlchemyError as error:
            raise unusable_catalog(self._catalog.name, error) from error
