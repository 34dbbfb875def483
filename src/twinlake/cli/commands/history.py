"""``twinlake history``: the commits of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.cli.command import command, limit_option, shown_rows
from twinlake.cli.view import Grid, View
from twinlake.log import commit_rows

if TYPE_CHECKING:
    from twinlake.cli.output import Output
    from twinlake.cli.table_reference import TableReference

__all__ = ["history"]


@command(time_travel=True)
@limit_option("commits")
def history(output: Output, reference: TableReference, limit: int | None) -> None:
    """List the commits of a table, newest first.

    Commits that log cleanup has deleted are not listed; --version and --timestamp set the first.
    """
    table = reference.open_metadata()
    wanted = shown_rows(limit, is_terminal=output.is_terminal)
    records = table.history(wanted)
    cut = limit is None and wanted is not None and len(records) == wanted
    note = "older commits are not listed; --limit sets the number" if cut else ""
    output.show(
        View(
            data={
                "location": table.location,
                "version": table.version,
                "commits": [record.to_dict() for record in records],
            },
            blocks=[
                Grid.of("version:r time commit engine details", commit_rows(records), note=note)
            ],
        )
    )
