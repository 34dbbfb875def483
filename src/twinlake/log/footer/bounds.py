"""The values of single columns of a data file, as far as its footer bounds them.

Row groups are the larger part of a footer and are decoded only where somebody asks for columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from twinlake.schema import ColumnBounds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from twinlake.schema import ParquetNode

__all__ = ["FileColumn", "column_bounds"]

FileColumn = tuple[str, int | None]
"""A top-level column of a table: its physical name and its id."""


def column_bounds(
    footer: bytes, root: ParquetNode, columns: Sequence[FileColumn]
) -> tuple[ColumnBounds, ...]:
    """The bounds of those of the columns that the file holds; ``footer`` is with its trailer."""
    places = dict(_places(root, columns))
    if not places:
        return ()
    try:
        metadata = pq.read_metadata(pa.BufferReader(footer))
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        return tuple(
            _merged(name, [group.column(place) for group in groups])
            for name, place in places.items()
        )
    except (pa.ArrowException, OSError, IndexError) as error:
        raise ValueError(f"its footer is damaged: {error}") from error


def _places(root: ParquetNode, columns: Sequence[FileColumn]) -> Iterator[tuple[str, int]]:
    """Each column with its place among the leaves of the file."""
    by_id = {own: name for name, own in columns if own is not None}
    names = {name for name, _ in columns}
    place = 0
    for node in root.children:
        name = by_id.get(node.field_id) if node.field_id is not None else None
        name = name or (node.name if node.name in names else None)
        if name is not None and not node.is_group:
            yield name, place
        place += _leaves(node)


def _leaves(node: ParquetNode) -> int:
    return sum(map(_leaves, node.children)) if node.is_group else 1


def _merged(name: str, chunks: Sequence[Any]) -> ColumnBounds:
    """The bounds over all row groups; what one of them does not say is not known."""
    values = nulls = 0
    lows: list[Any] = []
    highs: list[Any] = []
    known = counted = True
    for chunk in chunks:
        values += chunk.num_values
        statistics = chunk.statistics
        count = (
            statistics.null_count if statistics is not None and statistics.has_null_count else None
        )
        counted = counted and count is not None
        nulls += count or 0
        if count == chunk.num_values:
            continue
        try:
            bounds = (statistics.min, statistics.max) if statistics is not None else (None, None)
        except (ValueError, OverflowError, NotImplementedError, pa.ArrowException):
            bounds = (None, None)
        known = known and None not in bounds
        lows.append(bounds[0])
        highs.append(bounds[1])
    bounded = known and bool(lows)
    return ColumnBounds(
        name=name,
        minimum=min(lows) if bounded else None,
        maximum=max(highs) if bounded else None,
        nulls=nulls if counted else None,
        values=values,
    )
