"""``twinlake head``: the first rows of a table."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from twinlake.cli.command import command
from twinlake.cli.row_view import row_blocks, row_records
from twinlake.cli.view import View

if TYPE_CHECKING:
    from twinlake.cli.output import Output
    from twinlake.cli.table_reference import TableReference

__all__ = ["head"]


@command(time_travel=True)
@click.option(
    "-n",
    "--rows",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    metavar="N",
    help="How many rows to show.",
)
@click.option(
    "--columns",
    metavar="NAMES",
    help="Only these columns, in this order, such as id,name. Others are not read. A name with a "
    "comma stands in backticks.",
)
@click.option("--where", metavar="PREDICATE", help="Only rows for which this is true.")
def head(
    output: Output, reference: TableReference, rows: int, columns: str | None, where: str | None
) -> None:
    """Show the first rows of a table.

    Reads the data files without Spark, and no more of them than needed. Rows have no order of
    their own: they come in the order of the files in the log. Values of more than 60 characters are
    cut; --json has them whole.
    """
    table = reference.open()
    names = None if columns is None else _names(columns)
    found = table.to_arrow(names, where, limit=rows)
    note = "" if found.num_rows else "no rows"
    output.show(
        View(
            data={
                "location": table.location,
                "version": table.version,
                "where": where,
                "columns": found.column_names,
                "rows": row_records(found),
            },
            blocks=row_blocks(found, note, is_terminal=output.is_terminal),
        )
    )


def _names(text: str) -> list[str]:
    """The names between commas; one that has a comma itself stands in backticks."""
    parts = re.findall(r"(?:`[^`]*`|[^,`])+|(?<=,)(?=,|$)|^(?=,|$)", text)
    return [re.sub(r"^`(.*)`$", r"\1", part.strip()) for part in parts]
