"""``twinlake catalog``: the names of a server, for its operator."""

from __future__ import annotations

from typing import Final

import click

from twinlake.cli.group import CommandGroup

__all__ = ["catalog"]

_COMMANDS: Final = {
    "list": ("catalog_tables:list_tables", "List the tables of a server with their locations."),
    "dropped": (
        "catalog_tables:list_dropped",
        "List dropped tables, and until when each can be brought back.",
    ),
    "undrop": ("catalog_tables:undrop", "Give a dropped table its name back."),
    "expire": (
        "catalog_tables:expire",
        "Forget tables dropped long ago, with the files of those to be purged.",
    ),
}


@click.group(cls=CommandGroup, name="catalog", modules=_COMMANDS)
def catalog() -> None:
    """Manage the names of `twinlake serve`.

    The commands work on the database of the server, whether or not it runs.
    """
