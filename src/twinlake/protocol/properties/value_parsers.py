"""Parsers for the text of property values; each raises ``ValueError`` with what it expected.

They take what Delta's own take: blanks around a switch, a number or a word are wrong there, around
an interval or a size they are not.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, timedelta, timezone
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo

__all__ = [
    "boolean",
    "duration_ms",
    "integer",
    "json_object",
    "names",
    "one_of",
    "size",
    "text",
    "time_zone",
]

_UNITS_US: Final = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_TERM: Final = re.compile(r"([+-]?\d{1,18}(?:\.\d{1,9})?)\s+([a-z]+)")
_SIZE: Final = re.compile(r"(\d{1,15})\s*([kmgt]?)b?")
_OFFSET: Final = re.compile(r"([+-])(\d\d):(\d\d)", re.ASCII)
_LIMIT: Final = 2**63 - 1


def boolean(value: str) -> bool:
    """``true`` or ``false``, in any case."""
    try:
        return {"true": True, "false": False}[value.lower()]
    except KeyError:
        raise ValueError("true or false") from None


def integer(low: int, high: int = _LIMIT) -> Callable[[str], int]:
    """A whole number within bounds."""
    expected = f"a whole number of at least {low}"

    def parse(value: str) -> int:
        if not re.fullmatch(r"[+-]?\d{1,19}", value, re.ASCII) or not low <= int(value) <= high:
            raise ValueError(expected)
        return int(value)

    return parse


def duration_ms(value: str) -> int:
    """An interval such as ``interval 7 days``, in milliseconds.

    Months and years have no fixed length and are refused.

    >>> duration_ms("interval 1 week 12 hours")
    648000000
    """
    clean = value.strip().lower().removeprefix("interval").strip()
    total = Decimal(0)
    rest = clean
    while rest:
        term = _TERM.match(rest)
        unit = _UNITS_US.get(term[2].removesuffix("s")) if term else None
        if term is None or unit is None:
            break
        try:
            total += Decimal(term[1]) * unit
        except InvalidOperation:  # pragma: no cover - the pattern admits only numbers
            break
        rest = rest[term.end() :].lstrip(" ,")
    if not clean or rest or not 0 <= total <= _LIMIT:
        raise ValueError("an interval such as 'interval 7 days', of weeks or less, not negative")
    return int(total) // 1_000


def one_of(*choices: str) -> Callable[[str], str]:
    """One of some words, in any case, given back in the spelling listed."""
    folded = {choice.lower(): choice for choice in choices}

    def parse(value: str) -> str:
        try:
            return folded[value.lower()]
        except KeyError:
            raise ValueError(" or ".join(choices)) from None

    return parse


def names(*allowed: str) -> Callable[[str], tuple[str, ...]]:
    """A comma-separated list of words, out of ``allowed`` if given."""

    def parse(value: str) -> tuple[str, ...]:
        found = tuple(part.strip() for part in value.split(",") if part.strip())
        if allowed and not {name.lower() for name in found} <= set(allowed):
            raise ValueError(f"a comma-separated list out of: {', '.join(allowed)}")
        return found

    return parse


def size(value: str) -> int:
    """A number of bytes such as ``134217728`` or ``128mb``."""
    match = _SIZE.fullmatch(value.strip().lower())
    if match is None:
        raise ValueError("a number of bytes such as 134217728 or 128mb")
    return int(match[1]) << (10 * " kmgt".index(match[2] or " "))


def json_object(value: str) -> dict[str, Any]:
    """A JSON object."""
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ValueError("a JSON object")
    return found


def time_zone(value: str) -> tzinfo:
    """A time zone by its name or by its distance from UTC.

    >>> time_zone("+05:30").utcoffset(None)
    datetime.timedelta(seconds=19800)
    """
    offset = _OFFSET.fullmatch(value)
    try:
        if offset is not None:
            span = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
            return timezone(-span if offset[1] == "-" else span)
        return UTC if value in ("UTC", "Z") else ZoneInfo(value)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        raise ValueError("a time zone such as UTC, Europe/Berlin or +02:00") from None


def text(value: str) -> str:
    """Any text."""
    return value
