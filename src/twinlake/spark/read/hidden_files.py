"""Data files whose names begin with ``_`` or ``.``: Spark's reader skips them in silence.

The Delta log may name any file, so these are read by pyarrow in the workers. They are rare (no
engine we know of makes them), and this way is not fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import types

from twinlake.actions import AddFile
from twinlake.errors import Code, CorruptTable
from twinlake.files import DataFileReader, NeedsSpark, conform_array
from twinlake.schema import Struct, StructField, to_arrow
from twinlake.spark.python_workers import map_in_arrow
from twinlake.spark.spark_types import spark_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from twinlake.protocol import Metadata
    from twinlake.storage import Store

__all__ = ["read_hidden_files"]


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of files, with key and mark of the file and the position in it behind the columns."""

    files: DataFileReader
    columns: pa.Schema
    """The columns of the table as Spark reads them from other files."""
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield from self._file(row["path"], row["size"], row["key"], row["mark"])

    def _file(self, path: str, size: int, key: str, mark: int) -> Iterator[pa.RecordBatch]:
        add = AddFile(
            path=path, partition_values={}, size=size, modification_time=0, data_change=False
        )
        try:
            for batch in self.files.batches(add):
                rows = batch.num_rows
                *columns, positions = batch.columns
                arrays = [
                    conform_array(column, field.type)
                    for column, field in zip(columns, self.columns, strict=True)
                ]
                arrays.append(pa.repeat(pa.scalar(key, pa.string()), rows))
                arrays.append(pa.repeat(pa.scalar(mark, pa.int64()), rows))
                arrays.append(positions)
                yield pa.RecordBatch.from_arrays(arrays, names=list(self.names))
        except NeedsSpark as why:
            raise _unreadable(path, str(why)) from why


def read_hidden_files(
    spark: SparkSession,
    store: Store,
    files: Sequence[tuple[str, int, str, int]],
    schema: Struct,
    metadata: Metadata,
    *,
    columns: tuple[str, ...],
    extra: tuple[StructField, ...],
    added: tuple[str, str, str],
) -> DataFrame:
    """The rows of the files (path in the log, size, key, mark): columns of the table and of files.

    ``schema`` says how both are to be shown; ``added`` are the names of three more columns: key and
    mark of the file, and the position.
    """
    given = zip(("path", "size", "key", "mark"), zip(*files, strict=True), strict=True)
    listed = spark.createDataFrame(pa.table({name: list(column) for name, column in given}))
    read = DataFileReader(
        store=store,
        metadata=metadata,
        columns=tuple((name,) for name in columns),
        extra=extra,
        positions=True,
    )
    result = types.StructType([*spark_type(schema).fields])
    kinds = (types.StringType(), types.LongType(), types.LongType())
    for name, kind in zip(added, kinds, strict=True):
        result = result.add(name, kind)
    return map_in_arrow(listed, _Rows(read, to_arrow(schema), tuple(result.names)), result)


def _unreadable(path: str, why: str) -> CorruptTable:
    return CorruptTable(
        Code.STORAGE,
        f"The data file {path} cannot be read.",
        why=f"its name is hidden to Spark's reader, and {why}",
        fix="Rewrite the table with the engine that made this file.",
        fields={"path": path},
    )
