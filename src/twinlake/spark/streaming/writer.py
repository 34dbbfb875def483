"""The stream writer of Python data sources: files by Arrow in the tasks, one commit for each batch.

The commit names the query and the batch, as that of ``into`` does. The id of the query is in its
checkpoint, which Spark names among the options.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from twinlake.actions import AddFile
from twinlake.commit import CommitOptions, Operation, OperationName
from twinlake.commit.plans import TableRules
from twinlake.errors import Code, TwinlakeError, UnsupportedFeature, UserError
from twinlake.files import WriteTask
from twinlake.spark.python_workers import task_ids
from twinlake.spark.spark_types import from_spark
from twinlake.spark.streaming.checkpoint import StreamCheckpoint
from twinlake.spark.streaming.planner import open_by_options, store_options
from twinlake.storage import decode_path
from twinlake.table import Table
from twinlake.table.rows import (
    ArrowData,
    UncommittedFiles,
    all_files,
    commit_change,
    evolve,
    identity_fields,
    is_committed,
    new_rows,
    refuse_missing_partitions,
    table_target,
    write_metrics,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql.datasource import DataSourceStreamWriter
    from pyspark.sql.types import StructType

    from twinlake.protocol import Metadata

__all__ = ["TableStreamWriter", "stream_writer"]

_OUTPUT: Final = {False: "Append", True: "Complete"}


def stream_writer(
    options: Mapping[str, str], schema: StructType, overwrite: bool
) -> DataSourceStreamWriter:
    """The writer of a stream with these options and columns; ``overwrite`` in mode complete."""
    given = {name.lower(): value for name, value in options.items()}
    table = _open_or_create(options, schema)
    metadata = _metadata_after(table, schema, given.get("mergeschema", "false"))
    if identity_fields(metadata.schema):
        raise UnsupportedFeature(
            Code.SPARK_REQUIRED,
            f"A stream cannot be written to table {table.metadata.label} in this way.",
            why="it has identity columns, whose values the tasks cannot hand out between them",
            fix="Write it in `foreachBatch` with `twinlake.spark.into(PATH)`.",
            fields={"columns": [field.name for field in identity_fields(metadata.schema)]},
        )
    return TableStreamWriter(
        options=dict(options),
        task=WriteTask(target=table_target(table, metadata), job=str(uuid4())),
        before=table.metadata,
        metadata=metadata,
        overwrite=overwrite,
    )


def _open_or_create(options: Mapping[str, str], schema: StructType) -> Table:
    path, store = options.get("path"), store_options(options)
    if path and not Table.exists(path, options=store):
        try:
            return Table.create(path, from_spark(schema), options=store)
        except TwinlakeError as error:
            # Another process of this stream may have been first.
            if error.code != Code.TABLE_EXISTS:
                raise
    return open_by_options(options)


def _metadata_after(table: Table, schema: StructType, merge_schema: str) -> Metadata:
    given = from_spark(schema)
    metadata = evolve(
        given,
        table.metadata,
        merge_schema=merge_schema.lower() == "true",
        overwrite_schema=False,
        ids=table.runtime.ids,
    )
    refuse_missing_partitions(metadata, given.names())
    return metadata


@dataclass
class _Files(WriterCommitMessage):
    """What one task wrote."""

    adds: bytes
    before: Metadata
    metadata: Metadata

    def files(self) -> list[AddFile]:
        """The actions."""
        return msgspec.json.decode(self.adds, type=list[AddFile])


@dataclass(frozen=True, kw_only=True)
class TableStreamWriter(DataSourceStreamArrowWriter):
    """A table that the batches of a stream are written to."""

    options: dict[str, str] = field(repr=False)
    task: WriteTask
    before: Metadata
    """The metadata that the table had when the batch was planned."""
    metadata: Metadata
    """What it will have after the batch."""
    overwrite: bool

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """The files of one task."""
        first = next(iterator, None)
        adds: tuple[AddFile, ...] = ()
        if first is not None:
            reader = pa.RecordBatchReader.from_batches(first.schema, chain((first,), iterator))
            number, attempt, _ = task_ids()
            rows = new_rows(ArrowData.of(reader), self.metadata)
            adds = self.task.write(rows, task=number, attempt=attempt)
        return _Files(msgspec.json.encode(adds), self.before, self.metadata)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Add the files of a batch to the table, unless that was done before."""
        table = open_by_options(self.options)
        found = [message for message in messages if isinstance(message, _Files)]
        files = tuple(add for message in found for add in message.files())
        txn = self._query_id(), batchId
        with UncommittedFiles(table.snapshot.store) as made:
            made.add(*files)
            if is_committed(table, txn):
                self._delete(table, files)
                made.keep()
                return
            self._commit(table, files, txn, self._metadata_after(table, found), made)

    def _metadata_after(self, table: Table, messages: list[_Files]) -> Metadata:
        """What the batch was written for, if the table still is what it was then."""
        if not messages:
            return self.metadata
        planned = messages[0]
        if _columns(table.metadata) != _columns(planned.before):
            raise UserError(
                Code.SCHEMA_EVOLUTION,
                f"The columns of table {table.metadata.label} were changed while a batch was "
                "written.",
                why="the files of the batch have the columns from before",
                fix="Restart the stream; the batch is written again.",
                fields={"version": table.version},
            )
        return planned.metadata

    def _commit(
        self,
        table: Table,
        files: tuple[AddFile, ...],
        txn: tuple[str, int],
        metadata: Metadata,
        made: UncommittedFiles,
    ) -> None:
        written = write_metrics(files)
        metrics = {"numAddedFiles": written.pop("numFiles"), "numRemovedFiles": "0", **written}
        actions: list[Any] = list(files)
        reads = None
        if self.overwrite:
            TableRules.of(table.metadata).refuse_row_loss("WRITE")
            removal = all_files(table.snapshot)
            actions = [*removal.removes(table.runtime.clock.now_ms()), *files]
            metrics["numRemovedFiles"] = str(len(removal.files))
            reads = removal.reads
        operation = Operation(
            name=OperationName.STREAMING_UPDATE,
            parameters={
                "outputMode": _OUTPUT[self.overwrite],
                "queryId": txn[0],
                "epochId": str(txn[1]),
            },
        )
        commit_change(
            table,
            operation,
            actions,
            metadata=metadata,
            reads=reads,
            metrics=metrics,
            options=CommitOptions(policy=table.policy, user_metadata=self._option("userMetadata")),
            txn=txn,
            made=made,
        )

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002
        """Delete what finished tasks of a failed batch wrote."""
        files = [a for message in messages if isinstance(message, _Files) for a in message.files()]
        self._delete(open_by_options(self.options), tuple(files))

    def _delete(self, table: Table, files: tuple[AddFile, ...]) -> None:
        table.snapshot.store.delete([decode_path(file.path) for file in files])

    def _query_id(self) -> str:
        """What the batches of this stream are known by."""
        own = self._option("txnAppId")
        if own:
            return own
        location = self._option("checkpointLocation")
        if location is None:
            raise UserError(
                Code.INVALID_ARGUMENT,
                "The stream does not say where its checkpoint is.",
                why="the id of the query is in it, by which a batch is known when it comes again",
                fix="Call `.option('checkpointLocation', FOLDER)` on the writer of the stream, or "
                "give it a `txnAppId` of its own.",
            )
        return StreamCheckpoint.at(location, store_options(self.options)).query_id()

    def _option(self, name: str) -> str | None:
        return next((v for key, v in self.options.items() if key.lower() == name.lower()), None)


def _columns(metadata: Metadata) -> tuple[object, ...]:
    """What files depend on."""
    return metadata.schema, metadata.partition_columns, metadata.configuration
