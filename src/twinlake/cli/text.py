"""Values of a table as text, the same in every command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twinlake.log import render_timestamp
from twinlake.protocol import read_blockers, write_blockers

if TYPE_CHECKING:
    from twinlake.log import Snapshot
    from twinlake.protocol import Protocol

__all__ = [
    "count_text",
    "protocol_text",
    "readability",
    "time_text",
    "truncate",
]


def time_text(ms: int | None) -> str | None:
    """A time as ISO text in UTC, without a blank, so that awk counts one column."""
    return render_timestamp(ms) if ms else None


def count_text(number: int, noun: str) -> str:
    """A number with its noun.

    >>> count_text(1, "file"), count_text(2, "file")
    ('1 file', '2 files')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def truncate(text: str, width: int) -> str:
    """Text cut to a width, with a mark where it was cut.

    >>> truncate("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= width else text[: width - 1] + "…"


def protocol_text(protocol: Protocol) -> str:
    """The versions, and the lists where there are any.

    >>> from twinlake.protocol import Protocol
    >>> protocol_text(Protocol(1, 2))
    'reader 1, writer 2'
    """
    return f"reader {protocol.min_reader_version}, writer {protocol.min_writer_version}"


def readability(snapshot: Snapshot) -> dict[str, Any]:
    """The features that block twinlake from reading or writing the table."""
    return {
        "read_blocked_by": list(read_blockers(snapshot.protocol)),
        "write_blocked_by": list(write_blockers(snapshot.protocol, metadata=snapshot.metadata)),
    }
