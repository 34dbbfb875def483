"""Paths of the log that must not be followed, found among very many.

A scan of the bytes clears nearly every table; only suspicious files are judged one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc

from twinlake.log.paths.columns import windows
from twinlake.storage import check_log_path

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["check_paths"]

# Needles of one byte are found an order of magnitude faster, so escapes are looked for only
# where there is a percent sign at all.
_UP: Final = b"/../"
_ESCAPES: Final = (b"%2e", b"%2E", b"%2f", b"%2F", b"%00")
_SUSPECT: Final = r"(?i)(^|/)\.\.(/|$)|%2e|%2f|%00|\x00|^$"


def check_paths(paths: pa.ChunkedArray, *, canonical: bool = False) -> None:
    """Refuse paths that are empty or leave the place they may name, after decoding.

    ``canonical``: they are known to be their own keys, so none has a ``..`` that is not escaped.

    Raises:
        CorruptTable: with code PATH_UNSAFE.
    """
    needles = () if canonical else (_UP,)
    for chunk in paths.chunks:
        if len(chunk) and _is_suspect(chunk, needles):
            for path in chunk.filter(pc.match_substring_regex(chunk, _SUSPECT)).to_pylist():
                check_log_path(path)


def _is_suspect(chunk: pa.StringArray, needles: tuple[bytes, ...]) -> bool:
    edges = (
        pc.equal(pc.binary_length(chunk), 0),
        pc.starts_with(chunk, ".."),
        pc.ends_with(chunk, "/.."),
    )
    if any(pc.any(edge).as_py() for edge in edges):
        return True
    return any(_holds_any(text, (*needles, b"\x00")) for text in windows(chunk))


def _holds_any(text: bytes, needles: tuple[bytes, ...]) -> bool:
    escapes = _ESCAPES if b"%" in text else ()
    return any(needle in text for needle in (*needles, *escapes))
