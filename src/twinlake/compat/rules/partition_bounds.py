"""Whether the values of a column in a file can be those that its partition value states."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from struct import pack, unpack
from typing import TYPE_CHECKING, Any, Final

from twinlake.errors import TwinlakeError
from twinlake.schema import TIMESTAMP, has_zone, parse_partition_value

if TYPE_CHECKING:
    from twinlake.schema import ColumnBounds, DataType

__all__ = ["contradicts"]

_EXACT_LENGTH: Final = 32
"""Bounds of texts shorter than this were not cut; parquet-rs cuts at 64 bytes, others later."""


def contradicts(text: str | None, kind: DataType, bounds: ColumnBounds) -> bool:
    """Whether a row of the file surely has another value; what is not known contradicts nothing."""
    if kind == TIMESTAMP and text and not has_zone(text):
        # In whose zone it was written is not said.
        return False
    try:
        value = parse_partition_value(text, kind)
    except TwinlakeError:
        # Whoever needs the value says so, and what it should be.
        return False
    if value is None:
        return bounds.nulls is not None and bounds.nulls < bounds.values
    if bounds.nulls:
        return True
    low, high = bounds.minimum, bounds.maximum
    if low is None or high is None or not (_alike(value, low) and _alike(value, high)):
        return False
    if isinstance(value, str | bytes) and max(len(low), len(high)) >= _EXACT_LENGTH:
        return not low <= value <= high
    # A float that became a double is in files as the float.
    return not (low == high and low in (value, _as_float(value)))


def _as_float(value: Any) -> Any:
    """The nearest number of 32 bits, where it is a real one."""
    if not isinstance(value, float):
        return value
    try:
        return unpack("<f", pack("<f", value))[0]
    except OverflowError:
        return value


def _alike(value: Any, other: Any) -> bool:
    """Whether two values can be compared; a file may hold a column in an earlier type."""
    match value, other:
        case bool(), bool():
            return True
        case (bool(), _) | (_, bool()):
            return False
        case float(), _ if math.isnan(value):
            # Bounds pass over it.
            return False
        case int() | float() | Decimal(), int() | float() | Decimal():
            return True
        case datetime(), datetime():
            return (value.tzinfo is None) == (other.tzinfo is None)
        case (datetime(), _) | (_, datetime()):
            return False
        case date(), date():
            return True
        case _:
            return type(value) is type(other) and isinstance(value, str | bytes)
