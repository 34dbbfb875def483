"""How large the pages of a Parquet file become when they are unpacked.

The sizes in a footer are what the writer says, and a reader allocates what the header of each page
says: 30 KB of a file can be gigabytes in memory. So whoever reads a file of a stranger walks along
the headers first, which unpacks nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from twinlake.log.footer.thrift import TRAILER, ThriftReader, footer_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PageSizes", "page_sizes"]

#: Numbers of parquet.thrift: FileMetaData, RowGroup, ColumnChunk.
_ROW_GROUPS: Final = 4
_COLUMNS: Final = 1
_FILE_PATH: Final = 1
_META: Final = 3
#: ColumnMetaData.
_VALUES: Final = 5
_PACKED: Final = 7
_DATA_PAGES: Final = 9
_DICTIONARY: Final = 11
#: PageHeader, and the headers of its kinds with the number of values and the encoding of each.
_UNPACKED_PAGE: Final = 2
_PACKED_PAGE: Final = 3
_KINDS: Final = {5: 2, 8: 4}
_DELTA_BYTE_ARRAY: Final = 7
_HEADER: Final = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSizes:
    """Bytes of pages, unpacked."""

    total: int
    longest_value: int
    """What a value can be long that repeats the beginning of the one before it; 0 without such."""


def page_sizes(data: bytes) -> PageSizes:
    """The sizes of all pages of a file; ``ValueError`` where it is damaged."""
    footer = footer_bytes(len(data), lambda start, length: data[start : start + length])
    try:
        groups = ThriftReader(footer[:-TRAILER]).struct().get(_ROW_GROUPS, [])
        chunks = [chunk for group in groups for chunk in group[_COLUMNS]]
        if any(_FILE_PATH in chunk for chunk in chunks):
            raise ValueError("its columns are in another file")
        found = [page for chunk in chunks for page in _pages(data, chunk[_META])]
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"its footer is damaged: {error!r}") from error
    return PageSizes(
        total=sum(size for size, _ in found),
        longest_value=max((size for size, shares in found if shares), default=0),
    )


def _pages(data: bytes, meta: dict[int, Any]) -> Iterator[tuple[int, bool]]:
    """The size of each page of one column chunk, and whether its values share beginnings."""
    # A column without a dictionary, or without values, leaves the place of these out or says 0.
    starts = [place for place in (meta[_DATA_PAGES], meta.get(_DICTIONARY)) if place]
    at = min(starts, default=0)
    end = at + meta[_PACKED] if starts else 0
    if at < 0 or end > len(data):
        raise ValueError("a column ends after the file")
    left = meta[_VALUES]
    while at < end:
        reader = ThriftReader(data[at : min(at + _HEADER, end)])
        header = reader.struct()
        packed, size = header[_PACKED_PAGE], header[_UNPACKED_PAGE]
        if packed < 0 or size < 0:
            raise ValueError("a page has a size below 0")
        at += reader.at + packed
        kinds = [(header[kind], encoding) for kind, encoding in _KINDS.items() if kind in header]
        left -= sum(kind[1] for kind, _ in kinds)
        yield size, any(kind.get(encoding) == _DELTA_BYTE_ARRAY for kind, encoding in kinds)
    if at > end or left > 0:
        raise ValueError("a column has fewer pages than its footer says")
