"""The one way out of every command: an interface with a console and a JSON renderer.

With ``--json`` the answer is exactly one JSON document on standard output, also for errors
(``{"error": {...}}``). The text of an error goes to standard error in both cases.
"""

from __future__ import annotations

import io
import json
import sys
from typing import TYPE_CHECKING, Any, Protocol, TextIO

import click

from twinlake.cli.masking import masked

if TYPE_CHECKING:
    from collections.abc import Iterable

    from twinlake.cli.view import View
    from twinlake.errors import TwinlakeError

__all__ = ["JsonOutput", "Output", "allow_any_text", "error_lines"]

_ADVICE = {
    "UserError": ("The input cannot be used as it is.", "Correct it and run the command again."),
    "UnsupportedFeature": (
        "The table and this release do not support the same features.",
        "Use a newer client, or drop the feature with one that supports it.",
    ),
    "CompatViolation": (
        "The table breaks rules it has to keep.",
        "Bring it in line with them first.",
    ),
    "ConflictError": (
        "Another commit came first.",
        "Run the command again: it starts from the newest version.",
    ),
    "CommitUnknown": (
        "The store did not say whether it took the commit.",
        "Look at `twinlake history` before running the command again.",
    ),
    "CorruptTable": (
        "The log contradicts the Delta protocol.",
        "Restore the damaged file from a backup.",
    ),
    "StorageError": ("The store failed or refused.", "Check the path and the access to it."),
}


class Output(Protocol):
    """Where answers go."""

    @property
    def is_terminal(self) -> bool:
        """Whether a person is looking."""
        ...

    def show(self, view: View) -> None:
        """The answer of a command."""
        ...

    def tell(self, story: Iterable[View]) -> None:
        """An answer of several parts, each shown as soon as it is there."""
        ...

    def error(self, error: TwinlakeError) -> None:
        """What went wrong, in three lines."""
        ...


class JsonOutput:
    """One JSON document on standard output."""

    is_terminal = False

    def show(self, view: View) -> None:
        """The data of the view."""
        self._write(view.data)

    def tell(self, story: Iterable[View]) -> None:
        """The parts in one document, once all are there."""
        self._write({"steps": [dict(view.data) for view in story]})

    def error(self, error: TwinlakeError) -> None:
        """Three lines for whoever looks, one object for the program."""
        click.echo("\n".join(error_lines(error)), err=True)
        self._write({"error": {**error.to_dict(), "type": type(error).__name__}})

    def _write(self, data: Any) -> None:
        import msgspec

        shown = masked(data)
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
    """Let texts of tables be printed where the terminal or the pipe has not all of Unicode."""
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
        ("No reason is known.", "Run the command again with --debug to see where it happened."),
    )
    return [
        f"{error.code}  {_one_line(error.what)}",
        f"  why: {_one_line(error.why) or why}",
        f"  fix: {_one_line(error.fix) or fix}",
    ]


def _one_line(text: str) -> str:
    return " ".join(text.split())
