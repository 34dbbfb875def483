"""``twinlake verify code``: the code that really commits, under every interleaving."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinlake.cli.command import command
from twinlake.cli.verify import code_run
from twinlake.cli.verify.exit_status import end_with
from twinlake.cli.verify.options import VerifyCommand

if TYPE_CHECKING:
    from twinlake.cli.output import Output

__all__ = ["verify_code"]

_NUMBER = click.IntRange(min=1)


@command(table=False, cls=VerifyCommand)
@click.argument("workloads", nargs=-1, metavar="[WORKLOAD]...")
@click.option("--list", "listing", is_flag=True, help="List the workloads and the faults.")
@click.option(
    "--faults", is_flag=True, help="Again with one fault of each kind at every storage call."
)
@click.option(
    "--fault", "kinds", multiple=True, metavar="KIND", help="Only faults of this kind. Repeatable."
)
@click.option(
    "--sample",
    is_flag=True,
    help="Random schedules with random faults instead of all of them; with --faults, random "
    "schedules for each fault.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, metavar="N", help="Of random schedules."
)
@click.option(
    "--runs",
    type=_NUMBER,
    default=100,
    show_default=True,
    help="How many random schedules, or how many for each fault.",
)
@click.option("--limit", type=_NUMBER, metavar="N", help="Give up after so many schedules.")
@click.option("--replay", metavar="ID", help="Run one schedule again, and show it step by step.")
@click.option(
    "--shrink", metavar="ID", help="Find a shorter schedule that fails alike, and show that."
)
@click.option(
    "--models", is_flag=True, help="Run the models' counterexamples on the code: are they masked?"
)
@click.option(
    "--html",
    "page",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also write a page with a sequence diagram of the trace.",
)
@click.option("--verbose", is_flag=True, help="Also show what each actor holds.")
def verify_code(output: Output, **given: Any) -> None:
    """Check the code that commits, by running it.

    Runs two or three writers on a store in memory and switches between them at every storage
    call, in every way that can make a difference. WORKLOAD is a workload or a group of them; by
    default the pairs of writers. A schedule that fails has an id to run it again by.
    """
    listing = given.pop("listing")
    request = code_run.CodeRequest(**given)
    if listing:
        output.show(code_run.listing())
        return
    view, status = code_run.run(request)
    output.show(view)
    end_with(status)


verify_code.name = "code"
