"""A table and its parts in a few words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twinlake.log import Snapshot

__all__ = ["files_text", "human_size", "one_line"]


def human_size(size: int) -> str:
    """Bytes as a person says them.

    >>> human_size(999), human_size(1536), human_size(5 * 1024**3)
    ('999 B', '1.5 KiB', '5.0 GiB')
    """
    amount, units = float(size), ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
    while amount >= 1024 and len(units) > 1:
        amount /= 1024
        units.pop(0)
    return f"{size} B" if units[0] == "B" else f"{amount:.1f} {units[0]}"


def files_text(count: int, size: int) -> str:
    """How many files, and how large they are together.

    >>> files_text(1, 2048)
    '1 file (2.0 KiB)'
    """
    return f"{count:,} file{'' if count == 1 else 's'} ({human_size(size)})"


def one_line(snapshot: Snapshot) -> str:
    """The ``repr`` of a table; reads nothing."""
    known = snapshot.known_counters
    files = f", {known.num_files} files" if known is not None else ""
    columns = len(snapshot.schema)
    return (
        f"<Table {snapshot.store.url} version {snapshot.version}, protocol {snapshot.protocol}, "
        f"{columns} column{'' if columns == 1 else 's'}{files}>"
    )
