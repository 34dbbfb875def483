"""``twinlake check``: which rules of Iceberg compatibility a table breaks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from twinlake.cli.command import command, limit_option, shown_rows
from twinlake.cli.compat_view import report_blocks
from twinlake.cli.view import Facts, View

if TYPE_CHECKING:
    from twinlake.cli.output import Output
    from twinlake.cli.place import Place
    from twinlake.cli.view import Block
    from twinlake.protocol import Metadata

__all__ = ["check"]

_DEFAULT = "icebergWriterCompatV1"


@command(time_travel=True)
@click.option(
    "--for",
    "promises",
    multiple=True,
    metavar="NAME",
    help="The promise to judge by, such as icebergCompatV2. Repeatable. By default those the "
    f"table makes, or {_DEFAULT} if it makes none.",
)
@click.option("--files", is_flag=True, help="Look into the footer of every data file as well.")
@click.option(
    "--profile",
    type=click.Choice(["spec", "spark", "kernel"]),
    help="Whose reading of a rule counts where implementations differ: the specification, Delta "
    "Spark or the Java kernel. By default the table's own, else spec.",
)
@limit_option("violations of each rule")
def check(
    output: Output,
    place: Place,
    promises: tuple[str, ...],
    files: bool,
    profile: str | None,
    limit: int | None,
) -> None:
    """Tell which rules of Iceberg compatibility a table breaks.

    All of them at once, each with the column, property or file, what was found, what is wanted and
    how to mend it. Works on every Delta table, whoever wrote it and whether or not it makes the
    promise. Changes nothing. Exit status: 0 if no rule is broken, 1 if one is.
    """
    table = place.open_metadata()
    names = promises or _made(table.metadata)
    reports = [table.check(name, files=files, profile=profile) for name in names]
    ok = all(report.ok for report in reports)
    blocks: list[Block] = [Facts((("location", table.location), ("version", str(table.version))))]
    for report in reports:
        blocks += report_blocks(report, shown_rows(limit, is_terminal=output.is_terminal))
    output.show(
        View(
            data={
                "location": table.location,
                "version": table.version,
                "ok": ok,
                "reports": [report.to_dict() for report in reports],
            },
            blocks=blocks,
        )
    )
    if not ok:
        click.get_current_context().exit(1)


def _made(metadata: Metadata) -> tuple[str, ...]:
    """The promises of the table; one that another stands on is judged with that other."""
    from twinlake.compat import enabled_compats

    made = enabled_compats(metadata)
    bases = {compat.base for compat in made}
    return tuple(row.feature for row in made if row.feature not in bases) or (_DEFAULT,)
