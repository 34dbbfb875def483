"""Converts a table in a process of its own; it imports little, so that it starts quickly."""

from __future__ import annotations

from twinlake.iceberg import sync_table
from twinlake.table import Table

__all__ = ["sync_latest"]


def sync_latest(folder: str) -> str:
    """Sync a table to its newest version; says why the metadata was rebuilt, if it was."""
    return sync_table(Table.open(folder, durable=False).snapshot).rebuilt
