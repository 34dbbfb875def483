"""Deletion vectors of many files, and their positions as a table that is broadcast to executors.

Positions are packed: one row for every 4,096 positions of a file that has a deleted one among
them, with 64 words of 64 bits. Few deletions make few rows, many make at most one bit a row.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from twinlake.actions import DeletionVectorDescriptor
from twinlake.log import read_dv

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyroaring import AbstractBitMap64 as Positions
    from pyroaring import BitMap64

    from twinlake.storage import Store

__all__ = [
    "CHUNK_KEY",
    "CHUNK_WORDS",
    "IS_SET",
    "IS_UNSET",
    "chunk_key_sql",
    "descriptors",
    "pack_positions",
    "read_deletion_vectors",
    "read_vectors",
]

_CHUNK_BITS: Final = 12
_FILE_BITS: Final = 36
"""A chunk key is the file's number above these bits: rows up to 2^48 in a file."""
_THREADS: Final = 8
CHUNK_KEY: Final = "__twinlake_chunk"
CHUNK_WORDS: Final = "__twinlake_words"
_BIT: Final = "getbit({words}[CAST(shiftright({row}, 6) & 63 AS INT)], CAST({row} & 63 AS INT))"
IS_SET: Final = f"{_BIT} = 1"
"""Whether a row is among the positions, given the words of its chunk."""
IS_UNSET: Final = f"({{words}} IS NULL OR {_BIT} = 0)"
"""Whether it is not (null: no position of the chunk is)."""


def read_deletion_vectors(store: Store, files: pa.Table) -> dict[str, BitMap64]:
    """The deleted positions of the files that have any, by path in the log."""
    found = zip(files["path"].to_pylist(), read_vectors(store, descriptors(files)), strict=True)
    return {path: rows for path, rows in found if rows is not None}


def descriptors(files: pa.Table) -> list[DeletionVectorDescriptor | None]:
    """The deletion vectors of files in the layout of ``Snapshot.files``."""
    cells = files["deletion_vector"].to_pylist()
    return [None if cell is None else DeletionVectorDescriptor(**cell) for cell in cells]


def read_vectors(
    store: Store, vectors: Sequence[DeletionVectorDescriptor | None]
) -> list[BitMap64 | None]:
    """The positions of each vector."""
    there = [vector for vector in vectors if vector is not None]
    if len(there) < 2:
        return [None if vector is None else read_dv(store, vector) for vector in vectors]
    with ThreadPoolExecutor(_THREADS) as pool:
        found = iter(list(pool.map(lambda vector: read_dv(store, vector), there)))
    return [None if vector is None else next(found) for vector in vectors]


def chunk_key_sql(number: str, row: str) -> str:
    """SQL for the key of the chunk that a row is in."""
    return f"shiftleft(CAST({number} AS BIGINT), {_FILE_BITS}) | shiftright({row}, {_CHUNK_BITS})"


def pack_positions(hidden: Mapping[int, Positions]) -> pa.Table:
    """Chunk keys and words, by the number that each file has in the scan."""
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
            CHUNK_KEY: pa.array(flat_keys),
            CHUNK_WORDS: pa.ListArray.from_arrays(offsets, pa.array(flat_words)),
        }
    )
