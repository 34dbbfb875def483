"""Columns of paths: which of very many are not canonical, and the canonical forms of those.

A scan of the bytes clears nearly every table; only unusual paths are looked at one by one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["are_keys", "file_column", "key_column", "windows"]

_WINDOW: Final = 1 << 20

# A table has a hundred thousand paths and hardly one that is not its own key. One search through
# the bytes of all of them says so: needles of one byte, and one that begins with a byte to hop to,
# are found many times faster than any expression that is tried on every row.
_COLON: Final = b":"
_PERCENT: Final = b"%"
_SEGMENT: Final = re.compile(rb"/(?:/|\.)").search
_ESCAPE: Final = re.compile(rb"%(?![0-9A-F][0-9A-F])").search
_ODD_KEY: Final = r"^[/.]|:|//|/\.|%([^0-9A-F]|$|.[^0-9A-F]|.$)"


def key_column(paths: pa.ChunkedArray, key: Callable[[str], str]) -> pa.ChunkedArray:
    """The keys of paths; the very column if every path is its own."""
    if are_keys(paths):
        return paths
    return _replaced(paths, pc.match_substring_regex(paths, _ODD_KEY), key)


def file_column(paths: pa.ChunkedArray, usual: str, file: Callable[[str], str]) -> pa.ChunkedArray:
    """The data files that paths name; the expression ``usual`` tells paths that need no look."""
    encoded = pc.match_substring_regex(paths, usual)
    odd = pc.or_(pc.invert(encoded), pc.match_substring_regex(paths, _ODD_KEY))
    return _replaced(paths, odd, file)


def are_keys(paths: pa.ChunkedArray) -> bool:
    """Whether every path is the key of its file, by a look at their bytes."""
    return not any(_may_be_odd(chunk) for chunk in paths.chunks if len(chunk))


def _replaced(
    paths: pa.ChunkedArray, odd: pa.ChunkedArray, canonical: Callable[[str], str]
) -> pa.ChunkedArray:
    if not pc.any(odd).as_py():
        return paths
    mended = pa.array([canonical(path) for path in paths.filter(odd).to_pylist()], pa.string())
    return pa.chunked_array([pc.replace_with_mask(paths.combine_chunks(), _one(odd), mended)])


def _one(column: pa.ChunkedArray) -> pa.Array:
    return pc.fill_null(column, False).combine_chunks()


def _may_be_odd(chunk: pa.StringArray) -> bool:
    edges = pc.starts_with(chunk, "/"), pc.starts_with(chunk, ".")
    if any(pc.any(edge).as_py() for edge in edges):
        return True
    for text in windows(chunk):
        if _COLON in text or _SEGMENT(text):
            return True
        if _PERCENT in text and _ESCAPE(text):
            return True
    return False


def windows(chunk: Any, overlap: int = 3) -> Iterator[bytes]:
    """The bytes of all paths together, in pieces that overlap."""
    _, ends, data = chunk.buffers()
    if data is None:
        return
    offsets = pa.Array.from_buffers(pa.int32(), chunk.offset + len(chunk) + 1, [None, ends])
    start, stop = offsets[chunk.offset].as_py(), offsets[-1].as_py()
    for begin in range(start, stop, _WINDOW):
        yield data.slice(begin, min(_WINDOW + overlap, stop - begin)).to_pybytes()
