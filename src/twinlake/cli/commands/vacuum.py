"""``twinlake vacuum``: delete files that no version needs, after a preview."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from twinlake.cli.command import command, limit_option, shown_rows, yes_option
from twinlake.cli.progress_display import progress_display
from twinlake.cli.text import count_text, time_text
from twinlake.cli.view import Fields, Grid, Paragraph, View

if TYPE_CHECKING:
    from twinlake.cli.output import Output
    from twinlake.cli.table_reference import TableReference
    from twinlake.table.operations import VacuumResult

__all__ = ["vacuum"]


@command()
@click.option(
    "--retention-hours",
    type=click.FloatRange(min=0),
    metavar="N",
    help="Keep the files of versions of the last N hours. By default the table's "
    "delta.deletedFileRetentionDuration, which is a week unless it is set.",
)
@click.option(
    "--lite",
    is_flag=True,
    help="Only files that the log has removed: the folder is not listed, orphan files stay.",
)
@click.option(
    "--no-retention-check",
    is_flag=True,
    help="Allow less than the retention of the table. Only safe if nobody uses the table.",
)
@limit_option("files")
@yes_option("what would be deleted")
def vacuum(
    output: Output,
    reference: TableReference,
    retention_hours: float | None,
    lite: bool,
    no_retention_check: bool,
    limit: int | None,
    yes: bool,
) -> None:
    """Delete files that no version within the retention needs.

    Without --yes nothing is deleted: the command lists the files. Versions older than the
    retention stay in the history, but their rows can no longer be read. The log,
    Iceberg metadata, hidden files and tables in sub-folders are never touched.
    """
    with progress_display(output) as progress, progress.stage("finding files that are not needed"):
        found = reference.open(progress.runtime).vacuum(
            retention_hours,
            dry_run=not yes,
            mode="lite" if lite else "full",
            enforce_retention=not no_retention_check,
        )
    wanted = shown_rows(limit, is_terminal=output.is_terminal)
    shown = found.files[:wanted]
    note = "" if len(shown) == len(found.files) else f"{len(shown)} of {_files(found)}"
    data = {**found.to_dict(), "files": list(shown)}
    output.show(
        View(
            data=data,
            blocks=[
                Paragraph(_summary(found)),
                _details(found),
                Grid.of("file", [(name,) for name in shown], note=note),
            ],
        )
    )


def _files(found: VacuumResult) -> str:
    return count_text(len(found.files), "file")


def _summary(found: VacuumResult) -> str:
    if found.dry_run:
        return (
            f"{_files(found)} with {found.size_in_bytes} bytes would be deleted. Nothing was "
            "deleted; run the command again with --yes to delete."
        )
    return f"Files and folders deleted: {found.num_deleted}, recorded in version {found.version}."


def _details(found: VacuumResult) -> Fields:
    return Fields(
        (
            ("mode", str(found.mode)),
            ("needed by versions since", time_text(found.cutoff_ms) or "ever"),
            ("files", str(len(found.files))),
            ("bytes", str(found.size_in_bytes)),
            ("empty folders", str(len(found.directories))),
        )
    )
