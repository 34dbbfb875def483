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

from pyspark import inheritable_thread_target
from pyspark.sql import functions as F

from twinlake.errors import TwinlakeError
from twinlake.files import (
    ROW_COMMIT_VERSION,
    ROW_ID,
    BinResult,
    RewriteBin,
    RewriteJob,
    RewriteTask,
    loses_char,
)
from twinlake.schema import (
    Struct,
    StructField,
    char_type,
)
from twinlake.spark.files.arrow_writer import compression_of, delete_job_files
from twinlake.spark.files.file_writer import delete_uncommitted, write_files
from twinlake.spark.python_workers import run_in_workers, task_ids
from twinlake.spark.read.table_scan import (
    Scan,
    files_at,
)
from twinlake.spark.rows.char_padding import padded
from twinlake.spark.rows.constraints import sized_type
from twinlake.spark.spark_types import quoted, spark_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import Column, SparkSession

    from twinlake.actions import AddFile
    from twinlake.log import Snapshot
    from twinlake.runtime import RewriteRequest

__all__ = ["SparkRewriter"]

# Less than this is read and written in this process before a job would have started.
_SMALL: Final = 8 << 20
# Object stores take a file in one piece; larger ones are left to Spark's own connector.
_ONE_PIECE: Final = 256 << 20
_SLICES_A_CORE: Final = 8
_THREADS: Final = 4


def attempt_of_task() -> int:
    """Which attempt of a task of Spark this process is running."""
    return task_ids()[1]


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
        job = RewriteJob.of(request, compression_of(self.spark))
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
        self, job: RewriteJob, request: RewriteRequest
    ) -> Iterator[tuple[int, tuple[AddFile, ...]]]:
        """Bins that pyarrow took; those it did not take are left out."""
        bins = [
            RewriteBin(number=number, files=tuple(files))
            for number, files in enumerate(request.bins)
            if not job.in_one_piece or sum(file.size for file in files) <= _ONE_PIECE
        ]
        task = RewriteTask(job, attempt_of_task)
        if sum(file.size for packed in bins for file in packed.files) <= self.small:
            results: Iterable[BinResult] = map(task, bins)
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
        self, job: RewriteJob, request: RewriteRequest, numbers: Sequence[int]
    ) -> Iterator[tuple[int, tuple[AddFile, ...]]]:
        """Bins through Spark's reader; several jobs at once keep the cores busy."""
        write = inheritable_thread_target(self.spark)(_write_frame)
        failed: BaseException | None = None
        with ThreadPoolExecutor(_THREADS) as pool:
            jobs = {
                pool.submit(write, job, self.spark, request, request.bins[n]): n for n in numbers
            }
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


def _write_frame(
    job: RewriteJob, spark: SparkSession, request: RewriteRequest, files: Sequence[AddFile]
) -> tuple[AddFile, ...]:
    """The files of one bin, by Spark's reader."""
    snapshot: Snapshot = request.snapshot
    found = files_at(snapshot, (file.path for file in files))
    scan = Scan(snapshot=snapshot, files=found, row_ids=job.row_ids is not None)
    both = zip(job.before.schema, job.target.metadata.schema, strict=True)
    columns = [_as_written(old, new) for old, new in both]
    if job.row_ids is not None:
        ours = (ROW_ID, ROW_COMMIT_VERSION)
        columns += [F.col(a).alias(b) for a, b in zip(ours, job.row_ids, strict=True)]
    return write_files(scan.frame(spark).select(*columns).coalesce(1), job.target)


def _as_written(old: StructField, new: StructField) -> Column:
    """The column in the type it is written in, which may be a wider one."""
    column = F.col(quoted(old.name))
    if loses_char(old, new):
        return padded(column, sized_type(old, char_type(old) or "")).alias(old.name)
    if str(old.type) == str(new.type):
        return column
    return column.cast(spark_type(Struct((new,)))[0].dataType).alias(old.name)
