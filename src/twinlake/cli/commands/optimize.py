"""``twinlake optimize``: pack small files into larger ones, after a look at what that means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from twinlake.cli.command import command, yes_option
from twinlake.cli.partition_filter import partition_files
from twinlake.cli.progress_display import progress_display
from twinlake.cli.spark_session import spark_session
from twinlake.cli.text import count_text
from twinlake.cli.view import Fields, Paragraph, View
from twinlake.commit.plans import OptimizeOptions, TableRules, plan_optimize
from twinlake.protocol import keys, property_value

if TYPE_CHECKING:
    from twinlake.cli.output import Output
    from twinlake.cli.table_reference import TableReference
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
@yes_option("what would be done")
def optimize(
    output: Output, reference: TableReference, where: str | None, target_size: int | None, yes: bool
) -> None:
    """Compact small files into larger ones.

    Rows stay as they are, and so do older versions until VACUUM. Without --yes nothing is written:
    the command tells how many files would become how many. With it, Spark is started on this
    machine for the work.
    """
    with progress_display(output) as progress:
        table = reference.open(progress.runtime)
        plan = _plan(table, where, target_size)
        size = sum(packed.size for packed in plan.bins)
        details: dict[str, Any] = {
            "location": table.location,
            "dry_run": not yes,
            "version": None,
            "files_considered": plan.considered,
            "files": sum(len(packed.files) for packed in plan.bins),
            "size_in_bytes": size,
            "new_files": len(plan.bins),
        }
        if yes and plan.bins:
            with spark_session(progress=progress) as spark:
                label = f"compacting {count_text(details['files'], 'file')}"
                with progress.stage(label, size_in_bytes=size):
                    details |= _run(spark, table, where, target_size)
    output.show(View(data=details, blocks=[Paragraph(_summary(details)), _shown(details)]))


def _plan(table: Table, where: str | None, target_size: int | None) -> CompactionPlan:
    metadata = table.metadata
    asked = target_size or property_value(metadata, keys.TARGET_FILE_SIZE) or _GIB
    files = [add for add in partition_files(table, where) if add.clustering_provider is None]
    options = OptimizeOptions(target_size=int(asked), lone_files=False)
    return plan_optimize(files, rules=TableRules.of(metadata), options=options)


def _run(spark: Any, table: Table, where: str | None, target_size: int | None) -> dict[str, Any]:
    from twinlake.spark.maintenance import optimize as run

    done = run(spark, table, where, target_size)
    return {
        "version": done.version,
        "files": len(done.removed),
        "size_in_bytes": sum(file.size for file in done.removed),
        "new_files": len(done.added),
        "new_size_in_bytes": sum(file.size for file in done.added),
    }


def _summary(details: dict[str, Any]) -> str:
    old, new = count_text(details["files"], "file"), count_text(details["new_files"], "file")
    if not details["files"]:
        return "There is nothing to compact."
    if details["dry_run"]:
        return f"{old} would become {new}. Nothing was changed; run it again with --yes to compact."
    return f"{old} became {new} in version {details['version']}."


def _shown(details: dict[str, Any]) -> Fields:
    shown = {
        "files considered": details["files_considered"],
        "files to compact" if details["dry_run"] else "files compacted": details["files"],
        "their bytes": details["size_in_bytes"],
        "new files": details["new_files"],
        **({"new bytes": details["new_size_in_bytes"]} if "new_size_in_bytes" in details else {}),
    }
    return Fields(tuple((name, str(value)) for name, value in shown.items()))
