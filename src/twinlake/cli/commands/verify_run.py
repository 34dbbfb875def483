"""``twinlake verify run FILE``: check a model of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinlake.cli.command import command
from twinlake.cli.verify.exit_status import end_with
from twinlake.cli.verify.options import VerifyCommand, search_options

if TYPE_CHECKING:
    from twinlake.cli.output import Output

__all__ = ["verify_run"]

_NUMBER = click.IntRange(min=1)


@command(table=False, cls=VerifyCommand)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--model", metavar="NAME", help="Which model of the file, if it has several.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of the model: a field of its dataclass. Repeatable.",
)
@click.option("--symmetry", is_flag=True, help="Take actors of one role for interchangeable.")
@click.option(
    "--value-symmetry",
    is_flag=True,
    help="Take data values for interchangeable that the model says are.",
)
@click.option(
    "--reduction",
    is_flag=True,
    help="Fuse steps by partial order, as far as what they declare allows.",
)
@click.option(
    "--without", multiple=True, metavar="PROPERTY", help="A property to leave out. Repeatable."
)
@click.option("--keep-going", is_flag=True, help="Do not stop at the first violation.")
@click.option("--max-states", type=_NUMBER, metavar="N", help="Give up after so many states.")
@click.option(
    "--engine",
    type=click.Choice(["auto", "loop", "columns"]),
    help="Take state by state, or whole levels as columns; by default as suits their size.",
)
@click.option(
    "--html",
    "page",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also write a page with a sequence diagram of the trace.",
)
@click.option("--verbose", is_flag=True, help="Also show what each actor holds.")
def verify_run(output: Output, **given: Any) -> None:
    """Check a model of your own.

    FILE is a Python file with a class that is a twinlake.verify.Model; it is run to get at the
    class. Exit status: 0 if every state was seen and every property holds, 1 if one is violated,
    2 if the file cannot be used, 3 if a limit ended the search.
    """
    # Only here: the other commands need none of it.
    from twinlake.cli.verify.model_file import ModelFileRequest, run_model_file

    options = search_options(given)
    view, status = run_model_file(ModelFileRequest(options=options, **given))
    output.show(view)
    end_with(status)


verify_run.name = "run"
