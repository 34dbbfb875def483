"""``changes``: what happened to the rows of a table from version to version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.commit.plans import check_change_feed
from twinlake.log import read_commits
from twinlake.spark.api.catalog import table_location
from twinlake.spark.change_feed.feed_frame import change_frame
from twinlake.spark.change_feed.feed_range import find_schema, resolve_range
from twinlake.spark.errors import raises_spark_errors
from twinlake.spark.session import open_table

if TYPE_CHECKING:
    import datetime as dt
    import os

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["changes"]


@raises_spark_errors
def changes(
    spark: SparkSession,
    path_or_name: str | os.PathLike[str],
    from_version: int | None = None,
    to_version: int | None = None,
    from_timestamp: str | int | dt.date | None = None,
    to_timestamp: str | int | dt.date | None = None,
) -> DataFrame:
    """The rows that versions of a table inserted, updated and deleted; both ends are included.

    Beside the table's columns each row has ``_change_type`` (``insert``, ``delete``,
    ``update_preimage``, ``update_postimage``), ``_commit_version`` and ``_commit_timestamp``. The
    table records changes from the version on in which ``delta.enableChangeDataFeed`` is true. A
    timestamp means the first version made at or after it as a start, the last one made at or before
    it as an end; as text it is in the session's time zone.

    Raises:
        UserError: the range has no start, ends before it starts, begins beyond the latest version
            or in versions that are gone, or the feed was off in one of its versions.
        UnsupportedFeature: columns were renamed, dropped or got another type in the range.
    """
    latest = open_table(spark, table_location(spark, path_or_name)).snapshot
    versions = resolve_range(
        spark,
        latest,
        from_version=from_version,
        to_version=to_version,
        from_timestamp=from_timestamp,
        to_timestamp=to_timestamp,
    )
    if not versions:
        return change_frame(spark, latest, [])
    commits = read_commits(latest.store, versions)
    schema = find_schema(spark, latest, commits)
    read = schema.snapshot
    check_change_feed(commits, schema.start, read.metadata, read_version=read.version)
    return change_frame(spark, read, commits)
