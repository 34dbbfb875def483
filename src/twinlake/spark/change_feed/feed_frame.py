"""Commits as a frame of changed rows, in at most four scans however many versions there are.

Rows of change files say themselves what happened to them; those of added, of removed and of partly
hidden files are inserts or deletes. Version and time are joined by the file's number, or are
constants where all files of a scan share them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types

from twinlake.commit.plans import ChangeType, plan_change_feed
from twinlake.log import view_adds
from twinlake.schema import Struct
from twinlake.spark.read.columns import visible_field
from twinlake.spark.read.packed_positions import read_vectors
from twinlake.spark.read.scan import shown_as
from twinlake.spark.read.table_scan import Scan, frame_of_plan, union
from twinlake.spark.spark_types import from_spark, java_class, jvm_type, quoted, spark_type
from twinlake.table.rows import CHANGE_FIELDS, CHANGE_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyroaring import AbstractBitMap64 as Positions
    from pyspark.sql import Column, DataFrame, SparkSession

    from twinlake.commit.plans import FeedFile, VectorChange
    from twinlake.log import CommitActions, Snapshot
    from twinlake.protocol import Metadata

__all__ = ["COMMIT_TIMESTAMP", "COMMIT_VERSION", "change_frame", "change_schema"]

COMMIT_VERSION: Final = "_commit_version"
COMMIT_TIMESTAMP: Final = "_commit_timestamp"
_VERSION: Final = "__twinlake_version"
_TIME: Final = "__twinlake_time"
_IS_INSERT: Final = "__twinlake_is_insert"


def change_schema(metadata: Metadata) -> types.StructType:
    """The columns of the table, ``_change_type``, ``_commit_version`` and ``_commit_timestamp``."""
    columns = spark_type(Struct(tuple(visible_field(field) for field in metadata.schema)))
    shown = types.StructType(list(columns.fields))
    shown = shown.add(CHANGE_TYPE, types.StringType())
    shown = shown.add(COMMIT_VERSION, types.LongType())
    return shown.add(COMMIT_TIMESTAMP, types.TimestampType())


def change_frame(
    spark: SparkSession, snapshot: Snapshot, commits: Iterable[CommitActions]
) -> DataFrame:
    """The rows that the commits changed, with the columns of the snapshot.

    Whether the commits fit together and fit the snapshot's schema is for the caller to check
    (`check_change_feed`). A stream hands over those file actions of a commit that a batch reads;
    what it has to keep together says `plan_change_feed`.
    """
    plan = plan_change_feed(commits)
    found = [
        _Scanned(files=plan.change_files, kind=F.col(quoted(CHANGE_TYPE)), says_type=True),
        _Scanned(files=plan.added, kind=F.lit(ChangeType.INSERT.value)),
        _Scanned(files=plan.removed, kind=F.lit(ChangeType.DELETE.value)),
        _changed_vectors(snapshot, plan.vector_changes),
    ]
    frames = [scanned.frame(spark, snapshot) for scanned in found if scanned.files]
    shown = change_schema(snapshot.metadata)
    # Files are read as if all their columns were nullable, and nested ones are found by ids.
    return shown_as(union([_nothing(spark, shown), *frames]), shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scanned:
    """Files that are read in one scan."""

    files: Sequence[FeedFile]
    kind: Column
    """The change type of a row."""
    says_type: bool = False
    """Whether the files have a column for it."""
    only: dict[int, Positions] | None = None
    """The rows that changed, by position in ``files``; else all that are not hidden."""
    inserts: Sequence[bool] | None = None
    """Whether those rows were inserted, of each file."""

    def frame(self, spark: SparkSession, snapshot: Snapshot) -> DataFrame:
        """The rows of the files, in the layout of the feed."""
        carried = {
            _VERSION: [file.version for file in self.files],
            _TIME: [file.timestamp_ms for file in self.files],
        }
        if self.inserts is not None:
            carried[_IS_INSERT] = [int(inserts) for inserts in self.inserts]
        files = view_adds([file.file for file in self.files], snapshot.metadata)
        for name, values in carried.items():
            files = files.append_column(name, pa.array(values, pa.int64()))
        # A file may come and go several times, and may be spelled in several ways.
        paths = {snapshot.paths.file(file.file.path) for file in self.files}
        rows = Scan(
            snapshot=snapshot,
            files=files,
            only=self.only,
            file_fields=CHANGE_FIELDS if self.says_type else (),
            carried=tuple(carried),
            repeated=len(paths) < len(self.files),
            one_branch=True,
        ).frame(spark)
        return rows.select(
            *(F.col(quoted(field.name)) for field in snapshot.schema),
            self.kind.alias(CHANGE_TYPE),
            F.col(_VERSION).alias(COMMIT_VERSION),
            F.timestamp_millis(_TIME).alias(COMMIT_TIMESTAMP),
        )


def _changed_vectors(snapshot: Snapshot, changed: Sequence[VectorChange]) -> _Scanned:
    """The rows by which the vectors of a file differ: what a reader saw before, or sees since."""
    vectors = [vector for c in changed for vector in (c.before, c.after.file.deletion_vector)]
    read = iter(read_vectors(snapshot.store, vectors))
    files: list[FeedFile] = []
    only: dict[int, Positions] = {}
    inserts: list[bool] = []
    for change in changed:
        for is_insert, rows in _differences(next(read), next(read)):
            only[len(files)] = rows
            files.append(change.after)
            inserts.append(is_insert)
    kind = F.when(F.col(_IS_INSERT) == 1, ChangeType.INSERT.value).otherwise(
        ChangeType.DELETE.value
    )
    return _Scanned(files=files, kind=kind, only=only, inserts=inserts)


def _differences(
    before: Positions | None, after: Positions | None
) -> Iterator[tuple[bool, Positions]]:
    deleted = after if after is None or before is None else after - before
    inserted = before if after is None or before is None else before - after
    if deleted:
        yield False, deleted
    if inserted:
        yield True, inserted


def _nothing(spark: SparkSession, shown: types.StructType) -> DataFrame:
    """No rows. In a union it makes the feed's own columns nullable, as Delta Spark shows them."""
    jsession: Any = spark._jsparkSession
    rows = java_class(spark, "java.util.ArrayList")()
    empty = jsession.createDataFrame(rows, jvm_type(spark, from_spark(shown)))
    return frame_of_plan(spark, empty.queryExecution().analyzed())
