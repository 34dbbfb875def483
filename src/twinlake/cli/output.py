"""The output of every command: an interface with a console and a JSON renderer.

The text of an error goes to standard error by both.
"""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable

    from twinlake.cli.view import View
    from twinlake.errors import TwinlakeError

__all__ = ["Output", "allow_any_text", "is_utf8"]


class Output(Protocol):
    """Where a command writes its result."""

    @property
    def is_terminal(self) -> bool:
        """Whether standard output is a terminal."""
        ...

    def show(self, view: View) -> None:
        """Write the result of a command."""
        ...

    def show_all(self, views: Iterable[View]) -> None:
        """Several views, each shown as soon as it exists."""
        ...

    def error(self, error: TwinlakeError) -> None:
        """Write an error in three lines."""
        ...


def allow_any_text() -> None:
    """Escape characters that the encoding of the terminal or the pipe does not have."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not is_utf8(stream):
            stream.reconfigure(errors="backslashreplace")


def is_utf8(stream: TextIO) -> bool:
    """Whether a stream takes any character."""
    return (stream.encoding or "").lower().replace("-", "") == "utf8"
