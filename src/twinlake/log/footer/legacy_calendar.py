"""Columns of data files whose dates and timestamps count by Spark's legacy calendar.

Spark 2 wrote days and instants of the hybrid Julian and Gregorian calendar, and later versions do
under ``spark.sql.parquet.datetimeRebaseModeInWrite=LEGACY`` and ``int96RebaseModeInWrite=LEGACY``.
The key-value metadata of the footer says so, and Spark's reader moves the values (the rule is that
of Spark's ``DataSourceUtils.datetimeRebaseSpec`` and ``int96RebaseSpec``).

Few files are like that, so a footer is searched for the keys first: it is parsed only if it may be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from twinlake.log.footer.thrift import TRAILER, ThriftReader
from twinlake.schema import LegacyColumn

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["legacy_columns"]

_VERSION: Final = b"org.apache.spark.version"
_LEGACY: Final = b"org.apache.spark.legacy"
# The key that says it, and the first version of Spark that needs to: before it all files are.
_DATETIME: Final = (b"org.apache.spark.legacyDateTime", b"3.0.0")
_INT96: Final = (b"org.apache.spark.legacyINT96", b"3.1.0")

# A key-value pair in Thrift: the text of the key, the header of field 2, a length, the value.
_VALUE_HEADER: Final = 0x18
_VALUE_AT: Final = len(_VERSION) + 2
_NEW: Final = b"3.1"

# Numbers of parquet.thrift.
_INT32_TYPE, _INT64_TYPE, _INT96_TYPE = 1, 2, 3
_WIDTHS: Final = {_INT32_TYPE: 4, _INT64_TYPE: 8}
_DAY: Final = (86_400_000_000, 1)
# Converted and logical types, and the units of logical timestamps: microseconds as a fraction.
_CONVERTED: Final = {6: _DAY, 9: (1000, 1), 10: (1, 1)}
_LOGICAL_DATE, _LOGICAL_TIMESTAMP = 6, 8
_UNITS: Final = {1: (1000, 1), 2: (1, 1), 3: (1, 1000)}


def legacy_columns(footer: bytes) -> tuple[LegacyColumn, ...]:
    """The columns with values of the legacy calendar in a file with that footer and trailer.

    Raises:
        ValueError: the footer is damaged.
    """
    if not _may_be_legacy(footer):
        return ()
    try:
        return tuple(_columns(ThriftReader(footer[:-TRAILER]).struct()))
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"its footer is damaged: {error!r}") from error


def _may_be_legacy(footer: bytes) -> bool:
    """False only for files that are surely not: those of today, after two searches."""
    if _LEGACY in footer:
        return True
    at = footer.rfind(_VERSION)
    if at < 0:
        return False
    value = footer[at + _VALUE_AT : at + _VALUE_AT + len(_NEW)]
    return footer[at + len(_VERSION)] != _VALUE_HEADER or value < _NEW


def _columns(file: dict[int, Any]) -> Iterator[LegacyColumn]:
    said = {pair[1]: pair.get(2, b"") for pair in file.get(5, ())}
    datetime, int96 = _is_legacy(said, *_DATETIME), _is_legacy(said, *_INT96)
    leaves = [element for element in file[2] if 1 in element]
    groups = [group[1] for group in file.get(4, ())]
    if any(len(columns) != len(leaves) for columns in groups):
        raise ValueError("its row groups have other columns than its schema")
    for place, leaf in enumerate(leaves):
        is_int96 = leaf[1] == _INT96_TYPE
        scale = _scale(leaf)
        if not ((is_int96 and int96) or (scale is not None and datetime)):
            continue
        chunks = [columns[place][3] for columns in groups]
        found = [_minimum(chunk, leaf[1], scale) for chunk in chunks if _has_values(chunk)]
        if found:
            path = tuple(part.decode() for part in chunks[0][3])
            known = [value for value in found if value is not None]
            yield LegacyColumn(path, min(known) if len(known) == len(found) else None)


def _is_legacy(said: dict[bytes, bytes], key: bytes, first: bytes) -> bool:
    """Whether a file says so, with a version of Spark or without one; Spark compares the text."""
    return key in said or said.get(_VERSION, first) < first


def _scale(leaf: dict[int, Any]) -> tuple[int, int] | None:
    """What makes a stored value microseconds; None for what is no date and no timestamp."""
    logical = leaf.get(10)
    if not logical:
        return _CONVERTED.get(leaf.get(6, -1))
    if _LOGICAL_DATE in logical:
        return _DAY
    if _LOGICAL_TIMESTAMP in logical:
        return _UNITS[next(iter(logical[_LOGICAL_TIMESTAMP][2]))]
    return None


def _has_values(chunk: dict[int, Any]) -> bool:
    values: int = chunk[5]
    return values > 0 and chunk.get(12, {}).get(3) != values


def _minimum(chunk: dict[int, Any], kind: int, scale: tuple[int, int] | None) -> int | None:
    statistics = chunk.get(12, {})
    # The older field orders by sign as well for the numbers that dates and timestamps are.
    stored = statistics.get(6, statistics.get(2))
    if scale is None or stored is None or len(stored) != _WIDTHS.get(kind):
        return None
    return int.from_bytes(stored, "little", signed=True) * scale[0] // scale[1]
