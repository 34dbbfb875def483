"""``follow``: a table as a stream whose batches are native scans.

The stream that Spark runs carries only offsets. For each batch the driver looks up in the
checkpoint which they are, and the function gets a frame over the files between them.
"""

from __future__ import annotations

import contextlib
import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

import msgspec

from twinlake.errors import Code, UserError
from twinlake.spark.change_feed.feed_frame import change_frame
from twinlake.spark.errors import raises_spark_errors
from twinlake.spark.read.file_list import hadoop_root
from twinlake.spark.read.scan import without_field_ids
from twinlake.spark.read.table_scan import Scan, union
from twinlake.spark.session import check_session, open_table, settings_of
from twinlake.spark.streaming.checkpoint import StreamCheckpoint
from twinlake.spark.streaming.offset_source import OFFSET_FORMAT, OffsetSource
from twinlake.spark.streaming.planner import STORE_OPTION, UNTIL_OPTION
from twinlake.spark.streaming.source import StreamSource
from twinlake.spark.streaming.source_options import SourceOptions
from twinlake.storage import decode_path, parse_location

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from twinlake.spark.streaming.offset import StreamOffset
    from twinlake.spark.streaming.source import ChangeBatch, StreamBatch

    BatchFunction = Callable[[DataFrame, int], object]

__all__ = ["follow"]

_AVAILABLE_NOW: Final = "availableNow"
# Spark warns of a name that is registered again.
_REGISTERED: Final[WeakSet[SparkSession]] = WeakSet()


@raises_spark_errors
def follow(
    spark: SparkSession,
    path: str | os.PathLike[str],
    fn: BatchFunction,
    *,
    checkpoint: str | os.PathLike[str],
    trigger: str | Mapping[str, Any] | None = None,
    query_name: str | None = None,
    **options: Any,
) -> StreamingQuery:
    """Call ``fn(frame, batch_id)`` with the rows of a table and with those it gets later.

    First come the rows that are there, then those of each commit. ``checkpoint`` is the folder in
    which Spark keeps how far the stream is; one of Delta Spark's is continued, and the other way
    round. ``trigger`` is an interval such as ``10 seconds``, ``availableNow`` for what is there
    now, or the arguments of ``DataStreamWriter.trigger``. ``options`` are those of Delta Spark's
    source: ``startingVersion=``, ``maxFilesPerTrigger=``, ``ignoreDeletes=`` and so on.

    After a failure a batch may come again, with the same rows and the same id: ``into`` and
    ``write(..., txn=)`` write it once. A batch without files is not handed on.
    """
    check_session(spark)
    _check_function(fn)
    asked = SourceOptions.parse(options, strict=True)
    stream = _Stream(
        spark=spark,
        source=StreamSource(lambda: open_table(spark, path).snapshot, asked),
        checkpoint=_checkpoint(spark, checkpoint),
        fn=fn,
    )
    stream.check()
    arguments, ends = _trigger(trigger)
    given = {
        **{name: str(value) for name, value in options.items() if value is not None},
        "path": stream.source.log.store.url,
        "checkpointLocation": stream.checkpoint.store.url,
        STORE_OPTION: msgspec.json.encode(dict(settings_of(spark, path).options)).decode(),
    }
    if ends:
        given[UNTIL_OPTION] = str(stream.source.log.latest.version)
    if spark not in _REGISTERED:
        spark.dataSource.register(OffsetSource)
        _REGISTERED.add(spark)
    writer = spark.readStream.format(OFFSET_FORMAT).options(**given).load().writeStream
    if query_name is not None:
        writer = writer.queryName(query_name)
    place = _for_hadoop(stream.checkpoint.store.url)
    writer = writer.option("checkpointLocation", place).trigger(**arguments)
    query = writer.foreachBatch(stream.handle).start()
    if ends:
        threading.Thread(target=_stop_when_done, args=(query,), daemon=True).start()
    return query


def _checkpoint(spark: SparkSession, given: str | os.PathLike[str]) -> StreamCheckpoint:
    location = os.fspath(given)
    return StreamCheckpoint.at(parse_location(location).url, settings_of(spark, location).options)


def _for_hadoop(url: str) -> str:
    """A folder as Hadoop takes it: whole, as a relative one is another for the JVM, and decoded."""
    return decode_path(hadoop_root(url))


def _check_function(fn: object) -> None:
    if not callable(fn):
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{fn!r} cannot handle the batches of a stream.",
            fix="Pass a function of a frame and a batch id, such as `twinlake.spark.into(PATH)`.",
        )


def _trigger(given: str | Mapping[str, Any] | None) -> tuple[dict[str, Any], bool]:
    """The arguments of Spark's trigger, and whether the stream ends with what is there now."""
    if given is None:
        return {"processingTime": "0 seconds"}, False
    if isinstance(given, str):
        given = {_AVAILABLE_NOW: True} if given == _AVAILABLE_NOW else {"processingTime": given}
    if given.keys() == {_AVAILABLE_NOW} and given[_AVAILABLE_NOW] is True:
        # Spark would ask a Python data source once how far it goes, and make one batch of it all.
        return {"processingTime": "0 seconds"}, True
    if given.keys() != {"processingTime"}:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"The trigger {dict(given)!r} cannot be used.",
            why="a stream on a table has the triggers processingTime and availableNow",
            fix="Pass an interval such as `10 seconds`, `availableNow`, or leave `trigger=` out.",
            fields={"trigger": dict(given)},
        )
    return dict(given), False


def _stop_when_done(query: StreamingQuery) -> None:
    # If the stream fails, whoever waits for it is told; here it only ends.
    with contextlib.suppress(Exception):
        query.processAllAvailable()
        query.stop()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stream:
    """The part of a stream that runs in the driver."""

    spark: SparkSession
    source: StreamSource
    checkpoint: StreamCheckpoint
    fn: BatchFunction

    def check(self) -> None:
        """Refuse a checkpoint of something else before anything starts."""
        batch = self.checkpoint.last_batch()
        if batch is None:
            return
        found = self.checkpoint.offset(batch, self.source.table_id)
        if found is None:
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"{self.checkpoint.store.url} is the checkpoint of another stream.",
                why="its last batch has no offset of a table, or offsets of several sources",
                fix="Pass the checkpoint of this stream, or an empty folder.",
                fields={"checkpoint": self.checkpoint.store.url},
            )
        self.source.parse(found.to_dict())

    def handle(self, _: DataFrame, batch_id: int) -> None:
        """Hand one batch on."""
        start, end = self._offsets(batch_id)
        if self.source.options.change_feed:
            changes = self.source.change_batch(start, end)
            if changes.has_files:
                self.fn(self._changed_rows(changes), batch_id)
            return
        batch = self.source.batch(start, end)
        if batch.files:
            self.fn(self._frame(batch), batch_id)

    def _offsets(self, batch_id: int) -> tuple[StreamOffset, StreamOffset]:
        """Where a batch begins and ends."""
        end = self.checkpoint.offset(batch_id, self.source.table_id)
        if end is None:
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"The checkpoint {self.checkpoint.store.url} has no offsets of batch {batch_id}.",
                fix="Restore the folder of the checkpoint, or begin with an empty one.",
                fields={"batch": batch_id},
            )
        before = None
        if batch_id:
            before = self.checkpoint.offset(batch_id - 1, self.source.table_id)
        start = before or self.checkpoint.start() or self.source.beginning()
        return self.source.parse(start.to_dict()), self.source.parse(end.to_dict())

    def _changed_rows(self, batch: ChangeBatch) -> DataFrame:
        return without_field_ids(change_frame(self.spark, batch.columns, batch.commits))

    def _frame(self, batch: StreamBatch) -> DataFrame:
        frames = [
            Scan(snapshot=snapshot, files=snapshot.files()).frame(self.spark)
            for snapshot in batch.snapshots()
        ]
        return without_field_ids(union(frames))
