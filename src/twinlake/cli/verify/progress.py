"""One line on a terminal with the progress of a long search."""

from __future__ import annotations

import sys
import time
from typing import Final, Self

__all__ = ["ProgressLine"]

_PAUSE: Final = 0.1


class ProgressLine:
    """A line on standard error that is overwritten; nothing unless that is a terminal."""

    def __init__(self) -> None:
        self._shown = 0
        self._last = time.monotonic()
        self._is_terminal = sys.stderr.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.clear()

    def update(self, what: object) -> None:
        """Show the state of the search, ten times a second at most."""
        now = time.monotonic()
        if not self._is_terminal or now - self._last < _PAUSE:
            return
        self._last = now
        text = str(what)
        sys.stderr.write("\r" + text + " " * max(self._shown - len(text), 0))
        sys.stderr.flush()
        self._shown = len(text)

    def clear(self) -> None:
        """Remove the line."""
        if self._shown:
            sys.stderr.write("\r" + " " * self._shown + "\r")
            sys.stderr.flush()
            self._shown = 0
