"""The text of an error on the command line: what, why and fix, with defaults by kind of error."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twinlake.errors import TwinlakeError

__all__ = ["error_lines"]

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
