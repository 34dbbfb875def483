"""``twinlake verify-twin``: whether both sides of a table say the same."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import click

from twinlake.cli.command import PAIR, command, limit_option, shown_rows
from twinlake.cli.view import Facts, Grid, Prose, View
from twinlake.cli.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from twinlake.cli.output import Output
    from twinlake.cli.place import Place
    from twinlake.cli.view import Block
    from twinlake.table.twin.report import TwinReport

__all__ = ["verify_twin"]


@command()
@click.option("--rows", is_flag=True, help="Read all rows on both sides and compare their hashes.")
@click.option(
    "--spark",
    is_flag=True,
    help="Start Spark and read rows there: by Delta Spark and Iceberg Spark where it has them.",
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
    place: Place,
    rows: bool,
    spark: bool,
    settings: tuple[tuple[str, str], ...],
    properties: tuple[tuple[str, str], ...],
    limit: int | None,
) -> None:
    """Compare the Delta and the Iceberg side of a table.

    Reads the Delta log with twinlake and the Iceberg metadata with PyIceberg, at every version that
    both keep, and compares files, counts, sizes, partitions, statistics and with --rows the rows,
    and what readers make of each file by the formats. Says what read each side. Changes nothing.
    Exit status: 0 if both sides agree, 1 if they do not.
    """
    from twinlake.table.twin.verify_twin import verify_twin as verify

    table = place.open()
    with _session(dict(settings), wanted=spark) as session:
        report = verify(table, rows, session, properties=dict(properties))
    shown = shown_rows(limit, is_terminal=output.is_terminal)
    output.show(View(data=report.to_dict(), blocks=_blocks(report, shown)))
    if not report.agrees:
        click.get_current_context().exit(1)


@contextlib.contextmanager
def _session(settings: dict[str, str], *, wanted: bool) -> Iterator[Any]:
    if not wanted:
        yield None
        return
    from twinlake.spark.local_session import local_session

    with local_session(settings) as spark:
        yield spark


def _blocks(report: TwinReport, limit: int | None) -> list[Block]:
    versions = report.versions
    span = f"{versions[0]} to {versions[-1]}" if versions else "none"
    facts = [
        ("location", report.location),
        ("delta", f"version {report.delta_version}, read by {report.delta_reader}"),
        ("iceberg", f"version {report.iceberg_version}, read by {report.iceberg_reader}"),
        ("compared", f"versions {span}, {counted(report.files, 'file')}"),
        *([("rows", str(report.rows))] if report.rows is not None else ()),
    ]
    if report.agrees:
        return [Facts(tuple(facts)), Prose("Both sides agree.")]
    found = report.findings[:limit]
    left = len(report.findings) - len(found)
    told = counted(len(report.findings), "difference")
    grid = Grid.of(
        "version:r difference file column delta iceberg",
        [(f.version, f.what, f.file, f.column, f.delta, f.iceberg) for f in found],
        note=f"{told}, {left} not shown" if left else told,
    )
    return [Facts(tuple(facts)), grid]
