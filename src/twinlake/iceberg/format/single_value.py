"""Single values in Iceberg's binary form, as bounds and partition summaries hold them.

Iceberg table format, Appendix D. A bound says where values end, so what cannot be said exactly is
said wider, and what cannot be said at all is left out.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, DecimalException
from decimal import Decimal as Number
from typing import TYPE_CHECKING, Any, Final

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
    from collections.abc import Mapping

__all__ = ["Bound", "bound_encoder", "encode_value", "plain_value", "unscaled"]

Bound = Callable[[Any, bool], bytes | None]
"""Encodes a value as the lower or (true) the upper bound; None where it has no bound."""

_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_MOST_LONG: Final = 2**63 - 1
# Delta cuts the timestamps of its statistics down to milliseconds.
_LOST_BELOW_MILLIS: Final = 999
_EXACT: Final = Context(prec=80)
_INT: Final = struct.Struct("<i")
_LONG: Final = struct.Struct("<q")
_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")


def plain_value(value: Any) -> Any:
    """A typed value as Iceberg stores it: days, microseconds, numbers, text, bytes."""
    if value is None:
        return None
    if isinstance(value, datetime):
        return _micros(value)
    if isinstance(value, date):
        return value.toordinal() - _EPOCH_DAY
    # One NaN for all: it equals no other, but in tuples and sets it equals itself.
    return math.nan if isinstance(value, float) and math.isnan(value) else value


def unscaled(value: Number, scale: int) -> int:
    """A decimal as a whole number of its smallest unit; Python would round to 28 digits."""
    return int(value.scaleb(scale, _EXACT))


def encode_value(value: Any, kind: DataType) -> bytes:
    """A plain value in binary form, exactly."""
    if isinstance(kind, Decimal):
        return _unscaled_bytes(unscaled(value, kind.scale))
    return _ENCODERS[kind](value)


def bound_encoder(kind: DataType) -> Bound | None:
    """What encodes the bounds of columns of a type; None where they have none in Iceberg."""
    bound = _decimal_bound(kind) if isinstance(kind, Decimal) else _BOUNDS.get(kind)
    if bound is None:
        return None

    def encode(value: Any, upper: bool) -> bytes | None:
        try:
            return bound(value, upper)
        except (ValueError, TypeError, OverflowError, struct.error, DecimalException):
            # Statistics of a foreign writer may hold anything; no bound is always right.
            return None

    return encode


def _micros(moment: datetime) -> int:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MICROSECOND


def _unscaled_bytes(number: int) -> bytes:
    # One bit more than the magnitude, for the sign; -128 fits into one byte all the same.
    bits = (number + 1 if number < 0 else number).bit_length() + 1
    return number.to_bytes((bits + 7) // 8, "big", signed=True)


def _decimal_bound(kind: Decimal) -> Bound:
    def bound(value: Any, upper: bool) -> bytes:
        number = value if isinstance(value, Number) else Number(str(value))
        unscaled = number.scaleb(kind.scale, _EXACT).to_integral_value(
            ROUND_CEILING if upper else ROUND_FLOOR
        )
        return _unscaled_bytes(int(unscaled))

    return bound


def _whole(pack: Callable[[int], bytes]) -> Bound:
    def bound(value: Any, upper: bool) -> bytes:
        if isinstance(value, int):
            return pack(value)
        # Some writers spell whole numbers as 1.0.
        return pack(math.ceil(value) if upper else math.floor(value))

    return bound


def _real(value: Any, upper: bool) -> float | None:
    number = float(value)
    if math.isnan(number):
        return None
    # A zero bound has to hold for both zeros, of which the negative one sorts first.
    return number if number else (0.0 if upper else -0.0)


def _double_bound(value: Any, upper: bool) -> bytes | None:
    number = _real(value, upper)
    return None if number is None else _DOUBLE.pack(number)


def _float_bound(value: Any, upper: bool) -> bytes | None:
    number = _real(value, upper)
    if number is None:
        return None
    packed = _FLOAT.pack(number)
    (kept,) = _FLOAT.unpack(packed)
    if kept < number if upper else kept > number:
        if not kept:
            return None
        # The next float out: one further from zero, or one nearer to it.
        (bits,) = _INT.unpack(packed)
        packed = _INT.pack(bits + 1 if (kept > 0) == upper else bits - 1)
    return packed


def _string_bound(value: Any, _upper: bool) -> bytes:
    if not isinstance(value, str):
        raise TypeError(type(value).__name__)
    return value.encode()


def _date_bound(value: Any, _upper: bool) -> bytes:
    return _INT.pack(date.fromisoformat(value).toordinal() - _EPOCH_DAY)


def _timestamp_bound(value: Any, upper: bool) -> bytes:
    micros = _micros(datetime.fromisoformat(value))
    return _LONG.pack(min(micros + _LOST_BELOW_MILLIS, _MOST_LONG) if upper else micros)


_BOUNDS: Final[Mapping[DataType, Bound]] = {
    BYTE: _whole(_INT.pack),
    SHORT: _whole(_INT.pack),
    INTEGER: _whole(_INT.pack),
    LONG: _whole(_LONG.pack),
    FLOAT: _float_bound,
    DOUBLE: _double_bound,
    STRING: _string_bound,
    DATE: _date_bound,
    TIMESTAMP: _timestamp_bound,
    TIMESTAMP_NTZ: _timestamp_bound,
}
_ENCODERS: Final[Mapping[DataType, Callable[[Any], bytes]]] = {
    BOOLEAN: lambda value: b"\x01" if value else b"\x00",
    BYTE: _INT.pack,
    SHORT: _INT.pack,
    INTEGER: _INT.pack,
    DATE: _INT.pack,
    LONG: _LONG.pack,
    TIMESTAMP: _LONG.pack,
    TIMESTAMP_NTZ: _LONG.pack,
    FLOAT: _FLOAT.pack,
    DOUBLE: _DOUBLE.pack,
    STRING: lambda value: value.encode(),
    BINARY: bytes,
}
