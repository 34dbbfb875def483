"""``twinlake upgrade``: bring a table to an Iceberg promise, after a look at what that takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from twinlake.cli.command import command
from twinlake.cli.plan_view import plan_blocks
from twinlake.cli.view import Prose, View

if TYPE_CHECKING:
    from twinlake.cli.output import Output
    from twinlake.cli.place import Place
    from twinlake.compat import Plan
    from twinlake.table import Table

__all__ = ["upgrade"]

_REFUSED: Final = 1
_WAITING: Final = 3


@command(policy=True)
@click.option(
    "--to",
    "target",
    default="icebergWriterCompatV1",
    show_default=True,
    metavar="NAME",
    help="The promise: icebergWriterCompatV1, icebergCompatV2, ...",
)
@click.option(
    "--mode",
    type=click.Choice(["strict", "shared"]),
    default="strict",
    show_default=True,
    help="strict makes the promise about writers, and Delta Spark can no longer write the table. "
    "shared lays the table out for them without it.",
)
@click.option(
    "--in-place",
    is_flag=True,
    help="Leave files as they are. Needs field ids on every node of every footer; readers that go "
    "by physical names see nulls until the files are written again.",
)
@click.option(
    "--profile",
    type=click.Choice(["spec", "spark", "kernel"]),
    default="spec",
    show_default=True,
    help="Whose reading of the rules counts.",
)
@click.option(
    "--give-up",
    multiple=True,
    metavar="RULES",
    help="Rules for writers that may go: constraints, invariants, generatedColumns, "
    "identityColumns, defaults, char. Repeatable.",
)
@click.option("--yes", is_flag=True, help="Do it. Without this, only tell what would be done.")
def upgrade(
    output: Output,
    place: Place,
    target: str,
    mode: str,
    in_place: bool,
    profile: str,
    give_up: tuple[str, ...],
    yes: bool,
) -> None:
    """Bring a table to an Iceberg promise, step by step.

    Without --yes nothing is written: the command tells the steps, what each costs and which rules
    it mends. With it they are done, and Spark is started on this machine if files have to be
    written again. A run that was stopped, or that has to wait until history may be deleted, is
    finished by running the command again. Exit status: 0 if the table is there or the steps were
    told, 1 if there is no way, 3 if it has to wait.
    """
    asked: dict[str, Any] = {
        "mode": mode,
        "in_place": in_place,
        "profile": profile,
        "give_up": give_up,
    }
    table = place.open()
    plan = table.upgrade(target, dry_run=True, **asked)
    done = yes and not plan.refused
    if done:
        plan = _carried_out(table, plan, target, asked)
    output.show(
        View(
            data={"location": table.location, "dry_run": not yes, **plan.to_dict()},
            blocks=[*plan_blocks(plan, report=not yes), Prose(_said(plan, dry_run=not yes))],
        )
    )
    if plan.refused:
        click.get_current_context().exit(_REFUSED)
    if done and not plan.done:
        click.get_current_context().exit(_WAITING)


def _carried_out(table: Table, plan: Plan, target: str, asked: dict[str, Any]) -> Plan:
    if not plan.files:
        return table.upgrade(target, **asked)
    from twinlake.spark.local_session import local_session

    with local_session() as spark:
        return table.upgrade(target, spark=spark, **asked)


def _said(plan: Plan, *, dry_run: bool) -> str:
    from twinlake.compat.upgrade.plan_text import moment_text

    if plan.refused:
        return "Nothing was done."
    until = plan.waiting_until
    if dry_run and plan.steps:
        return "Nothing was done; run it again with --yes to do it."
    if until is not None:
        return f"Waiting until {moment_text(until)}; run the same command again then."
    return "The table is there." if plan.done else "Run the same command again to go on."
