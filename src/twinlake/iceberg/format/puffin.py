"""Deletion vectors as a Puffin file.

Delta's vector and Iceberg's ``deletion-vector-v1`` blob are the same bytes; only the files around
them differ. Strict readers want a true Puffin file, so vectors are put into one.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Blob", "write_puffin"]

_MAGIC: Final = b"PFA1"
_NO_FLAGS: Final = b"\x00\x00\x00\x00"
# The column id that stands for the position of a row.
_ROW_POSITION: Final = 2147483645


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """One vector: the data file it belongs to, and its payload (magic number and bitmap)."""

    referenced_data_file: str
    cardinality: int
    payload: bytes


def write_puffin(blobs: Sequence[Blob]) -> tuple[bytes, tuple[tuple[int, int], ...]]:
    """The file, and offset and length of each blob in it."""
    content = bytearray(_MAGIC)
    ranges, listed = [], []
    for blob in blobs:
        offset = len(content)
        content += struct.pack(">I", len(blob.payload))
        content += blob.payload
        content += struct.pack(">I", zlib.crc32(blob.payload))
        ranges.append((offset, len(content) - offset))
        listed.append(
            {
                "type": "deletion-vector-v1",
                "fields": [_ROW_POSITION],
                # Vectors are not of one snapshot: they stay when others come after it.
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": offset,
                "length": len(content) - offset,
                "properties": {
                    "referenced-data-file": blob.referenced_data_file,
                    "cardinality": str(blob.cardinality),
                },
            }
        )
    footer = msgspec.json.encode({"blobs": listed, "properties": {}})
    content += _MAGIC + footer + struct.pack("<I", len(footer)) + _NO_FLAGS + _MAGIC
    return bytes(content), tuple(ranges)
