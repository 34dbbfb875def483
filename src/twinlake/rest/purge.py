"""Deleting the files of dropped tables whose time is over, and forgetting the others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from twinlake.errors import TwinlakeError
from twinlake.log import CACHE, LOG_FOLDER, has_table
from twinlake.rest.catalog import DroppedTables
from twinlake.rest.location_policy import table_store

if TYPE_CHECKING:
    from twinlake.rest.catalog import CatalogDatabase, DroppedTable
    from twinlake.storage import Store

__all__ = ["ExpiredTable", "expire_dropped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiredTable:
    """What became of a dropped table whose time was over."""

    dropped: DroppedTable
    files: int = 0
    """How many were, or would be, deleted."""
    kept_because: str = ""
    """Why its files stay, where the client asked for them to go."""
    is_purge: bool = field(default=False)


def expire_dropped(
    database: CatalogDatabase, undrop_ms: int, now_ms: int, *, dry_run: bool
) -> list[ExpiredTable]:
    """Delete the files of tables that were dropped with purge, and forget all that are expired."""
    with database.reading() as connection:
        expired = DroppedTables(connection, undrop_ms).expired(now_ms)
    return [_expire(database, one, undrop_ms, dry_run=dry_run) for one in expired]


def _expire(
    database: CatalogDatabase, dropped: DroppedTable, undrop_ms: int, *, dry_run: bool
) -> ExpiredTable:
    if not dropped.row.purge:
        if not dry_run:
            _forget(database, dropped, undrop_ms)
        return ExpiredTable(dropped=dropped)
    store = table_store(dropped.row.root)
    keys = [item.key for item in store.list_from("")]
    why = _not_alone(dropped, store, keys)
    if not why and not dry_run:
        with database.changing() as connection:
            is_ours = DroppedTables(connection, undrop_ms).begin_purge(dropped)
        if not is_ours:
            return ExpiredTable(dropped=dropped, kept_because="it was brought back")
        _delete(store, keys)
    if not dry_run:
        _forget(database, dropped, undrop_ms)
    return ExpiredTable(
        dropped=dropped, files=0 if why else len(keys), kept_because=why, is_purge=True
    )


def _not_alone(dropped: DroppedTable, store: Store, keys: list[str]) -> str:
    """Why the files below a location are not one table's alone; empty where they are."""
    nested = next((key for key in keys if f"/{LOG_FOLDER}/" in key), None)
    if nested is not None:
        return f"another table lies in it: {nested.partition(f'/{LOG_FOLDER}/')[0]}"
    if not has_table(store):
        # What is left of a log is left by a purge that was cut short.
        leftovers = any(key.startswith(f"{LOG_FOLDER}/") for key in keys)
        return "" if leftovers or not keys else "it has no Delta log any more"
    try:
        found = CACHE.latest(store).metadata.id
    except TwinlakeError as error:
        return f"its log cannot be read: {error.what}"
    if dropped.row.uuid is not None and found.lower() != dropped.row.uuid:
        return "another table was made in its place"
    return ""


def _delete(store: Store, keys: list[str]) -> None:
    """The log last, so that a purge that is cut short can be continued."""
    log = [key for key in keys if key.startswith(f"{LOG_FOLDER}/")]
    store.delete(key for key in keys if not key.startswith(f"{LOG_FOLDER}/"))
    store.delete(sorted(log, reverse=True))
    CACHE.forget(store.url)


def _forget(database: CatalogDatabase, dropped: DroppedTable, undrop_ms: int) -> None:
    with database.changing() as connection:
        DroppedTables(connection, undrop_ms).forget(dropped)
