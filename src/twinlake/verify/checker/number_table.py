"""A set of 64-bit numbers in one array, filled and asked by whole columns.

Open addressing: a number lies at the first free place of its probe sequence, and it is the number
itself that is compared, never a fingerprint of it, so that the answer is exact. Two thirds of the
places are in use at most, which makes a number cost 12 to 24 bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

__all__ = ["NumberTable"]

FREE: Final = -1
#: What a place holds while several numbers of one column want it: this less their index.
FIRST_CLAIM: Final = -2
FEWEST_BITS: Final = 12
#: 2 to the 64th over the golden ratio: neighbours end far apart (Knuth, The Art of Computer
#: Programming, volume 3, section 6.4).
SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)
FOLD: Final = np.uint64(32)
#: How much of a table is moved at once when it grows.
ROWS: Final = 1 << 18


class NumberTable:
    """A set of numbers from 0 to 2**63 - 1; it only grows."""

    __slots__ = ("_bits", "_places", "count")

    def __init__(self) -> None:
        self.count = 0
        self._bits = FEWEST_BITS
        self._places = _free_places(self._bits)

    @property
    def places(self) -> int:
        """How many places there are: an array beside the table has a value for each."""
        return len(self._places)

    def add(self, numbers: Numbers) -> NDArray[np.bool_]:
        """Add numbers; returns which were not there before, the first of equal ones only."""
        self._reserve(len(numbers))
        is_new = np.zeros(len(numbers), np.bool_)
        rows = np.arange(len(numbers))
        places = self._home(numbers)
        for step in range(1, len(self._places) + 1):
            held = self._places[places]
            free = np.flatnonzero(held == FREE)
            if len(free):
                is_new[rows[self._settle(places[free], free, numbers[free])]] = True
                held[free] = self._places[places[free]]
            # What met another number goes on by one place more each time, which meets all places.
            left = np.flatnonzero(held != numbers)
            if not len(left):
                break
            rows, numbers = rows[left], numbers[left]
            places = (places[left] + step) & (len(self._places) - 1)
        self.count += int(np.count_nonzero(is_new))
        return is_new

    def find(self, numbers: Numbers) -> NDArray[np.int64]:
        """The place of each number, -1 for those that are not there."""
        found = self._home(numbers)
        held = self._places[found]
        rows = np.flatnonzero(held != numbers)
        places, held = found[rows], held[rows]
        step = 0
        while len(rows):
            step += 1
            found[rows[held == FREE]] = -1
            left = np.flatnonzero(held != FREE)
            rows = rows[left]
            places = (places[left] + step) & (len(self._places) - 1)
            held = self._places[places]
            same = held == numbers[rows]
            found[rows[same]] = places[same]
            rows, places, held = rows[~same], places[~same], held[~same]
        return found

    def _settle(self, places: Any, claims: Any, numbers: Numbers) -> Any:
        """Put numbers into free places; returns which of the claims won."""
        claims = FIRST_CLAIM - claims
        # Of several values for one place the last one stays, as a rule: from the back, the first
        # claim does. NumPy does not promise it, so what should have stayed is written once more.
        self._places[places[::-1]] = claims[::-1]
        standing = self._places[places]
        while len(wrong := np.flatnonzero(standing < claims)):
            self._places[places[wrong[::-1]]] = claims[wrong[::-1]]
            standing = self._places[places]
        won = np.flatnonzero(standing == claims)
        self._places[places[won]] = numbers[won]
        return FIRST_CLAIM - claims[won]

    def _home(self, numbers: Numbers) -> NDArray[np.int64]:
        mixed = numbers.view(np.uint64)
        mixed = (mixed ^ (mixed >> FOLD)) * SPREAD
        mixed >>= np.uint64(64 - self._bits)
        return mixed.view(np.int64)

    def _reserve(self, more: int) -> None:
        bits = self._bits
        while 3 * (self.count + more) > 2 << bits:
            bits += 1
        if bits == self._bits:
            return
        before, self._places = self._places, _free_places(bits)
        self._bits, self.count = bits, 0
        for at in range(0, len(before), ROWS):
            part = before[at : at + ROWS]
            self.add(part[part != FREE])


def _free_places(bits: int) -> Numbers:
    return np.full(1 << bits, FREE, np.int64)
