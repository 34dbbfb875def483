"""``twinlake demo``: run the examples in order and show what they do."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinlake.cli.command import command
from twinlake.cli.error_text import error_lines
from twinlake.cli.examples import load_example
from twinlake.cli.spark_session import spark_session
from twinlake.cli.view import Heading, Lines, View
from twinlake.errors import Code, UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from twinlake.cli.output import Output

__all__ = ["demo"]


@command(table=False)
@click.option(
    "--keep",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Create the tables in this folder and keep them.",
)
@click.option("--no-spark", is_flag=True, help="Leave out the examples that need Spark.")
def demo(output: Output, keep: Path | None, no_spark: bool) -> None:
    """Run the examples on real tables and show each step.

    Creates tables in a temporary folder and takes about a minute, most of it for Spark. Enables the
    change data feed and deletion vectors and shows after each step the lines of the log, and the
    errors of clients that do not support a feature. Then two writers conflict, and a version is
    restored. Spark writes, merges and deletes a million rows. Streams bring JSON files into tables
    with rules, SQL sums them up, and a batch that comes again after a crash adds nothing. A table
    is upgraded so that Iceberg writers may write it. Then come an anomaly of concurrent commits
    that a model checker finds, its fix, and the same history on a table. Last, PyIceberg writes a
    table through the catalog server, and Spark reads and changes it.
    """
    with contextlib.ExitStack() as stack:
        folder = keep or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="twinlake-demo-"))
        )
        folder.mkdir(parents=True, exist_ok=True)
        output.show_all(_numbered(_steps(folder, on_spark=not no_spark), kept=keep))


def _steps(folder: Path, *, on_spark: bool) -> Iterator[Any]:
    """The steps of all examples."""
    yield from load_example("protocol").steps(folder)
    last = load_example("concurrent_commits")
    if not on_spark:
        yield from last.steps(folder)
        return
    with contextlib.ExitStack() as stack:
        spark = None
        try:
            spark = stack.enter_context(spark_session())
        except UserError as error:
            if error.code is not Code.SPARK_REQUIRED:
                raise
            yield _without_spark(error)
        else:
            yield from load_example("rows").steps(folder, spark)
            yield from load_example("medallion").steps(folder, spark)
            yield from load_example("iceberg").steps(folder, spark)
        yield from last.steps(folder, spark)
        if spark is not None:
            yield from load_example("catalog").steps(folder, spark)


def _without_spark(error: UserError) -> Any:
    text = "\n".join(["These examples need PySpark and Java:", *error_lines(error)])
    step = load_example("step").Step
    data = {"error": error.to_dict()}
    return step(name="spark", title="Rows on Spark", is_opening=True, parts=[text], data=data)


def _numbered(steps: Iterator[Any], *, kept: Path | None) -> Iterator[View]:
    number = 0
    for step in steps:
        number += not step.is_opening
        title = step.title if step.is_opening else f"{number}. {step.title}"
        yield View(
            data={"step": step.name, **step.data},
            blocks=[Heading(title), Lines(tuple(step.text.splitlines()))],
        )
    yield _next_commands(kept)


def _next_commands(kept: Path | None) -> View:
    table = "DIR/orders" if kept is None else str(kept / "orders")
    commands = (
        *(["twinlake demo --keep DIR"] if kept is None else ()),
        f"twinlake show {table}",
        f"twinlake features {table}",
        f"twinlake diff {table} 0 2",
        f"twinlake log {table} 2",
        f"twinlake restore {table} 0",
        "twinlake features --explain deletionVectors",
        "twinlake verify iceberg --html anomaly.html",
    )
    return View(
        data={"step": "next", "kept": kept is not None, "commands": list(commands)},
        blocks=[Heading("Commands to try next"), Lines(tuple(f"  {line}" for line in commands))],
    )
