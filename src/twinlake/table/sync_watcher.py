"""Syncs the Iceberg metadata of tables after commits of any writer, by polling.

A poll of a table that did not change asks the store for one object: the next commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from twinlake.log import commit_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from twinlake.iceberg import SyncResult
    from twinlake.table.table import Table

__all__ = ["TableWatcher"]

#: So often a table is opened even without a next commit: it may have been replaced by another.
_FULL_POLL: Final = 100
_LONGEST_PAUSE: Final = 32


class TableWatcher:
    """Syncs one table, from poll to poll."""

    def __init__(self, open_table: Callable[[], Table], spark: Any = None) -> None:
        self._open = open_table
        self._spark = spark
        self._table: Table | None = None
        self._polls = 0
        self._failures = 0
        self._pause = 0

    @property
    def table(self) -> Table | None:
        """The table as the last conversion saw it; None before, and after a failure."""
        return self._table

    def poll(self) -> SyncResult | None:
        """Convert what came since the last poll; None if nothing did.

        After a failure polls are left out, more of them the more fail in a row.
        """
        if self._pause:
            self._pause -= 1
            return None
        if self._table is not None and not self._may_be_new(self._table):
            return None
        try:
            done = self._convert()
        except Exception:
            self._table = None
            self._pause = min(2**self._failures - 1, _LONGEST_PAUSE)
            self._failures += 1
            raise
        self._failures = 0
        return done

    def _may_be_new(self, table: Table) -> bool:
        self._polls += 1
        if self._polls % _FULL_POLL == 0:
            return True
        return table.snapshot.store.head(commit_key(table.version + 1)) is not None

    def _convert(self) -> SyncResult:
        table = self._open()
        done = table.iceberg.sync(self._spark)
        self._table = table
        return done
