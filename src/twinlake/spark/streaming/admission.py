"""How much one micro-batch takes: ``maxFilesPerTrigger`` and ``maxBytesPerTrigger``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["UNLIMITED", "Admission", "ReadLimits"]

_DEFAULT_FILES: Final = 1000
"""What Delta Spark takes where nobody says anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """The limits of a stream; None where there is none."""

    max_files: int | None = None
    max_bytes: int | None = None

    @property
    def is_given(self) -> bool:
        """Whether somebody asked for a limit."""
        return self.max_files is not None or self.max_bytes is not None

    @property
    def or_default(self) -> ReadLimits:
        """These limits, or Delta Spark's where there are none."""
        return self if self.is_given else ReadLimits(max_files=_DEFAULT_FILES)


UNLIMITED: Final = ReadLimits()


class Admission:
    """What is left of the limits in one micro-batch.

    A file is taken as long as there is room before it, however large it is, so that every batch
    gets on; then the limits are as soft as Delta Spark's.
    """

    def __init__(self, limits: ReadLimits) -> None:
        self._is_empty = True
        self._files = limits.max_files
        self._bytes = limits.max_bytes

    def admits(self, size: int, *, must_follow: bool = False) -> bool:
        """Whether the next file is taken; one that must follow the last always is."""
        has_room = (self._files is None or self._files > 0) and (
            self._bytes is None or self._bytes > 0
        )
        self._take(1, size)
        return has_room or must_follow

    def admits_whole(self, files: int, size: int) -> bool:
        """Whether files are taken of which none goes without the others.

        They are if all of them fit, or if nothing came before them.
        """
        fits = (self._files is None or self._files >= files) and (
            self._bytes is None or self._bytes >= size
        )
        fits = fits or self._is_empty
        self._take(files, size)
        return fits

    def _take(self, files: int, size: int) -> None:
        self._is_empty = False
        if self._files is not None:
            self._files -= files
        if self._bytes is not None:
            self._bytes -= size
