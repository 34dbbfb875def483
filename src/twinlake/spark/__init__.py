"""The data plane on PySpark: scan, write, change and rewrite tables, with no jar.

``DeltaTable`` has the names, arguments and results of ``delta.tables.DeltaTable``, so that code
changes one import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from twinlake.spark.api.delta_table import DeltaTable
    from twinlake.spark.api.new_columns import IdentityGenerator
    from twinlake.spark.api.reorg import DeltaReorgBuilder, reorg
    from twinlake.spark.api.table_builders import DeltaTableBuilder
    from twinlake.spark.dml.merge_builder import DeltaMergeBuilder
    from twinlake.spark.dml.writing import write
    from twinlake.spark.later import changes, sql
    from twinlake.spark.reading.scanning import scan
    from twinlake.spark.session import enable
    from twinlake.spark.upkeep.optimizing import DeltaOptimizeBuilder

__all__ = [
    "DeltaMergeBuilder",
    "DeltaOptimizeBuilder",
    "DeltaReorgBuilder",
    "DeltaTable",
    "DeltaTableBuilder",
    "IdentityGenerator",
    "changes",
    "enable",
    "reorg",
    "scan",
    "sql",
    "write",
]

_HOMES: Final = {
    "DeltaMergeBuilder": "dml.merge_builder",
    "DeltaOptimizeBuilder": "upkeep.optimizing",
    "DeltaReorgBuilder": "api.reorg",
    "DeltaTable": "api.delta_table",
    "DeltaTableBuilder": "api.table_builders",
    "IdentityGenerator": "api.new_columns",
    "changes": "later",
    "enable": "session",
    "reorg": "api.reorg",
    "scan": "reading.scanning",
    "sql": "later",
    "write": "dml.writing",
}


def __getattr__(name: str) -> Any:
    """Load what is asked for: Python workers import this package and need none of it."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
