"""What a Parquet footer says of its column chunks, read by ourselves.

pyarrow can tell too, but its accessors end the whole process (a C++ exception nobody catches) when
the footer of a damaged file makes no sense. The footer is Thrift in the compact protocol, of which
this reads any struct into plain values; damage is a ``ValueError``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Chunk", "column_chunks", "level_histograms"]

_MAX_DEPTH: Final = 32
_MAGIC: Final = b"PAR1"
_TRAILER: Final = 8
# More than the footer of most checkpoints, so that one read gets it whole.
_TAIL: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Chunk:
    """One column of one row group; ``nulls`` is None where the footer does not say."""

    path: tuple[str, ...]
    values: int
    nulls: int | None


def column_chunks(size: int, read: Callable[[int, int], bytes]) -> tuple[Chunk, ...]:
    """All column chunks of a file of ``size`` bytes, of which ``read`` gives a range."""
    tail = read(max(0, size - _TAIL), _TAIL)
    length = int.from_bytes(tail[-_TRAILER:-4], "little") + _TRAILER
    if tail[-4:] != _MAGIC or length > size:
        raise ValueError("it has no Parquet footer")
    if length > len(tail):
        tail = read(size - length, length)
    try:
        # Field numbers of parquet.thrift: FileMetaData, RowGroup, ColumnChunk, ColumnMetaData.
        groups = _Reader(tail[-length:-_TRAILER]).struct().get(4, [])
        return tuple(_chunk(column[3]) for group in groups for column in group[1])
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"its footer is damaged: {error!r}") from error


def level_histograms(footer: bytes) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """For each row group and column, how many values stop at each definition level.

    ``footer`` is a footer alone, with the magic number before and behind it. Empty where the
    writer left the counts out.
    """
    # ColumnMetaData.size_statistics.definition_level_histogram.
    return tuple(
        tuple(tuple(column[3].get(16, {}).get(3, ())) for column in group[1])
        for group in _Reader(footer[4:-_TRAILER]).struct().get(4, [])
    )


def _chunk(meta: dict[int, Any]) -> Chunk:
    nulls = meta[12].get(3) if 12 in meta else None
    return Chunk(tuple(part.decode() for part in meta[3]), int(meta[5]), nulls)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._depth = 0

    def struct(self) -> dict[int, Any]:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ValueError("its footer nests too deep")
        fields: dict[int, Any] = {}
        number = 0
        while header := self._byte():
            # The number is a step from the one before, or follows by itself if the step is long.
            number = number + (header >> 4) if header >> 4 else self._signed()
            fields[number] = self._value(header & 0x0F)
        self._depth -= 1
        return fields

    def _value(self, kind: int) -> Any:
        match kind:
            case 1 | 2:
                return kind == 1
            case 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._signed()
            case 7:
                return self._bytes(8)
            case 8:
                return self._bytes(self._unsigned())
            case 9 | 10:
                return self._list()
            case 12:
                return self.struct()
            case _:
                raise ValueError(f"its footer holds the unknown type {kind}")

    def _list(self) -> list[Any]:
        header = self._byte()
        size = self._unsigned() if header >> 4 == 15 else header >> 4
        if size > len(self._data) - self._at:
            raise ValueError(f"its footer claims a list of {size}")
        kind = header & 0x0F
        # Booleans take a byte each in a list, while as fields the type says it all.
        return [self._byte() == 1 if kind in (1, 2) else self._value(kind) for _ in range(size)]

    def _byte(self) -> int:
        value = self._data[self._at]
        self._at += 1
        return value

    def _bytes(self, length: int) -> bytes:
        found = self._data[self._at : self._at + length]
        if len(found) != length:
            raise ValueError("its footer ends too early")
        self._at += length
        return found

    def _unsigned(self) -> int:
        result = shift = 0
        while True:
            byte = self._byte()
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result
            shift += 7
            if shift > 63:
                raise ValueError("its footer holds a number that is too long")

    def _signed(self) -> int:
        zigzag = self._unsigned()
        return (zigzag >> 1) ^ -(zigzag & 1)
