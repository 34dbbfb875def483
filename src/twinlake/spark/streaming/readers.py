"""Which stream reader a Python data source gets: that of rows, or that of changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.spark.streaming.change_reader import ChangeStreamReader
from twinlake.spark.streaming.reader import TableStreamReader
from twinlake.spark.streaming.source_options import SourceOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.datasource import DataSourceStreamReader
    from pyspark.sql.types import StructType

__all__ = ["stream_reader"]


def stream_reader(options: Mapping[str, str], schema: StructType) -> DataSourceStreamReader:
    """The reader of a stream with these options and columns."""
    has_changes = SourceOptions.parse(options).change_feed
    reader = ChangeStreamReader if has_changes else TableStreamReader
    return reader(dict(options), tuple(schema.names))
