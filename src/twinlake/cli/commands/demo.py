"""``twinlake demo``: what a table asks of its clients, told on a real table."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinlake.cli.command import command

if TYPE_CHECKING:
    from twinlake.cli.output import Output

__all__ = ["demo"]


@command(table=False)
@click.option(
    "--keep",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Make the tables in this folder and leave them there.",
)
@click.option("--no-spark", is_flag=True, help="Leave out the part that moves rows with Spark.")
def demo(output: Output, keep: Path | None, no_spark: bool) -> None:
    """What a table asks of its clients, told on a real table.

    Works in a temporary folder and takes about a minute, nearly all of it for Spark. Creates a
    table, turns on the change data feed and then deletion vectors, and shows after each step the
    lines that landed in the log, what they mean, and what a client that lacks a feature is told.
    Then two writers meet, and an earlier version comes back. At last Spark writes, merges and
    deletes a million rows, and a table that breaks the rules of Iceberg writers is upgraded. A
    model checker ends it: an anomaly of overlapping commits, its fix, and the same on a table.
    """
    from twinlake.cli.story import story

    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        output.tell(story(keep, kept=True, rows=not no_spark))
        return
    with tempfile.TemporaryDirectory(prefix="twinlake-demo-") as folder:
        output.tell(story(Path(folder), kept=False, rows=not no_spark))
