"""The class that Spark makes an instance of for each ``format("twinlake")``.

Spark does so in a Python process of its own: nothing here may need a session or a JVM. The version
that ``schema`` found is kept for the reader, which another process plans.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from twinlake.spark.data_source.options import FORMAT, DataSourceOptions
from twinlake.spark.data_source.reader import TableReader
from twinlake.spark.data_source.writer import TableWriter
from twinlake.spark.streaming.readers import stream_reader
from twinlake.spark.streaming.writer import stream_writer

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

__all__ = ["TwinlakeDataSource"]


class TwinlakeDataSource(DataSource):
    """Tables by path."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._version: int | None = None

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    def schema(self) -> StructType:
        """The columns that the options ask for, of the version that they name."""
        asked = DataSourceOptions.for_reading(self.options)
        snapshot = asked.open().snapshot
        self._version = snapshot.version
        return asked.read_schema(snapshot)

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader of the version whose schema was shown."""
        asked = DataSourceOptions.for_reading(self.options)
        asked.refuse_changes()
        return TableReader(asked, schema, self._version)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """The writer of one append or overwrite."""
        return TableWriter.of(
            DataSourceOptions.for_writing(self.options), schema, overwrite=overwrite
        )

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The reader of the table as a stream."""
        return stream_reader(self.options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """The writer of a stream into the table; ``overwrite`` in mode complete."""
        return stream_writer(self.options, schema, overwrite)
