"""Names of tables: the catalog file, and publishing the Iceberg side under a name."""

from twinlake.table.catalog.publish import TABLE_HOOKS
from twinlake.table.catalog.table_name import split_name

__all__ = [
    "TABLE_HOOKS",
    "split_name",
]
