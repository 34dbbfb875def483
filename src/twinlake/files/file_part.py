"""One row group of a data file, read batch by batch, independently of the others."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from twinlake.files.parquet_input import open_parquet
from twinlake.files.unreadable import NeedsSpark, damaged_file, refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow.parquet as pq

    from twinlake.actions import AddFile
    from twinlake.storage import Store

__all__ = ["FilePart", "OpenedFile"]

BATCH_ROWS: Final = 1 << 17


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A data file whose footer was read; opened again where several threads read it."""

    store: Store
    add: AddFile
    footer: pq.FileMetaData
    idle: deque[pq.ParquetFile] = field(default_factory=deque)

    @classmethod
    def of(cls, store: Store, add: AddFile, file: pq.ParquetFile) -> OpenedFile:
        """From the handle that read the footer."""
        return cls(store, add, file.metadata, deque([file]))

    def take(self) -> pq.ParquetFile:
        """A handle that nobody else uses; give it back by ``idle.append``."""
        try:
            return self.idle.pop()
        except IndexError:
            return open_parquet(self.store, self.add, footer=self.footer)


@dataclass(frozen=True, slots=True)
class FilePart:
    """A row group, and what makes the rows wanted of what is read."""

    file: OpenedFile
    group: int
    start: int
    """The position of its first row in the file."""
    names: tuple[str, ...]
    """What is read of the file; with nothing, rows are only counted."""
    assembled: Callable[[pa.RecordBatch, int], pa.RecordBatch]
    """From a batch of the file and the position of its first row."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows wanted, in the order of the file."""
        rows = self.file.footer.row_group(self.group).num_rows
        if not self.names:
            yield self.assembled(without_columns(rows), self.start)
            return
        at = self.start
        for batch in self._read():
            yield self.assembled(batch, at)
            at += batch.num_rows
        if at != self.start + rows:
            raise damaged_file(
                self.file.add, f"row group {self.group} does not have the rows it says"
            )

    def readable_batches(self) -> Iterator[pa.RecordBatch]:
        """The same where there is no Spark."""
        try:
            yield from self.batches()
        except NeedsSpark as reason:
            raise refusal(self.file.add, reason) from reason

    def _read(self) -> Iterator[pa.RecordBatch]:
        file = self.file.take()
        try:
            yield from file.iter_batches(
                BATCH_ROWS, row_groups=[self.group], columns=list(self.names), use_threads=False
            )
        except (pa.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0] if str(error) else ""
            raise damaged_file(self.file.add, reason) from error
        self.file.idle.append(file)


def without_columns(rows: int) -> pa.RecordBatch:
    """Rows of which nothing is known but that they are there."""
    one = pa.RecordBatch.from_arrays([pa.nulls(rows)], names=[""])
    return one.select([])
