"""``Table`` and the typed records it answers with."""

from twinlake.table.table import Table

__all__ = ["Table"]
