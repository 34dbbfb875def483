"""One row group of a data file, read batch by batch, independently of the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from twinlake.files.unreadable import NeedsSpark, damaged_file, refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from twinlake.files.parquet_input import ParquetInput

__all__ = ["FilePart", "without_columns"]

#: Many rows at once cost less each; of large files a thread holds few, for the memory's sake.
_BATCH_ROWS: Final = 1 << 17
_LARGE_FILE_ROWS: Final = 1 << 15
_LARGE_FILE: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class FilePart:
    """A row group, and what makes the rows wanted of what is read."""

    file: ParquetInput
    group: int
    start: int
    """The position of its first row in the file."""
    names: tuple[str, ...]
    """What is read of the file; with nothing, rows are only counted."""
    dictionaries: tuple[str, ...]
    """Columns among them that are read as numbers of values in a dictionary."""
    assembled: Callable[[pa.RecordBatch, int], pa.RecordBatch]
    """From a batch of the file and the position of its first row."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows wanted, in the order of the file."""
        rows = self.file.footer.row_group(self.group).num_rows
        if not self.names:
            yield self.assembled(without_columns(rows), self.start)
            return
        at, is_large = self.start, self.file.add.size > _LARGE_FILE
        size = _LARGE_FILE_ROWS if is_large else _BATCH_ROWS
        with self.file.opened(self.dictionaries) as file:
            for batch in file.iter_batches(
                size, row_groups=[self.group], columns=list(self.names), use_threads=False
            ):
                yield self.assembled(batch, at)
                at += batch.num_rows
        if at != self.start + rows:
            why = f"row group {self.group} does not have the rows it says"
            raise damaged_file(self.file.add, why)

    def readable_batches(self) -> Iterator[pa.RecordBatch]:
        """The same where there is no Spark."""
        try:
            yield from self.batches()
        except NeedsSpark as reason:
            raise refusal(self.file.add, reason) from reason


def without_columns(rows: int) -> pa.RecordBatch:
    """Rows of which nothing is known but that they are there."""
    one = pa.RecordBatch.from_arrays([pa.nulls(rows)], names=[""])
    return one.select([])
