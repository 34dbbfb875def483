"""Whether the default of a column is a literal of its type, as an Iceberg schema can hold it."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal as Number
from decimal import InvalidOperation
from typing import TYPE_CHECKING, Final

from twinlake.schema import (
    BINARY,
    BOOLEAN,
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
    DataType,
    Decimal,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["INTEGER_BITS", "fits_decimal", "is_date", "is_literal_of", "is_timestamp", "unquoted"]

INTEGER_BITS: Final[Mapping[DataType, int]] = {BYTE: 8, SHORT: 16, INTEGER: 32, LONG: 64}

_QUOTED: Final = re.compile(r"'(?:[^'\\]|''|\\.)*'|\"(?:[^\"\\]|\"\"|\\.)*\"", re.DOTALL)
_TYPED: Final = re.compile(r"(\w+)\s*('.*')", re.DOTALL)
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,40}")
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]{1,60}(?:\.[0-9]{0,60})?|\.[0-9]{1,60})(?:[eE][+-]?[0-9]{1,4})?")  # noqa: E501  # fmt: skip
_SUFFIX: Final = re.compile(r"(?<=[0-9.])(?:bd|[lsydf])", re.IGNORECASE)
# Python also reads dates without dashes and dates by weeks, which are no dates to SQL.
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_HEX: Final = re.compile(r"(?:[0-9A-Fa-f]{2})*")


def unquoted(text: str) -> str | None:
    """What a quoted literal holds, None if it is not one."""
    return text[1:-1] if _QUOTED.fullmatch(text) else None


def is_date(text: str) -> bool:
    """Whether it is a day as ISO 8601 writes it, with dashes."""
    if not _DAY.match(text):
        return False
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def is_timestamp(text: str) -> bool:
    """Whether it is a point in time as ISO 8601 writes it, with dashes."""
    if not _DAY.match(text):
        return False
    try:
        datetime.datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def fits_decimal(text: str, kind: Decimal) -> bool:
    """Whether the number needs no more digits than the type has."""
    try:
        number = Number(text)
    except InvalidOperation:
        return False
    if not number.is_finite():
        return False
    _, digits, exponent = number.as_tuple()
    # Zeros at the end are no digits that a scale has to hold.
    significant = len("".join(map(str, digits)).rstrip("0"))
    power = int(exponent) + len(digits) - significant
    whole = significant + power
    return not significant or (-power <= kind.scale and whole <= kind.precision - kind.scale)


def _plain(text: str) -> str:
    """A number without its suffix, or what the quotes hold: text converts to numbers as well."""
    inner = unquoted(text)
    if inner is not None:
        return inner.strip()
    return _SUFFIX.sub("", text) if _SUFFIX.search(text[-3:]) else text


def _is_whole(kind: DataType, text: str) -> bool:
    number = _plain(text)
    if not _WHOLE.fullmatch(number):
        return False
    bound = 1 << (INTEGER_BITS[kind] - 1)
    return -bound <= int(number) < bound


def _is_moment(word: tuple[str, ...], parse: Callable[[str], bool]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        typed = _TYPED.fullmatch(text)
        if typed and typed[1].casefold() not in word:
            return False
        inner = unquoted(typed[2] if typed else text)
        return inner is not None and parse(inner.strip())

    return check


def _is_binary(text: str) -> bool:
    typed = _TYPED.fullmatch(text)
    if typed:
        return typed[1] in ("x", "X") and _HEX.fullmatch(typed[2][1:-1]) is not None
    return unquoted(text) is not None


_LITERALS: Final[Mapping[DataType, Callable[[str], bool]]] = {
    STRING: lambda text: unquoted(text) is not None,
    BINARY: _is_binary,
    BOOLEAN: lambda text: _plain(text).casefold() in ("true", "false"),
    DATE: _is_moment(("date",), is_date),
    TIMESTAMP: _is_moment(("timestamp", "timestamp_ltz"), is_timestamp),
    TIMESTAMP_NTZ: _is_moment(("timestamp", "timestamp_ntz"), is_timestamp),
    FLOAT: lambda text: _NUMBER.fullmatch(_plain(text)) is not None,
    DOUBLE: lambda text: _NUMBER.fullmatch(_plain(text)) is not None,
    **{kind: (lambda text, kind=kind: _is_whole(kind, text)) for kind in INTEGER_BITS},  # type: ignore[misc]
}


def is_literal_of(kind: DataType, text: str) -> bool:
    """Whether the SQL text is a literal that converts to the type.

    >>> is_literal_of(INTEGER, "42"), is_literal_of(INTEGER, "40 + 2"), is_literal_of(DATE, "NULL")
    (True, False, True)
    """
    text = text.strip()
    if text.casefold() == "null":
        return True
    if isinstance(kind, Decimal):
        number = _plain(text)
        return _NUMBER.fullmatch(number) is not None and fits_decimal(number, kind)
    check = _LITERALS.get(kind)
    return check is not None and check(text)
