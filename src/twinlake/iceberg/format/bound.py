"""Iceberg's binary single values, read back: bounds of columns and of partition summaries.

Iceberg table format, Appendix D. A bound keeps the length it was written with, also where its
column was widened since: a number is read by its bytes and not by the type of today.
"""

from __future__ import annotations

import struct
from decimal import Context
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
    from collections.abc import Callable, Mapping

__all__ = ["decode_bound"]

_EXACT: Final = Context(prec=80)
_REALS: Final[Mapping[int, str]] = {4: "<f", 8: "<d"}


def decode_bound(data: bytes, kind: DataType) -> Any:
    """The plain value: days, microseconds, numbers, text, bytes; ``ValueError`` where it is none.

    >>> decode_bound(bytes([7, 0, 0, 0]), LONG)
    7
    """
    if isinstance(kind, Decimal):
        return Number(int.from_bytes(data, "big", signed=True)).scaleb(-kind.scale, _EXACT)
    decoder = _DECODERS.get(kind)
    if decoder is None:
        raise ValueError(f"{kind} has no bounds")
    return decoder(data)


def _whole(data: bytes) -> int:
    if len(data) not in _REALS:
        raise ValueError(f"{len(data)} bytes are no whole number")
    return int.from_bytes(data, "little", signed=True)


def _real(data: bytes) -> float:
    if len(data) not in _REALS:
        raise ValueError(f"{len(data)} bytes are no real number")
    (value,) = struct.unpack(_REALS[len(data)], data)
    return float(value)


def _boolean(data: bytes) -> bool:
    if len(data) != 1:
        raise ValueError(f"{len(data)} bytes are no boolean")
    return data != b"\x00"


_DECODERS: Final[Mapping[DataType, Callable[[bytes], Any]]] = {
    BOOLEAN: _boolean,
    BYTE: _whole,
    SHORT: _whole,
    INTEGER: _whole,
    LONG: _whole,
    DATE: _whole,
    TIMESTAMP: _whole,
    TIMESTAMP_NTZ: _whole,
    FLOAT: _real,
    DOUBLE: _real,
    STRING: lambda data: data.decode(),
    BINARY: bytes,
}
