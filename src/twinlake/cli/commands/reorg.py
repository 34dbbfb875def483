"""``twinlake reorg``: rewrite files with deleted rows or dropped columns, after a preview."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from twinlake.cli.command import command, yes_option
from twinlake.cli.commands.upgrade import run_upgrade, show_upgrade
from twinlake.cli.partition_filter import partition_files
from twinlake.cli.progress_display import progress_display
from twinlake.cli.spark_session import spark_session
from twinlake.cli.text import count_text
from twinlake.cli.view import Fields, Paragraph, View

if TYPE_CHECKING:
    from twinlake.cli.output import Output
    from twinlake.cli.progress_display import ProgressDisplay
    from twinlake.cli.table_reference import TableReference
    from twinlake.table import Table

__all__ = ["reorg"]


@command()
@click.option(
    "--where",
    metavar="PREDICATE",
    help="Purge only partitions that match, such as \"day >= '2024-01-01'\".",
)
@click.option(
    "--purge", is_flag=True, help="Rewrite files with deleted rows or dropped columns (default)."
)
@click.option(
    "--upgrade-uniform",
    type=click.IntRange(min=1),
    metavar="N",
    help="Enable icebergCompatVN (1 or 2) and UniForm instead, and rewrite the files where needed.",
)
@yes_option("what would be done")
def reorg(
    output: Output,
    reference: TableReference,
    where: str | None,
    purge: bool,
    upgrade_uniform: int | None,
    yes: bool,
) -> None:
    """Rewrite files that have deleted rows or dropped columns.

    It is Delta's REORG TABLE: --purge is APPLY (PURGE), --upgrade-uniform N is APPLY (UPGRADE
    UNIFORM (ICEBERG_COMPAT_VERSION = N)). Rows do not change, and older versions stay until VACUUM.
    Without --yes nothing is written. With --yes the command starts Spark on this machine if files
    must be rewritten. Exit status of an upgrade: 0 if it is complete or was only planned, 1 if the
    table cannot be upgraded, 3 if the upgrade waits.
    """
    if upgrade_uniform is not None and (purge or where is not None):
        raise click.UsageError("--upgrade-uniform cannot be combined with --purge or --where.")
    with progress_display(output) as progress:
        table = reference.open(progress.runtime)
        if upgrade_uniform is None:
            details = _purge(progress, table, where, yes)
        else:
            plan = run_upgrade(progress, partial(table.upgrade_uniform, upgrade_uniform), yes=yes)
    if upgrade_uniform is None:
        output.show(View(data=details, blocks=[Paragraph(_summary(details)), _shown(details)]))
    else:
        show_upgrade(output, table, plan, yes=yes)


def _purge(progress: ProgressDisplay, table: Table, where: str | None, yes: bool) -> dict[str, Any]:
    from twinlake.spark.maintenance import files_with_dropped_columns

    files = partition_files(table, where)
    stale = files_with_dropped_columns(table, files)
    wanted = [f for f in files if f.path in stale or f.deletion_vector is not None]
    details: dict[str, Any] = {
        "location": table.location,
        "dry_run": not yes,
        "version": None,
        "files_considered": len(files),
        "files": len(wanted),
        "size_in_bytes": sum(file.size for file in wanted),
        "deletion_vectors": sum(file.deletion_vector is not None for file in wanted),
    }
    if yes and wanted:
        with spark_session(progress=progress) as spark:
            label = f"rewriting {count_text(len(wanted), 'file')}"
            with progress.stage(label, size_in_bytes=details["size_in_bytes"]):
                details |= _purged(spark, table, where)
    return details


def _purged(spark: Any, table: Table, where: str | None) -> dict[str, Any]:
    from twinlake.spark import reorg as run

    done = run(spark, table, where)
    return {
        "version": done.version,
        "files": len(done.removed),
        "size_in_bytes": sum(file.size for file in done.removed),
        "deletion_vectors": sum(file.deletion_vector is not None for file in done.removed),
        "new_files": len(done.added),
        "new_size_in_bytes": sum(file.size for file in done.added),
    }


def _summary(details: dict[str, Any]) -> str:
    files = count_text(details["files"], "file")
    if not details["files"]:
        return "No file has deleted rows or dropped columns."
    if details["dry_run"]:
        return f"Rewrites {files}. Nothing was changed; run it again with --yes to rewrite."
    return f"Rewrote {files} in version {details['version']}."


def _shown(details: dict[str, Any]) -> Fields:
    names = {
        "files considered": "files_considered",
        "files to rewrite" if details["dry_run"] else "files rewritten": "files",
        "their bytes": "size_in_bytes",
        "of them with deletion vectors": "deletion_vectors",
        "new files": "new_files",
        "new bytes": "new_size_in_bytes",
    }
    return Fields(tuple((name, str(details[key])) for name, key in names.items() if key in details))
