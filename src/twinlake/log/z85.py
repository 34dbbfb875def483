"""Z85 (ZeroMQ RFC 32): four bytes as five printable characters.

Z85 has no padding of its own. Delta pads the bytes with zeros up to a multiple of four and
writes the real length elsewhere, so decoding cuts back to that length.
"""

from __future__ import annotations

import struct
from typing import Final

__all__ = ["decode_z85", "encode_z85", "encoded_length"]

_ALPHABET: Final = (
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
)
_VALUES: Final = {character: value for value, character in enumerate(_ALPHABET)}


def encoded_length(size: int) -> int:
    """How many characters ``size`` bytes take.

    >>> encoded_length(16), encoded_length(17)
    (20, 25)
    """
    return -(-size // 4) * 5


def encode_z85(data: bytes) -> str:
    """The text of ``data``, padded with zero bytes to a multiple of four.

    >>> encode_z85(bytes.fromhex("864fd26fb559f75b"))
    'HelloWorld'
    """
    padded = data + bytes(-len(data) % 4)
    characters: list[str] = []
    for (word,) in struct.iter_unpack(">I", padded):
        group = []
        for _ in range(5):
            word, digit = divmod(word, 85)
            group.append(_ALPHABET[digit])
        characters.extend(reversed(group))
    return "".join(characters)


def decode_z85(text: str, size: int | None = None) -> bytes:
    """The bytes of ``text``, cut to ``size`` where given; ``ValueError`` says what is wrong.

    >>> decode_z85("HelloWorld").hex()
    '864fd26fb559f75b'
    """
    if len(text) % 5:
        raise ValueError(f"the text has {len(text)} characters, not a multiple of five")
    if size is not None and encoded_length(size) != len(text):
        raise ValueError(f"{size} bytes take {encoded_length(size)} characters, not {len(text)}")
    words: list[int] = []
    for start in range(0, len(text), 5):
        word = 0
        for position, character in enumerate(text[start : start + 5], start):
            digit = _VALUES.get(character)
            if digit is None:
                raise ValueError(f"character {position} ({character!r}) is not in the alphabet")
            word = word * 85 + digit
        if word > 0xFFFF_FFFF:
            raise ValueError(f"the group at character {start} does not fit into four bytes")
        words.append(word)
    return struct.pack(f">{len(words)}I", *words)[:size]
