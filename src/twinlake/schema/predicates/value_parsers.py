"""Texts read as values the way Spark casts strings; an impossible one is the user's error."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, Final

from twinlake.errors import Code, UserError

if TYPE_CHECKING:
    from twinlake.schema.predicates.expressions import Column

__all__ = ["read_boolean", "read_date", "read_double", "read_integer", "read_timestamp"]


def _impossible(text: str, column: Column, wanted: str) -> UserError:
    shown = text if len(text) <= 80 else text[:80] + "..."
    return UserError(
        Code.PREDICATE_INVALID,
        f"The value {shown!r} cannot be compared with {column.path[-1]} ({column.type}).",
        why=f"It is not {wanted}.",
        fix=f"Write {wanted}.",
        delta_class="CAST_INVALID_INPUT",
        fields={"value": shown, "path": ".".join(column.path), "type": str(column.type)},
    )


_INTEGER: Final = re.compile(r"\s*([+-]?\d{1,400})\s*", re.ASCII)
_NUMBER: Final = re.compile(
    r"\s*[+-]?(?:\d{1,400}\.?\d{0,400}|\.\d{1,400})(?:e[+-]?\d{1,4})?\s*",
    re.ASCII | re.IGNORECASE,
)
_SPECIAL: Final = re.compile(r"\s*(nan|[+-]?inf(?:inity)?)\s*", re.IGNORECASE)


def read_integer(text: str, column: Column) -> str:
    """The digits of a whole number."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        raise _impossible(text, column, "a whole number")
    return match[1]


def read_double(text: str, column: Column) -> float:
    """A floating number; NaN and the infinities have names."""
    if not _NUMBER.fullmatch(text) and not _SPECIAL.fullmatch(text):
        raise _impossible(text, column, "a number")
    return float(text)


_BOOLEANS: Final = {
    **dict.fromkeys(("t", "true", "y", "yes", "1"), True),
    **dict.fromkeys(("f", "false", "n", "no", "0"), False),
}


def read_boolean(text: str, column: Column) -> bool:
    """One of Spark's words for true and false."""
    found = _BOOLEANS.get(text.strip().lower())
    if found is None:
        raise _impossible(text, column, "true or false")
    return found


_DATE: Final = re.compile(
    r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.ASCII | re.DOTALL
)
_TIMESTAMP: Final = re.compile(
    r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})"
    r"(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?\s*([A-Za-z+-].*)?)?)?)?",
    re.ASCII | re.DOTALL,
)
_OFFSET: Final = re.compile(
    r"(?:(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?|Z|UTC|GMT|UT)", re.ASCII
)
# Their meaning depends on the clock of the session.
_CLOCK_WORDS: Final = re.compile(r"(?:now|today|tomorrow|yesterday|epoch)\b.*|T?\d{1,2}:.*", re.I)


def read_date(text: str, column: Column) -> dt.date | None:
    """A date, or None where only a session knows which."""
    match = _DATE.fullmatch(text.strip())
    if match is None:
        if _CLOCK_WORDS.fullmatch(text.strip()):
            return None
        raise _impossible(text, column, "a date such as 2024-01-31")
    year, month, day = (int(part or 1) for part in match.groups())
    if not dt.MINYEAR <= year <= dt.MAXYEAR:
        return None
    try:
        return dt.date(year, month, day)
    except ValueError as error:
        raise _impossible(text, column, "a date such as 2024-01-31") from error


def read_timestamp(text: str, column: Column) -> dt.datetime | None:
    """A timestamp, naive without a zone, or None where only a session knows which."""
    wanted = "a timestamp such as 2024-01-31 12:00:00"
    match = _TIMESTAMP.fullmatch(text.strip())
    if match is None:
        if _CLOCK_WORDS.fullmatch(text.strip()):
            return None
        raise _impossible(text, column, wanted)
    year, month, day = (int(part or 1) for part in match.groups()[:3])
    hour, minute, second = (int(part or 0) for part in match.groups()[3:6])
    micros = int((match[7] or "").ljust(6, "0")[:6])
    zone = _zone_text(match[8])
    if not dt.MINYEAR <= year <= dt.MAXYEAR or (match[8] and zone is None):
        return None
    try:
        return dt.datetime(year, month, day, hour, minute, second, micros, tzinfo=zone)
    except ValueError as error:
        raise _impossible(text, column, wanted) from error


def _zone_text(text: str | None) -> dt.tzinfo | None:
    match = _OFFSET.fullmatch(text.strip()) if text else None
    if match is None:
        return None
    if match[1] is None:
        return dt.UTC
    distance = dt.timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
    if distance > dt.timedelta(hours=18):
        return None
    return dt.timezone(distance if match[1] == "+" else -distance)
