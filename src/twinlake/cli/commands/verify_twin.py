"""``twinlake verify-twin``: whether the Delta and the Iceberg side of a table agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import pyarrow.compute as pc

from twinlake.cli.command import PAIR, command, limit_option, shown_rows
from twinlake.cli.progress_display import progress_display
from twinlake.cli.spark_session import spark_session
from twinlake.cli.text import count_text
from twinlake.cli.view import Fields, Grid, Paragraph, View
from twinlake.table import verify_twin as verify

if TYPE_CHECKING:
    from twinlake.cli.output import Output
    from twinlake.cli.table_reference import TableReference
    from twinlake.cli.view import Block
    from twinlake.table import Table, TwinReport

__all__ = ["verify_twin"]


@command()
@click.option("--rows", is_flag=True, help="Read all rows on both sides and compare their hashes.")
@click.option(
    "--spark",
    is_flag=True,
    help="Start Spark to read rows, with Delta Spark and Iceberg Spark if it has them.",
)
@click.option(
    "--spark-option",
    "settings",
    type=PAIR,
    multiple=True,
    help="A setting of the Spark session, such as "
    "spark.jars.packages=org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0. Repeatable.",
)
@click.option(
    "--iceberg-option",
    "properties",
    type=PAIR,
    multiple=True,
    help="A setting of PyIceberg's file access, such as s3.region=eu-west-1. Repeatable.",
)
@limit_option("differences")
def verify_twin(
    output: Output,
    reference: TableReference,
    rows: bool,
    spark: bool,
    settings: tuple[tuple[str, str], ...],
    properties: tuple[tuple[str, str], ...],
    limit: int | None,
) -> None:
    """Compare the Delta and the Iceberg side of a table.

    Reads the Delta log with twinlake and the Iceberg metadata with PyIceberg, at every version that
    both sides have, and compares files, counts, sizes, partitions, statistics, how readers
    interpret each file, and with --rows the rows. Names the reader of each side. Writes nothing.
    Exit status: 0 if both sides agree, 1 if they do not.
    """
    with progress_display(output) as progress:
        table = reference.open(progress.counting_runtime("reading"))
        with (
            spark_session(dict(settings), wanted=spark, progress=progress) as session,
            progress.stage("comparing both sides", size_in_bytes=_size(table) if rows else None),
        ):
            report = verify(table, rows, session, properties=dict(properties))
    shown = shown_rows(limit, is_terminal=output.is_terminal)
    output.show(View(data=report.to_dict(), blocks=_blocks(report, shown)))
    if not report.agrees:
        click.get_current_context().exit(1)


def _size(table: Table) -> int:
    return pc.sum(table.files()["size"]).as_py() or 0


def _blocks(report: TwinReport, limit: int | None) -> list[Block]:
    versions = report.versions
    span = f"{versions[0]} to {versions[-1]}" if versions else "none"
    details = [
        ("location", report.location),
        ("delta", f"version {report.delta_version}, read by {report.delta_reader}"),
        ("iceberg", f"version {report.iceberg_version}, read by {report.iceberg_reader}"),
        ("compared", f"versions {span}, {count_text(report.files, 'file')}"),
        *([("rows", str(report.rows))] if report.rows is not None else ()),
    ]
    if report.agrees:
        return [Fields(tuple(details)), Paragraph("Both sides agree.")]
    found = report.findings[:limit]
    left = len(report.findings) - len(found)
    total = count_text(len(report.findings), "difference")
    grid = Grid.of(
        "version:r difference file column delta iceberg",
        [(f.version, f.what, f.file, f.column, f.delta, f.iceberg) for f in found],
        note=f"{total}, {left} not shown" if left else total,
    )
    return [Fields(tuple(details)), grid]
