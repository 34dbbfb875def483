"""Content hashes of the rows of files, on both sides.

The hash of a file does not depend on the order of its rows: it is the sum of the hashes of the
rows. Both tasks are values, so that an executor may send them to other machines.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import math
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from twinlake.files import DataFileReader
from twinlake.table.twin.format_semantics import CharColumns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from twinlake.actions import AddFile, Metadata
    from twinlake.schema import ColumnPath
    from twinlake.storage import Store

__all__ = ["ContentHash", "DeltaFileHash", "IcebergFileHash", "hash_python_rows"]

_BITS: Final = 1 << 128


@dataclass(frozen=True, slots=True)
class ContentHash:
    """The rows of a file in sum, or why they could not be read."""

    rows: int = 0
    hash: int = 0
    problem: str = ""
    unpadded: tuple[ColumnPath, ...] = ()
    """The CHAR columns with values that Delta readers fill up; known on the Delta side alone."""

    def is_same(self, other: ContentHash) -> bool:
        """Whether the rows could be read, and are those of the other."""
        both = (self, other)
        return not any(one.problem for one in both) and len({(o.rows, o.hash) for o in both}) == 1

    def __str__(self) -> str:
        return self.problem or f"{self.rows} rows, content {self.hash:032x}"


@dataclass(frozen=True, slots=True)
class DeltaFileHash:
    """Reads a file as the Delta side says."""

    store: Store

    def __call__(self, item: tuple[Metadata, AddFile]) -> ContentHash:
        """The content of a file under the metadata of a version."""
        metadata, add = item
        try:
            chars = CharColumns.of(metadata)
            reader = DataFileReader(store=self.store, metadata=metadata, pads_chars=False)
            rows = (row for batch in reader.batches(add) for row in batch.to_pylist())
            if not chars.lengths:
                return hash_python_rows(rows)
            short: dict[ColumnPath, None] = {}
            found = hash_python_rows(_watched(rows, chars, short))
            return replace(found, unpadded=tuple(short))
        except Exception as error:
            # Damage may show as anything; the report has to go on to the other files.
            return ContentHash(problem=f"{type(error).__name__}: {error}")


@dataclass(frozen=True, slots=True)
class IcebergFileHash:
    """Reads a file as PyIceberg does."""

    metadata: Any
    io: Any

    def __call__(self, item: tuple[Any, Any]) -> ContentHash:
        """The content that a scan task of PyIceberg's gives under a schema."""
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan

        schema, task = item
        try:
            scan = ArrowScan(self.metadata, self.io, schema, AlwaysTrue())
            return hash_python_rows(scan.to_table([task]).to_pylist())
        except Exception as error:
            return ContentHash(problem=f"{type(error).__name__}: {error}")


def _watched(
    rows: Iterable[Any], chars: CharColumns, short: dict[ColumnPath, None]
) -> Iterator[Any]:
    """The rows as they are; columns with a value that is too short go into ``short``."""
    for row in rows:
        short.update(dict.fromkeys(chars.unpadded(row)))
        yield row


def hash_python_rows(rows: Iterable[Any]) -> ContentHash:
    """The content of rows, which are dictionaries by column."""
    count = total = 0
    for row in rows:
        count += 1
        text = repr(_plain(row)).encode("utf-8", "surrogatepass")
        total += int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "big")
    return ContentHash(count, total % _BITS)


def _plain(value: Any) -> Any:
    """A value in the one form that compares, whichever reader it came from."""
    match value:
        case dict():
            return {name: _plain(value[name]) for name in sorted(value)}
        case list() | tuple():
            return [_plain(item) for item in value]
        case dt.datetime():
            is_local = value.tzinfo is None
            return value.isoformat() if is_local else value.astimezone(dt.UTC).isoformat()
        case Decimal():
            return str(value)
        case float() if math.isnan(value):
            return "NaN"
        case bytearray() | memoryview():
            return bytes(value)
        case _:
            return value
