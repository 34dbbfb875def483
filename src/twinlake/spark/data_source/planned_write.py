"""A write that one process plans, others carry out and a third one commits."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from twinlake.commit import CommitOptions, Operation, OperationName, Transaction
from twinlake.commit.plans import TableRules
from twinlake.files import FileTarget, WriteTask
from twinlake.protocol import CLIENT_FEATURES
from twinlake.runtime import Runtime
from twinlake.spark.files.arrow_writer import check_visible, delete_job_files
from twinlake.storage import decode_path
from twinlake.table import Table, shared_store
from twinlake.table.catalog import TABLE_HOOKS
from twinlake.table.operations import new_metadata
from twinlake.table.rows import (
    NewRows,
    UncommittedFiles,
    all_files,
    commit_change,
    first_schema,
    is_committed,
    metadata_of_write,
    same_partitions,
    table_target,
    write_metrics,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from twinlake.actions import AddFile, RemoveFile
    from twinlake.protocol import Metadata
    from twinlake.schema import Struct
    from twinlake.spark.data_source.options import DataSourceOptions
    from twinlake.table.rows import RemovedFiles

__all__ = ["PlannedWrite"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWrite:
    """What every process has to know of a write; it can be pickled."""

    asked: DataSourceOptions
    given: Struct
    """The columns of the frame."""
    overwrite: bool
    version: int | None
    """The version that it was planned on; None for a table that it makes."""
    metadata: Metadata
    """As the commit will leave it."""
    target: FileTarget
    job: str
    is_done: bool = False
    """Whether the application that ``txn`` names wrote this before."""

    @classmethod
    def of(cls, asked: DataSourceOptions, given: Struct, *, overwrite: bool) -> PlannedWrite:
        """Plan the write; what takes SQL expressions is refused."""
        if not asked.exists():
            return cls._of_new_table(asked, given, overwrite=overwrite)
        table = asked.open()
        table.protocol.check_read_write(CLIENT_FEATURES, metadata=table.metadata)
        if overwrite:
            TableRules.of(table.metadata).refuse_row_loss("WRITE")
        metadata = metadata_of_write(
            given, table.metadata, merge_schema=asked.merge_schema, ids=table.runtime.ids
        )
        NewRows.of(given, metadata)
        return cls(
            asked=asked,
            given=given,
            overwrite=overwrite,
            version=table.version,
            metadata=metadata,
            target=table_target(table, metadata),
            job=str(uuid4()),
            is_done=is_committed(table, asked.txn),
        )

    @classmethod
    def _of_new_table(
        cls, asked: DataSourceOptions, given: Struct, *, overwrite: bool
    ) -> PlannedWrite:
        metadata = new_metadata(
            first_schema(given),
            partition_by=(),
            cluster_by=(),
            properties=asked.properties,
            name=None,
            description=None,
            runtime=Runtime(),
        )
        store = shared_store(asked.location, True, dict(asked.store) or None)
        return cls(
            asked=asked,
            given=given,
            overwrite=overwrite,
            version=None,
            metadata=metadata,
            target=FileTarget.of(store, metadata),
            job=str(uuid4()),
        )

    def files(
        self, batches: Iterable[pa.RecordBatch], *, task: int, attempt: int
    ) -> tuple[AddFile, ...]:
        """Write the rows of one task."""
        if self.is_done:
            return ()
        writing = WriteTask(target=self.target, job=self.job)
        return writing.write(self._rows(batches), task=task, attempt=attempt)

    def _rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows, names = NewRows.of(self.given, self.metadata), list(self.given.names())
        for batch in batches:
            yield rows.batch(batch.rename_columns(names))

    def commit(self, files: tuple[AddFile, ...], *, tried_again: bool) -> None:
        """Commit the files of all tasks."""
        if self.is_done:
            return
        try:
            check_visible(self.target, files)
        except BaseException:
            self.abandon()
            raise
        if tried_again:
            # What lost attempts of tasks wrote was handed over by nobody.
            kept = frozenset(decode_path(file.path) for file in files)
            with contextlib.suppress(Exception):
                delete_job_files(self.target, self.job, keep=kept)
        with UncommittedFiles(self.target.store()) as made:
            made.add(*files)
            if self.version is None:
                self._create(files, made)
            else:
                self._change(self.asked.open(self.version), files, made)

    def abandon(self) -> None:
        """Delete what the tasks wrote, as far as possible."""
        with contextlib.suppress(Exception):
            delete_job_files(self.target, self.job, rounds=3)

    @property
    def _operation(self) -> Operation:
        parameters: dict[str, Any] = {
            "mode": "Overwrite" if self.overwrite else "Append",
            "partitionBy": [],
        }
        if self.version is not None:
            flags = {
                "canMergeSchema": self.asked.merge_schema,
                "isDynamicPartitionOverwrite": self.overwrite and self.asked.dynamic,
            }
            parameters |= {name: True for name, on in flags.items() if on}
        return Operation(name=OperationName.WRITE, parameters=parameters)

    def _options(self) -> CommitOptions:
        return CommitOptions(
            policy=self.asked.policy, user_metadata=self.asked.user_metadata, trusted_files=True
        )

    def _create(self, files: tuple[AddFile, ...], made: UncommittedFiles) -> None:
        transaction = Transaction.for_new_table(
            self.target.store(), self._operation, Runtime(), TABLE_HOOKS, options=self._options()
        )
        if self.asked.txn is not None:
            transaction.set_transaction(*self.asked.txn)
        transaction.update_metadata(self.metadata).add(*files)
        transaction.commit(metrics=write_metrics(files))
        made.keep()

    def _change(self, table: Table, files: tuple[AddFile, ...], made: UncommittedFiles) -> None:
        removal = self._removal(table, files)
        metrics = write_metrics(files)
        gone: tuple[RemoveFile, ...] = ()
        if removal is not None:
            gone = removal.removes(table.runtime.clock.now_ms())
            metrics["numRemovedFiles"] = str(len(removal.files))
            metrics["numRemovedBytes"] = str(removal.size)
        commit_change(
            table,
            self._operation,
            [*gone, *files],
            metadata=self.metadata,
            reads=None if removal is None else removal.reads,
            metrics=metrics,
            options=self._options(),
            txn=self.asked.txn,
            made=made,
        )

    def _removal(self, table: Table, files: tuple[AddFile, ...]) -> RemovedFiles | None:
        if not self.overwrite:
            return None
        if self.asked.dynamic:
            return same_partitions(table.snapshot, files)
        return all_files(table.snapshot)
