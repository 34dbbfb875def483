"""How many files hold which part of a column's range: whether a predicate can skip files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PARTS", "power_buckets", "range_counts"]

PARTS: Final = 24
"""Equal parts of a range."""
_BUCKETS: Final = 8


def range_counts(low: pa.ChunkedArray, high: pa.ChunkedArray) -> list[int] | None:
    """For each part of the range the files whose own range reaches into it.

    None where values have no distances, as texts have none, or are all the same.
    """
    known = pc.and_(pc.is_valid(low), pc.is_valid(high))
    ends = [_numbers(values.filter(known)) for values in (low, high)]
    starts, stops = ends
    if starts is None or stops is None or not len(starts):
        return None
    first, last = starts.min(), stops.max()
    width = (last - first) / PARTS
    if not (np.isfinite(width) and width > 0):
        return None
    begins = np.clip((starts - first) // width, 0, PARTS - 1).astype(np.int64)
    finishes = np.clip((stops - first) // width, 0, PARTS - 1).astype(np.int64)
    changes = np.bincount(begins, minlength=PARTS + 1)
    changes -= np.bincount(finishes + 1, minlength=PARTS + 1)
    counts: list[int] = np.cumsum(changes)[:PARTS].tolist()
    return counts


def _numbers(values: pa.ChunkedArray) -> Any:
    kind = values.type
    if pa.types.is_date32(kind):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(kind):
        values = values.cast(pa.int64())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return None
    # Exactly enough for a drawing.
    return values.cast(pa.float64(), safe=False).to_numpy()


def power_buckets(values: pa.ChunkedArray) -> Iterator[tuple[int, int, pa.ChunkedArray]]:
    """Values by powers of two, at most eight of them: from, below, and which of them."""
    values = values.drop_null()
    if not len(values):
        return
    low, high = pc.min(values).as_py().bit_length(), pc.max(values).as_py().bit_length()
    step = -(-(high - low + 1) // _BUCKETS)
    for bits in range(low, high + 1, step):
        # A number of n bits is at least 2 ** (n - 1).
        start, end = 1 << bits >> 1, 1 << (bits + step) >> 1
        within = values.filter(pc.and_(pc.greater_equal(values, start), pc.less(values, end)))
        yield start, end, within
