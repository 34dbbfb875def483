"""Which row groups of a file may hold matching rows, by the statistics in its footer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from twinlake.schema.predicates import FileStats, prune

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow.parquet as pq

    from twinlake.files.column_projection import FileColumn
    from twinlake.schema import ColumnPath
    from twinlake.schema.predicates import Expr

__all__ = ["matching_row_groups"]

#: Logical types whose bounds order as their values do. Floats do not: not-a-number has no place.
_ORDERED: Final = frozenset(("NONE", "INT", "STRING", "DATE", "TIMESTAMP"))
_PHYSICAL: Final = frozenset(("INT32", "INT64", "BYTE_ARRAY", "BOOLEAN"))


def matching_row_groups(
    footer: pq.FileMetaData, where: Expr, columns: dict[str, FileColumn]
) -> Sequence[int]:
    """The row groups that may hold a row for which the predicate is true.

    ``columns`` are those that the predicate may look at, by name.
    """
    groups = range(footer.num_row_groups)
    if len(groups) == 0:
        return groups
    places = {footer.schema.column(i).path: i for i in range(len(footer.schema))}
    low: dict[ColumnPath, pa.Array] = {}
    high: dict[ColumnPath, pa.Array] = {}
    nulls: dict[ColumnPath, pa.Array] = {}
    for path in where.columns():
        column = columns.get(path[0])
        # A value that is moved, cast or padded is not the one that the bounds are of.
        if len(path) > 1 or column is None or column.name is None or column.shape is not None:
            continue
        place = places.get(column.name)
        if place is None or not _is_ordered(footer.schema.column(place)):
            continue
        found = [footer.row_group(group).column(place).statistics for group in groups]
        low[path], high[path], nulls[path] = _bounds(found, column.kind)
    if not low:
        return groups
    counts = pa.array([footer.row_group(group).num_rows for group in groups], pa.int64())
    stats = FileStats(num_rows=len(groups), min=low, max=high, null_count=nulls, num_records=counts)
    chosen: list[int] = pc.indices_nonzero(prune(where, stats)).to_pylist()
    return chosen


def _is_ordered(column: Any) -> bool:
    return column.physical_type in _PHYSICAL and column.logical_type.type in _ORDERED


def _bounds(found: Sequence[Any], kind: pa.DataType) -> tuple[pa.Array, pa.Array, pa.Array]:
    counts = [s.null_count if s is not None and s.has_null_count else None for s in found]
    return (
        pa.array([_bound(s, "min") for s in found], kind),
        pa.array([_bound(s, "max") for s in found], kind),
        pa.array(counts, pa.int64()),
    )


def _bound(stats: Any, end: str) -> Any:
    if stats is None or not stats.has_min_max:
        return None
    try:
        return getattr(stats, end)
    except (OverflowError, ValueError):
        # A date that Python does not have.
        return None
