"""Names of the server in a SQL database: namespaces, tables, dropped tables, answered keys.

A row says where a table is, never at which version: the log of the table says that.
"""

from twinlake.rest.catalog.answers import KeptAnswers
from twinlake.rest.catalog.database import (
    CatalogDatabase,
    Connection,
    check_database,
    open_database,
)
from twinlake.rest.catalog.dropped import DroppedTable, DroppedTables
from twinlake.rest.catalog.namespaces import NamespaceRow, Namespaces
from twinlake.rest.catalog.pages import NamePage, PageRequest
from twinlake.rest.catalog.tables import TableRow, Tables, already_there

__all__ = [
    "CatalogDatabase",
    "Connection",
    "DroppedTable",
    "DroppedTables",
    "KeptAnswers",
    "NamePage",
    "NamespaceRow",
    "Namespaces",
    "PageRequest",
    "TableRow",
    "Tables",
    "already_there",
    "check_database",
    "open_database",
]
