"""Data files by pyarrow in Spark's Python workers: the general way, for every table and store."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import msgspec
import pyarrow as pa

from twinlake.actions import AddFile
from twinlake.errors import Code, StorageError
from twinlake.files import WriteTask
from twinlake.spark.errors import encoded_errors
from twinlake.spark.python_workers import map_in_arrow, task_ids, worker_errors
from twinlake.spark.session import session_conf
from twinlake.storage import OnDisk, decode_path, parse_location

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from twinlake.files import FileTarget

__all__ = ["ArrowWriter", "WriteBatches", "check_visible", "compression_of", "delete_job_files"]

_SCHEMA: Final = "file string, attempt int"
_CODECS: Final[Mapping[str, str]] = {
    "none": "none",
    "uncompressed": "none",
    "gzip": "gzip",
    "zstd": "zstd",
    "brotli": "brotli",
    "lz4": "lz4",
    "lz4raw": "lz4",
    "lz4_raw": "lz4",
}
# Tasks of a failed job are stopped one after the other, not at once.
_ROUNDS: Final = 8
_PAUSE: Final = 0.25


class ArrowWriter:
    """Batches of rows go to Python workers, which write files and send back their descriptions."""

    def refusal(self, target: FileTarget) -> str | None:
        """Why workers cannot write such files; None if they can."""
        if parse_location(target.url).scheme == "memory":
            return "a store in memory belongs to one process"
        return None

    def write(self, frame: DataFrame, target: FileTarget) -> tuple[AddFile, ...]:
        """The new files; if the job fails those of its finished tasks are deleted."""
        spark = frame.sparkSession
        job = str(uuid4())
        task = WriteTask(target=target, job=job, compression=compression_of(spark))
        try:
            with worker_errors(spark):
                rows = map_in_arrow(frame, WriteBatches(task), _SCHEMA).collect()
            adds = tuple(msgspec.json.decode(row["file"], type=AddFile) for row in rows)
            check_visible(target, adds)
        except BaseException:
            with contextlib.suppress(Exception):
                delete_job_files(target, job, rounds=_ROUNDS)
            raise
        if any(row["attempt"] for row in rows):
            # Some task was tried twice: what its lost attempts wrote was sent back by nobody.
            with contextlib.suppress(Exception):
                delete_job_files(target, job, keep=frozenset(decode_path(add.path) for add in adds))
        return adds


@dataclass(frozen=True, slots=True)
class WriteBatches:
    """What a Spark task does with its batches: it writes them and yields the files it made."""

    task: WriteTask

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row a file: the add action as JSON, and which attempt of the task wrote it."""
        task, attempt, tries = task_ids()
        with encoded_errors():
            adds = self.task.write(batches, task=task, attempt=attempt)
        if adds:
            lines = [msgspec.json.encode(add).decode() for add in adds]
            yield pa.record_batch(
                [pa.array(lines, pa.string()), pa.array([tries] * len(adds), pa.int32())],
                names=["file", "attempt"],
            )


def compression_of(spark: SparkSession) -> str:
    """The session's codec for Parquet files, as Arrow calls it."""
    name = session_conf(spark, "spark.sql.parquet.compression.codec", "snappy").lower()
    return _CODECS.get(name, "snappy")


def delete_job_files(
    target: FileTarget, job: str, *, keep: frozenset[str] = frozenset(), rounds: int = 1
) -> None:
    """Delete the files that tasks of a job wrote, until no more turn up."""
    store = target.store()
    quiet = 0
    for left in range(rounds, 0, -1):
        found = [
            meta.key
            for meta in store.list_from(target.folder)
            if job in meta.key and meta.key not in keep
        ]
        store.delete(found)
        quiet = 0 if found else quiet + 1
        if left == 1 or quiet == 3:
            return
        time.sleep(_PAUSE)


def check_visible(target: FileTarget, adds: tuple[AddFile, ...]) -> None:
    """Files of a local folder must be in the folder that this process sees."""
    store = target.store()
    if not isinstance(store, OnDisk):
        return
    for add in adds:
        meta = store.head(decode_path(add.path))
        if meta is None or meta.size != add.size:
            raise StorageError(
                Code.STORAGE,
                f"The workers wrote {add.path}, and it is not there.",
                why="the executors do not share the folder of the table with the driver",
                fix="Use a folder that all machines share, or an object store.",
                fields={"path": add.path, "store": store.url},
            )
