"""``twinlake verify iceberg`` and ``delta``: check the models of a format's commits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinlake.cli.command import command
from twinlake.cli.verify import run as verifying
from twinlake.cli.verify.exit_status import end_with
from twinlake.cli.verify.options import ModelCommand, given_parameters, search_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from twinlake.cli.command import Command
    from twinlake.cli.output import Output

__all__ = ["verify_delta", "verify_iceberg"]

_NUMBER = click.IntRange(min=1)

_OPTIONS = (
    click.option(
        "--config",
        metavar="NAME",
        help="Start from this configuration; other options change it. See --list.",
    ),
    click.option(
        "--extension", metavar="NAME", help="The model to check instead of the base model."
    ),
    click.option(
        "--mutant", metavar="NAME", help="A deliberate mistake to check, which must be caught."
    ),
    click.option("--list", "listing", is_flag=True, help="List what there is to check."),
    click.option(
        "--schedule", metavar="NAME", help="Follow this run step by step instead of searching."
    ),
    click.option(
        "--symmetry/--no-symmetry",
        default=None,
        help="Take actors of one role for interchangeable.",
    ),
    click.option(
        "--value-symmetry/--no-value-symmetry",
        default=None,
        help="Take data values for interchangeable that the model says are.",
    ),
    click.option(
        "--reduction/--no-reduction",
        default=None,
        help="Fuse steps by partial order, as far as what they declare allows.",
    ),
    click.option(
        "--without",
        multiple=True,
        metavar="PROPERTY",
        help="A property to leave out. Repeatable.",
    ),
    click.option("--keep-going", is_flag=True, help="Do not stop at the first violation."),
    click.option("--max-states", type=_NUMBER, metavar="N", help="Give up after so many states."),
    click.option(
        "--engine",
        type=click.Choice(["auto", "loop", "columns"]),
        help="Take state by state, or whole levels as columns; by default as suits their size.",
    ),
    click.option(
        "--walk", is_flag=True, help="Follow random paths, where there are too many states."
    ),
    click.option(
        "--seed", type=int, default=0, show_default=True, metavar="N", help="Of random paths."
    ),
    click.option(
        "--walks", type=_NUMBER, default=100, show_default=True, help="How many random paths."
    ),
    click.option(
        "--max-steps",
        type=_NUMBER,
        default=1000,
        show_default=True,
        help="How long a random path may be.",
    ),
    click.option(
        "--html",
        "page",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Also write a page with a sequence diagram of the trace.",
    ),
    click.option(
        "--verbose",
        is_flag=True,
        help="Also show what each actor holds, and counters of the model.",
    ),
)


def _of_models(name: str) -> Callable[[Callable[..., None]], Command]:
    """A command that checks the models of a table format."""

    def decorate(function: Callable[..., None]) -> Command:
        for option in reversed(_OPTIONS):
            option(function)
        made = command(table=False, cls=ModelCommand)(function)
        made.name = name
        return made

    return decorate


@_of_models("iceberg")
def verify_iceberg(output: Output, **given: Any) -> None:
    """Check the models of Iceberg commits.

    Without options this is the published model's configuration, as with --config seed: two
    writers, merge-on-read, snapshot isolation. A DELETE and an UPDATE of one row both commit, and
    the row is still there. --fix proves the remedy.
    """
    _checked("iceberg", output, given)


@_of_models("delta")
def verify_delta(output: Output, **given: Any) -> None:
    """Check the models of Delta commits.

    Without options: two writers on a store that can put if absent. --config u2 shows what happens
    without it. The extensions are about lost replies, checkpoints, VACUUM, deletion vectors and
    row ids.
    """
    _checked("delta", output, given)


def _checked(family: str, output: Output, given: dict[str, Any]) -> None:
    request = verifying.CheckRequest(
        family=family,
        parameters=given_parameters(given),
        options=search_options(given),
        **{name: value for name, value in given.items() if name != "listing"},
    )
    if given["listing"]:
        output.show(verifying.listing(request))
        return
    view, status = verifying.run(request)
    output.show(view)
    end_with(status)
