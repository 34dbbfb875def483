"""Catalogs that name Iceberg tables, and how the pointer of a name is moved.

A pointer moves only from the value its mover has seen, in one step that the catalog decides. Where
a catalog has no such step, publishing is refused: dropping a name and registering it again would
lose the race, and for a moment the table.

Which catalogs there are is PyIceberg's configuration (``~/.pyiceberg.yaml``, or variables such as
``PYICEBERG_CATALOG__PROD__URI``). PyIceberg comes with ``twinlake[catalogs]``.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final, Protocol

from twinlake.errors import (
    Code,
    ConflictError,
    StorageError,
    UnsupportedFeature,
    UserError,
    how_to_sync,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyiceberg.catalog.sql import SqlCatalog
    from sqlalchemy import ColumnElement

__all__ = ["Pointer", "SqlPointer", "open_pointer", "overtaken"]


class Pointer(Protocol):
    """Where one name of a catalog points."""

    def metadata_location(self) -> str | None:
        """The metadata file it points at; None where nothing is published under it."""
        ...

    def swap(self, expected: str | None, metadata_location: str) -> None:
        """Point at another file if it still points at ``expected``, else a ``ConflictError``."""
        ...


_NO_SWAP: Final[Mapping[str, str]] = {
    "rest": "the REST protocol moves pointers by the server alone: a client can register a file "
    "under a new name, but not swap the file of a name it knows",
    "hive": "a Hive metastore swaps conditionally only from Hive 4 on, and a client cannot tell "
    "whether the server in front of it does",
    "glue": "the conditional update of Glue has not been proved with twinlake",
    "dynamodb": "the conditional update of DynamoDB has not been proved with twinlake",
    "bigquery": "the conditional update of BigQuery has not been proved with twinlake",
    "in-memory": "such a catalog ends with the process that made it",
}
"""Kinds of catalogs that are refused, and why."""

_DIALECTS: Final = ("sqlite", "postgresql")
"""Databases whose conditional updates were raced against each other."""


@contextlib.contextmanager
def open_pointer(parts: Sequence[str]) -> Iterator[Pointer]:
    """The pointer of ``catalog, namespace..., table`` in a catalog that PyIceberg knows."""
    catalog, *namespace, table = parts
    kind, settings = _configured(catalog)
    if kind != "sql":
        raise _refused(catalog, _NO_SWAP.get(kind, f"catalogs of the kind {kind} are not known"))
    opened = _open_sql(catalog, settings)
    try:
        dialect = opened.engine.dialect.name
        if dialect not in _DIALECTS:
            raise _refused(catalog, f"conditional updates were not proved on {dialect}")
        yield SqlPointer(opened, tuple(namespace), table)
    finally:
        opened.engine.dispose()


class SqlPointer:
    """A row of the SQL catalog whose layout PyIceberg and Iceberg's JDBC catalog share."""

    def __init__(self, catalog: SqlCatalog, namespace: tuple[str, ...], table: str) -> None:
        self._catalog = catalog
        self._identifier = (*namespace, table)

    def metadata_location(self) -> str | None:
        """Where it points."""
        from pyiceberg.catalog.sql import IcebergTables
        from sqlalchemy import select

        with self._speaking(), self._catalog.engine.connect() as connection:
            found: str | None = connection.execute(
                select(IcebergTables.metadata_location).where(*self._row())
            ).scalar()
            return found

    def swap(self, expected: str | None, metadata_location: str) -> None:
        """Move it, if it still is where it is expected."""
        from pyiceberg.catalog.sql import IcebergTables
        from sqlalchemy import update

        moved = (
            update(IcebergTables)
            .where(*self._row(), IcebergTables.metadata_location == expected)
            .values(metadata_location=metadata_location, previous_metadata_location=expected)
        )
        with self._speaking(), self._catalog.engine.begin() as connection:
            rows = connection.execute(moved).rowcount
        if rows == 1 or (expected is None and self._register(metadata_location)):
            return
        raise overtaken(".".join(self._identifier), expected, self.metadata_location())

    def _register(self, metadata_location: str) -> bool:
        """Give a name its first pointer; whether nobody else did."""
        from pyiceberg.exceptions import NoSuchNamespaceError, TableAlreadyExistsError

        namespace = ".".join(self._identifier[:-1])
        try:
            with self._speaking():
                self._catalog.register_table(self._identifier, metadata_location)
        except TableAlreadyExistsError:
            return False
        except NoSuchNamespaceError as error:
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"There is no namespace {namespace} in the catalog {self._catalog.name}.",
                why="a namespace is made before tables are published in it",
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
        from pyiceberg.catalog.sql import IcebergTables

        *namespace, table = self._identifier
        return (
            IcebergTables.catalog_name == self._catalog.name,
            IcebergTables.table_namespace == ".".join(namespace),
            IcebergTables.table_name == table,
        )

    @contextlib.contextmanager
    def _speaking(self) -> Iterator[None]:
        from sqlalchemy.exc import SQLAlchemyError

        try:
            yield
        except SQLAlchemyError as error:
            raise _unusable(self._catalog.name, error) from error


def overtaken(name: str, expected: str | None, found: str | None) -> ConflictError:
    """What the loser of a race is told."""
    return ConflictError(
        Code.CONFLICT_WRITE,
        f"{name} was published by somebody else meanwhile.",
        why=f"expected {expected}, found {found}",
        fix=f"Run {how_to_sync()} again: it starts from the newer metadata.",
        fields={"expected": expected, "found": found},
    )


def _configured(catalog: str) -> tuple[str, dict[str, Any]]:
    """The kind of a catalog and its settings."""
    try:
        from pyiceberg.catalog import infer_catalog_type
        from pyiceberg.utils.config import Config
    except ImportError as error:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"The catalog {catalog} cannot be used without PyIceberg.",
            why=str(error),
            fix="Run `pip install 'twinlake[catalogs]'`, or publish in the catalog of names "
            "with `twinlake sync PATH --publish NAMESPACE.TABLE`.",
            fields={"catalog": catalog},
        ) from error
    settings: Any = Config().get_catalog_config(catalog)
    if not settings:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"There is no catalog named {catalog}.",
            why="PyIceberg's configuration does not have it",
            fix="Add it to `~/.pyiceberg.yaml`, or set "
            f"`PYICEBERG_CATALOG__{catalog.upper()}__URI`.",
            fields={"catalog": catalog},
        )
    try:
        kind = settings.get("type") or infer_catalog_type(catalog, settings)
    except ValueError as error:
        raise _refused(catalog, str(error)) from error
    # A type is text, or a member of PyIceberg's enumeration of them.
    return str(getattr(kind, "value", kind)).lower(), dict(settings)


def _open_sql(catalog: str, settings: dict[str, Any]) -> SqlCatalog:
    try:
        from pyiceberg.catalog.sql import SqlCatalog
        from sqlalchemy.exc import SQLAlchemyError
    except ImportError as error:
        raise _unusable(catalog, error) from error
    try:
        return SqlCatalog(catalog, **settings)
    except (SQLAlchemyError, ImportError) as error:
        raise _unusable(catalog, error) from error


def _unusable(catalog: str, error: Exception) -> StorageError:
    # The first line is what the driver said; further ones may repeat statements and settings.
    said = next(iter(str(error).splitlines()), type(error).__name__)
    return StorageError(
        Code.STORAGE,
        f"The catalog {catalog} cannot be used.",
        why=said,
        fix="Check that its server runs, check its settings, and run `pip install "
        "'twinlake[catalogs]'`.",
        fields={"catalog": catalog},
    )


def _refused(catalog: str, why: str) -> UnsupportedFeature:
    return UnsupportedFeature(
        Code.NOT_YET,
        f"Tables cannot be published in the catalog {catalog}.",
        why=why,
        fix="Publish in an SQL catalog on PostgreSQL or SQLite.",
        fields={"catalog": catalog},
    )
