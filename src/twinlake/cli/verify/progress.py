"""One line on a terminal that says how far a long search is."""

from __future__ import annotations

import sys
import time
from typing import Final, Self

__all__ = ["ProgressLine"]

_PAUSE: Final = 0.1


class ProgressLine:
    """A line on standard error that is written over; nothing where nobody is looking."""

    def __init__(self) -> None:
        self._shown = 0
        self._last = time.monotonic()
        self._watched = sys.stderr.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.clear()

    def tell(self, what: object) -> None:
        """Show where the search is, not more often than a person can read."""
        now = time.monotonic()
        if not self._watched or now - self._last < _PAUSE:
            return
        self._last = now
        text = str(what)
        sys.stderr.write("\r" + text + " " * max(self._shown - len(text), 0))
        sys.stderr.flush()
        self._shown = len(text)

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            sys.stderr.write("\r" + " " * self._shown + "\r")
            sys.stderr.flush()
            self._shown = 0
