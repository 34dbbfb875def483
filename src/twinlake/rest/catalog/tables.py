"""Rows of tables: a name, a root and an id, and never a pointer to a version.

A row is written before the table, so that nobody else takes the name or the place meanwhile; it has
a uuid once the table is there. No table lies in another one: every statement that adds a root looks
at all others in its own transaction, those of dropped tables among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinlake.errors import Code, UserError
from twinlake.rest.catalog.namespaces import Namespaces
from twinlake.rest.catalog.pages import NamePage
from twinlake.rest.names import NamespaceName, TableIdentity

if TYPE_CHECKING:
    from twinlake.rest.catalog.database import Connection
    from twinlake.rest.catalog.pages import PageRequest

__all__ = ["TABLE_COLUMNS", "TableRow", "Tables", "already_there", "table_of"]

TABLE_COLUMNS = (
    "t.id, t.root, t.uuid, t.name, t.namespace_key, t.created_ms, t.dropped_ms, t.purge, n.name "
    "FROM tables t LEFT JOIN namespaces n "
    "ON n.warehouse = t.warehouse AND n.namespace_key = t.namespace_key"
)
"""What ``table_of`` makes a table of, and where it comes from."""
_IS = "warehouse = ? AND namespace_key = ? AND table_key = ? AND dropped_ms IS NULL"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """A table of the catalog."""

    id: str
    identity: TableIdentity
    root: str
    """Where the table is, as a URL."""
    uuid: str | None
    """Iceberg's id; None while the table is being made."""
    created_ms: int
    dropped_ms: int | None = None
    purge: bool = False


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of one warehouse."""

    connection: Connection
    warehouse: str

    @staticmethod
    def everywhere(connection: Connection, warehouse: str | None) -> list[tuple[str, TableRow]]:
        """The tables of all warehouses, or of one, with the warehouse of each."""
        found = connection.rows(
            f"SELECT t.warehouse, {TABLE_COLUMNS} WHERE t.dropped_ms IS NULL "
            "AND t.uuid IS NOT NULL ORDER BY t.warehouse, t.namespace_key, t.table_key"
        )
        return [(row[0], table_of(row[1:])) for row in found if warehouse in (None, row[0])]

    def find(self, identity: TableIdentity) -> TableRow | None:
        """The table of a name, in whatever case, or None."""
        found = self.connection.row(
            f"SELECT {TABLE_COLUMNS} WHERE t.warehouse = ? AND t.namespace_key = ? "
            "AND t.table_key = ? AND t.dropped_ms IS NULL",
            self.warehouse,
            identity.namespace.key,
            identity.key,
        )
        return None if found is None else table_of(found)

    def find_place(self, identity: TableIdentity) -> tuple[str, str | None] | None:
        """Root and uuid of the table of a name: what every load has to look up."""
        found = self.connection.row(
            f"SELECT root, uuid FROM tables WHERE {_IS}",
            self.warehouse,
            identity.namespace.key,
            identity.key,
        )
        return None if found is None else (found[0], found[1])

    def load(self, identity: TableIdentity) -> TableRow:
        """The table of a name."""
        found = self.find(identity)
        if found is None:
            raise self.missing(identity)
        return found

    def page(self, namespace: NamespaceName, asked: PageRequest) -> NamePage[TableIdentity]:
        """The tables of a namespace, as far as they are there."""
        Namespaces(self.connection, self.warehouse).require(namespace)
        found = self.connection.rows(
            f"SELECT t.table_key, {TABLE_COLUMNS} WHERE t.warehouse = ? "
            "AND t.namespace_key = ? AND t.dropped_ms IS NULL AND t.uuid IS NOT NULL "
            "AND t.table_key > ? ORDER BY t.table_key LIMIT ?",
            self.warehouse,
            namespace.key,
            asked.after,
            asked.limit,
        )
        return NamePage.of([(row[0], table_of(row[1:]).identity) for row in found], asked.size)

    def add(self, row: TableRow) -> None:
        """Add a table whose name is free and whose root is apart from all others."""
        identity = row.identity
        self.require_free(row)
        self.connection.change(
            "INSERT INTO tables (id, warehouse, namespace_key, table_key, name, root, uuid, "
            "created_ms, dropped_ms, purge) VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, 0)",
            row.id,
            self.warehouse,
            identity.namespace.key,
            identity.key,
            identity.name,
            row.root,
            row.uuid,
            row.created_ms,
        )

    def require_free(self, row: TableRow) -> None:
        """Raise unless the name and the place of a table are free."""
        Namespaces(self.connection, self.warehouse).require(row.identity.namespace)
        if self.find(row.identity) is not None:
            raise already_there(row.identity)
        self._refuse_overlap(row)

    def set_uuid(self, row_id: str, uuid: str) -> bool:
        """Say that the table is there; False where the row is gone."""
        return self.connection.change("UPDATE tables SET uuid = ? WHERE id = ?", uuid, row_id) > 0

    def remove(self, row_id: str) -> bool:
        """Forget a row; files stay where they are."""
        return self.connection.change("DELETE FROM tables WHERE id = ?", row_id) > 0

    def remove_unfinished(self, row_id: str) -> bool:
        """Forget a row whose table nobody has made meanwhile."""
        return (
            self.connection.change("DELETE FROM tables WHERE id = ? AND uuid IS NULL", row_id) > 0
        )

    def rename(self, source: TableIdentity, target: TableIdentity) -> None:
        """Give a table another name, in this or another namespace of the warehouse."""
        row = self.load(source)
        Namespaces(self.connection, self.warehouse).require(target.namespace)
        other = self.find(target)
        if other is not None and other.id != row.id:
            raise already_there(target)
        self.connection.change(
            "UPDATE tables SET namespace_key = ?, table_key = ?, name = ? WHERE id = ?",
            target.namespace.key,
            target.key,
            target.name,
            row.id,
        )

    def drop(self, identity: TableIdentity, now_ms: int, *, purge: bool) -> TableRow:
        """Take the name from a table; it can be given back until the row is forgotten."""
        row = self.load(identity)
        self.connection.change(
            "UPDATE tables SET dropped_ms = ?, purge = ? WHERE id = ?", now_ms, int(purge), row.id
        )
        return row

    def at(self, root: str) -> TableRow | None:
        """The row of any warehouse that has this very root, dropped or not."""
        found = self.connection.row(f"SELECT {TABLE_COLUMNS} WHERE t.root = ?", root)
        return None if found is None else table_of(found)

    def missing(self, identity: TableIdentity) -> UserError:
        """The error for a name that no table has."""
        return UserError(
            Code.TABLE_NOT_FOUND,
            f"There is no table {identity}.",
            why=f"the warehouse {self.warehouse} does not have it",
            fix="Check the spelling. `twinlake catalog dropped` lists what can be brought back.",
            delta_class="TABLE_OR_VIEW_NOT_FOUND",
            fields={"table": str(identity), "warehouse": self.warehouse},
        )

    def _refuse_overlap(self, row: TableRow) -> None:
        above = list(_folders_above(row.root))
        marks = ", ".join("?" * len(above))
        # "0" is what comes after "/": all texts that begin with "root/" lie between the two.
        found = self.connection.row(
            f"SELECT root FROM tables WHERE (root IN ({marks}) OR (root > ? AND root < ?)) "
            "AND id <> ? LIMIT 1",
            *above,
            f"{row.root}/",
            f"{row.root}0",
            row.id,
        )
        if found is not None:
            raise UserError(
                Code.PATH_UNSAFE,
                f"Table {row.identity} cannot be at {row.root}.",
                why=f"another table is at {found[0]}, and no table lies in another one",
                fix="Choose a location apart from it. `twinlake catalog list` shows where tables "
                "are, and `twinlake catalog dropped` those that can still be brought back.",
                fields={"location": row.root, "other": found[0]},
            )


def _folders_above(root: str) -> list[str]:
    """The root itself and every folder above it, up to the bucket."""
    scheme, mark, path = root.partition("://")
    parts = path.split("/")
    return [f"{scheme}{mark}{'/'.join(parts[:depth])}" for depth in range(1, len(parts) + 1)]


def table_of(row: Any) -> TableRow:
    """The table of a row with ``TABLE_COLUMNS``."""
    row_id, root, uuid, name, namespace_key, created, dropped, purge, namespace = row
    levels = (namespace or namespace_key).split("\x1f")
    return TableRow(
        id=row_id,
        identity=TableIdentity(NamespaceName(tuple(levels)), name),
        root=root,
        uuid=uuid,
        created_ms=created,
        dropped_ms=dropped,
        purge=bool(purge),
    )


def already_there(identity: TableIdentity) -> UserError:
    """The error for a name that a table has."""
    return UserError(
        Code.TABLE_EXISTS,
        f"The table {identity} already exists.",
        why="names that differ only in case are one",
        fix="Choose another name, or drop or rename that table first.",
        delta_class="TABLE_OR_VIEW_ALREADY_EXISTS",
        fields={"table": str(identity)},
    )
