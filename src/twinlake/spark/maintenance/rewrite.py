"""Rewriting of data files without changing a row, for OPTIMIZE, REORG and DROP FEATURE.

A bin is read and written by pyarrow in one Spark task: no row goes through the JVM, and two hundred
bins are one job. What pyarrow cannot read or write as Spark would goes through Spark's own reader
instead, bin by bin.
"""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import msgspec
from pyspark import inheritable_thread_target
from pyspark.sql import functions as F

from twinlake.actions import AddFile
from twinlake.errors import Code, TwinlakeError, UserError
from twinlake.files import (
    DataFileReader,
    FileTarget,
    NeedsSpark,
    WriteTask,
    read_ahead,
    row_id_fields,
    row_tracking_columns,
)
from twinlake.schema import (
    VARIANT,
    VOID,
    Geography,
    Geometry,
    Interval,
    Struct,
    StructField,
    UserDefined,
    char_type,
    physical_path,
    walk_types,
)
from twinlake.spark.files.arrow_writer import compression_of, delete_job_files
from twinlake.spark.files.file_writer import delete_uncommitted, write_files
from twinlake.spark.python_workers import run_in_workers, task_ids
from twinlake.spark.read.table_scan import (
    ROW_COMMIT_VERSION,
    ROW_ID,
    Scan,
    files_at,
)
from twinlake.spark.rows.char_padding import padded
from twinlake.spark.rows.constraints import sized_type
from twinlake.spark.spark_types import quoted, spark_type
from twinlake.storage import OnDisk
from twinlake.table.rows import clustering_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import Column, SparkSession

    from twinlake.log import Snapshot
    from twinlake.protocol import Metadata
    from twinlake.runtime import RewriteRequest

__all__ = ["SparkRewriter"]

# Less than this is read and written in this process before a job would have started.
_SMALL: Final = 8 << 20
# Object stores take a file in one piece; larger ones are left to Spark's own connector.
_ONE_PIECE: Final = 256 << 20
_SLICES_A_CORE: Final = 8
_THREADS: Final = 4
_SPARK_ONLY: Final = (Geography, Geometry, Interval, UserDefined)


@dataclass(frozen=True, slots=True)
class SparkRewriter:
    """Rewrites files with the workers of a Spark session."""

    spark: SparkSession
    engine: str | None = None
    """How rows are moved, ``arrow`` or ``frame``; by default whichever is right and fast."""
    small: int = _SMALL
    """Up to so many bytes are rewritten in this process."""

    def rewrite(self, request: RewriteRequest) -> Sequence[Sequence[AddFile]]:
        """The new files of each bin, in the order of the bins; nothing is committed."""
        job = _Job.of(request, compression_of(self.spark))
        made: dict[int, tuple[AddFile, ...]] = {}
        try:
            left = list(range(len(request.bins)))
            if self.engine != "frame" and job.fits_arrow():
                for number, files in self._by_arrow(job, request):
                    made[number] = files
                    request.progress("rewrite", len(made), len(request.bins))
                left = [number for number in left if number not in made]
            for number, files in self._by_frames(job, request, left):
                made[number] = files
                request.progress("rewrite", len(made), len(request.bins))
        except BaseException:
            delete_uncommitted(job.target, [file for files in made.values() for file in files])
            with contextlib.suppress(Exception):
                delete_job_files(job.target, job.name, rounds=3)
            raise
        return [job.placed(request.bins[i], made[i]) for i in range(len(request.bins))]

    def _by_arrow(
        self, job: _Job, request: RewriteRequest
    ) -> Iterator[tuple[int, tuple[AddFile, ...]]]:
        """Bins that pyarrow took; those it did not take are left out."""
        bins = [
            _Bin(number=number, files=tuple(files))
            for number, files in enumerate(request.bins)
            if not job.in_one_piece or sum(file.size for file in files) <= _ONE_PIECE
        ]
        task = _WriteBin(job)
        if sum(file.size for packed in bins for file in packed.files) <= self.small:
            results: Iterable[_Written] = map(task, bins)
        else:
            context: Any = self.spark.sparkContext
            slices = min(len(bins), _SLICES_A_CORE * max(context.defaultParallelism, 1))
            results = run_in_workers(self.spark, task, bins, slices)
        failed: list[TwinlakeError] = []
        for packed, result in zip(bins, results, strict=True):
            if isinstance(result, TwinlakeError):
                failed.append(result)
            elif result is not None:
                yield packed.number, result
        if failed:
            raise failed[0]

    def _by_frames(
        self, job: _Job, request: RewriteRequest, numbers: Sequence[int]
    ) -> Iterator[tuple[int, tuple[AddFile, ...]]]:
        """Bins through Spark's reader; several jobs at once keep the cores busy."""
        write = inheritable_thread_target(self.spark)(job.write_frame)
        failed: BaseException | None = None
        with ThreadPoolExecutor(_THREADS) as pool:
            jobs = {pool.submit(write, self.spark, request, request.bins[n]): n for n in numbers}
            for future in as_completed(jobs):
                if future.cancelled():
                    continue
                error = future.exception()
                if error is None:
                    yield jobs[future], future.result()
                    continue
                failed = failed or error
                for other in jobs:
                    other.cancel()
        if failed is not None:
            raise failed


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bin:
    number: int
    files: tuple[AddFile, ...]


_Written = tuple[AddFile, ...] | TwinlakeError | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """What all bins of one request share; it travels to the workers."""

    name: str
    target: FileTarget
    before: Metadata
    """The metadata the files are read by; ``target`` has the one they are written by."""
    row_ids: tuple[str, str] | None
    compression: str
    in_one_piece: bool

    @classmethod
    def of(cls, request: RewriteRequest, compression: str) -> _Job:
        snapshot: Snapshot = request.snapshot
        before, after = snapshot.metadata, request.metadata
        if before.schema.names() != after.schema.names():
            raise UserError(
                Code.INVALID_ARGUMENT,
                "Files cannot be rewritten for other columns.",
                why="a rewrite moves rows without changing them",
                fix="Change the columns of the table in a commit of its own.",
                fields={"before": before.schema.names(), "after": after.schema.names()},
            )
        ids = row_tracking_columns(snapshot.metadata) if request.row_ids else None
        store = snapshot.store
        return cls(
            name=str(uuid4()),
            target=FileTarget.of(
                store,
                after,
                protocol=snapshot.protocol,
                extra=row_id_fields(after, ids) if ids is not None else (),
                clustering=clustering_columns(snapshot),
            ),
            before=before,
            row_ids=ids,
            compression=compression,
            in_one_piece=not isinstance(store, OnDisk),
        )

    def fits_arrow(self) -> bool:
        """Whether pyarrow has all types of the table, and reads what Spark reads."""
        kinds = [kind for _, kind in walk_types(self.target.metadata.schema)]
        return not any(kind in (VARIANT, VOID) or isinstance(kind, _SPARK_ONLY) for kind in kinds)

    def _pads(self) -> bool:
        """Whether values are to be stored with the padding that readers gave them so far."""
        both = zip(self.before.schema, self.target.metadata.schema, strict=True)
        return any(_loses_char(old, new) for old, new in both)

    def rows(self) -> DataFileReader:
        """How files are read."""
        return DataFileReader(
            store=self.target.store(),
            metadata=self.before,
            row_ids=self.row_ids,
            pads_chars=self._pads(),
        )

    def _is_partition(self, field: StructField) -> bool:
        names = {name.casefold() for name in self.before.partition_columns}
        return field.name.casefold() in names

    def write_frame(
        self, spark: SparkSession, request: RewriteRequest, files: Sequence[AddFile]
    ) -> tuple[AddFile, ...]:
        """The files of one bin, by Spark's reader."""
        snapshot: Snapshot = request.snapshot
        found = files_at(snapshot, (file.path for file in files))
        scan = Scan(snapshot=snapshot, files=found, row_ids=self.row_ids is not None)
        both = zip(self.before.schema, self.target.metadata.schema, strict=True)
        columns = [_as_written(old, new) for old, new in both]
        if self.row_ids is not None:
            ours = (ROW_ID, ROW_COMMIT_VERSION)
            columns += [F.col(a).alias(b) for a, b in zip(ours, self.row_ids, strict=True)]
        return write_files(scan.frame(spark).select(*columns).coalesce(1), self.target)

    def placed(self, old: Sequence[AddFile], new: Sequence[AddFile]) -> tuple[AddFile, ...]:
        """The new files in the very partition of the old ones, spelled as it was."""
        texts = old[0].partition_values
        after = self.target.metadata
        values = {
            _stored_name(after, field): texts.get(_stored_name(self.before, field))
            for field in after.schema
            if self._is_partition(field)
        }
        return tuple(msgspec.structs.replace(file, partition_values=values) for file in new)


def _loses_char(old: StructField, new: StructField) -> bool:
    return char_type(old) is not None and char_type(new) is None


def _as_written(old: StructField, new: StructField) -> Column:
    """The column in the type it is written in, which may be a wider one."""
    column = F.col(quoted(old.name))
    if _loses_char(old, new):
        return padded(column, sized_type(old, char_type(old) or "")).alias(old.name)
    if str(old.type) == str(new.type):
        return column
    return column.cast(spark_type(Struct((new,)))[0].dataType).alias(old.name)


def _stored_name(metadata: Metadata, field: StructField) -> str:
    """The key of a partition column in the partition values of files."""
    return physical_path(metadata.schema, (field.name,), metadata.column_mapping_mode)[0]


@dataclass(frozen=True, slots=True)
class _WriteBin:
    """What a task does with a bin: its files, an error of ours, or None where it takes Spark."""

    job: _Job

    def __call__(self, packed: _Bin) -> _Written:
        task = WriteTask(
            target=self.job.target, job=self.job.name, compression=self.job.compression
        )
        rows = self.job.rows()
        ahead = read_ahead(batch for file in packed.files for batch in rows.batches(file))
        try:
            return task.write(ahead, task=packed.number, attempt=task_ids()[1])
        except NeedsSpark:
            return None
        except TwinlakeError as error:
            return error
        finally:
            ahead.close()
