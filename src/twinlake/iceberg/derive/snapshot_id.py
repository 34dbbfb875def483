"""Snapshot ids computed from the table and the Delta version, and the way back.

An id looks like any other, and from it and the id of the table the version can be computed. So
metadata that was lost comes out with the same ids, and time travel by id goes to the right version.

An Iceberg client draws an id for its own commit and looks for it afterwards. A commit that was made
for one says so in a tag of its ``commitInfo``, and its snapshot has that id in place of the
computed one. Every version that conversion can begin with still has its commit, so that the tag
is there whenever it is asked for.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final

from twinlake.errors import Code, UserError

if TYPE_CHECKING:
    from twinlake.actions import CommitInfo

__all__ = ["SNAPSHOT_TAG", "recorded_id", "snapshot_id", "snapshot_tag", "version_of"]

SNAPSHOT_TAG: Final = "twinlake.iceberg.snapshotId"
"""The tag of ``commitInfo`` that records a client's own id, as decimal text."""
_DECIMAL: Final = re.compile(r"[1-9][0-9]{0,18}")

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


def snapshot_tag(table_id: str, snapshot: int) -> dict[str, str]:
    """The tags of a commit whose snapshot is to have a client's own id.

    Raises:
        UserError: it would not be kept, being no id or one that is computed for some version.
    """
    problem = _problem(table_id, snapshot)
    if problem:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"The snapshot id {snapshot} cannot be kept.",
            why=problem,
            fix="Choose another snapshot id.",
            fields={"snapshot_id": snapshot},
        )
    return {SNAPSHOT_TAG: str(snapshot)}


def recorded_id(table_id: str, info: CommitInfo | None) -> int | None:
    """The id that a commit records for its snapshot; None where it records none to be kept.

    What is no id, or stands for some version already, is passed over: the log may say anything,
    and whoever reads it has to come to the same ids.
    """
    text = ((info.tags if info is not None else None) or {}).get(SNAPSHOT_TAG)
    if not isinstance(text, str) or _DECIMAL.fullmatch(text) is None:
        return None
    found = int(text)
    return None if _problem(table_id, found) else found


def _problem(table_id: str, snapshot: int) -> str:
    if not 0 < snapshot < 2 * _TOP:
        return f"ids are from 1 to {2 * _TOP - 1}"
    version = version_of(table_id, snapshot)
    return "" if version is None else f"it is the one that version {version} has by itself"


def _key(table_id: str) -> int:
    digest = hashlib.sha256(table_id.encode()).digest()
    return int.from_bytes(digest[:8], "big") & _MASK
