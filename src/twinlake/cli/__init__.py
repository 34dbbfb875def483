"""The command line: ``twinlake`` and ``python -m twinlake``.

One module a command, imported when the command is used; one ``Output`` with a console and a JSON
renderer.
"""

from __future__ import annotations

import click

from twinlake.cli.commands import COMMANDS
from twinlake.cli.group import CommandGroup

__all__ = ["main"]


@click.group(
    cls=CommandGroup,
    name="twinlake",
    modules=COMMANDS,
    context_settings={"max_content_width": 100, "help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="twinlake", message="twinlake %(version)s")
def main() -> None:
    """Inspect and change lakehouse tables, without a JVM.

    PATH is a folder or a URL (s3://, gs://, az://, abfss://). Every command has --json: then
    standard output is exactly one JSON document, and {"error": {...}} if the command failed.

    Errors are three lines on standard error: what happened, why, and how to fix it.
    Exit status: 0 success, 1 failure, 2 wrong usage.

    Credentials among properties are masked everywhere but in `log --raw`. Colours appear on a
    terminal only, and never with NO_COLOR set.
    """
