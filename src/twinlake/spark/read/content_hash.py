"""Hashes of the rows of both sides of a twin table, computed by Spark.

No row leaves the workers: each file comes back as a count and a sum of hashes. Values are hashed by
what they are, not by how they are stored: the entries of a map in any order, every NaN alike; and
-0.0 is not 0.0, a null struct is not a struct of nulls.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.sql import functions as F
from pyspark.sql import types as T

from twinlake.runtime import FileContent
from twinlake.spark.python_workers import map_in_arrow, worker_errors
from twinlake.spark.read.file_list import file_keys, hadoop_root
from twinlake.spark.read.table_scan import FILE_NUMBER, ROW_INDEX, Scan
from twinlake.spark.session import session_conf
from twinlake.spark.spark_types import java_class, quoted
from twinlake.table.twin import canonical_location, hash_python_rows, location_of_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

    from twinlake.log import Snapshot

__all__ = ["SparkContentReader", "hash_rows"]

_FILE: Final = "__twinlake_path"
_HASH: Final = "__twinlake_hash"
_BITS: Final = 1 << 128
_DELTA_EXTENSION: Final = "io.delta.sql.DeltaSparkSessionExtension"
_DELTA_CATALOG: Final = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_ICEBERG_SOURCE: Final = "org.apache.iceberg.spark.source.IcebergSource"


@dataclass(frozen=True)
class SparkContentReader:
    """The readers of a session: Delta Spark if it is set up, Iceberg Spark if its jar is there."""

    spark: SparkSession
    by_delta_spark: bool | None = None
    """Whether Delta Spark reads the Delta side; None: if the session is set up for it."""
    by_iceberg_spark: bool | None = None
    """Whether Iceberg Spark reads the Iceberg side; None: if its jar is on the class path."""

    @cached_property
    def _has_delta(self) -> bool:
        if self.by_delta_spark is not None:
            return self.by_delta_spark
        extensions = session_conf(self.spark, "spark.sql.extensions", "")
        catalog = session_conf(self.spark, "spark.sql.catalog.spark_catalog", "")
        is_set_up = _DELTA_EXTENSION in extensions and catalog == _DELTA_CATALOG
        return is_set_up and _has_class(self.spark, _DELTA_CATALOG)

    @cached_property
    def _has_iceberg(self) -> bool:
        if self.by_iceberg_spark is not None:
            return self.by_iceberg_spark
        return _has_class(self.spark, _ICEBERG_SOURCE)

    @property
    def delta_reader(self) -> str:
        """Delta Spark, or twinlake's scan, whose files Spark's own Parquet reader reads."""
        if self._has_delta:
            return f"Delta Spark {_delta_version(self.spark)}"
        return f"twinlake on Spark {self.spark.version}"

    @property
    def iceberg_reader(self) -> str:
        """Iceberg Spark; empty where it is not there."""
        return f"Iceberg Spark {_iceberg_version(self.spark)}" if self._has_iceberg else ""

    def delta_contents(self, snapshot: Snapshot) -> Mapping[str, FileContent]:
        """The contents of the files of a version."""
        url = hadoop_root(snapshot.store.url)
        if self._has_delta:
            reader = self.spark.read.format("delta").option("versionAsOf", snapshot.version)
            # Hadoop takes a path as it is given: it decodes nothing.
            frame = reader.load(unquote(url))
            named = frame.metadataColumn("_metadata").getField("file_path")
            found = self._contents(frame, named)
            return {location_of_url(path): one for path, one in found.items()}
        files = snapshot.files()
        frame = Scan(snapshot=snapshot, files=files, positions=True).frame(self.spark)
        names = file_keys(url, files["path"].to_pylist())
        found = self._contents(frame, F.col(FILE_NUMBER).cast("string"))
        return {location_of_url(names[int(number)]): one for number, one in found.items()}

    def iceberg_contents(self, location: str, snapshot_id: int | None) -> Mapping[str, FileContent]:
        """The contents of the files of a snapshot."""
        reader = self.spark.read.format("iceberg")
        if snapshot_id is not None:
            reader = reader.option("versionAsOf", snapshot_id)
        frame = reader.load(f"{location}/_iceberg")
        found = self._contents(frame, frame.metadataColumn("_file"))
        return {canonical_location(path): one for path, one in found.items()}

    def _contents(self, frame: DataFrame, file: Column) -> dict[str, FileContent]:
        """The content of each file; ``file`` is the column that names it."""
        fields = [f for f in frame.schema.fields if f.name not in (FILE_NUMBER, ROW_INDEX)]
        if self._has_iceberg:
            return hash_rows(frame, file, fields)
        return self._hashed_in_python(frame, file, fields)

    def _hashed_in_python(
        self, frame: DataFrame, file: Column, fields: list[T.StructField]
    ) -> dict[str, FileContent]:
        """The contents as ``hash_python_rows`` has them, to be compared with those of PyIceberg."""
        chosen = frame.select(
            file.alias(_FILE), F.struct(*(F.col(quoted(f.name)) for f in fields)).alias("row")
        )
        schema = f"{_FILE} STRING, rows BIGINT, {_HASH} STRING"
        with worker_errors(self.spark):
            parts = map_in_arrow(chosen, _sums, schema).collect()
        found: dict[str, FileContent] = {}
        for path, rows, text in parts:
            before = found.get(path, FileContent(rows=0, hash=0))
            found[path] = FileContent(
                rows=before.rows + rows, hash=(before.hash + int(text, 16)) % _BITS
            )
        return found


def _sums(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The content of the rows of each file in every batch."""
    for batch in batches:
        rows: dict[str, list[Any]] = {}
        for path, row in zip(batch[0].to_pylist(), batch[1].to_pylist(), strict=True):
            rows.setdefault(path, []).append(row)
        found = {path: hash_python_rows(some) for path, some in rows.items()}
        yield pa.RecordBatch.from_pydict(
            {
                _FILE: pa.array(found, pa.string()),
                "rows": pa.array([one.rows for one in found.values()], pa.int64()),
                _HASH: pa.array([f"{one.hash:x}" for one in found.values()], pa.string()),
            }
        )


def hash_rows(
    frame: DataFrame, file: Column, fields: list[T.StructField]
) -> dict[str, FileContent]:
    """The contents of the rows of a frame, by the column that names their file."""
    ordered = sorted(fields, key=lambda field: field.name)
    hashes = [_hash(F.col(quoted(field.name)), field.dataType) for field in ordered]
    rows = frame.select(file.alias(_FILE), F.xxhash64(F.lit(0), *hashes).alias(_HASH))
    # Sums of numbers of 64 bits, as decimals that ten thousand million rows do not fill.
    total = F.sum(F.col(_HASH).cast("decimal(20,0)"))
    found = rows.groupBy(_FILE).agg(F.count(F.lit(1)).alias("rows"), total.alias(_HASH)).collect()
    return {path: FileContent(rows=count, hash=int(number)) for path, count, number in found}


def _hash(column: Column, kind: T.DataType) -> Column:
    """A number for a value of any type, null included; Spark's own hash leaves nulls out."""
    return F.xxhash64(column.isNull(), *_parts(column, kind))


def _parts(column: Column, kind: T.DataType) -> list[Column]:
    """What of a value is hashed."""
    match kind:
        case T.StructType():
            ordered = sorted(kind.fields, key=lambda field: field.name)
            return [_hash(column.getField(field.name), field.dataType) for field in ordered]
        case T.ArrayType():
            return [F.size(column), F.transform(column, lambda x: _hash(x, kind.elementType))]
        case T.MapType():
            entries = F.transform(
                F.map_entries(column),
                lambda e: F.xxhash64(
                    _hash(e.getField("key"), kind.keyType),
                    _hash(e.getField("value"), kind.valueType),
                ),
            )
            return [F.size(column), F.array_sort(entries)]
        case T.FloatType() | T.DoubleType():
            # The hash takes both zeros for one; only a zero is made a text to distinguish them.
            return [column, (column == 0) & (column.cast("string") == "-0.0")]
        case T.VariantType():
            return [F.schema_of_variant(column), F.to_json(column)]
        case T.NullType():
            return []
        case _:
            return [column]


def _has_class(spark: SparkSession, name: str) -> bool:
    jvm: Any = spark._jvm
    try:
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        jvm.java.lang.Class.forName(name, False, loader)
    except Py4JJavaError:
        return False
    return True


def _iceberg_version(spark: SparkSession) -> str:
    return str(java_class(spark, "org.apache.iceberg.IcebergBuild").version())


def _delta_version(spark: SparkSession) -> str:
    return str(java_class(spark, "io.delta.package").VERSION())
