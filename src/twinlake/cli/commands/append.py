"""``twinlake append``: the rows of a file into a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinlake.cli.command import command, complete_path
from twinlake.cli.row_file import FORMATS, RowFile, format_of
from twinlake.cli.text import count_text
from twinlake.cli.view import Paragraph, View

if TYPE_CHECKING:
    from twinlake.cli.output import Output
    from twinlake.cli.table_reference import TableReference

__all__ = ["append"]


@command()
@click.argument("file", type=click.Path(path_type=Path), shell_complete=complete_path)
@click.option(
    "--format",
    "kind",
    type=click.Choice(FORMATS),
    help="The format of the file. By default its name says it: .parquet, .csv, .jsonl, .ndjson or "
    ".json, and .gz, .bz2 or .zst after it.",
)
def append(output: Output, reference: TableReference, file: Path, kind: str | None) -> None:
    """Append the rows of a Parquet, CSV or JSON lines FILE to a table.

    Works without Spark, in one commit: all rows or none. Columns are found by name. CSV (with a
    header line) and JSON lines are read with the types of the table's columns, and a value that
    does not fit is an error. Columns that the table does not have are refused, all at once; those
    that the file does not have become null, or their default. Partition columns must be there.
    """
    table = reference.open()
    rows = RowFile(file, kind or format_of(file), table.schema)
    reader = rows.reader()
    try:
        done = table.append(reader)
    except Exception as error:
        if rows.failure is None or rows.failure is error:
            raise
        raise rows.failure from error
    appended = count_text(rows.num_rows, "row")
    output.show(
        View(
            data={
                "location": done.location,
                "version": done.version,
                "file": str(file),
                "format": rows.kind,
                "num_rows": rows.num_rows,
            },
            blocks=[Paragraph(f"Appended {appended} of {file.name} in version {done.version}.")],
        )
    )
