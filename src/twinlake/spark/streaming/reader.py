"""The stream reader of Python data sources: rows by Arrow in Spark's workers, for any operator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import msgspec
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from twinlake.actions import AddFile
from twinlake.files import DataFileReader
from twinlake.spark.streaming.planner import StreamPlanner
from twinlake.storage import StoreConfig, open_store, store_config

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from twinlake.protocol import Metadata

__all__ = ["TableStreamReader", "packed"]

_TASK_BYTES: Final = 128 << 20
_FILE_COST: Final = 4 << 20


class _HasSize(Protocol):
    @property
    def size(self) -> int: ...


_Sized = TypeVar("_Sized", bound=_HasSize)


@dataclass(frozen=True, slots=True)
class _Task:
    """What one task reads; it travels to a worker."""

    store: StoreConfig
    metadata: Metadata
    files: bytes

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows."""
        store = open_store(
            self.store.url, durable=self.store.durable, options=dict(self.store.options) or None
        )
        reader = DataFileReader(
            store=store, metadata=self.metadata, columns=tuple((name,) for name in columns)
        )
        for add in msgspec.json.decode(self.files, type=list[AddFile]):
            for batch in reader.readable_batches(add):
                if batch.num_rows:
                    yield batch


class TableStreamReader(DataSourceStreamReader):
    """A table as a stream of rows.

    Spark makes one in the process that plans the batches, and one that it sends to the tasks.
    """

    def __init__(self, options: dict[str, str], columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns

    @cached_property
    def _planner(self) -> StreamPlanner:
        return StreamPlanner(self._options, fixed=True)

    def initialOffset(self) -> dict[str, Any]:
        """Where a new stream begins."""
        return self._planner.beginning().to_dict()

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:  # noqa: ARG002
        """Where the next batch ends; Spark tells from 4.2 on where it begins."""
        return self._planner.latest(start).to_dict()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of a batch."""
        batch = self._planner.batch(start, end)
        store = store_config(batch.base.store)
        return [
            InputPartition(_Task(store, batch.metadata, msgspec.json.encode(files)))
            for files in packed(batch.files)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        task: _Task = partition.value
        return task.batches(self._columns)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing is to be done: the table does not know its readers."""


def packed(files: Sequence[_Sized]) -> list[list[_Sized]]:
    """Files as tasks of about the same size, in their order."""
    packs: list[list[_Sized]] = []
    room = 0
    for file in files:
        if not packs or room < file.size:
            packs.append([])
            room = _TASK_BYTES
        packs[-1].append(file)
        room -= file.size + _FILE_COST
    return packs
