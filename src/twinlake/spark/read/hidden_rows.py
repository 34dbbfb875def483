"""Rows that deletion vectors hide, as a table small enough to send to every executor.

Positions are packed: one row for every 4,096 positions of a file that has a hidden one among
them, with 64 words of 64 bits. Few deletions make few rows, many make at most one bit a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from pyroaring import AbstractBitMap64 as Positions

__all__ = ["CHUNK", "IS_VISIBLE", "WORDS", "chunk_expression", "pack"]

_CHUNK_BITS: Final = 12
_FILE_BITS: Final = 36
"""A chunk key is the file's number above these bits: rows up to 2^48 in a file."""
CHUNK: Final = "__twinlake_chunk"
WORDS: Final = "__twinlake_words"
IS_VISIBLE: Final = (
    "({words} IS NULL OR getbit({words}[CAST(shiftright({row}, 6) & 63 AS INT)],"
    " CAST({row} & 63 AS INT)) = 0)"
)
"""Whether a row stays, given the words of its chunk (null: nothing hidden there)."""


def chunk_expression(number: str, row: str) -> str:
    """SQL for the key of the chunk that a row is in."""
    return f"shiftleft(CAST({number} AS BIGINT), {_FILE_BITS}) | shiftright({row}, {_CHUNK_BITS})"


def pack(hidden: Mapping[int, Positions]) -> pa.Table:
    """Chunk keys and words, by the number that each file has in the scan."""
    import numpy as np
    import pyarrow as pa

    keys, words = [], []
    for number, positions in sorted(hidden.items()):
        rows = np.frombuffer(positions.to_array(), dtype=np.uint64)
        if not len(rows):
            continue
        chunks, index = np.unique(rows >> np.uint64(_CHUNK_BITS), return_inverse=True)
        block = np.zeros((len(chunks), 64), dtype=np.uint64)
        word = (rows >> np.uint64(6)) & np.uint64(63)
        bit = np.uint64(1) << (rows & np.uint64(63))
        np.bitwise_or.at(block, (index, word.astype(np.int64)), bit)
        keys.append(chunks.astype(np.int64) | np.int64(number << _FILE_BITS))
        words.append(block.view(np.int64).reshape(-1))
    flat_keys = np.concatenate(keys) if keys else np.zeros(0, dtype=np.int64)
    flat_words = np.concatenate(words) if words else np.zeros(0, dtype=np.int64)
    offsets = pa.array(np.arange(0, len(flat_words) + 1, 64, dtype=np.int32))
    return pa.table(
        {
            CHUNK: pa.array(flat_keys),
            WORDS: pa.ListArray.from_arrays(offsets, pa.array(flat_words)),
        }
    )
