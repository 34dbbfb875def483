"""``twinlake catalog list``, ``dropped``, ``undrop`` and ``expire``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from twinlake.cli.command import command, yes_option
from twinlake.cli.commands.serve import DATABASE
from twinlake.cli.text import count_text, time_text
from twinlake.cli.view import Grid, Paragraph, View
from twinlake.errors import Code, UserError
from twinlake.rest import ServerLimits, TableIdentity, expire_dropped, open_database
from twinlake.rest.catalog import DroppedTables, Tables
from twinlake.table.catalog import split_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from twinlake.cli.output import Output
    from twinlake.rest.catalog import CatalogDatabase, DroppedTable

__all__ = ["expire", "list_dropped", "list_tables", "undrop"]

_UNDROP_MS = ServerLimits().undrop_ms


def _database_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--database",
        metavar="URL",
        help=f"The database of the server. Default: {DATABASE}.",
    )(function)


def _warehouse_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--warehouse", metavar="NAME", help="Only this warehouse.")(function)


def _open(database: str | None) -> CatalogDatabase:
    return open_database(database or str(DATABASE.expanduser()), create=False)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@command(table=False)
@_database_option
@_warehouse_option
def list_tables(output: Output, database: str | None, warehouse: str | None) -> None:
    """List the tables of a server with their locations."""
    with _open(database).reading() as connection:
        found = Tables.everywhere(connection, warehouse)
    rows = [
        {
            "warehouse": name,
            "namespace": list(row.identity.namespace.levels),
            "name": row.identity.name,
            "uuid": row.uuid,
            "location": row.root,
        }
        for name, row in found
    ]
    shown = [(name, str(row.identity), row.root) for name, row in found]
    output.show(View(data={"tables": rows}, blocks=[Grid.of("warehouse table location", shown)]))


@command(table=False)
@_database_option
@_warehouse_option
def list_dropped(output: Output, database: str | None, warehouse: str | None) -> None:
    """List dropped tables, and until when each can be brought back."""
    with _open(database).reading() as connection:
        found = DroppedTables(connection, _UNDROP_MS).all(warehouse)
    shown = [
        (
            one.warehouse,
            str(one.row.identity),
            time_text(one.dropped_ms),
            time_text(one.undrop_until_ms),
            one.row.purge,
            one.row.root,
        )
        for one in found
    ]
    output.show(
        View(
            data={"tables": [_record(one) for one in found]},
            blocks=[Grid.of("warehouse table dropped undrop_until purge location", shown)],
        )
    )


@command(table=False)
@click.argument("name")
@_database_option
@_warehouse_option
def undrop(output: Output, name: str, database: str | None, warehouse: str | None) -> None:
    """Give a dropped table its name back.

    NAME, of which the table that was dropped last is meant, is namespace.table; parts with dots or
    other special characters stand in backticks. Its files were never touched, and rows that Delta
    writers added meanwhile are there.
    """
    parts = split_name(name)
    if len(parts) < 2:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{name!r} does not name a table of a server.",
            why="the tables of a server are in namespaces",
            fix="Write NAMESPACE.TABLE; run `twinlake catalog dropped` for the names.",
        )
    identity = TableIdentity.of(parts[:-1], parts[-1])
    opened = _open(database)
    with opened.changing() as connection:
        dropped = DroppedTables(connection, _UNDROP_MS)
        row = dropped.undrop(warehouse or _home(dropped, identity), identity, _now_ms())
    output.show(
        View(
            data={"table": str(row.identity), "location": row.root},
            blocks=[Paragraph(f"{row.identity} is back, at {row.root}.")],
        )
    )


@command(table=False)
@_database_option
@yes_option("what would be forgotten and deleted")
def expire(output: Output, database: str | None, yes: bool) -> None:
    """Forget tables dropped long ago, with the files of those to be purged.

    That is more than 7 days ago. Files are deleted only of tables whose client asked for a purge,
    and only where the location is that one table's alone. Without --yes nothing is changed.
    """
    found = expire_dropped(_open(database), _UNDROP_MS, _now_ms(), dry_run=not yes)
    records = [
        {
            **_record(one.dropped),
            "files": one.files,
            "deleted": bool(yes and one.is_purge and not one.kept_because),
            "kept_because": one.kept_because or None,
        }
        for one in found
    ]
    shown = [
        (str(o.dropped.row.identity), o.files, o.kept_because, o.dropped.row.root) for o in found
    ]
    tables = count_text(len(found), "table")
    text = (
        f"{tables} forgotten."
        if yes
        else f"{tables} would be forgotten. Nothing was changed; run the command again with --yes."
    )
    output.show(
        View(
            data={"dry_run": not yes, "tables": records},
            blocks=[Paragraph(text), Grid.of("table files:r kept_because location", shown)],
        )
    )


def _home(dropped: DroppedTables, identity: TableIdentity) -> str:
    """The one warehouse that dropped a table of a name."""
    found = {
        one.warehouse
        for one in dropped.all()
        if (one.row.identity.namespace.key, one.row.identity.key)
        == (identity.namespace.key, identity.key)
    }
    if len(found) == 1:
        return found.pop()
    raise UserError(
        Code.TABLE_NOT_FOUND if not found else Code.INVALID_ARGUMENT,
        f"There is no dropped table {identity}." if not found else f"{identity} is ambiguous.",
        why="no warehouse has dropped one" if not found else f"it is in {', '.join(sorted(found))}",
        fix="Run `twinlake catalog dropped` to list what can be brought back, and name the "
        "warehouse with `--warehouse`.",
        fields={"table": str(identity)},
    )


def _record(one: DroppedTable) -> dict[str, Any]:
    return {
        "warehouse": one.warehouse,
        "namespace": list(one.row.identity.namespace.levels),
        "name": one.row.identity.name,
        "location": one.row.root,
        "dropped": time_text(one.dropped_ms),
        "undrop_until": time_text(one.undrop_until_ms),
        "purge": one.row.purge,
    }


# Named by what they do, as functions of a module; on the command line the group says of what.
list_tables.name, list_dropped.name = "list", "dropped"
