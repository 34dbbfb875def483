"""``twinlake check``: violations of the rules of Iceberg compatibility."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from twinlake.cli.command import command, limit_option, shown_rows
from twinlake.cli.compat_view import report_blocks
from twinlake.cli.view import Fields, View
from twinlake.compat import enabled_compats

if TYPE_CHECKING:
    from twinlake.cli.output import Output
    from twinlake.cli.table_reference import TableReference
    from twinlake.cli.view import Block
    from twinlake.protocol import Metadata

__all__ = ["check"]

_DEFAULT = "icebergWriterCompatV1"


@command(time_travel=True)
@click.option(
    "--for",
    "compat_features",
    multiple=True,
    metavar="NAME",
    help="The compat feature, such as icebergCompatV2. Repeatable. By default those that the "
    f"table has enabled, or {_DEFAULT} if it has none.",
)
@click.option("--files", is_flag=True, help="Also read the footer of every data file.")
@click.option(
    "--profile",
    type=click.Choice(["spec", "spark", "kernel"]),
    help="Whose interpretation of a rule counts where implementations differ: the specification, "
    "Delta Spark or the Java kernel. By default that of the table, else spec.",
)
@limit_option("violations of each rule")
def check(
    output: Output,
    reference: TableReference,
    compat_features: tuple[str, ...],
    files: bool,
    profile: str | None,
    limit: int | None,
) -> None:
    """Check a table against the rules of Iceberg compatibility.

    Lists all violations, each with the column, property or file, what was found, what is required
    and the fix. Works on every Delta table, whoever wrote it, with or without the compat feature.
    Writes nothing. Exit status: 0 if no rule is broken, 1 if one is.
    """
    table = reference.open_metadata()
    names = compat_features or _enabled(table.metadata)
    reports = [table.check(name, files=files, profile=profile) for name in names]
    ok = all(report.ok for report in reports)
    blocks: list[Block] = [Fields((("location", table.location), ("version", str(table.version))))]
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


def _enabled(metadata: Metadata) -> tuple[str, ...]:
    """The enabled compat features; one that another requires is checked with that other."""
    made = enabled_compats(metadata)
    bases = {compat.base for compat in made}
    return tuple(row.feature for row in made if row.feature not in bases) or (_DEFAULT,)
