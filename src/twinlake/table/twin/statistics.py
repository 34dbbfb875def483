"""The statistics of one file on both sides: Delta's JSON, and Iceberg's counts and bounds.

Readers skip files by them, so a bound that is too tight loses rows. Delta's side is decoded here by
other code than the one that made the Iceberg side.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal as Number
from typing import TYPE_CHECKING, Any, Final

from twinlake.iceberg.format import decode_bound
from twinlake.schema import (
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal,
)
from twinlake.table.twin.report import DifferenceKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from twinlake.iceberg.format import Leaf
    from twinlake.schema import DataType
    from twinlake.table.twin.iceberg_side import IcebergFile

__all__ = ["Remark", "compare_statistics", "read_statistics"]

Remark = tuple[DifferenceKind, str, str, str]
"""What differs, the column, what Delta says, what Iceberg says."""

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EPOCH_DAY: Final = dt.date(1970, 1, 1).toordinal()
_MOST_LONG: Final = 2**63 - 1
_MILLISECOND: Final = 1000
_NEAR: Final = 1e-6


def read_statistics(text: str | None) -> Mapping[str, Any]:
    """The statistics of an add action; none where they are damaged."""
    try:
        found = json.loads(text or "{}", parse_float=Number)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def compare_statistics(
    stats: Mapping[str, Any], file: IcebergFile, leaves: tuple[Leaf, ...]
) -> Iterator[Remark]:
    """Every column whose counts or bounds are not what Delta says."""
    for leaf in leaves:
        name = ".".join(leaf.path)
        yield from _counts(stats, file, leaf, name)
        for key, upper, bounds in (
            ("minValues", False, file.lower_bounds),
            ("maxValues", True, file.upper_bounds),
        ):
            said = _value(_at(stats.get(key), leaf.path), leaf.type)
            yield from _bound(said, bounds.get(leaf.id), leaf, name, upper=upper)


def _counts(stats: Mapping[str, Any], file: IcebergFile, leaf: Leaf, name: str) -> Iterator[Remark]:
    said = _at(stats.get("nullCount"), leaf.path)
    found = file.null_value_counts.get(leaf.id)
    if not isinstance(said, int):
        said = None
    elif stats.get("tightBounds") is False and said not in (0, stats.get("numRecords")):
        # Rows were hidden since, and how many nulls are left is not known. An entry from before
        # may still be those of all rows.
        said = said if found == said else None
    if found != said:
        yield DifferenceKind.STATISTICS, name, _told("nulls", said), _told("nulls", found)
    values = file.value_counts.get(leaf.id)
    if values is not None and values != file.record_count:
        yield (
            DifferenceKind.STATISTICS,
            name,
            _told("values", stats.get("numRecords")),
            _told("values", values),
        )


def _bound(
    said: Any, data: bytes | None, leaf: Leaf, name: str, *, upper: bool
) -> Iterator[Remark]:
    side = "max" if upper else "min"
    wanted = _outer(said, leaf.type) if upper else said
    if data is None:
        if wanted is not None:
            yield DifferenceKind.BOUND_DIFFERS, name, _told(side, said), _told(side, None)
        return
    try:
        found = decode_bound(data, leaf.type)
    except ValueError as error:
        yield DifferenceKind.BOUND_LOSES_ROWS, name, _told(side, said), f"{side} {error}"
        return
    if wanted is None:
        # Wrong statistics: readers skip files by them all the same.
        yield DifferenceKind.BOUND_LOSES_ROWS, name, _told(side, None), _told(side, found)
    elif not (found >= wanted if upper else found <= wanted):
        # Said this way round because it holds for what is not a number, too.
        yield DifferenceKind.BOUND_LOSES_ROWS, name, _told(side, said), _told(side, found)
    elif found != wanted and not _is_rounded(found, wanted, leaf.type):
        yield DifferenceKind.BOUND_DIFFERS, name, _told(side, said), _told(side, found)


def _outer(said: Any, kind: DataType) -> Any:
    """The upper bound that holds: Delta cuts instants down to milliseconds."""
    if said is not None and kind in (TIMESTAMP, TIMESTAMP_NTZ):
        return min(said + _MILLISECOND - 1, _MOST_LONG)
    return said


def _is_rounded(found: Any, wanted: Any, kind: DataType) -> bool:
    """Whether a number is just the next one outwards that four bytes can hold."""
    return kind == FLOAT and math.isclose(found, wanted, rel_tol=_NEAR, abs_tol=1e-44)


def _told(what: str, value: Any) -> str:
    return f"no {what}" if value is None else f"{what} {value!r}"


def _at(values: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if not isinstance(values, dict):
            return None
        values = values.get(name)
    return values


def _value(raw: Any, kind: DataType) -> Any:
    """A value of the statistics as a plain one; None where Iceberg could have none."""
    reader = _number if isinstance(kind, Decimal) else _READERS.get(kind)
    if raw is None or reader is None:
        return None
    try:
        return reader(raw)
    except (ValueError, TypeError, ArithmeticError):
        return None


def _number(raw: Any) -> Number | None:
    number = Number(str(raw))
    return number if number.is_finite() else None


def _whole(raw: Any) -> int:
    if isinstance(raw, bool) or int(raw) != raw:
        raise ValueError(raw)
    return int(raw)


def _real(raw: Any) -> float | None:
    number = float(raw)
    return None if math.isnan(number) else number


def _text(raw: Any) -> str:
    if not isinstance(raw, str):
        raise TypeError(raw)
    return raw


def _days(raw: Any) -> int:
    return dt.date.fromisoformat(raw).toordinal() - _EPOCH_DAY


def _micros(raw: Any) -> int:
    moment = dt.datetime.fromisoformat(raw)
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)
    return (aware - _EPOCH) // dt.timedelta(microseconds=1)


_READERS: Final[Mapping[DataType, Callable[[Any], Any]]] = {
    BYTE: _whole,
    SHORT: _whole,
    INTEGER: _whole,
    LONG: _whole,
    FLOAT: _real,
    DOUBLE: _real,
    STRING: _text,
    DATE: _days,
    TIMESTAMP: _micros,
    TIMESTAMP_NTZ: _micros,
}
