"""A format of Python data sources with the stream reader and writer of tables, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from twinlake.schema import Struct
from twinlake.spark.change_feed.feed_frame import change_schema
from twinlake.spark.read.columns import visible_field
from twinlake.spark.spark_types import spark_type
from twinlake.spark.streaming.planner import open_by_options
from twinlake.spark.streaming.readers import stream_reader
from twinlake.spark.streaming.writer import stream_writer

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamReader, DataSourceStreamWriter
    from pyspark.sql.types import StructType

__all__ = ["TableStreams"]


class TableStreams(DataSource):
    """Tables as streams, through ``format("tablestreams")``."""

    @classmethod
    def name(cls) -> str:
        return "tablestreams"

    def schema(self) -> StructType:
        if self.options.get("readChangeFeed", "").lower() == "true":
            return change_schema(open_by_options(self.options).metadata)
        shown = (visible_field(field) for field in open_by_options(self.options).schema)
        return spark_type(Struct(tuple(shown)))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return stream_reader(self.options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        return stream_writer(self.options, schema, overwrite)
