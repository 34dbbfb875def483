"""A long list of JSON objects that stays text, of which a reader looks at the ends.

The metadata file lists every snapshot there is and is rewritten with every commit. What it costs to
carry the list on should be neither what it costs to parse it nor what it costs to copy it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["NO_ENTRIES", "RawEntries", "RawSpan"]

#: A quote within a string is escaped. So this stands between two objects of a list and, as long as
#: these hold no lists of objects themselves, in one other case: where a string ends with ``},{``.
_BETWEEN: Final = b'},{"'
#: What follows the quote there. The first key of an entry starts with none of these.
_AFTER_STRING: Final = b",:}]"
#: A stretch of fewer bytes is copied to put the next object behind it: a list has few stretches.
_SHORT: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class RawSpan:
    """Objects that stand in some text, one behind the other; there is at least one."""

    data: bytes
    start: int
    end: int

    def texts(self) -> Iterator[bytes]:
        """The objects, each cut out when its turn comes."""
        at = self.start
        while at < self.end:
            after = self._after(at)
            yield self.data[at:after]
            at = after + 1

    @property
    def last(self) -> bytes:
        """The last object."""
        before = self.data.rfind(_BETWEEN, self.start, self.end)
        while before >= 0 and self._ends_string(before):
            before = self.data.rfind(_BETWEEN, self.start, before)
        # Past the brace and the comma.
        return self.data[self.start if before < 0 else before + 2 : self.end]

    def without_first(self, count: int) -> tuple[RawSpan | None, int]:
        """What is left when objects are taken from the front, and how many were too few."""
        at = self.start
        while count and at < self.end:
            at, count = self._after(at) + 1, count - 1
        return (RawSpan(self.data, at, self.end) if at < self.end else None), count

    def holds(self, text: bytes) -> bool:
        """Whether some text stands in one of the objects."""
        return self.data.find(text, self.start, self.end) >= 0

    def _after(self, at: int) -> int:
        """Where an object ends that starts at an offset."""
        before = self.data.find(_BETWEEN, at, self.end)
        while before >= 0 and self._ends_string(before):
            before = self.data.find(_BETWEEN, before + 1, self.end)
        return self.end if before < 0 else before + 1

    def _ends_string(self, at: int) -> bool:
        """Whether what looks like the gap between two objects is the end of a string."""
        return self.data[at + len(_BETWEEN)] in _AFTER_STRING


@dataclass(frozen=True, slots=True)
class RawEntries:
    """The objects of a list, without white space between them.

    What was read is not copied, and not looked at before somebody asks for what is in it.
    """

    stretches: tuple[RawSpan, ...] = ()

    @classmethod
    def within(cls, data: bytes, start: int, end: int) -> RawEntries:
        """What stands between the brackets of a list in some text."""
        return cls((RawSpan(data, start, end),)) if start < end else NO_ENTRIES

    def __bool__(self) -> bool:
        return bool(self.stretches)

    def __iter__(self) -> Iterator[bytes]:
        """The texts, each cut out when its turn comes."""
        for stretch in self.stretches:
            yield from stretch.texts()

    @property
    def last(self) -> bytes:
        """The text of the last object; there has to be one."""
        return self.stretches[-1].last

    def followed_by(self, text: bytes) -> RawEntries:
        """The list with one object more."""
        before = self.stretches
        if before and before[-1].end - before[-1].start < _SHORT:
            short, before = before[-1], before[:-1]
            text = b",".join((memoryview(short.data)[short.start : short.end], text))
        return RawEntries((*before, RawSpan(text, 0, len(text))))

    def without_first(self, count: int) -> RawEntries:
        """The list that is left when so many objects are taken from the front."""
        for index, stretch in enumerate(self.stretches):
            left, count = stretch.without_first(count)
            if left is not None:
                return RawEntries((left, *self.stretches[index + 1 :]))
        return NO_ENTRIES

    def holds(self, text: bytes) -> bool:
        """Whether some text stands in one of the objects."""
        return any(stretch.holds(text) for stretch in self.stretches)

    def pieces(self) -> Iterator[bytes | memoryview]:
        """What stands between the brackets of the list."""
        for index, stretch in enumerate(self.stretches):
            if index:
                yield b","
            yield memoryview(stretch.data)[stretch.start : stretch.end]


NO_ENTRIES: Final = RawEntries()
