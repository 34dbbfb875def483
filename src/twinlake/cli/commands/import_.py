"""``twinlake import``: turn an existing Iceberg table into a twinlake table, in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from twinlake.cli.command import command, complete_path, store_option
from twinlake.cli.progress_display import progress_display
from twinlake.cli.text import count_text
from twinlake.cli.view import Fields, Lines, View
from twinlake.table import import_iceberg

if TYPE_CHECKING:
    from twinlake.cli.output import Output
    from twinlake.cli.view import Block

__all__ = ["import_command"]


@command(table=False)
@click.argument("source", shell_complete=complete_path)
@click.option(
    "--mode",
    type=click.Choice(["strict", "shared"]),
    default="strict",
    show_default=True,
    help="strict enables the writer feature, and Delta Spark can only read the table. shared "
    "prepares the table for Iceberg writers without it.",
)
@store_option
def import_command(
    output: Output, source: str, mode: str, options: tuple[tuple[str, str], ...]
) -> None:
    """Make a twinlake table of an Iceberg table, in place.

    SOURCE is a metadata file, the folder of a table, or catalog.namespace.table of a catalog that
    PyIceberg has configured. Format versions 1 and 2. No data file is copied or changed: the table
    gets a _delta_log, with a version for each snapshot that Delta can represent. A table that Delta
    cannot represent is refused, and nothing is written. Exit status: 0 if it was imported, else 1.
    """
    with progress_display(output) as progress, progress.stage("importing"):
        runtime = progress.counting_runtime("reading footers")
        result = import_iceberg(source, mode=mode, options=dict(options) or None, runtime=runtime)
    twin = "yes" if result.is_twin else "no"
    if result.accepts_iceberg_writers:
        twin = "yes, also for Iceberg writers"
    blocks: list[Block] = [
        Fields(
            (
                ("location", result.table.location),
                ("version", str(result.table.version)),
                ("imported", count_text(result.snapshots, "snapshot")),
                ("iceberg twin", twin),
            )
        )
    ]
    if result.notes:
        blocks.append(Lines(tuple(f"note: {note}" for note in result.notes)))
    output.show(View(data=result.to_dict(), blocks=blocks))
