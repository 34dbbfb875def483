"""The small catalog of names: which table a name means, kept in one SQLite file.

The file has the layout of PyIceberg's SQL catalog, so the Iceberg side of a table is published
under the very same name and PyIceberg's ``SqlCatalog("twinlake", uri="sqlite:///...")`` lists all
of them. A row says where the table is in one of two ways:

- *not published*: ``metadata_location`` is NULL and ``previous_metadata_location`` holds the root
  of the Delta table. PyIceberg lists such a table and answers ``NoSuchTableError`` (the metadata
  location is missing) when asked to load it; its own rename and drop keep or remove the root.
- *published*: ``metadata_location`` is a file below ``<root>/_iceberg/``. The root is what
  stands before that folder; Iceberg locations are literal text, Delta roots are encoded URLs.

Names fold their case as Spark's do and are stored in lower case. Every change is one immediate
transaction and a pointer moves only from the value its mover has seen, so any number of processes
may share the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from twinlake.errors import Code, ConflictError, UserError, how_to_sync
from twinlake.storage import Location, encode_path, parse_location
from twinlake.table.catalog.catalog_file import VARIABLE, catalog_file
from twinlake.table.catalog.table_name import TableName, refuse_name, split_name

if TYPE_CHECKING:
    import os
    import sqlite3
    from collections.abc import Mapping

__all__ = ["Catalog", "TableName", "default_catalog_path"]

#: The folder of a table that holds its Iceberg metadata.
_ICEBERG_FOLDER = "/_iceberg/"
_LONGEST_LOCATION = 1000

_IS_TABLE = "(iceberg_type = 'TABLE' OR iceberg_type IS NULL)"
_IS_ROW = "catalog_name = ? AND table_namespace = ? AND table_name = ?"


def default_catalog_path(environment: Mapping[str, str]) -> str:
    """The file that ``TWINLAKE_CATALOG`` names, else ``~/.twinlake/catalog.db``.

    >>> default_catalog_path({"TWINLAKE_CATALOG": "/data/names.db"})
    '/data/names.db'
    """
    named = environment.get(VARIABLE, "").strip()
    if named:
        return named
    home = environment.get("HOME") or environment.get("USERPROFILE") or "~"
    return str(Path(home).expanduser() / ".twinlake" / "catalog.db")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One row of ``iceberg_tables``, with the spelling it has there."""

    key: tuple[str, str, str]
    metadata_location: str | None
    previous: str | None

    def root(self) -> Location | None:
        """Where the Delta table is, or None for a table that is Iceberg's alone."""
        if self.metadata_location is None:
            return parse_location(self.previous) if self.previous else None
        return _root_of(self.metadata_location)


def _root_of(metadata_location: str) -> Location | None:
    """The table whose published metadata this is."""
    root, found, _ = metadata_location.rpartition(_ICEBERG_FOLDER)
    if not found or not root:
        return None
    scheme, colon, path = root.partition("://")
    if not colon:
        # A plain path is literal anyway; "file:/x" is how Hadoop prints a local one.
        return parse_location(root if not root.startswith("file:/") else root[len("file:") :])
    authority, slash, key = path.partition("/")
    return parse_location(f"{scheme}://{authority}{encode_path(slash + key)}")


class Catalog:
    """Tables by name, in one SQLite file that need not exist before the first change.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> names = Catalog(f"{folder}/catalog.db")
    >>> _ = names.register("orders", "s3://lake/orders")
    >>> names.locate("twinlake.default.ORDERS")
    's3://lake/orders'
    """

    def __init__(
        self,
        path_or_url: str | os.PathLike[str],
        *,
        catalog: str = "twinlake",
        namespace: str = "default",
    ) -> None:
        self.file = catalog_file(path_or_url)
        self.catalog = catalog.lower()
        self.namespace = namespace.lower()

    @property
    def place(self) -> str:
        """What errors call it."""
        return str(self.file.path)

    def missing_namespace(self, namespace: str) -> UserError:
        """The error for a namespace that is not there."""
        return _no_namespace(self.place, self.catalog, namespace)

    def parse(self, name: str) -> TableName:
        """The full name, with the catalog and the namespace that are the default here."""
        return TableName.parse(name, catalog=self.catalog, namespace=self.namespace)

    def register(self, name: str, location: str | os.PathLike[str]) -> TableName:
        """Give the Delta table at a location a name."""
        full = self.parse(name)
        url = parse_location(str(location)).url
        if len(url) > _LONGEST_LOCATION:
            refuse_name(name, f"its location is longer than {_LONGEST_LOCATION} characters")
        with self.file.changing() as database:
            self._require_namespace(database, full)
            if _find(database, full, tables_only=False) is not None:
                raise _already_there(full)
            columns = "catalog_name, table_namespace, table_name, previous_metadata_location"
            values: tuple[str, ...] = (full.catalog, full.namespace, full.table, url)
            if _has_type(database):
                columns, values = f"{columns}, iceberg_type", (*values, "TABLE")
            marks = ", ".join("?" * len(values))
            database.execute(f"INSERT INTO iceberg_tables ({columns}) VALUES ({marks})", values)
        return full

    def locate(self, name: str) -> str:
        """The URL of the Delta table with that name; ``delta.`/path``` names its own location."""
        full = self.parse(name)
        if full.namespace == "delta" and "/" in full.table:
            return parse_location(split_name(name)[-1]).url
        root = self._row(full).root()
        if root is None:
            raise UserError(
                Code.TABLE_NOT_FOUND,
                f"{full} is not a Delta table.",
                why="the catalog knows it as a table of Iceberg alone",
                fix="Open it with an Iceberg client, or run `twinlake import "
                "CATALOG.NAMESPACE.TABLE` to make it a Delta table.",
                delta_class="DELTA_MISSING_DELTA_TABLE",
                fields={"name": str(full), "catalog_file": str(self.file.path)},
            )
        return root.url

    def exists(self, name: str) -> bool:
        """Whether a table has that name."""
        full = self.parse(name)
        with self.file.reading() as database:
            return _find(database, full) is not None

    def drop(self, name: str, *, missing_ok: bool = False) -> bool:
        """Forget the name; files stay where they are. Whether there was one."""
        full = self.parse(name)
        with self.file.changing() as database:
            row = _find(database, full)
            if row is not None:
                database.execute(f"DELETE FROM iceberg_tables WHERE {_IS_ROW}", row.key)
        if row is None and not missing_ok:
            raise self._missing(full)
        return row is not None

    def rename(self, old: str, new: str) -> TableName:
        """Give a table another name in the same catalog."""
        source, target = self.parse(old), self.parse(new)
        if source.catalog != target.catalog:
            refuse_name(new, f"a table stays in its catalog, which is {source.catalog}")
        with self.file.changing() as database:
            row = _find(database, source)
            if row is None:
                raise self._missing(source)
            self._require_namespace(database, target)
            found = _find(database, target, tables_only=False)
            if found is not None and found.key != row.key:
                raise _already_there(target)
            database.execute(
                f"UPDATE iceberg_tables SET table_namespace = ?, table_name = ? WHERE {_IS_ROW}",
                (target.namespace, target.table, *row.key),
            )
        return target

    def names(self, namespace: str | None = None) -> tuple[TableName, ...]:
        """The tables of a namespace, or of all of them, in order."""
        wanted = None if namespace is None else self._namespace(namespace)
        with self.file.reading() as database:
            if wanted is not None and not self._has_namespace(database, self.catalog, wanted):
                raise _no_namespace(str(self.file.path), self.catalog, wanted)
            found = database.execute(
                "SELECT catalog_name, table_namespace, table_name FROM iceberg_tables "
                f"WHERE fold(catalog_name) = ?{_type_filter(database)}",
                (self.catalog,),
            ).fetchall()
        every = (TableName(*row) for row in found)
        return tuple(sorted(n for n in every if wanted in (None, n.namespace.lower())))

    def create_namespace(self, namespace: str, *, exist_ok: bool = False) -> None:
        """Make a namespace that tables can be registered in."""
        wanted = self._namespace(namespace)
        with self.file.changing() as database:
            if not self._has_namespace(database, self.catalog, wanted):
                database.execute(
                    "INSERT INTO iceberg_namespace_properties VALUES (?, ?, 'exists', 'true')",
                    (self.catalog, wanted),
                )
            elif not exist_ok:
                raise UserError(
                    Code.INVALID_ARGUMENT,
                    f"The namespace {wanted} already exists.",
                    why="a namespace of that name, in any case, is in the catalog",
                    fix="Use the namespace as it is, or choose another name.",
                    delta_class="SCHEMA_ALREADY_EXISTS",
                    fields={"catalog": self.catalog, "namespace": wanted},
                )

    def namespaces(self) -> tuple[str, ...]:
        """The namespaces of the catalog; the default one is always there."""
        with self.file.reading() as database:
            return tuple(sorted({self.namespace, *_namespaces(database, self.catalog)}))

    def metadata_location(self, name: str) -> str | None:
        """The Iceberg metadata the name points at, or None while nothing is published."""
        return self._row(self.parse(name)).metadata_location

    def swap(self, name: str, expected: str | None, metadata_location: str) -> None:
        """Point a name at new Iceberg metadata, if it still points at ``expected``.

        The new file lies below ``<root>/_iceberg/`` of the same table. Whoever finds another
        pointer than expected gets a ``ConflictError`` and has changed nothing.
        """
        full = self.parse(name)
        with self.file.changing() as database:
            row = _find(database, full)
            if row is None:
                raise self._missing(full)
            _check_metadata_location(full, row, metadata_location)
            done = database.execute(
                "UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ? "
                f"WHERE {_IS_ROW} AND metadata_location IS ?",
                (metadata_location, expected, *row.key, expected),
            )
            if done.rowcount != 1:
                raise ConflictError(
                    Code.CONFLICT_WRITE,
                    f"{full} was published by another process meanwhile.",
                    why=f"expected {expected}, found {row.metadata_location}",
                    fix=f"Run {how_to_sync()} again: it starts from the newer metadata.",
                    fields={"expected": expected, "found": row.metadata_location},
                )

    def _row(self, full: TableName) -> _Row:
        with self.file.reading() as database:
            row = _find(database, full)
        if row is None:
            raise self._missing(full)
        return row

    def _namespace(self, text: str) -> str:
        """A namespace, with or without the catalog before it."""
        levels = [part.lower() for part in split_name(text)]
        if len(levels) > 1 and levels[0] == self.catalog:
            levels = levels[1:]
        if not levels or any("." in level for level in levels):
            refuse_name(text, "a namespace is not empty and its parts have no dots")
        return ".".join(levels)

    def _has_namespace(self, database: sqlite3.Connection, catalog: str, wanted: str) -> bool:
        return wanted == self.namespace or wanted in _namespaces(database, catalog)

    def _require_namespace(self, database: sqlite3.Connection, full: TableName) -> None:
        if not self._has_namespace(database, full.catalog, full.namespace):
            raise _no_namespace(str(self.file.path), full.catalog, full.namespace)
        if full.namespace not in _namespaces(database, full.catalog):
            database.execute(
                "INSERT INTO iceberg_namespace_properties VALUES (?, ?, 'exists', 'true')",
                (full.catalog, full.namespace),
            )

    def _missing(self, full: TableName) -> UserError:
        call = f"Catalog({str(self.file.path)!r}).register({str(full)!r}, PATH)"
        return UserError(
            Code.TABLE_NOT_FOUND,
            f"There is no table named {full}.",
            why=f"the catalog of names {self.file.path} does not have it",
            fix="Check the spelling, give the path of the table instead, set "
            f"`{VARIABLE}` to another catalog, or run `twinlake.table.{call}`.",
            delta_class="TABLE_OR_VIEW_NOT_FOUND",
            fields={"name": str(full), "catalog_file": str(self.file.path)},
        )


def _has_type(database: sqlite3.Connection) -> bool:
    """Catalogs of older PyIceberg releases have no ``iceberg_type``."""
    columns = database.execute("SELECT name FROM pragma_table_info('iceberg_tables')").fetchall()
    return not columns or ("iceberg_type",) in columns


def _type_filter(database: sqlite3.Connection) -> str:
    return f" AND {_IS_TABLE}" if _has_type(database) else ""


def _find(
    database: sqlite3.Connection, full: TableName, *, tables_only: bool = True
) -> _Row | None:
    """The row of a name, in whatever case another client wrote it; views only block a name."""
    rows = database.execute(
        "SELECT catalog_name, table_namespace, table_name, metadata_location, "
        "previous_metadata_location FROM iceberg_tables WHERE fold(catalog_name) = ? "
        "AND fold(table_namespace) = ? AND fold(table_name) = ?"
        + (_type_filter(database) if tables_only else ""),
        (full.catalog, full.namespace, full.table),
    ).fetchall()
    if len(rows) > 1:
        spellings = sorted(".".join(row[:3]) for row in rows)
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"The name {full} is ambiguous.",
            why=f"names fold their case, and the catalog has {' and '.join(spellings)}",
            fix="Rename all but one of them with the client that made them.",
            fields={"name": str(full), "found": spellings},
        )
    if not rows:
        return None
    catalog, namespace, table, location, previous = rows[0]
    return _Row(key=(catalog, namespace, table), metadata_location=location, previous=previous)


def _namespaces(database: sqlite3.Connection, catalog: str) -> set[str]:
    """Namespaces that were made, hold a table, or are above one that is there."""
    rows = database.execute(
        "SELECT fold(table_namespace) FROM iceberg_tables WHERE fold(catalog_name) = ? "
        "UNION SELECT fold(namespace) FROM iceberg_namespace_properties "
        "WHERE fold(catalog_name) = ?",
        (catalog, catalog),
    )
    levels = [row[0].split(".") for row in rows]
    return {".".join(parts[:depth]) for parts in levels for depth in range(1, len(parts) + 1)}


def _check_metadata_location(full: TableName, row: _Row, location: str) -> None:
    root = row.root()
    if len(location) > _LONGEST_LOCATION or root is None or _root_of(location) != root:
        where = f"{root.url}{_ICEBERG_FOLDER}" if root else "a table of its own"
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{full} cannot point at {location}.",
            why=f"the Iceberg metadata of this table lies below {where}",
            fix=f"Run {how_to_sync()}, which publishes the metadata of the table.",
            fields={"name": str(full), "metadata_location": location},
        )


def _already_there(full: TableName) -> UserError:
    return UserError(
        Code.TABLE_EXISTS,
        f"A table or view named {full} already exists.",
        why="names are compared without regard to case",
        fix="Choose another name, or run `twinlake.Catalog(FILE).rename(OLD, NEW)` "
        "or `twinlake.Catalog(FILE).drop(NAME)` first.",
        delta_class="TABLE_OR_VIEW_ALREADY_EXISTS",
        fields={"name": str(full)},
    )


def _no_namespace(file: str, catalog: str, namespace: str) -> UserError:
    return UserError(
        Code.INVALID_ARGUMENT,
        f"There is no namespace {namespace} in the catalog {catalog}.",
        why="a table is registered in a namespace that exists",
        fix=f"Run `twinlake.Catalog({file!r}).create_namespace({namespace!r})` first.",
        delta_class="SCHEMA_NOT_FOUND",
        fields={"catalog": catalog, "namespace": namespace},
    )
