"""``twinlake upgrade``: enable a compat feature, after a preview of the plan."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import click

from twinlake.cli.command import command, yes_option
from twinlake.cli.compat_view import plan_blocks
from twinlake.cli.progress_display import progress_display
from twinlake.cli.spark_session import spark_session
from twinlake.cli.view import Paragraph, View
from twinlake.compat.upgrade import moment_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from twinlake.cli.output import Output
    from twinlake.cli.progress_display import ProgressDisplay
    from twinlake.cli.table_reference import TableReference
    from twinlake.compat import Plan
    from twinlake.table import Table

__all__ = ["run_upgrade", "show_upgrade", "upgrade"]

_REFUSED: Final = 1
_WAITING: Final = 3


@command(policy=True)
@click.option(
    "--to",
    "target",
    default="icebergWriterCompatV1",
    show_default=True,
    metavar="NAME",
    help="The compat feature: icebergWriterCompatV1, icebergCompatV2, ...",
)
@click.option(
    "--mode",
    type=click.Choice(["strict", "shared"]),
    default="strict",
    show_default=True,
    help="strict enables the writer feature, and Delta Spark can no longer write the table. shared "
    "prepares the table for Iceberg writers without it.",
)
@click.option(
    "--in-place",
    is_flag=True,
    help="Keep the files. Requires field ids on every node of every footer; readers that match "
    "columns by physical name return nulls until the files are rewritten.",
)
@click.option(
    "--profile",
    type=click.Choice(["spec", "spark", "kernel"]),
    default="spec",
    show_default=True,
    help="Whose interpretation of the rules counts.",
)
@click.option(
    "--give-up",
    multiple=True,
    metavar="RULES",
    help="What may be dropped: constraints, invariants, generatedColumns, "
    "identityColumns, defaults, char. Repeatable.",
)
@yes_option("the plan")
def upgrade(
    output: Output,
    reference: TableReference,
    target: str,
    mode: str,
    in_place: bool,
    profile: str,
    give_up: tuple[str, ...],
    yes: bool,
) -> None:
    """Upgrade a table to an Iceberg compat feature, step by step.

    Without --yes nothing is written: the command prints the steps, their cost and the rules they
    fix. With --yes it runs them, and starts Spark on this machine if files must be rewritten. Run
    it again to complete an upgrade that was interrupted or waits until history may be deleted. Exit
    status: 0 if the upgrade is complete or was only planned, 1 if the table cannot be upgraded, 3
    if the upgrade waits.
    """
    with progress_display(output) as progress:
        table = reference.open(progress.runtime)
        run = partial(
            table.upgrade, target, mode=mode, in_place=in_place, profile=profile, give_up=give_up
        )
        plan = run_upgrade(progress, run, yes=yes)
    show_upgrade(output, table, plan, yes=yes)


def run_upgrade(progress: ProgressDisplay, run: Callable[..., Plan], *, yes: bool) -> Plan:
    """Plan an upgrade, and run it unless it is refused."""
    with progress.stage("planning"):
        plan = run(dry_run=True)
    if not yes or plan.refused:
        return plan
    size = sum(step.cost.size for step in plan.steps)
    with (
        spark_session(wanted=plan.files > 0, progress=progress) as spark,
        progress.stage("upgrading", size_in_bytes=size),
    ):
        return run(spark=spark)


def show_upgrade(output: Output, table: Table, plan: Plan, *, yes: bool) -> None:
    """Show an upgrade; exits with 1 if it is refused, with 3 if it waits."""
    output.show(
        View(
            data={"location": table.location, "dry_run": not yes, **plan.to_dict()},
            blocks=[*plan_blocks(plan, report=not yes), Paragraph(_summary(plan, dry_run=not yes))],
        )
    )
    if plan.refused:
        click.get_current_context().exit(_REFUSED)
    if yes and not plan.done:
        click.get_current_context().exit(_WAITING)


def _summary(plan: Plan, *, dry_run: bool) -> str:
    if plan.refused:
        return "Nothing was changed."
    until = plan.waiting_until
    if dry_run and plan.steps:
        return "Nothing was changed; run the command again with --yes to upgrade."
    if until is not None:
        return f"Waiting until {moment_text(until)}; run the same command again after that."
    return "The upgrade is complete." if plan.done else "Run the same command again to continue."
