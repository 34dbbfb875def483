"""The change data feed: the rows that a range of versions inserted, updated and deleted.

``changes`` reads a table; ``feed_range`` decides what is read, by which schema; ``change_frame``
makes a frame of any commits, which streams use too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake._lazy_exports import lazy_exports

if TYPE_CHECKING:
    from twinlake.spark.change_feed.change_frame import change_frame, change_schema
    from twinlake.spark.change_feed.changes import changes

__all__ = ["change_frame", "change_schema", "changes"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "twinlake.spark.change_feed.change_frame": ("change_frame", "change_schema"),
            "twinlake.spark.change_feed.changes": ("changes",),
        },
    )
