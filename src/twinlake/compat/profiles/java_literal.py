"""Whether the kernel takes a text for a literal: it hands it to the parsers of Java's library.

They take more than SQL does in one place and less in another: digits of any script, hexadecimal
floats, any text at all for a boolean; but no NULL, no suffix of a number, and moments only as ISO
8601 writes them.
"""

from __future__ import annotations

import datetime
import re
from decimal import Decimal as Number
from typing import TYPE_CHECKING, Final

from twinlake.compat.rules.default_literal import INTEGER_BITS
from twinlake.schema import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["is_java_literal_of"]

_WHOLE: Final = re.compile(r"[+-]?\d{1,40}")
_DECIMAL: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,9})?")
_FLOAT: Final = re.compile(
    r"[+-]?(?:NaN|Infinity"
    r"|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?"
    r"|0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[fFdD]?)"
)
# A year of four digits, a later one with a plus, an earlier one with a minus.
_DAY: Final = r"(?P<year>[0-9]{4}|\+[0-9]{5,10}|-[0-9]{4,10})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
_CLOCK: Final = r"[Tt](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{0,9})?)?"
_ZONE: Final = r"(?:[Zz]|[+-](?:(?:0[0-9]|1[0-7]):[0-5][0-9](?::[0-5][0-9])?|18:00(?::00)?))"


def is_java_literal_of(kind: DataType, text: str) -> bool:
    """Whether the kernel can make a value of the type from the text.

    >>> is_java_literal_of(BOOLEAN, "perhaps"), is_java_literal_of(DATE, "NULL")
    (True, False)
    """
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    inner = text[1:-1] if quoted else text
    if kind in (STRING, BINARY):
        return quoted
    if isinstance(kind, Decimal):
        return _is_decimal(inner, kind)
    parse = _PARSERS.get(kind)
    return parse is not None and parse(inner)


def _is_decimal(text: str, kind: Decimal) -> bool:
    # Python would take blanks and underscores as well.
    if not _DECIMAL.fullmatch(text):
        return False
    _, digits, exponent = Number(text).as_tuple()
    return -int(exponent) <= kind.scale and len(digits) <= kind.precision


def _is_whole(bits: int) -> Callable[[str], bool]:
    bound = 1 << (bits - 1)
    return lambda text: bool(_WHOLE.fullmatch(text)) and -bound <= int(text) < bound


def _is_float(text: str) -> bool:
    return _FLOAT.fullmatch(text.strip()) is not None


def _is_moment(pattern: str) -> Callable[[str], bool]:
    shape = re.compile(pattern)

    def check(text: str) -> bool:
        found = shape.fullmatch(text)
        if found is None:
            return False
        try:
            # Python has no year 0 and none above 9999, but the calendar repeats.
            datetime.date(2000 + int(found["year"]) % 400, int(found["month"]), int(found["day"]))
        except ValueError:
            return False
        return True

    return check


_PARSERS: Final[Mapping[DataType, Callable[[str], bool]]] = {
    **{kind: _is_whole(bits) for kind, bits in INTEGER_BITS.items() if kind != BYTE},
    FLOAT: _is_float,
    DOUBLE: _is_float,
    BOOLEAN: lambda _: True,
    DATE: _is_moment(_DAY),
    TIMESTAMP: _is_moment(_DAY + _CLOCK + _ZONE),
    TIMESTAMP_NTZ: _is_moment(_DAY + _CLOCK),
}
