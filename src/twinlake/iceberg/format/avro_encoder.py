"""Manifest entries and rows of manifest lists as Avro bytes.

Three times as fast as a general Avro library, which takes an entry apart field by field and sees
arrays of records in the maps of a manifest (ADR 0026). The library reads them.
"""

from __future__ import annotations

import struct
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from twinlake.iceberg.format.avro_schema import bytes_for
from twinlake.iceberg.format.single_value import unscaled
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
    from collections.abc import Callable, Iterable, Mapping

__all__ = [
    "column_map",
    "container",
    "long",
    "optional_long",
    "partition_encoder",
    "repeated_long",
    "text",
]

_MAGIC: Final = b"Obj\x01"
_NULL: Final = b"\x00"
_SOME: Final = b"\x02"
_END: Final = b"\x00"
_BLOCK_ENTRIES: Final = 1000


def _zigzag(number: int) -> bytes:
    rest = (number << 1) ^ (number >> 63)
    found = bytearray()
    while rest > 0x7F:
        found.append((rest & 0x7F) | 0x80)
        rest >>= 7
    found.append(rest)
    return bytes(found)


# Column ids, lengths and most counts are small.
_SMALL: Final = tuple(_zigzag(number) for number in range(4096))


def long(number: int) -> bytes:
    r"""A number of up to 64 bits.

    >>> long(-1), long(64)
    (b'\x01', b'\x80\x01')
    """
    return _SMALL[number] if 0 <= number < 4096 else _zigzag(number)


def optional_long(number: int | None) -> bytes:
    """A number that may be null."""
    return _NULL if number is None else _SOME + long(number)


@lru_cache(maxsize=64)
def repeated_long(number: int | None) -> bytes:
    """A number that may be null, and that many entries have: ids are long ones."""
    return optional_long(number)


def text(value: str) -> bytes:
    """A text, its length first."""
    data = value.encode()
    return long(len(data)) + data


def column_map(values: Mapping[int, Any]) -> bytes:
    """An optional map of column ids to numbers or bytes; null where it is empty."""
    if not values:
        return _NULL
    parts = [_SOME, long(len(values))]
    for key, value in values.items():
        parts.append(long(key))
        if isinstance(value, int):
            parts.append(long(value))
        else:
            parts.append(long(len(value)))
            parts.append(value)
    parts.append(_END)
    return b"".join(parts)


def partition_encoder(kinds: Iterable[DataType]) -> Callable[[tuple[Any, ...]], bytes]:
    """What encodes the partition of a file; partitions repeat, so each is encoded once."""
    encoders = tuple(_encoder(kind) for kind in kinds)
    known: dict[tuple[Any, ...], bytes] = {}

    def encode(values: tuple[Any, ...]) -> bytes:
        # NaN is unlike itself, and the two zeros are alike: neither may stand for the other.
        if (found := known.get(key := tuple(map(repr, values)))) is None:
            found = known[key] = b"".join(
                _NULL if value is None else _SOME + encoder(value)
                for encoder, value in zip(encoders, values, strict=True)
            )
        return found

    return encode if encoders else lambda _: b""


def _encoder(kind: DataType) -> Callable[[Any], bytes]:
    if isinstance(kind, Decimal):
        size, scale = bytes_for(kind.precision), kind.scale
        return lambda value: unscaled(value, scale).to_bytes(size, "big", signed=True)
    return _ENCODERS[kind]


_ENCODERS: Final[Mapping[DataType, Callable[[Any], bytes]]] = {
    **dict.fromkeys((BYTE, SHORT, INTEGER, LONG, DATE, TIMESTAMP, TIMESTAMP_NTZ), long),
    BOOLEAN: lambda value: b"\x01" if value else b"\x00",
    FLOAT: struct.Struct("<f").pack,
    DOUBLE: struct.Struct("<d").pack,
    STRING: text,
    BINARY: lambda value: long(len(value)) + value,
}


def container(
    schema: bytes, metadata: Mapping[str, str], records: Iterable[bytes], marker: bytes
) -> bytes:
    """An Avro object container file around encoded records; its header begins with ``metadata``."""
    header = {key: value.encode() for key, value in metadata.items()}
    header |= {"avro.schema": schema, "avro.codec": b"deflate"}
    parts = [_MAGIC, long(len(header))]
    for key, value in header.items():
        parts += (text(key), long(len(value)), value)
    parts += (_END, marker)
    block: list[bytes] = []
    for record in records:
        block.append(record)
        if len(block) == _BLOCK_ENTRIES:
            parts += (_block(block), marker)
            block = []
    if block:
        parts += (_block(block), marker)
    return b"".join(parts)


def _block(records: list[bytes]) -> bytes:
    deflate = zlib.compressobj(level=6, wbits=-15)
    data = deflate.compress(b"".join(records)) + deflate.flush()
    return long(len(records)) + long(len(data)) + data
