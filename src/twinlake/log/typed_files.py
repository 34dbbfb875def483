"""The typed layout: the files of a table with typed statistics, without their JSON text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from twinlake.log.columns import ADD_SCHEMA, add_batch
from twinlake.log.file_view import stats_shape, view_files
from twinlake.log.reconcile import Reconciled
from twinlake.log.stats.parsed import conform_stats

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from twinlake.actions import AddFile
    from twinlake.protocol import Metadata

__all__ = ["TypedFiles", "view_adds"]

# Enough rows to keep Arrow's threads busy, few enough that a chunk of text is soon gone again.
_CHUNK_ROWS: Final = 1 << 14
_KEPT: Final = tuple(name for name in ADD_SCHEMA.names if name != "stats")


class TypedFiles:
    """Makes files typed under the metadata of one version."""

    def __init__(self, metadata: Metadata) -> None:
        self.shape = stats_shape(metadata)
        self.schema = pa.schema(
            [*(ADD_SCHEMA.field(name) for name in _KEPT), ("stats_parsed", self.shape.arrow)]
        )

    def batch(self, raw: pa.RecordBatch) -> pa.RecordBatch:
        """One batch of adds with its statistics parsed."""
        names = raw.schema.names
        text = raw.column("stats") if "stats" in names else None
        given = raw.column("stats_parsed") if "stats_parsed" in names else None
        parsed = self.shape.parse(text, given, len(raw))
        return pa.RecordBatch.from_arrays(
            [*(raw.column(name) for name in _KEPT), parsed], schema=self.schema
        )

    def adds(self, raw: pa.Table, live: pa.BooleanArray | None = None) -> pa.Table:
        """The adds that are live, a chunk at a time: of the text only one chunk is ever copied."""
        return pa.Table.from_batches([self.batch(c) for c in _chunks(raw, live)], self.schema)

    def conform(self, files: Reconciled) -> Reconciled:
        """Raw files, or files typed under an earlier schema, in this layout."""
        if files.adds.schema.equals(self.schema):
            return files
        if "stats" in files.adds.schema.names:
            adds = self.adds(files.adds)
        else:
            again = [self._again(chunk) for chunk in files.adds.to_batches()]
            adds = pa.Table.from_batches(again, self.schema)
        return Reconciled(adds, files.removes, files.canonical)

    def _again(self, typed: pa.RecordBatch) -> pa.RecordBatch:
        parsed = conform_stats(typed.column("stats_parsed"), self.shape)
        return pa.RecordBatch.from_arrays(
            [*(typed.column(name) for name in _KEPT), parsed], schema=self.schema
        )


def _chunks(table: pa.Table, live: pa.BooleanArray | None) -> Iterator[pa.RecordBatch]:
    """The live rows; many small commits become a few large chunks."""
    waiting: list[pa.RecordBatch] = []
    rows = start = 0
    for batch in table.to_batches(max_chunksize=_CHUNK_ROWS):
        kept = batch if live is None else batch.filter(live.slice(start, len(batch)))
        start += len(batch)
        if rows + len(kept) > _CHUNK_ROWS and waiting:
            yield pa.concat_batches(waiting)
            waiting, rows = [], 0
        waiting.append(kept)
        rows += len(kept)
    if waiting:
        yield pa.concat_batches(waiting)


def view_adds(adds: Sequence[AddFile], metadata: Metadata) -> pa.Table:
    """Any files, also such as are in no snapshot, in the layout of ``Snapshot.files``."""
    typed = TypedFiles(metadata)
    return view_files(pa.Table.from_batches([typed.batch(add_batch(adds))]), metadata)
