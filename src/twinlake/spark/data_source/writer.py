"""Writing: rows become files in the workers, and one process commits them.

The process that plans says what the table will look like, so that each worker writes files of one
schema; whatever would take SQL expressions is refused there, before a row moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from twinlake.actions import AddFile
from twinlake.spark.data_source.planned_write import PlannedWrite
from twinlake.spark.python_workers import task_ids
from twinlake.spark.spark_types import from_spark

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from twinlake.spark.data_source.options import DataSourceOptions

__all__ = ["TableWriter"]


@dataclass
class _Written(WriterCommitMessage):
    """The files of one task, as add actions in JSON, and which attempt wrote them."""

    actions: list[bytes]
    attempt: int


class TableWriter(DataSourceArrowWriter):
    """One append or overwrite."""

    def __init__(self, write: PlannedWrite) -> None:
        self._write = write

    @classmethod
    def of(cls, asked: DataSourceOptions, schema: StructType, *, overwrite: bool) -> TableWriter:
        """Plan the write; what cannot be done without Spark is refused here."""
        return cls(PlannedWrite.of(asked, from_spark(schema), overwrite=overwrite))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """The files of one task."""
        task, attempt, tries = task_ids()
        files = self._write.files(iterator, task=task, attempt=attempt)
        return _Written([msgspec.json.encode(file) for file in files], tries)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit the files of all tasks."""
        written = [one for one in messages if isinstance(one, _Written)]
        files = tuple(
            msgspec.json.decode(action, type=AddFile) for one in written for action in one.actions
        )
        self._write.commit(files, tried_again=any(one.attempt for one in written))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:  # noqa: ARG002
        """Delete what the tasks wrote, as far as possible."""
        self._write.abandon()
