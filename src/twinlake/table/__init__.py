"""``Table`` and the typed records it answers with, and the small catalog of names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake._lazy_exports import lazy_exports
from twinlake.table.catalog.names import Names, open_names
from twinlake.table.catalog.sqlite_catalog import Catalog, TableName, default_catalog_path
from twinlake.table.detail import Detail, clustering_columns, describe
from twinlake.table.rendering import files_text, human_size
from twinlake.table.stores import shared_store, table_exists
from twinlake.table.table import Table

if TYPE_CHECKING:
    from twinlake.table.diff import Diff
    from twinlake.table.importing.import_iceberg import ImportResult
    from twinlake.table.sync_watcher import TableWatcher
    from twinlake.table.twin.report import TwinReport
    from twinlake.table.twin.verify_twin import verify_twin

__all__ = [
    "Catalog",
    "Detail",
    "Diff",
    "ImportResult",
    "Names",
    "Table",
    "TableName",
    "TableWatcher",
    "TwinReport",
    "clustering_columns",
    "default_catalog_path",
    "describe",
    "files_text",
    "human_size",
    "import_iceberg",
    "open_names",
    "shared_store",
    "table_exists",
    "verify_twin",
]

import_iceberg = Table.import_iceberg

if not TYPE_CHECKING:  # what a table shows and few commands need
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "twinlake.table.diff": ("Diff",),
            "twinlake.table.importing.import_iceberg": ("ImportResult",),
            "twinlake.table.twin.report": ("TwinReport",),
            "twinlake.table.twin.verify_twin": ("verify_twin",),
            "twinlake.table.sync_watcher": ("TableWatcher",),
        },
    )
