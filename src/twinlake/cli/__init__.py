"""The command line: ``twinlake`` and ``python -m twinlake``.

One module a command, one ``Output`` with a console and a JSON renderer. What takes long to load
(pyarrow, rich, sqlglot, obstore) is loaded by the commands that need it, when they run.
"""

from __future__ import annotations

import click

from twinlake.cli.command import CommandGroup
from twinlake.cli.commands import COMMANDS

__all__ = ["COMMANDS", "main"]


@click.group(
    cls=CommandGroup,
    name="twinlake",
    commands={made.name or "": made for made in COMMANDS},
    context_settings={"max_content_width": 100, "help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="twinlake", message="twinlake %(version)s")
def main() -> None:
    """Look at lakehouse tables and change them, without a JVM.

    PATH is a folder or a URL (s3://, gs://, az://, abfss://). Every command has --json: then
    standard output is exactly one JSON document, and {"error": {...}} if the command failed.

    Errors are three lines on standard error: what happened, why, and how to mend it.
    Exit status: 0 done, 1 failed, 2 wrong usage.

    Credentials among properties are masked everywhere but in `log --raw`. Colours appear on a
    terminal only, and never with NO_COLOR set.
    """
