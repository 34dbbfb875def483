"""The Iceberg REST catalog: HTTP in, Delta commits out.

What a commit means is decided below, in ``table.iceberg_commits``; here are names, routes, limits
and the translation of errors. Only this package imports the web stack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake._lazy_exports import lazy_exports
from twinlake.rest.names import TableIdentity
from twinlake.rest.settings import ServerLimits, ServerSettings, Warehouse

if TYPE_CHECKING:
    from twinlake.rest.application import create_application
    from twinlake.rest.catalog import CatalogDatabase, open_database
    from twinlake.rest.purge import expire_dropped
    from twinlake.rest.server import check_settings, serve

__all__ = [
    "CatalogDatabase",
    "ServerLimits",
    "ServerSettings",
    "TableIdentity",
    "Warehouse",
    "check_settings",
    "create_application",
    "expire_dropped",
    "open_database",
    "serve",
]

if not TYPE_CHECKING:  # the web stack is loaded by what needs it
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "twinlake.rest.application": ("create_application",),
            "twinlake.rest.catalog": ("CatalogDatabase", "open_database"),
            "twinlake.rest.purge": ("expire_dropped",),
            "twinlake.rest.server": ("check_settings", "serve"),
        },
    )
