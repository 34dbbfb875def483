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
    IS_SET,
    IS_UNSET,
    chunk_key_sql,
    descriptors,
    pack_positions,
    read_vectors,
)
from twinlake.spark.session import inner_session
from twinlake.spark.spark_types import java_class, quoted, spark_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyroaring import AbstractBitMap64 as Positions
    from pyspark.sql import Column, SparkSession

    from twinlake.log import Snapshot
    from twinlake.schema import DataType

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
_OWN_NUMBER: Final = "__twinlake_own_number"
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
    only: Mapping[int, Positions] | None = None
    """The rows to read, by the file's position in ``files``, whatever deletion vectors say."""
    file_fields: tuple[StructField, ...] = ()
    """Columns to read that files have beside those of the table."""
    carried: tuple[str, ...] = ()
    """Columns of ``files`` (whole numbers) whose value each row gets."""
    repeated: bool = False
    """A file may be listed several times, with other values of ``carried`` and ``only``."""
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
        if self.only is not None:
            return [(files, True)]
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
        numbers = files[FILE_NUMBER].to_pylist()
        if self.hidden is not None:
            by_path = dict(zip(files["path"].to_pylist(), numbers, strict=True))
            return {by_path[path]: rows for path, rows in self.hidden.items() if path in by_path}
        vectors = read_vectors(self.snapshot.store, descriptors(files))
        return {n: rows for n, rows in zip(numbers, vectors, strict=True) if rows is not None}


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
        carried = {name: _only_value(self.files[name]) for name in self.scan.carried}
        joined = joined_partitions or self.scan.row_ids or self.scan.repeated
        joined = joined or None in carried.values()
        numbered = self.hidden or self.scan.positions or joined
        listed = self._listed()
        raw = self._raw(spark, listed, partitions, numbered=numbered)
        if numbered:
            raw = self._with_file(raw)
        if joined:
            raw = self._with_log_values(spark, raw, listed, partitions=joined_partitions)
        if self.hidden:
            raw = self._with_rows(spark, raw)
        chosen = columns.select(
            raw,
            partitions=_joined_partition if joined_partitions else None,
            constants=single,
        )
        extras = self._extras(carried)
        return (
            raw
            if chosen is None and not extras
            else raw.select(*(chosen or [raw[quoted(name)] for name in raw.columns]), *extras)
        )

    def _listed(self) -> list[tuple[str, int]]:
        """Each file as Spark will name it, with the number that Spark's list has it under."""
        root = hadoop_root(self.scan.snapshot.store.url)
        keys = file_keys(root, self.files["path"].to_pylist())
        numbers = self.files[FILE_NUMBER].to_pylist()
        if self.scan.repeated:
            # Spark's list has every file once, in silence.
            first: dict[str, int] = {}
            numbers = [first.setdefault(key, n) for key, n in zip(keys, numbers, strict=True)]
        return list(zip(keys, numbers, strict=True))

    def _raw(
        self,
        spark: SparkSession,
        listed: list[tuple[str, int]],
        partitions: tuple[StructField, ...],
        *,
        numbered: bool,
    ) -> DataFrame:
        """The columns as files name them."""
        columns, files = self.columns, self.files
        extra = (*self._row_id_fields(), *self.scan.file_fields)
        schema = Struct((*columns.data_fields, *extra, *partitions))
        if self.scan.repeated:
            own = pa.array([number for _, number in listed], files[FILE_NUMBER].type)
            once = pc.equal(files[FILE_NUMBER], own)
            files, listed = (
                files.filter(once),
                [item for item, first in zip(listed, once.to_pylist(), strict=True) if first],
            )
        keys = [key for key, _ in listed]
        # From one, as zero means that there is none.
        marks = [number + 1 for _, number in listed]
        sizes = files["size"].to_pylist()
        if self.by_spark:
            inner = inner_session(spark)
            times = marks if numbered else [t or 0 for t in files["modification_time"].to_pylist()]
            plan = read_files(
                spark,
                inner,
                list(zip(keys, sizes, times, strict=True)),
                schema,
                partitioned=bool(partitions),
            )
            return frame_of_plan(spark, plan)
        return read_hidden_files(
            spark,
            self.scan.snapshot.store,
            list(zip(files["path"].to_pylist(), sizes, keys, marks, strict=True)),
            schema,
            columns.metadata,
            columns=tuple(field.name for field in columns.data),
            extra=extra,
            added=(_KEY, _MARK, ROW_INDEX),
        )

    def _row_id_fields(self) -> tuple[StructField, ...]:
        if not self.scan.row_ids:
            return ()
        names = row_tracking_columns(self.scan.snapshot.metadata)
        return tuple(StructField(name, LONG) for name in names)

    def _extras(self, carried: Mapping[str, int | None]) -> list[Column]:
        """What is read beside the table's columns; ``carried`` has values that all files share."""
        found: list[Column] = [F.col(quoted(field.name)) for field in self.scan.file_fields]
        if self.scan.positions:
            found += [F.col(FILE_NUMBER), F.col(ROW_INDEX)]
        if self.scan.row_ids:
            row_id, version = (quoted(n) for n in row_tracking_columns(self.scan.snapshot.metadata))
            found += [
                F.expr(f"coalesce({row_id}, {_BASE_ID} + {ROW_INDEX})").alias(ROW_ID),
                F.expr(f"coalesce({version}, {_BASE_VERSION})").alias(ROW_COMMIT_VERSION),
            ]
        for name, value in carried.items():
            column = _joined(name) if value is None else F.lit(value).cast("bigint")
            found.append(column.alias(name))
        return found

    def _with_file(self, raw: DataFrame) -> DataFrame:
        """Each row's file and position in it."""
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
        last = max(self.files[FILE_NUMBER].to_pylist(), default=-1) + 1
        known = (F.col(_MARK) >= 1) & (F.col(_MARK) <= last)
        number = _found((F.col(_MARK) - 1).cast("int"), known)
        return located.withColumn(FILE_NUMBER, number)

    def _with_log_values(
        self,
        spark: SparkSession,
        numbered: DataFrame,
        listed: list[tuple[str, int]],
        *,
        partitions: bool,
    ) -> DataFrame:
        """What the log has of each row's file; the row once for every time the file is listed."""
        numbers = pa.array([number for _, number in listed], pa.int32())
        columns = self._log_values(spark, numbers, partitions=partitions)
        joined = numbered.join(F.broadcast(columns), F.col(FILE_NUMBER) == F.col(_KNOWN), "left")
        if not self.scan.repeated:
            return joined
        return joined.withColumn(FILE_NUMBER, _joined(_OWN_NUMBER))

    def _log_values(self, spark: SparkSession, known: pa.Array, *, partitions: bool) -> DataFrame:
        """Row-tracking columns, carried values and partition values of each file."""
        info = {
            _KNOWN: known,
            _OWN_NUMBER: self.files[FILE_NUMBER],
            _BASE_ID: self.files["base_row_id"],
            _BASE_VERSION: self.files["default_row_commit_version"],
            **{name: self.files[name] for name in self.scan.carried},
        }
        kinds: list[DataType] = [INTEGER, INTEGER, *[LONG] * (2 + len(self.scan.carried))]
        if partitions:
            values = self.files["partition_values"].combine_chunks()
            for position, child in enumerate(values.flatten()):
                info[f"{_PARTITION}{position}"] = child
            kinds += [field.type for field in self.columns.partitions]
        # Left to itself Spark takes times without a zone for instants in the session's zone.
        schema = Struct(
            tuple(StructField(name, kind) for name, kind in zip(info, kinds, strict=True))
        )
        return spark.createDataFrame(pa.table(info), spark_type(schema))

    def _with_rows(self, spark: SparkSession, raw: DataFrame) -> DataFrame:
        """Without the rows to leave out, or with only those to read."""
        only = self.scan.only
        packed = pack_positions(self.scan.hidden_positions(self.files) if only is None else only)
        key = F.expr(chunk_key_sql(FILE_NUMBER, ROW_INDEX)) == F.col(CHUNK_KEY)
        chunks = F.broadcast(spark.createDataFrame(packed))
        joined = raw.join(chunks, key, "left" if only is None else "inner")
        test = IS_UNSET if only is None else IS_SET
        return joined.where(test.format(words=CHUNK_WORDS, row=ROW_INDEX))


def _only_value(column: pa.ChunkedArray) -> int | None:
    """The value that all files share."""
    bounds = pc.min_max(column).as_py()
    found: int | None = bounds["min"] if bounds["min"] == bounds["max"] else None
    return found


def _found(value: Column, known: Column) -> Column:
    """A column of the log for the row's file; a file that is not in the log is an error."""
    before, after = encode_error_around_row(_UNKNOWN_FILE)
    path = F.to_json(F.struct(F.col(_KEY).alias("file")))
    missing = F.raise_error(F.concat(F.lit(before), path, F.lit(after)))
    return F.when(known, value).otherwise(missing)


def _joined(name: str) -> Column:
    return _found(F.col(name), F.col(_KNOWN).isNotNull())


def _joined_partition(position: int) -> Column:
    return _joined(f"{_PARTITION}{position}")


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
