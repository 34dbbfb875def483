"""What the routes do, one module for each resource, and the registry of all of them."""

from __future__ import annotations

from typing import Final

from twinlake.rest.resources import config, health, metrics, namespaces, tables, transactions

__all__ = ["ROUTES"]

ROUTES: Final = (
    *config.ROUTES,
    *namespaces.ROUTES,
    *tables.ROUTES,
    *transactions.ROUTES,
    *metrics.ROUTES,
    *health.ROUTES,
)
"""Every route of the server."""
