"""A long list of JSON objects that stays text, of which a reader looks at the ends.

The metadata file lists every snapshot there is and is written anew with every commit. What it costs
to carry the list on should not be what it costs to parse it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["NO_ENTRIES", "EntryTexts"]

#: A quote within a string is escaped, so this stands between two objects of a list and, as long as
#: these hold no lists of objects themselves, nowhere else.
_BETWEEN: Final = b'},{"'


@dataclass(frozen=True, slots=True)
class EntryTexts:
    """The objects of a list, without white space between them: a stretch of a file, and new ones.

    The stretch is not copied, and not looked at before somebody asks for what is in it.
    """

    data: bytes = b""
    start: int = 0
    end: int = 0
    new: tuple[bytes, ...] = ()

    def __bool__(self) -> bool:
        return self.start < self.end or bool(self.new)

    def __iter__(self) -> Iterator[bytes]:
        """The texts, each cut out when its turn comes."""
        at = self.start
        while at < self.end:
            after = self._after(at)
            yield self.data[at:after]
            at = after + 1
        yield from self.new

    @property
    def last(self) -> bytes:
        """The text of the last object; there has to be one."""
        if self.new:
            return self.new[-1]
        before = self.data.rfind(_BETWEEN, self.start, self.end)
        # Past the brace and the comma.
        return self.data[self.start if before < 0 else before + 2 : self.end]

    def followed_by(self, text: bytes) -> EntryTexts:
        """The list with one object more."""
        return replace(self, new=(*self.new, text))

    def without_first(self, count: int) -> EntryTexts:
        """The list that is left when so many objects are taken from the front."""
        at = self.start
        while count and at < self.end:
            at, count = self._after(at) + 1, count - 1
        return replace(self, start=min(at, self.end), new=self.new[count:])

    def holds(self, text: bytes) -> bool:
        """Whether some text stands in one of the objects."""
        return self.data.find(text, self.start, self.end) >= 0 or any(
            text in one for one in self.new
        )

    def pieces(self) -> Iterator[bytes | memoryview]:
        """What stands between the brackets of the list."""
        yield memoryview(self.data)[self.start : self.end]
        if self.new:
            yield b"," if self.start < self.end else b""
            yield b",".join(self.new)

    def _after(self, at: int) -> int:
        """Where an object ends that starts at some place."""
        before = self.data.find(_BETWEEN, at, self.end)
        return self.end if before < 0 else before + 1


NO_ENTRIES: Final = EntryTexts()
