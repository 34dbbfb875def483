"""The stream reader of Python data sources for a change data feed: changed rows by Arrow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from twinlake.commit.plans import ChangeType, plan_change_feed
from twinlake.files import ROW_INDEX, DataFileReader, positions_array
from twinlake.log import read_dv
from twinlake.spark.change_feed.feed_frame import COMMIT_TIMESTAMP, COMMIT_VERSION
from twinlake.spark.streaming.reader import TableStreamReader, packed
from twinlake.storage import StoreConfig, open_store, store_config
from twinlake.table.rows import CHANGE_FIELDS, CHANGE_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from twinlake.actions import DeletionVectorDescriptor
    from twinlake.commit.plans import ChangeFeedPlan, FeedFile
    from twinlake.protocol import Metadata
    from twinlake.storage import Store

__all__ = ["ChangeStreamReader"]

_ADDED: Final = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)
_MICROS: Final = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Changes:
    """The changed rows of one file."""

    file: FeedFile
    kind: ChangeType | None = None
    """What happened to all of them; None where the rows or two deletion vectors tell."""
    has_types: bool = False
    """Whether the file has a column for it."""
    before: DeletionVectorDescriptor | None = None
    """The deletion vector that the file had."""

    @property
    def size(self) -> int:
        """The bytes of the file."""
        return self.file.file.size

    def batches(
        self, store: Store, metadata: Metadata, columns: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """The rows with the columns of the table, and the type of change behind them."""
        reader = DataFileReader(
            store=store,
            metadata=metadata,
            columns=tuple((name,) for name in columns),
            extra=CHANGE_FIELDS if self.has_types else (),
        )
        if self.has_types:
            yield from reader.readable_batches(self.file.file)
        elif self.kind is not None:
            for batch in reader.readable_batches(self.file.file):
                yield _with_type(batch, self.kind)
        else:
            yield from self._vector_changes(store, replace(reader, positions=True))

    def _vector_changes(self, store: Store, reader: DataFileReader) -> Iterator[pa.RecordBatch]:
        """The rows that one of the two vectors hides and the other does not."""
        file = self.file.file
        after = _hidden(store, file.deletion_vector)
        before = _hidden(store, self.before)
        told = {
            ChangeType.DELETE: np.setdiff1d(after, before),
            ChangeType.INSERT: np.setdiff1d(before, after),
        }
        for batch in reader.readable_batches(msgspec.structs.replace(file, deletion_vector=None)):
            index = batch.schema.get_field_index(ROW_INDEX)
            positions = batch.column(index).to_numpy(zero_copy_only=False)
            rows = batch.remove_column(index)
            for kind, changed in told.items():
                yield _with_type(rows.filter(pa.array(np.isin(positions, changed))), kind)


@dataclass(frozen=True, slots=True)
class _Task:
    """What one task reads; it travels to a worker."""

    store: StoreConfig
    metadata: Metadata
    changes: tuple[_Changes, ...]

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows."""
        store = open_store(
            self.store.url, durable=self.store.durable, options=dict(self.store.options) or None
        )
        own = [name for name in columns if name not in _ADDED]
        for change in self.changes:
            for batch in change.batches(store, self.metadata, own):
                if batch.num_rows:
                    yield _with_commit(batch, change.file).select(list(columns))


class ChangeStreamReader(TableStreamReader):
    """The changes of a table as a stream of rows."""

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of a batch."""
        batch = self._planner.change_batch(start, end)
        store = store_config(batch.columns.store)
        changes = _changes(plan_change_feed(batch.commits))
        return [
            InputPartition(_Task(store, batch.columns.metadata, tuple(pack)))
            for pack in packed(changes)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        task: _Task = partition.value
        return task.batches(self._columns)


def _changes(plan: ChangeFeedPlan) -> list[_Changes]:
    return [
        *(_Changes(file=file, has_types=True) for file in plan.change_files),
        *(_Changes(file=file, kind=ChangeType.INSERT) for file in plan.added),
        *(_Changes(file=file, kind=ChangeType.DELETE) for file in plan.removed),
        *(_Changes(file=change.after, before=change.before) for change in plan.vector_changes),
    ]


def _hidden(store: Store, vector: DeletionVectorDescriptor | None) -> Any:
    if vector is None:
        return np.empty(0, dtype=np.int64)
    return positions_array(read_dv(store, vector))


def _with_type(batch: pa.RecordBatch, kind: ChangeType) -> pa.RecordBatch:
    return batch.append_column(CHANGE_TYPE, pa.repeat(kind.value, batch.num_rows))


def _with_commit(batch: pa.RecordBatch, file: FeedFile) -> pa.RecordBatch:
    moment = pa.scalar(file.timestamp_ms * 1000, pa.int64()).cast(_MICROS)
    version = pa.scalar(file.version, pa.int64())
    batch = batch.append_column(COMMIT_VERSION, pa.repeat(version, batch.num_rows))
    return batch.append_column(COMMIT_TIMESTAMP, pa.repeat(moment, batch.num_rows))
