"""The output of every command: an interface with a console and a JSON renderer.

With ``--json`` the answer is exactly one JSON document on standard output, also for errors
(``{"error": {...}}``). The text of an error goes to standard error in both cases.
"""

from __future__ import annotations

import io
import json
import sys
from typing import TYPE_CHECKING, Any, Protocol, TextIO

import click
import msgspec

from twinlake.cli.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Iterable

    from twinlake.cli.view import View
    from twinlake.errors import TwinlakeError

__all__ = ["JsonOutput", "Output", "allow_any_text", "error_lines"]

_ADVICE = {
    "UserError": ("The input is invalid.", "Correct it and run the command again."),
    "UnsupportedFeature": (
        "The table requires features that this release does not support.",
        "Use a newer release, or drop the feature with a client that supports it.",
    ),
    "CompatViolation": (
        "The table breaks rules of its compat features.",
        "Run `twinlake check` for the violations and their fixes.",
    ),
    "ConflictError": (
        "A concurrent commit won.",
        "Run the command again: it starts from the newest version.",
    ),
    "CommitUnknown": (
        "The store did not confirm the commit.",
        "Run `twinlake history` to see whether it was committed, before running the command again.",
    ),
    "CorruptTable": (
        "The log contradicts the Delta protocol.",
        "Restore the damaged file from a backup.",
    ),
    "StorageError": ("The store failed or refused.", "Check the path and the access to it."),
}


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


class JsonOutput:
    """One JSON document on standard output."""

    is_terminal = False

    def show(self, view: View) -> None:
        """The data of the view."""
        self._write(view.data)

    def show_all(self, views: Iterable[View]) -> None:
        """All views in one document."""
        self._write({"steps": [dict(view.data) for view in views]})

    def error(self, error: TwinlakeError) -> None:
        """Three lines on standard error, one object on standard output."""
        click.echo("\n".join(error_lines(error)), err=True)
        self._write({"error": {**error.to_dict(), "type": type(error).__name__}})

    def _write(self, data: Any) -> None:
        shown = redact(data)
        try:
            # Values beyond JSON (dates, decimals, not-a-number) become text or null.
            encoded = msgspec.json.encode(shown, enc_hook=str)
            text = msgspec.json.format(encoded, indent=2).decode()
        except UnicodeEncodeError:
            # A path that is not Unicode has lone surrogates, which only escapes can hold.
            text = json.dumps(shown, indent=2, default=str)
        if not _is_utf8(sys.stdout):
            text = json.dumps(json.loads(text), indent=2)
        sys.stdout.write(text + "\n")


def allow_any_text() -> None:
    """Escape characters that the encoding of the terminal or the pipe does not have."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not _is_utf8(stream):
            stream.reconfigure(errors="backslashreplace")


def _is_utf8(stream: TextIO) -> bool:
    return (stream.encoding or "").lower().replace("-", "") == "utf8"


def error_lines(error: TwinlakeError) -> list[str]:
    """What, why, fix: always three lines, whatever the texts hold.

    >>> from twinlake.errors import Code, UserError
    >>> error_lines(UserError(Code.TABLE_NOT_FOUND, "No table here.", why="it is empty"))[:2]
    ['TWIN-TABLE-NOT-FOUND  No table here.', '  why: it is empty']
    """
    names = [cls.__name__ for cls in type(error).__mro__]
    why, fix = next(
        (_ADVICE[name] for name in names if name in _ADVICE),
        ("The cause is unknown.", "Run the command again with --debug for the stack trace."),
    )
    return [
        f"{error.code}  {_one_line(error.what)}",
        f"  why: {_one_line(error.why) or why}",
        f"  fix: {_one_line(error.fix) or fix}",
    ]


def _one_line(text: str) -> str:
    return " ".join(text.split())
