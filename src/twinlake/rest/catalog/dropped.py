"""Dropped tables: listed, brought back, and forgotten when their time is over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from twinlake.errors import Code, UserError
from twinlake.rest.catalog.namespaces import Namespaces
from twinlake.rest.catalog.tables import TABLE_COLUMNS, TableRow, Tables, already_there, table_of

if TYPE_CHECKING:
    from twinlake.rest.catalog.database import Connection
    from twinlake.rest.names import TableIdentity

__all__ = ["DroppedTable", "DroppedTables"]

#: ``purge`` of a row: files stay, files go after the time, files are being deleted now.
_PURGED: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedTable:
    """A table without a name, and until when it can have it back."""

    warehouse: str
    row: TableRow
    undrop_until_ms: int

    @property
    def dropped_ms(self) -> int:
        """When it was dropped."""
        return self.row.dropped_ms or 0


@dataclass(frozen=True, slots=True)
class DroppedTables:
    """The dropped tables of all warehouses."""

    connection: Connection
    undrop_ms: int

    def all(self, warehouse: str | None = None) -> list[DroppedTable]:
        """Every dropped table, the last dropped first."""
        found = self.connection.rows(
            f"SELECT t.warehouse, {TABLE_COLUMNS} WHERE t.dropped_ms IS NOT NULL "
            "ORDER BY t.dropped_ms DESC, t.id"
        )
        every = (
            DroppedTable(
                warehouse=row[0],
                row=table_of(row[1:]),
                undrop_until_ms=row[7] + self.undrop_ms,
            )
            for row in found
        )
        return [one for one in every if warehouse in (None, one.warehouse)]

    def expired(self, now_ms: int) -> list[DroppedTable]:
        """Those whose time is over."""
        return [one for one in self.all() if one.undrop_until_ms <= now_ms]

    def undrop(self, warehouse: str, identity: TableIdentity, now_ms: int) -> TableRow:
        """Give the table that lost a name last the name back."""
        found = [
            one
            for one in self.all(warehouse)
            if one.row.identity.key == identity.key
            and one.row.identity.namespace.key == identity.namespace.key
        ]
        if not found:
            raise UserError(
                Code.TABLE_NOT_FOUND,
                f"There is no dropped table {identity}.",
                why=f"no table of that name was dropped from {warehouse}, or it was forgotten",
                fix="Run `twinlake catalog dropped` to list what can be brought back.",
                fields={"table": str(identity), "warehouse": warehouse},
            )
        last = found[0]
        if last.undrop_until_ms <= now_ms or self._is_purged(last):
            raise UserError(
                Code.TABLE_NOT_FOUND,
                f"The table {identity} cannot be brought back any more.",
                why="it was dropped too long ago, and its files may be deleted",
                fix=f"If its files are there, register the folder {last.row.root} again.",
                fields={"table": str(identity), "location": last.row.root},
            )
        Namespaces(self.connection, warehouse).require(identity.namespace)
        if Tables(self.connection, warehouse).find(identity) is not None:
            raise already_there(identity)
        self.connection.change(
            "UPDATE tables SET dropped_ms = NULL, purge = 0 WHERE id = ?", last.row.id
        )
        return last.row

    def begin_purge(self, dropped: DroppedTable) -> bool:
        """Say that files are being deleted, after which nobody brings the table back.

        False where it was brought back or forgotten meanwhile.
        """
        changed = self.connection.change(
            "UPDATE tables SET purge = ? WHERE id = ? AND dropped_ms = ?",
            _PURGED,
            dropped.row.id,
            dropped.row.dropped_ms,
        )
        return changed > 0

    def forget(self, dropped: DroppedTable) -> bool:
        """Remove the row, unless the table was brought back meanwhile."""
        changed = self.connection.change(
            "DELETE FROM tables WHERE id = ? AND dropped_ms = ?",
            dropped.row.id,
            dropped.row.dropped_ms,
        )
        return changed > 0

    def _is_purged(self, dropped: DroppedTable) -> bool:
        row = self.connection.row("SELECT purge FROM tables WHERE id = ?", dropped.row.id)
        return row is not None and row[0] == _PURGED
