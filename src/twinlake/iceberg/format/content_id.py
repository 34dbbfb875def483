"""Ids computed from what they stand for, so that they come out the same however it was found."""

from __future__ import annotations

import hashlib
from typing import Any, Final

import msgspec

__all__ = ["content_id"]

# Readers hold ids in 32 bits and give new ones by adding one to the highest.
_BITS: Final = 30


def content_id(content: bytes | list[Any]) -> int:
    """A positive number of 30 bits for some bytes, or for a value as JSON."""
    data = content if isinstance(content, bytes) else msgspec.json.encode(content, order="sorted")
    return int.from_bytes(hashlib.sha256(data).digest()[:4], "big") >> (32 - _BITS)
