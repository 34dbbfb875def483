"""``Scan``: Spark's own Parquet reader over exactly the files of a snapshot.

A table without deletion vectors whose folders spell its partitions is one plain Parquet scan. What
goes beyond that is joined on by the file's number, in a union branch of its own, so that the other
files do not pay for it. The number is in the list of files that Spark is given, instead of the
file's modification time. A row without such a number is an error: it never gets null partition
values and is never let back in where it was deleted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from twinlake.errors import Code, CorruptTable
from twinlake.files import ROW_COMMIT_VERSION, ROW_ID, ROW_INDEX, row_tracking_columns
from twinlake.schema import (
    INTEGER,
    LONG,
    ColumnMappingMode,
    Struct,
    StructField,
)
from twinlake.spark.errors import encode_error_around_row
from twinlake.spark.read.columns import ReadColumns
from twinlake.spark.read.field_ids import split_by_field_ids
from twinlake.spark.read.file_list import file_keys, hadoop_root, read_files
from twinlake.spark.read.hidden_files import read_hidden_files
from twinlake.spark.read.hive_partitions import has_hive_paths
from twinlake.spark.read.packed_positions import (
    CHUNK_KEY,
    CHUNK_WORDS,
    IS_UNSET,
    chunk_key_sql,
    pack_positions,
    read_deletion_vectors,
)
from twinlake.spark.session import inner_session
from twinlake.spark.spark_types import java_class, quoted, spark_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyroaring import AbstractBitMap64 as Positions
    from pyspark.sql import Column, SparkSession

    from twinlake.log import Snapshot

__all__ = [
    "FILE_NUMBER",
    "ROW_COMMIT_VERSION",
    "ROW_ID",
    "ROW_INDEX",
    "Scan",
    "files_at",
    "frame_of_plan",
    "union",
]

FILE_NUMBER: Final = "__twinlake_file"
"""The position of a row's file in ``Scan.files``, where positions are asked for."""

_KEY: Final = "__twinlake_key"
_MARK: Final = "__twinlake_mark"
_KNOWN: Final = "__twinlake_known"
_BASE_ID: Final = "__twinlake_base_row_id"
_BASE_VERSION: Final = "__twinlake_base_version"
_PARTITION: Final = "__twinlake_partition_"
_UNKNOWN_FILE: Final = CorruptTable(
    Code.INTERNAL,
    "Spark read a file that is not in the table.",
    why="the file does not have the number that it was given to Spark with, so that partition "
    "values and deletion vectors cannot be found for it",
    fix="Report the path and the version of Spark; reading it would give wrong rows.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What to read of a snapshot; ``frame`` makes it a DataFrame by the table's column names."""

    snapshot: Snapshot
    files: pa.Table
    """The files, in the layout of ``Snapshot.files``."""
    positions: bool = False
    """Add ``FILE_NUMBER`` and ``ROW_INDEX``."""
    row_ids: bool = False
    """Add ``ROW_ID`` and ``ROW_COMMIT_VERSION``."""
    hidden: Mapping[str, Positions] | None = None
    """Rows to leave out, by path in the log, instead of those of the deletion vectors."""
    one_branch: bool = False
    """No union: hidden columns of the file source (``_metadata``) stay reachable."""

    def frame(self, spark: SparkSession) -> DataFrame:
        """The rows."""
        numbered = _numbered(self.files)
        branches = [
            _Branch(scan=self, files=files, hidden=hidden, columns=columns, by_spark=by_spark)
            for files, hidden in self._by_vectors(numbered)
            for files, by_spark in _by_reader(files)
            for files, columns in _by_names(self.snapshot, files)
        ]
        return union([branch.frame(spark) for branch in branches])

    def _by_vectors(self, files: pa.Table) -> list[tuple[pa.Table, bool]]:
        """Files with all their rows, and files that have rows to leave out."""
        if self.hidden is None:
            partial = pc.is_valid(files["deletion_vector"])
        else:
            named = pa.array([path for path, rows in self.hidden.items() if len(rows)], pa.string())
            partial = pc.is_in(files["path"], value_set=named)
        if self.one_branch and pc.any(partial).as_py():
            return [(files, True)]
        whole, cut = files.filter(pc.invert(partial)), files.filter(partial)
        groups = [(group, hidden) for group, hidden in ((whole, False), (cut, True)) if len(group)]
        return groups or [(files, False)]

    def hidden_positions(self, files: pa.Table) -> dict[int, Positions]:
        """The rows to leave out, by the file's number."""
        numbers = dict(zip(files["path"].to_pylist(), files[FILE_NUMBER].to_pylist(), strict=True))
        if self.hidden is not None:
            return {numbers[path]: rows for path, rows in self.hidden.items() if path in numbers}
        vectors = read_deletion_vectors(self.snapshot.store, files)
        return {numbers[path]: rows for path, rows in vectors.items()}


def _numbered(files: pa.Table) -> pa.Table:
    if FILE_NUMBER in files.column_names:
        return files
    return files.append_column(FILE_NUMBER, pa.array(range(len(files)), pa.int32()))


def _by_reader(files: pa.Table) -> list[tuple[pa.Table, bool]]:
    """Files that Spark reads, and files whose names make it skip them."""
    hidden = pc.match_substring_regex(files["path"], "(^|/)[_.][^/]*$")
    if not pc.any(hidden).as_py():
        return [(files, True)]
    groups = ((files.filter(pc.invert(hidden)), True), (files.filter(hidden), False))
    return [(group, by_spark) for group, by_spark in groups if len(group)]


def _by_names(snapshot: Snapshot, files: pa.Table) -> list[tuple[pa.Table, ReadColumns]]:
    """Files whose nested columns are found by id, and those where only names can find them."""
    columns = ReadColumns(snapshot.metadata)
    if columns.mode is not ColumnMappingMode.NAME or not columns.renamed_inside:
        return [(files, columns)]
    with_ids, without = split_by_field_ids(snapshot.store, files)
    groups = [
        (group, replace(columns, nested_by_id=by_id))
        for group, by_id in ((with_ids, True), (without, False))
        if len(group)
    ]
    return groups or [(files, columns)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Branch:
    """Files that are read in one way."""

    scan: Scan
    files: pa.Table
    hidden: bool
    columns: ReadColumns
    by_spark: bool

    def frame(self, spark: SparkSession) -> DataFrame:
        snapshot = self.scan.snapshot
        columns = self.columns
        in_folders = self.by_spark and has_hive_paths(snapshot, self.files)
        single = None if in_folders else columns.only_partition(self.files)
        partitions = columns.partition_fields if in_folders else ()
        joined_partitions = bool(columns.partition_fields) and not in_folders and single is None
        numbered = self.hidden or self.scan.positions or self.scan.row_ids or joined_partitions
        raw = self._raw(spark, partitions, numbered=numbered)
        if numbered:
            raw = self._with_file(spark, raw, partitions=joined_partitions)
        if self.hidden:
            raw = self._without_hidden(spark, raw)
        chosen = columns.select(
            raw,
            partitions=_joined_partition if joined_partitions else None,
            constants=single,
        )
        return (
            raw
            if chosen is None and not self._extras()
            else raw.select(
                *(chosen or [raw[quoted(name)] for name in raw.columns]), *self._extras()
            )
        )

    def _raw(
        self, spark: SparkSession, partitions: tuple[StructField, ...], *, numbered: bool
    ) -> DataFrame:
        """The columns as files name them."""
        columns, sizes = self.columns, self.files["size"].to_pylist()
        keys = file_keys(hadoop_root(self.scan.snapshot.store.url), self.files["path"].to_pylist())
        schema = Struct((*columns.data_fields, *self._row_id_fields(), *partitions))
        if self.by_spark:
            inner = inner_session(spark)
            times = self._marks() if numbered else self._modification_times()
            listed = list(zip(keys, sizes, times, strict=True))
            plan = read_files(spark, inner, listed, schema, partitioned=bool(partitions))
            return frame_of_plan(spark, plan)
        return read_hidden_files(
            spark,
            self.scan.snapshot.store,
            list(zip(self.files["path"].to_pylist(), sizes, keys, self._marks(), strict=True)),
            schema,
            columns.metadata,
            columns=tuple(field.name for field in columns.data),
            extra=self._row_id_fields(),
            added=(_KEY, _MARK, ROW_INDEX),
        )

    def _row_id_fields(self) -> tuple[StructField, ...]:
        if not self.scan.row_ids:
            return ()
        names = row_tracking_columns(self.scan.snapshot.metadata)
        return tuple(StructField(name, LONG) for name in names)

    def _extras(self) -> list[Column]:
        found: list[Column] = []
        if self.scan.positions:
            found += [F.col(FILE_NUMBER), F.col(ROW_INDEX)]
        if self.scan.row_ids:
            row_id, version = (quoted(n) for n in row_tracking_columns(self.scan.snapshot.metadata))
            found += [
                F.expr(f"coalesce({row_id}, {_BASE_ID} + {ROW_INDEX})").alias(ROW_ID),
                F.expr(f"coalesce({version}, {_BASE_VERSION})").alias(ROW_COMMIT_VERSION),
            ]
        return found

    def _marks(self) -> list[int]:
        """The files' numbers in Spark's list: from one, as zero means that there is none."""
        return [number + 1 for number in self.files[FILE_NUMBER].to_pylist()]

    def _modification_times(self) -> list[int]:
        return [time or 0 for time in self.files["modification_time"].to_pylist()]

    def _with_file(self, spark: SparkSession, raw: DataFrame, *, partitions: bool) -> DataFrame:
        """Each row's file and position in it, and what else the log has of the file."""
        located = raw
        if self.by_spark:
            # In this way a column of the table that has the same name does not get in between.
            source = raw.metadataColumn("_metadata")
            marked = F.unix_millis(source.getField("file_modification_time"))
            located = raw.select(
                "*",
                source.getField("file_path").alias(_KEY),
                marked.alias(_MARK),
                source.getField("row_index").alias(ROW_INDEX),
            )
        last = max(self._marks(), default=0)
        known = (F.col(_MARK) >= 1) & (F.col(_MARK) <= last)
        number = _found((F.col(_MARK) - 1).cast("int"), known)
        numbered = located.withColumn(FILE_NUMBER, number)
        if not partitions and not self.scan.row_ids:
            return numbered
        columns = self._file_columns(spark, partitions=partitions)
        return numbered.join(F.broadcast(columns), F.col(FILE_NUMBER) == F.col(_KNOWN), "left")

    def _file_columns(self, spark: SparkSession, *, partitions: bool) -> DataFrame:
        """Row-tracking columns and partition values of each file, from the log."""
        info = {
            _KNOWN: self.files[FILE_NUMBER],
            _BASE_ID: self.files["base_row_id"],
            _BASE_VERSION: self.files["default_row_commit_version"],
        }
        if partitions:
            values = self.files["partition_values"].combine_chunks()
            for position, child in enumerate(values.flatten()):
                info[f"{_PARTITION}{position}"] = child
        kinds = [INTEGER, LONG, LONG, *(field.type for field in self.columns.partitions)]
        # Left to itself Spark takes times without a zone for instants in the session's zone.
        schema = Struct(
            tuple(StructField(name, kind) for name, kind in zip(info, kinds, strict=False))
        )
        return spark.createDataFrame(pa.table(info), spark_type(schema))

    def _without_hidden(self, spark: SparkSession, raw: DataFrame) -> DataFrame:
        packed = spark.createDataFrame(pack_positions(self.scan.hidden_positions(self.files)))
        key = F.expr(chunk_key_sql(FILE_NUMBER, ROW_INDEX))
        joined = raw.join(F.broadcast(packed), key == F.col(CHUNK_KEY), "left")
        return joined.where(IS_UNSET.format(words=CHUNK_WORDS, row=ROW_INDEX))


def _found(value: Column, known: Column) -> Column:
    """A column of the log for the row's file; a file that is not in the log is an error."""
    before, after = encode_error_around_row(_UNKNOWN_FILE)
    path = F.to_json(F.struct(F.col(_KEY).alias("file")))
    missing = F.raise_error(F.concat(F.lit(before), path, F.lit(after)))
    return F.when(known, value).otherwise(missing)


def _joined_partition(position: int) -> Column:
    return _found(F.col(f"{_PARTITION}{position}"), F.col(_KNOWN).isNotNull())


def files_at(snapshot: Snapshot, paths: Iterable[str]) -> pa.Table:
    """These files of the version, by path in the log."""
    files = snapshot.files()
    return files.filter(pc.is_in(files["path"], value_set=pa.array(list(paths), pa.string())))


def union(frames: Sequence[DataFrame]) -> DataFrame:
    """The rows of all frames, which have the same columns."""
    return reduce(lambda one, other: one.union(other), frames)


def frame_of_plan(spark: SparkSession, plan: Any) -> DataFrame:
    """A JVM plan as a frame of the user's session."""
    dataset = java_class(spark, "org.apache.spark.sql.classic.Dataset")
    return DataFrame(dataset.ofRows(spark._jsparkSession, plan), spark)
