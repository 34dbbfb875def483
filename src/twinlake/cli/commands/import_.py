"""``twinlake import``: an existing Iceberg table becomes a twinlake table in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from twinlake.cli.command import PAIR, command
from twinlake.cli.view import Facts, Lines, View
from twinlake.cli.wording import counted

if TYPE_CHECKING:
    from twinlake.cli.output import Output
    from twinlake.cli.view import Block

__all__ = ["import_command"]


@command(table=False)
@click.argument("source")
@click.option(
    "--mode",
    type=click.Choice(["strict", "shared"]),
    default="strict",
    show_default=True,
    help="strict makes the promise about writers, and Delta Spark can only read the table. shared "
    "lays the table out for them without it.",
)
@click.option(
    "--option",
    "options",
    type=PAIR,
    multiple=True,
    help="A setting of the object store, such as region=eu-west-1. Repeatable.",
)
def import_command(
    output: Output, source: str, mode: str, options: tuple[tuple[str, str], ...]
) -> None:
    """Make a twinlake table of an Iceberg table, in place.

    SOURCE is a metadata file, the folder of a table, or catalog.namespace.table of a catalog that
    PyIceberg knows. Format versions 1 and 2. No data file is copied or changed: the table gets a
    _delta_log beside them, with a version for each snapshot that Delta can say. What it cannot say
    is refused as a whole, and nothing is written. Exit status: 0 if it is a table now, else 1.
    """
    from twinlake.table.importing.import_iceberg import import_iceberg

    result = import_iceberg(source, mode=mode, options=dict(options) or None)
    promise = "yes" if result.is_twin else "no"
    if result.accepts_iceberg_writers:
        promise = "yes, also for Iceberg writers"
    blocks: list[Block] = [
        Facts(
            (
                ("location", result.table.location),
                ("version", str(result.table.version)),
                ("imported", counted(result.snapshots, "snapshot")),
                ("iceberg twin", promise),
            )
        )
    ]
    if result.notes:
        blocks.append(Lines(tuple(f"note: {note}" for note in result.notes)))
    output.show(View(data=result.to_dict(), blocks=blocks))
