"""``spark.readStream`` and ``frame.writeStream`` under the takeover.

A stream that reads a table goes through the data source ``twinlake``; one that writes a table hands
each batch to ``into``, which writes natively and once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter
from pyspark.sql.utils import to_str

from twinlake.errors import Code, UserError
from twinlake.spark.api.column_definition import columns_from_schema
from twinlake.spark.api.create_table import CreateMode, TableDefinition
from twinlake.spark.data_source import FORMAT, register
from twinlake.spark.delta_options import OptionUse, OptionValues, table_properties
from twinlake.spark.errors import spark_errors
from twinlake.spark.spark_types import from_spark, spark_type
from twinlake.spark.streaming.into import into
from twinlake.spark.takeover.names import find_name, path_in
from twinlake.spark.takeover.reader import no_path
from twinlake.spark.takeover.state import TAKEOVER, is_ours
from twinlake.table.rows import first_schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["TakeoverStreamReader", "TakeoverStreamWriter"]


class TakeoverStreamReader(DataStreamReader):
    """Spark's reader of streams, but for formats and names of ours."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark)
        self._format: str | None = None

    def format(self, source: str) -> TakeoverStreamReader:
        """The format."""
        self._format = source
        if not is_ours(source):
            super().format(source)
        return self

    def load(
        self,
        path: str | None = None,
        format: str | None = None,
        schema: Any = None,
        **options: Any,
    ) -> DataFrame:
        """The rows at a path, as a stream."""
        if format is not None:
            self.format(format)
        if not TAKEOVER.is_chosen(self._format):
            return super().load(path, schema=schema, **options)
        if schema is not None:
            self.schema(schema)
        register(self._spark)
        super().format(FORMAT)
        return super().load(path, **options)

    def table(self, tableName: str) -> DataFrame:
        """The rows of a table by its name, as a stream."""
        with spark_errors(), TAKEOVER.inside():
            found = find_name(self._spark, tableName)
        if found is None:
            return super().table(tableName)
        self._format = FORMAT
        return self.load(found.location)


class TakeoverStreamWriter(DataStreamWriter):
    """Spark's writer of streams, but for formats and names of ours."""

    def __init__(self, df: DataFrame) -> None:
        super().__init__(df)
        self._format: str | None = None
        self._mode = "append"
        self._partition_by: tuple[str, ...] = ()
        self._options: dict[str, str | None] = {}
        self._has_function = False

    def format(self, source: str) -> TakeoverStreamWriter:
        """The format; Spark is told of its own only."""
        self._format = source
        if not is_ours(source):
            super().format(source)
        return self

    def outputMode(self, outputMode: str) -> TakeoverStreamWriter:
        """The output mode."""
        self._mode = outputMode
        super().outputMode(outputMode)
        return self

    def option(self, key: str, value: Any) -> TakeoverStreamWriter:
        """An option."""
        self._options[key] = to_str(value)
        super().option(key, value)
        return self

    def options(self, **options: Any) -> TakeoverStreamWriter:
        """Some options."""
        for key, value in options.items():
            self.option(key, value)
        return self

    def partitionBy(self, *cols: Any) -> TakeoverStreamWriter:
        """The partition columns; Spark is told of them where the stream is its own."""
        given = cols[0] if len(cols) == 1 and isinstance(cols[0], (list, tuple)) else cols
        self._partition_by = tuple(given)
        return self

    def foreach(self, f: Any) -> TakeoverStreamWriter:
        """Hand rows to a function."""
        self._has_function = True
        super().foreach(f)
        return self

    def foreachBatch(self, func: Callable[[DataFrame, int], None]) -> TakeoverStreamWriter:
        """Hand batches to a function."""
        self._has_function = True
        super().foreachBatch(func)
        return self

    def start(
        self,
        path: str | None = None,
        format: str | None = None,
        outputMode: str | None = None,
        partitionBy: Any = None,
        queryName: str | None = None,
        **options: Any,
    ) -> StreamingQuery:
        """Start a stream to a path."""
        self._collect(format, outputMode, partitionBy, queryName, options)
        if self._has_function or not TAKEOVER.is_chosen(self._format):
            self._tell_partitions()
            return super().start(path)
        with spark_errors():
            target = path if path is not None else OptionValues.of(self._options).text("path")
            if target is None:
                raise no_path()
            return self._started(target)

    def toTable(
        self,
        tableName: str,
        format: str | None = None,
        outputMode: str | None = None,
        partitionBy: Any = None,
        queryName: str | None = None,
        **options: Any,
    ) -> StreamingQuery:
        """Start a stream to a table by its name, which may be new."""
        self._collect(format, outputMode, partitionBy, queryName, options)
        with spark_errors():
            with TAKEOVER.inside():
                found = find_name(self._spark, tableName)
                if found is None and TAKEOVER.is_chosen(self._format):
                    self._create(tableName)
                    found = find_name(self._spark, tableName)
            if found is not None:
                return self._started(found.location)
        self._tell_partitions()
        return super().toTable(tableName)

    def _collect(
        self,
        format: str | None,
        output_mode: str | None,
        partition_by: Any,
        query_name: str | None,
        options: dict[str, Any],
    ) -> None:
        self.options(**options)
        if output_mode is not None:
            self.outputMode(output_mode)
        if partition_by is not None:
            self.partitionBy(partition_by)
        if format is not None:
            self.format(format)
        if query_name is not None:
            self.queryName(query_name)

    def _tell_partitions(self) -> None:
        if self._partition_by:
            super().partitionBy(*self._partition_by)

    def _started(self, location: str) -> StreamingQuery:
        values = OptionValues.of(self._options)
        values.warn_of_unknown(OptionUse.STREAM_WRITE)
        if values.has("txnVersion"):
            raise _batches_have_numbers()
        function = into(
            location,
            mode=self._mode,
            partition_by=self._partition_by or None,
            merge_schema=values.truth("mergeSchema"),
            properties=table_properties(self._options),
            user_metadata=values.text("userMetadata"),
        )
        super().foreachBatch(function)
        return super().start()

    def _create(self, name: str) -> None:
        path = path_in(name)
        schema = spark_type(first_schema(from_spark(self._df.schema)))
        CreateMode.IF_NOT_EXISTS.run(
            self._spark,
            TableDefinition(
                name=None if path is not None else name,
                location=path if path is not None else OptionValues.of(self._options).text("path"),
                columns=columns_from_schema(schema),
                partition_by=self._partition_by,
                properties=table_properties(self._options),
            ),
        )


def _batches_have_numbers() -> UserError:
    return UserError(
        Code.INVALID_ARGUMENT,
        "A stream numbers its batches itself.",
        why="the option txnVersion names one write, and each batch is another one",
        fix="Leave the options `txnAppId` and `txnVersion` out.",
        delta_class="DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
    )
