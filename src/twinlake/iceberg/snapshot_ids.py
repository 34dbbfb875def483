"""Snapshot ids computed from the table and the Delta version, and the way back.

An id looks like any other, and whoever knows the table can tell the version from it. So metadata
that was lost comes out with the same ids, and time travel by id goes to the right version.
"""

from __future__ import annotations

import hashlib
from typing import Final

__all__ = ["snapshot_id", "version_of"]

# The top bit that a positive long can have is always set, so that no id is zero or small.
_BITS: Final = 62
_TOP: Final = 1 << _BITS
_MASK: Final = _TOP - 1
# More than half of the bits: then folding the upper ones in is undone by doing it again.
_FOLD: Final = 32
# Odd, so that multiplying by it can be undone modulo a power of two.
_FACTOR: Final = 0x2D35_8DCC_AA6C_78A5 & _MASK
_INVERSE: Final = pow(_FACTOR, -1, _TOP)
#: Versions above this are taken for ids that somebody else drew.
_MOST: Final = 1 << 40


def snapshot_id(table_id: str, version: int) -> int:
    """The id of the snapshot that a Delta version makes.

    >>> version_of("t", snapshot_id("t", 7))
    7
    """
    mixed = ((version ^ _key(table_id)) * _FACTOR) & _MASK
    mixed ^= mixed >> _FOLD
    return _TOP | ((mixed * _FACTOR) & _MASK)


def version_of(table_id: str, snapshot: int) -> int | None:
    """The Delta version an id was computed from; None if it was not, for this table."""
    if not _TOP <= snapshot < 2 * _TOP:
        return None
    mixed = ((snapshot & _MASK) * _INVERSE) & _MASK
    mixed ^= mixed >> _FOLD
    version = ((mixed * _INVERSE) & _MASK) ^ _key(table_id)
    return version if version < _MOST else None


def _key(table_id: str) -> int:
    digest = hashlib.sha256(table_id.encode()).digest()
    return int.from_bytes(digest[:8], "big") & _MASK
