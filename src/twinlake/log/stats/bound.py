"""How one bound of a Parquet column becomes the value that Delta's statistics hold.

A raw value is what the footer keeps: a number, or bytes. Bounds are rendered as Delta Spark does:
timestamps lose their microseconds, long strings are cut, NaN is the greatest number. Whether a
Parquet column holds values of the Delta type at all is asked first; a column that does not look
as expected has no bounds.
"""

from __future__ import annotations

import datetime as dt
import decimal
import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.schema import DataType, Decimal, Primitive

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BoundKind", "kind_of", "lower", "upper"]

_GREATEST: Final = "\U0010ffff"
_LAST_ASCII: Final = "\x7f"
# 400 years of the Gregorian calendar always have as many days.
_CYCLE_DAYS: Final = 146_097
_EPOCH_DAY: Final = dt.date(1970, 1, 1).toordinal()
_DAY_MS: Final = 86_400_000
_PER_MS: Final = {"microseconds": 1_000, "milliseconds": 1, "nanoseconds": 1_000_000}


@dataclass(frozen=True, slots=True)
class BoundKind:
    """What to do with the bounds of one Delta type."""

    accepts: Callable[[str, str], bool]
    """Whether a Parquet column of this physical type and logical type (JSON) holds such values."""
    render: Callable[[Any, bool, int, str], Any]
    """Raw value, whether it is the upper bound, prefix length, logical type; None: no bound."""
    decode: Callable[[Any], Any] | None = None
    """Raw value into something that compares as the values do, where the raw one does not."""


def kind_of(kind: DataType) -> BoundKind | None:
    """What to do with the bounds of the type; None if it has none."""
    match kind:
        case Primitive(name):
            return _KINDS.get(name)
        case Decimal(precision, scale):
            return _decimal_kind(precision, scale)
        case _:
            return None


def lower(one: Any, other: Any) -> Any:
    """The lesser value; NaN is the greatest and -0.0 comes before 0.0."""
    if one != one or other != other:
        return other if one != one else one
    if one == other == 0.0:
        return one if str(one).startswith("-") else other
    return min(one, other)


def upper(one: Any, other: Any) -> Any:
    """The greater value; NaN is the greatest and 0.0 comes after -0.0."""
    if one != one or other != other:
        return one if one != one else other
    if one == other == 0.0:
        return other if str(one).startswith("-") else one
    return max(one, other)


@lru_cache(maxsize=256)
def _logical(text: str) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(text)
    return found


def _integers(*physical: str) -> Callable[[str, str], bool]:
    def accepts(found: str, logical: str) -> bool:
        facts = _logical(logical)
        signed = facts["Type"] == "None" or (facts["Type"] == "Int" and facts["isSigned"])
        return found in physical and signed

    return accepts


def _exactly(physical: str, logical: str) -> Callable[[str, str], bool]:
    return lambda found, text: found == physical and _logical(text)["Type"] == logical


def _timestamps(adjusted: bool) -> Callable[[str, str], bool]:
    def accepts(found: str, logical: str) -> bool:
        facts = _logical(logical)
        return (
            found == "INT64"
            and facts["Type"] == "Timestamp"
            and facts["isAdjustedToUTC"] == adjusted
            and facts["timeUnit"] in _PER_MS
        )

    return accepts


def _plain(raw: Any, _upper: bool, _length: int, _logical: str) -> Any:
    return raw


def _double(raw: float, _upper: bool, _length: int, _logical: str) -> float | str:
    if raw != raw:
        return "NaN"
    if raw in (float("inf"), float("-inf")):
        return "Infinity" if raw > 0 else "-Infinity"
    return raw


def _float(raw: float, is_upper: bool, length: int, logical: str) -> float | str:
    shown = _double(raw, is_upper, length, logical)
    if isinstance(shown, str):
        return shown
    # The shortest digits that name this 32-bit number, not those of its 64-bit twin.
    packed = struct.pack("<f", raw)
    for digits in range(2, 10):
        shorter = float(f"{raw:.{digits}g}")
        try:
            if struct.pack("<f", shorter) == packed:
                return shorter
        except OverflowError:
            continue
    return raw


def _string(raw: bytes, is_upper: bool, length: int, _logical: str) -> str | None:
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        # Spark lets such strings pass; JSON cannot hold them.
        return None
    return _cut_above(text, length) if is_upper else text[:length]


def _cut_above(text: str, length: int) -> str | None:
    """A short string no smaller than ``text``; Delta counts UTF-16 units here, never half a pair.

    A tie-break above every continuation is appended; where what follows is already the greatest
    character the prefix grows, and past twice its length there is no bound.
    """
    if len(text) <= length and len(text.encode("utf-16-le")) // 2 <= length:
        return text
    units = at = 0
    while units < length:
        units += 2 if text[at] > "\uffff" else 1
        at += 1
    while units <= 2 * length:
        if at >= len(text):
            return text
        if text[at] != _GREATEST:
            return text[:at] + (_LAST_ASCII if text[at] < _LAST_ASCII else _GREATEST)
        units += 2
        at += 1
    return None


def _date_text(days: int) -> str:
    cycles, within = divmod(days + _EPOCH_DAY - 1, _CYCLE_DAYS)
    date = dt.date.fromordinal(within + 1)
    year = date.year + 400 * cycles
    sign = "+" if year > 9999 else "-" if year < 0 else ""
    return f"{sign}{abs(year):04}-{date.month:02}-{date.day:02}"


def _date(raw: int, _upper: bool, _length: int, _logical: str) -> str:
    return _date_text(raw)


def _moment(raw: int, unit: str) -> str:
    # Cut, not rounded, also before 1970: readers know that an upper bound is up to 1 ms too low.
    days, ms = divmod(raw // _PER_MS[unit], _DAY_MS)
    seconds, ms = divmod(ms, 1000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{_date_text(days)}T{hour:02}:{minute:02}:{second:02}.{ms:03}"


def _timestamp(raw: int, _upper: bool, _length: int, logical: str) -> str:
    return _moment(raw, _logical(logical)["timeUnit"]) + "Z"


def _timestamp_ntz(raw: int, _upper: bool, _length: int, logical: str) -> str:
    return _moment(raw, _logical(logical)["timeUnit"])


@lru_cache(maxsize=256)
def _decimal_kind(precision: int, scale: int) -> BoundKind:
    def accepts(found: str, logical: str) -> bool:
        facts = _logical(logical)
        return (
            found in ("INT32", "INT64", "FIXED_LEN_BYTE_ARRAY", "BYTE_ARRAY")
            and facts["Type"] == "Decimal"
            and facts["scale"] == scale
        )

    def render(raw: int, _upper: bool, _length: int, _logical: str) -> decimal.Decimal | None:
        digits = str(abs(raw))
        if len(digits) > precision:
            return None
        return decimal.Decimal((int(raw < 0), tuple(map(int, digits)), -scale))

    return BoundKind(accepts, render, _unscaled)


def _unscaled(raw: int | bytes) -> int:
    return int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else raw


_KINDS: Final = {
    "byte": BoundKind(_integers("INT32"), _plain),
    "short": BoundKind(_integers("INT32"), _plain),
    "integer": BoundKind(_integers("INT32"), _plain),
    "long": BoundKind(_integers("INT32", "INT64"), _plain),
    "float": BoundKind(_exactly("FLOAT", "None"), _float),
    "double": BoundKind(_exactly("DOUBLE", "None"), _double),
    "string": BoundKind(_exactly("BYTE_ARRAY", "String"), _string),
    "date": BoundKind(_exactly("INT32", "Date"), _date),
    "timestamp": BoundKind(_timestamps(True), _timestamp),
    "timestamp_ntz": BoundKind(_timestamps(False), _timestamp_ntz),
}
