"""Statistics that Parquet footers cannot give, taken from the batches while they are written.

pyarrow's writer leaves NaN out of its bounds and drops the bounds of very long strings, and a
footer counts the nulls of leaves, not of arrays. Everything else is left to the footer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinlake._lazy_exports import lazy_module
from twinlake.log.stats.bound import lower, upper
from twinlake.schema import DOUBLE, FLOAT, STRING

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    import pyarrow.compute as pc

    from twinlake.log.stats.columns import StatsColumn, StatsColumns
    from twinlake.schema import ColumnPath
else:
    pa = lazy_module("pyarrow")
    pc = lazy_module("pyarrow.compute")

__all__ = ["BatchStats", "Bounds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Raw bounds of one column, as a footer would keep them, and its number of nulls."""

    nulls: int = 0
    low: Any = None
    high: Any = None

    def merged(self, other: Bounds) -> Bounds:
        """The bounds of both."""
        return Bounds(
            nulls=self.nulls + other.nulls,
            low=_either(lower, self.low, other.low),
            high=_either(upper, self.high, other.high),
        )


class BatchStats:
    """Collects over the batches of one file, which carry physical names.

    >>> import pyarrow as pa
    >>> from twinlake.log import StatsColumns
    >>> from twinlake.protocol import Metadata
    >>> from twinlake.schema import parse_ddl
    >>> metadata = Metadata().with_schema(parse_ddl("x DOUBLE, tags ARRAY<INT>"))
    >>> stats = BatchStats(StatsColumns.of(metadata))
    >>> stats.update(pa.record_batch({"x": [1.0, float("nan")], "tags": [None, [1]]}))
    >>> stats.get(("tags",)).nulls, stats.get(("x",)).high
    (1, nan)
    """

    def __init__(self, columns: StatsColumns) -> None:
        self.rows = 0
        self._found = {c.path: (_measure_of(c), Bounds()) for c in columns.columns if _is_ours(c)}

    def update(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Take in rows that are written to the file."""
        if isinstance(batch, pa.Table):
            for part in batch.to_batches():
                self.update(part)
            return
        self.rows += batch.num_rows
        for path, (measure, so_far) in self._found.items():
            array = _at(batch, path)
            new = Bounds(nulls=batch.num_rows) if array is None else measure(array)
            self._found[path] = measure, so_far.merged(new)

    def get(self, path: ColumnPath) -> Bounds | None:
        """What is known of a column; None if it is the footer's to say."""
        found = self._found.get(path)
        return None if found is None else found[1]


def _is_ours(column: StatsColumn) -> bool:
    return column.is_group or (column.ordered and column.type in (FLOAT, DOUBLE, STRING))


def _measure_of(column: StatsColumn) -> Callable[[pa.Array], Bounds]:
    if column.is_group:
        return lambda array: Bounds(nulls=array.null_count)
    return _strings if column.type == STRING else _floats


def _at(batch: pa.RecordBatch, path: ColumnPath) -> pa.Array | None:
    index = batch.schema.get_field_index(path[0])
    if index < 0:
        return None
    array = batch.column(index)
    for name in path[1:]:
        index = array.type.get_field_index(name) if pa.types.is_struct(array.type) else -1
        if index < 0:
            return None
        # Unlike ``array.field`` this knows that members of a null struct are null.
        array = pc.struct_field(array, [index])
    return array


def _strings(array: pa.Array) -> Bounds:
    if not pa.types.is_binary(array.type):
        array = array.cast(pa.string()) if pa.types.is_dictionary(array.type) else array
        array = array.cast(pa.large_binary())
    found = pc.min_max(array)
    return Bounds(nulls=array.null_count, low=found["min"].as_py(), high=found["max"].as_py())


def _floats(array: pa.Array) -> Bounds:
    found = pc.min_max(array)
    low, high = found["min"].as_py(), found["max"].as_py()
    if pc.any(pc.is_nan(array)).as_py():
        high = float("nan")
    if low == 0.0:
        # Which zero it is depends on which came first; the lesser one is a bound of both.
        signs = pc.divide(1.0, array.cast("float64"))
        low = -0.0 if pc.any(pc.equal(signs, float("-inf"))).as_py() else 0.0
    if high == 0.0:
        high = 0.0
    return Bounds(nulls=array.null_count, low=low, high=high)


def _either(choose: Callable[[Any, Any], Any], one: Any, other: Any) -> Any:
    if one is None or other is None:
        return other if one is None else one
    return choose(one, other)
