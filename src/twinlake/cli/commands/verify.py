"""``twinlake verify``: model checking of how tables are committed to."""

from __future__ import annotations

from typing import Final

import click

from twinlake.cli.group import CommandGroup

__all__ = ["verify"]

_COMMANDS: Final = {
    "iceberg": ("verify_models:verify_iceberg", "Check the models of Iceberg commits."),
    "delta": ("verify_models:verify_delta", "Check the models of Delta commits."),
    "code": ("verify_code:verify_code", "Check the code that commits, by running it."),
    "run": ("verify_run:verify_run", "Check a model of your own."),
    "all": (
        "verify_all:verify_all",
        "Check every model and the code, and compare with what is known.",
    ),
}


@click.group(cls=CommandGroup, name="verify", modules=_COMMANDS)
def verify() -> None:
    """Check models of commits, and the code that commits.

    Explores every interleaving of concurrent writers within the bounds of a configuration, and
    shows the shortest one that breaks a property.

    Exit status: 0 if all was explored and every property holds, 1 if one is violated, 2 if the
    arguments cannot be used, 3 if a limit ended the run before either was known.
    """
