"""Paths of the log that must not be followed, found among very many.

A scan of the bytes clears nearly every table; only suspicious files are judged one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from twinlake.storage import check_log_path

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["check_paths"]

_WINDOW: Final = 1 << 20
# Needles of one byte are found an order of magnitude faster, so escapes are looked for only
# where there is a percent sign at all.
_UP: Final = b"/../"
_ESCAPES: Final = (b"%2e", b"%2E", b"%2f", b"%2F", b"%00")
_SUSPECT: Final = r"(?i)(^|/)\.\.(/|$)|%2e|%2f|%00|\x00|^$"


def check_paths(paths: pa.ChunkedArray) -> None:
    """Refuse paths that are empty or leave the place they may name, after decoding.

    Raises:
        CorruptTable: with code PATH_UNSAFE.
    """
    for chunk in paths.chunks:
        if len(chunk) and _is_suspect(chunk):
            for path in chunk.filter(pc.match_substring_regex(chunk, _SUSPECT)).to_pylist():
                check_log_path(path)


def _is_suspect(chunk: pa.StringArray) -> bool:
    edges = (
        pc.equal(pc.binary_length(chunk), 0),
        pc.starts_with(chunk, ".."),
        pc.ends_with(chunk, "/.."),
    )
    return any(pc.any(edge).as_py() for edge in edges) or any(map(_holds_any, _windows(chunk)))


def _holds_any(text: bytes) -> bool:
    if _UP in text or b"\x00" in text:
        return True
    return b"%" in text and any(escape in text for escape in _ESCAPES)


def _windows(chunk: pa.StringArray) -> Iterator[bytes]:
    """The bytes of all paths together, in pieces that overlap by the longest needle."""
    _, ends, data = chunk.buffers()
    if data is None:
        return
    offsets = pa.Array.from_buffers(pa.int32(), chunk.offset + len(chunk) + 1, [None, ends])
    start, stop = offsets[chunk.offset].as_py(), offsets[-1].as_py()
    for begin in range(start, stop, _WINDOW):
        length = min(_WINDOW + len(_UP) - 1, stop - begin)
        yield data.slice(begin, length).to_pybytes()
