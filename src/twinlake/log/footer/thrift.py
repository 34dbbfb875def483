"""What a Parquet footer says, read by ourselves: its bytes, its fields, its column chunks.

pyarrow reads them too, but some damaged footers end the whole process there, by a C++ exception
that nobody catches (ADR 0027). The footer is Thrift in the compact protocol, of which this reads
any struct into plain values; damage is a ``ValueError``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "TAIL",
    "TRAILER",
    "Chunk",
    "ThriftReader",
    "column_chunks",
    "footer_bytes",
    "level_histograms",
]

_MAX_DEPTH: Final = 32
_MAGIC: Final = b"PAR1"
_ENCRYPTED: Final = b"PARE"
TRAILER: Final = 8
"""Behind the footer: its length and the magic number."""
TAIL: Final = 1 << 16
"""More than the footer of most checkpoints, so that one read gets it whole."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One column of one row group; ``nulls`` is None where the footer does not say."""

    path: tuple[str, ...]
    values: int
    nulls: int | None


def column_chunks(size: int, read: Callable[[int, int], bytes]) -> tuple[Chunk, ...]:
    """All column chunks of a file of ``size`` bytes, of which ``read`` gives a range."""
    footer = footer_bytes(size, read)
    try:
        # Field numbers of parquet.thrift: FileMetaData, RowGroup, ColumnChunk, ColumnMetaData.
        groups = ThriftReader(footer[:-TRAILER]).struct().get(4, [])
        return tuple(_chunk(column[3]) for group in groups for column in group[1])
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"its footer is damaged: {error!r}") from error


def footer_bytes(size: int, read: Callable[[int, int], bytes], *, guess: int = TAIL) -> bytes:
    """The footer of a file of ``size`` bytes with the trailer behind it.

    ``guess`` is how much to read at first; a footer that is longer takes a second read.
    """
    tail = read(max(0, size - guess), min(guess, size))
    if tail[-4:] == _ENCRYPTED:
        raise ValueError("its footer is encrypted")
    length = int.from_bytes(tail[-TRAILER:-4], "little") + TRAILER
    if tail[-4:] != _MAGIC or length > size:
        raise ValueError("it has no Parquet footer")
    if length > len(tail):
        tail = read(size - length, length)
        if len(tail) != length or tail[-4:] != _MAGIC:
            raise ValueError("it has no Parquet footer")
    return tail[-length:]


def level_histograms(footer: bytes) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """For each row group and column, how many values stop at each definition level.

    ``footer`` is a footer alone, with the magic number before and behind it. Empty where the
    writer left the counts out.
    """
    # ColumnMetaData.size_statistics.definition_level_histogram.
    return tuple(
        tuple(tuple(column[3].get(16, {}).get(3, ())) for column in group[1])
        for group in ThriftReader(footer[4:-TRAILER]).struct().get(4, [])
    )


def _chunk(meta: dict[int, Any]) -> Chunk:
    nulls = meta[12].get(3) if 12 in meta else None
    return Chunk(tuple(part.decode() for part in meta[3]), int(meta[5]), nulls)


class ThriftReader:
    """Any struct of the compact protocol as plain values, by field number."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0
        """Where the next byte is."""
        self._depth = 0

    def field(self, previous: int) -> tuple[int, int] | None:
        """Number and type of the next field of a struct; None at its end."""
        header = self._byte()
        if not header:
            return None
        # The number is a step from the one before, or follows by itself if the step is long.
        number = previous + (header >> 4) if header >> 4 else self._signed()
        return number, header & 0x0F

    def struct(self) -> dict[int, Any]:
        """All fields of a struct."""
        self._enter()
        fields: dict[int, Any] = {}
        number = 0
        while header := self._byte():
            # The number is a step from the one before, or follows by itself if the step is long.
            number = number + (header >> 4) if header >> 4 else self._signed()
            fields[number] = self.value(header & 0x0F)
        self._depth -= 1
        return fields

    def value(self, kind: int) -> Any:
        """A value of that type."""
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
        if size > len(self._data) - self.at:
            raise ValueError(f"its footer claims a list of {size}")
        kind = header & 0x0F
        self._enter()
        # Booleans take a byte each in a list, while as fields the type says it all.
        found = [self._byte() == 1 if kind in (1, 2) else self.value(kind) for _ in range(size)]
        self._depth -= 1
        return found

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ValueError("its footer nests too deep")

    def _byte(self) -> int:
        value = self._data[self.at]
        self.at += 1
        return value

    def _bytes(self, length: int) -> bytes:
        found = self._data[self.at : self.at + length]
        if len(found) != length:
            raise ValueError("its footer ends too early")
        self.at += length
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
