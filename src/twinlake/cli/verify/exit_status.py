"""How ``twinlake verify`` ends, as a job sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from twinlake.verify import Result

__all__ = ["PROVED", "STOPPED", "VIOLATED", "end_with", "status_of"]

#: Everything was run and holds; a property is broken; a limit ended the run before either.
PROVED: Final = 0
VIOLATED: Final = 1
STOPPED: Final = 3


def status_of(result: Result) -> int:
    """What a result of the model checker comes to."""
    if {"violated", "not reached"}.intersection(result.verdicts.values()):
        return VIOLATED
    return STOPPED if result.stopped else PROVED


def end_with(status: int) -> None:
    """End the command with this status."""
    if status != PROVED:
        click.get_current_context().exit(status)
