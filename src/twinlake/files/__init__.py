"""Rows of data files by Arrow: one reader and one writer, for this process and Spark's workers.

What is in a file, which columns and under which names, belongs here; which files a commit adds and
removes does not, and nothing here knows Spark. Names load on first use, because they need pyarrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake._lazy_exports import lazy_exports

if TYPE_CHECKING:
    from twinlake.files.arrow_conversion import conform_array
    from twinlake.files.data_file_reader import (
        ROW_COMMIT_VERSION,
        ROW_ID,
        ROW_INDEX,
        DataFileReader,
        positions_array,
    )
    from twinlake.files.data_file_writer import WriteTask
    from twinlake.files.file_layout import (
        FileLayout,
        as_optional,
        file_tags,
        must_materialise,
        row_id_fields,
        row_tracking_columns,
    )
    from twinlake.files.file_target import FileTarget, clustering_columns
    from twinlake.files.read_ahead import map_ahead, read_ahead, stream_ahead
    from twinlake.files.rewrite import (
        BinResult,
        RewriteBin,
        RewriteJob,
        RewriteTask,
        loses_char,
    )
    from twinlake.files.unreadable import NeedsSpark
    from twinlake.files.view_types import plain_batch, plain_type

__all__ = [
    "ROW_COMMIT_VERSION",
    "ROW_ID",
    "ROW_INDEX",
    "BinResult",
    "DataFileReader",
    "FileLayout",
    "FileTarget",
    "NeedsSpark",
    "RewriteBin",
    "RewriteJob",
    "RewriteTask",
    "WriteTask",
    "as_optional",
    "clustering_columns",
    "conform_array",
    "file_tags",
    "loses_char",
    "map_ahead",
    "must_materialise",
    "plain_batch",
    "plain_type",
    "positions_array",
    "read_ahead",
    "row_id_fields",
    "row_tracking_columns",
    "stream_ahead",
]

if not TYPE_CHECKING:  # all of them need pyarrow
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "twinlake.files.arrow_conversion": ("conform_array",),
            "twinlake.files.data_file_reader": (
                "ROW_COMMIT_VERSION",
                "ROW_ID",
                "ROW_INDEX",
                "DataFileReader",
                "positions_array",
            ),
            "twinlake.files.data_file_writer": ("WriteTask",),
            "twinlake.files.file_layout": (
                "FileLayout",
                "as_optional",
                "file_tags",
                "must_materialise",
                "row_id_fields",
                "row_tracking_columns",
            ),
            "twinlake.files.file_target": ("FileTarget", "clustering_columns"),
            "twinlake.files.rewrite": (
                "BinResult",
                "RewriteBin",
                "RewriteJob",
                "RewriteTask",
                "loses_char",
            ),
            "twinlake.files.read_ahead": ("map_ahead", "read_ahead", "stream_ahead"),
            "twinlake.files.unreadable": ("NeedsSpark",),
            "twinlake.files.view_types": ("plain_batch", "plain_type"),
        },
    )
