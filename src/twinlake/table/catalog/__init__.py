"""Names of tables: the catalog file, publishing the Iceberg side under a name, the list of hooks.

The REST server's catalog is in ``rest``; pointers in catalogs of others in ``iceberg.catalogs``.
"""

from twinlake.table.catalog.publish import TABLE_HOOKS
from twinlake.table.catalog.table_name import split_name

__all__ = [
    "TABLE_HOOKS",
    "split_name",
]
