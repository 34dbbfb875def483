"""``twinlake reorg``: rewrite files that hold what the table no longer has, after a preview."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from twinlake.cli.command import command
from twinlake.cli.partition_choice import chosen_files
from twinlake.cli.plan_view import plan_blocks
from twinlake.cli.view import Facts, Prose, View
from twinlake.cli.wording import counted

if TYPE_CHECKING:
    from twinlake.cli.output import Output
    from twinlake.cli.place import Place
    from twinlake.compat import Plan
    from twinlake.table import Table

__all__ = ["reorg"]

_REFUSED: Final = 1
_WAITING: Final = 3


@command()
@click.option(
    "--where",
    metavar="PREDICATE",
    help="Purge only partitions for which this holds, such as \"day >= '2024-01-01'\".",
)
@click.option(
    "--purge", is_flag=True, help="Rewrite files with deleted rows or dropped columns (default)."
)
@click.option(
    "--upgrade-uniform",
    type=click.IntRange(min=1),
    metavar="N",
    help="Enable icebergCompatVN (1 or 2) and UniForm instead, and rewrite the files that do not "
    "fit.",
)
@click.option("--yes", is_flag=True, help="Do it. Without this, only tell what would be done.")
def reorg(
    output: Output,
    place: Place,
    where: str | None,
    purge: bool,
    upgrade_uniform: int | None,
    yes: bool,
) -> None:
    """Rewrite files that hold what the table no longer has.

    It is Delta's REORG TABLE: --purge is APPLY (PURGE), --upgrade-uniform N is APPLY (UPGRADE
    UNIFORM (ICEBERG_COMPAT_VERSION = N)). Rows stay as they are, and so do older versions until
    VACUUM. Without --yes nothing is written. With it, Spark is started on this machine if files
    have to be rewritten. Exit status of an upgrade: 0 if it is done or was only previewed, 1 if
    there is no way, 3 if it has to wait.
    """
    if upgrade_uniform is not None and (purge or where is not None):
        raise click.UsageError("--upgrade-uniform goes with neither --purge nor --where.")
    table = place.open()
    if upgrade_uniform is None:
        _purge(output, table, where, yes)
    else:
        _upgrade(output, table, upgrade_uniform, yes)


def _purge(output: Output, table: Table, where: str | None, yes: bool) -> None:
    from twinlake.spark.maintenance.stale_files import stale_files

    files = chosen_files(table, where)
    stale = stale_files(table, files, dropped=True)
    wanted = [f for f in files if f.path in stale or f.deletion_vector is not None]
    facts: dict[str, Any] = {
        "location": table.location,
        "dry_run": not yes,
        "version": None,
        "files_considered": len(files),
        "files": len(wanted),
        "size_in_bytes": sum(file.size for file in wanted),
        "deletion_vectors": sum(file.deletion_vector is not None for file in wanted),
    }
    if yes and wanted:
        facts |= _purged(table, where)
    output.show(View(data=facts, blocks=[Prose(_said(facts)), _shown(facts)]))


def _purged(table: Table, where: str | None) -> dict[str, Any]:
    from twinlake.spark.local_session import local_session

    with local_session() as spark:
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


def _said(facts: dict[str, Any]) -> str:
    files = counted(facts["files"], "file")
    if not facts["files"]:
        return "No file has deleted rows or dropped columns."
    if facts["dry_run"]:
        return f"Rewrites {files}. Nothing was done; run it again with --yes to do it."
    return f"Rewrote {files} in version {facts['version']}."


def _shown(facts: dict[str, Any]) -> Facts:
    names = {
        "files looked at": "files_considered",
        "files to rewrite" if facts["dry_run"] else "files rewritten": "files",
        "their bytes": "size_in_bytes",
        "of them with deletion vectors": "deletion_vectors",
        "new files": "new_files",
        "new bytes": "new_size_in_bytes",
    }
    return Facts(tuple((name, str(facts[key])) for name, key in names.items() if key in facts))


def _upgrade(output: Output, table: Table, version: int, yes: bool) -> None:
    from twinlake.table.operations.upgrade import upgrade_uniform

    plan = upgrade_uniform(table, version, dry_run=True)
    done = yes and not plan.refused
    if done:
        plan = _upgraded(table, plan, version)
    said = "Nothing was done; run it again with --yes to do it." if not done else ""
    blocks = [*plan_blocks(plan, report=not yes), *([Prose(said)] if said and plan.steps else [])]
    output.show(
        View(data={"location": table.location, "dry_run": not yes, **plan.to_dict()}, blocks=blocks)
    )
    if plan.refused:
        click.get_current_context().exit(_REFUSED)
    if done and not plan.done:
        click.get_current_context().exit(_WAITING)


def _upgraded(table: Table, plan: Plan, version: int) -> Plan:
    from twinlake.table.operations.upgrade import upgrade_uniform

    if not plan.files:
        return upgrade_uniform(table, version)
    from twinlake.spark.local_session import local_session

    with local_session() as spark:
        return upgrade_uniform(table, version, spark)
