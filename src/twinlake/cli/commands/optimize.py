"""``twinlake optimize``: pack small files into larger ones, after a look at what that means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from twinlake.cli.command import command
from twinlake.cli.partition_choice import chosen_files
from twinlake.cli.view import Facts, Prose, View
from twinlake.cli.wording import counted

if TYPE_CHECKING:
    from twinlake.cli.output import Output
    from twinlake.cli.place import Place
    from twinlake.commit.plans import CompactionPlan
    from twinlake.table import Table

__all__ = ["optimize"]

_GIB: Final = 1 << 30


@command()
@click.option(
    "--where",
    metavar="PREDICATE",
    help="Only partitions for which this holds, such as \"day >= '2024-01-01'\".",
)
@click.option(
    "--target-size",
    type=click.IntRange(min=1),
    metavar="BYTES",
    help="How large the new files are to be. By default what the table asks for "
    "(delta.targetFileSize), which is 1 GiB unless it is set.",
)
@click.option("--yes", is_flag=True, help="Do it. Without this, only tell what would be done.")
def optimize(
    output: Output, place: Place, where: str | None, target_size: int | None, yes: bool
) -> None:
    """Pack small files into larger ones.

    Rows stay as they are, and so do older versions until VACUUM. Without --yes nothing is written:
    the command tells how many files would become how many. With it, Spark is started on this
    machine for the work.
    """
    table = place.open()
    plan = _plan(table, where, target_size)
    facts: dict[str, Any] = {
        "location": table.location,
        "dry_run": not yes,
        "version": None,
        "files_considered": plan.considered,
        "files": sum(len(packed.files) for packed in plan.bins),
        "size_in_bytes": sum(packed.size for packed in plan.bins),
        "new_files": len(plan.bins),
    }
    if yes and plan.bins:
        facts |= _carried_out(table, where, target_size)
    output.show(View(data=facts, blocks=[Prose(_said(facts)), _shown(facts)]))


def _plan(table: Table, where: str | None, target_size: int | None) -> CompactionPlan:
    from twinlake.commit.plans import OptimizeOptions, TableRules, plan_optimize
    from twinlake.protocol import property_value

    metadata = table.metadata
    asked = target_size or property_value(metadata, "delta.targetFileSize") or _GIB
    files = [add for add in chosen_files(table, where) if add.clustering_provider is None]
    options = OptimizeOptions(target_size=int(asked), lone_files=False)
    return plan_optimize(files, rules=TableRules.of(metadata), options=options)


def _carried_out(table: Table, where: str | None, target_size: int | None) -> dict[str, Any]:
    from twinlake.spark.local_session import local_session

    with local_session() as spark:
        from twinlake.spark.maintenance.optimize import optimize as run

        done = run(spark, table, where, target_size)
    return {
        "version": done.version,
        "files": len(done.removed),
        "size_in_bytes": sum(file.size for file in done.removed),
        "new_files": len(done.added),
        "new_size_in_bytes": sum(file.size for file in done.added),
    }


def _said(facts: dict[str, Any]) -> str:
    old, new = counted(facts["files"], "file"), counted(facts["new_files"], "file")
    if not facts["files"]:
        return "There is nothing to pack."
    if facts["dry_run"]:
        return f"{old} would become {new}. Nothing was done; run it again with --yes to do it."
    return f"{old} became {new}. Version {facts['version']} says so."


def _shown(facts: dict[str, Any]) -> Facts:
    shown = {
        "files looked at": facts["files_considered"],
        "files to pack" if facts["dry_run"] else "files packed": facts["files"],
        "their bytes": facts["size_in_bytes"],
        "new files": facts["new_files"],
        **({"new bytes": facts["new_size_in_bytes"]} if "new_size_in_bytes" in facts else {}),
    }
    return Facts(tuple((name, str(value)) for name, value in shown.items()))
