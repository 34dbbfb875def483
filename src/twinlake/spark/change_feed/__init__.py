"""The change data feed: the rows that a range of versions inserted, updated and deleted.

``table_changes`` reads a table, ``feed_range`` decides what is read and by which schema,
``feed_frame`` makes a frame of any commits, which streams use too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake._lazy_exports import lazy_exports

if TYPE_CHECKING:
    from twinlake.spark.change_feed.feed_frame import change_frame, change_schema
    from twinlake.spark.change_feed.table_changes import changes

__all__ = ["change_frame", "change_schema", "changes"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "twinlake.spark.change_feed.feed_frame": ("change_frame", "change_schema"),
            "twinlake.spark.change_feed.table_changes": ("changes",),
        },
    )
