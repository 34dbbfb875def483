"""``twinlake sql``: one statement of SQL, by Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from twinlake.cli.command import command, limit_option, shown_rows
from twinlake.cli.progress_display import progress_display
from twinlake.cli.row_view import row_blocks, row_records
from twinlake.cli.spark_session import spark_session
from twinlake.cli.text import count_text
from twinlake.cli.view import Paragraph, View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from twinlake.cli.output import Output

__all__ = ["sql"]


@command(table=False)
@click.argument("statement", metavar="STATEMENT")
@click.option(
    "--arg",
    "args",
    metavar="VALUE",
    multiple=True,
    help="The value of the next ? in the statement, as text. Repeatable.",
)
@limit_option("rows of the result")
def sql(output: Output, statement: str, args: Sequence[str], limit: int | None) -> None:
    """Run one statement of SQL on tables by Spark.

    Tables are named as they are in the catalog of names, or by path: twinlake sql 'select * from
    delta.`/data/orders` where id = 7'. The quotes are single ones, since shells run what stands
    in backticks. Queries, MERGE, UPDATE, DELETE, INSERT, CREATE TABLE, ALTER TABLE and Delta's own
    statements run at once, without a preview. Spark is started on this machine for it; twinlake
    query reads one table without Spark.
    """
    wanted = shown_rows(limit, is_terminal=output.is_terminal)
    with (
        progress_display(output) as progress,
        spark_session(progress=progress) as spark,
        progress.stage("running the statement"),
    ):
        from twinlake.spark.statements import sql_rows

        rows = sql_rows(spark, statement, list(args) or None, limit=wanted)
    is_cut = wanted is not None and rows.num_rows > wanted
    shown = rows.slice(0, wanted)
    note = "" if shown.num_rows else "no rows"
    if is_cut:
        note = f"the first {count_text(shown.num_rows, 'row')}; --limit sets the number"
    output.show(
        View(
            data={
                "columns": [{"name": f.name, "type": str(f.type)} for f in shown.schema],
                "is_complete": not is_cut,
                "rows": row_records(shown),
            },
            blocks=row_blocks(shown, note, is_terminal=output.is_terminal)
            if shown.num_columns
            else [Paragraph("Done.")],
        )
    )
