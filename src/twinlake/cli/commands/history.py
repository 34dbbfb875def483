"""``twinlake history``: the commits of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.cli.command import command, limit_option, shown_rows
from twinlake.cli.view import Grid, View
from twinlake.cli.wording import commit_rows

if TYPE_CHECKING:
    from twinlake.cli.output import Output
    from twinlake.cli.place import Place

__all__ = ["history"]


@command(time_travel=True)
@limit_option("commits")
def history(output: Output, place: Place, limit: int | None) -> None:
    """The commits of a table, newest first.

    Commits that cleanup has deleted are not listed; --version and --timestamp say where to start.
    """
    table = place.open_metadata()
    wanted = shown_rows(limit, is_terminal=output.is_terminal)
    records = table.history(wanted)
    cut = limit is None and wanted is not None and len(records) == wanted
    note = "older commits are left out; --limit says how many to list" if cut else ""
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
