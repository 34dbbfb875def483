"""``twinlake vacuum``: delete files that nobody can need any more, after a look at them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from twinlake.cli.command import command, limit_option, shown_rows
from twinlake.cli.view import Facts, Grid, Prose, View
from twinlake.cli.wording import counted, moment

if TYPE_CHECKING:
    from twinlake.cli.output import Output
    from twinlake.cli.place import Place
    from twinlake.table.operations.vacuum import VacuumResult

__all__ = ["vacuum"]


@command()
@click.option(
    "--retention-hours",
    type=click.FloatRange(min=0),
    metavar="N",
    help="Keep what versions of the last N hours need. By default what the table asks for "
    "(delta.deletedFileRetentionDuration), which is a week unless it is set.",
)
@click.option(
    "--lite",
    is_flag=True,
    help="Only files that the log says were removed: nothing is listed, orphans stay.",
)
@click.option(
    "--no-retention-check",
    is_flag=True,
    help="Allow less retention than the table asks for. Only if nobody uses the table.",
)
@limit_option("files")
@click.option("--yes", is_flag=True, help="Do it. Without this, only tell what would be deleted.")
def vacuum(
    output: Output,
    place: Place,
    retention_hours: float | None,
    lite: bool,
    no_retention_check: bool,
    limit: int | None,
    yes: bool,
) -> None:
    """Delete files that no version within the retention needs.

    Without --yes nothing is deleted: the command tells what would be. Versions older than the
    retention can still be looked at in the history, but their rows can no longer be read. The log,
    Iceberg metadata, hidden files and tables in sub-folders are never touched.
    """
    found = place.open().vacuum(
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
                Prose(_said(found)),
                _facts(found),
                Grid.of("file", [(name,) for name in shown], note=note),
            ],
        )
    )


def _files(found: VacuumResult) -> str:
    return counted(len(found.files), "file")


def _said(found: VacuumResult) -> str:
    if found.dry_run:
        return (
            f"{_files(found)} with {found.size_in_bytes} bytes would be deleted. Nothing was; run "
            "it again with --yes to do it."
        )
    gone = f"Files and folders deleted: {found.num_deleted}."
    return f"{gone} Version {found.version} says so."


def _facts(found: VacuumResult) -> Facts:
    return Facts(
        (
            ("mode", str(found.mode)),
            ("needed by versions since", moment(found.cutoff_ms) or "ever"),
            ("files", str(len(found.files))),
            ("bytes", str(found.size_in_bytes)),
            ("folders without files", str(len(found.directories))),
        )
    )
