"""``Table`` and the typed records it answers with, and the small catalog of names."""

from twinlake.table.catalog.names import Names, TableName, default_catalog_path
from twinlake.table.table import Table

__all__ = ["Names", "Table", "TableName", "default_catalog_path"]
