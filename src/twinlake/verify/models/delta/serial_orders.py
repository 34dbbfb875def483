"""Is there an order of operations that explains what each of them read and what they left?"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from twinlake.verify.models.delta.shipped import Commit

__all__ = [
    "APPEND",
    "COMPACT",
    "COUNT",
    "DELETE",
    "File",
    "Row",
    "Rows",
    "Work",
    "applied",
    "explained",
]

APPEND, COUNT, DELETE, COMPACT = "append", "count", "delete", "compact"

Row = tuple[str, int]


class File(NamedTuple):
    """A data file of one partition."""

    path: str
    partition: str
    rows: tuple[Row, ...]


class Work(NamedTuple):
    """An operation with what it read, what it adds and what it removes."""

    kind: str
    partition: str
    seen: tuple[Row, ...] = ()
    added: tuple[File, ...] = ()
    removed: tuple[str, ...] = ()
    commit: Commit = Commit("")


#: The rows of a table by partition, sorted.
Rows = tuple[tuple[str, tuple[Row, ...]], ...]


@lru_cache(maxsize=100_000)
def explained(start: Rows, left: tuple[Work, ...], end: Rows, *, strict: bool) -> bool:
    """Whether the operations, in some order or just in this one, lead from ``start`` to ``end``."""
    left = tuple(work for work in left if work.kind != COMPACT)
    if not left:
        return start == end
    for at, work in enumerate(left[:1] if strict else left):
        after = applied(dict(start), work)
        if after is not None and explained(
            after, (*left[:at], *left[at + 1 :]), end, strict=strict
        ):
            return True
    return False


def applied(rows: dict[str, tuple[Row, ...]], work: Work) -> Rows | None:
    """The table after an operation, or ``None`` if it would have read something else."""
    if work.kind != APPEND and rows.get(work.partition, ()) != work.seen:
        return None
    if work.kind == DELETE:
        rows.pop(work.partition, None)
    for file in work.added:
        rows[file.partition] = tuple(sorted((*rows.get(file.partition, ()), *file.rows)))
    return tuple(sorted(rows.items()))
