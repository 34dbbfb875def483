"""The data plane on PySpark: scan, write, change and rewrite tables, with no jar.

``DeltaTable`` has the names, arguments and results of ``delta.tables.DeltaTable``, so that code
changes one import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from twinlake.spark.delta_table import DeltaTable
    from twinlake.spark.later import changes, sql
    from twinlake.spark.merge_builder import DeltaMergeBuilder
    from twinlake.spark.new_columns import IdentityGenerator
    from twinlake.spark.optimizing import DeltaOptimizeBuilder
    from twinlake.spark.reading import scan
    from twinlake.spark.session import enable
    from twinlake.spark.table_builders import DeltaTableBuilder
    from twinlake.spark.writing import write

__all__ = [
    "DeltaMergeBuilder",
    "DeltaOptimizeBuilder",
    "DeltaTable",
    "DeltaTableBuilder",
    "IdentityGenerator",
    "changes",
    "enable",
    "scan",
    "sql",
    "write",
]

_HOMES: Final = {
    "DeltaMergeBuilder": "merge_builder",
    "DeltaOptimizeBuilder": "optimizing",
    "DeltaTable": "delta_table",
    "DeltaTableBuilder": "table_builders",
    "IdentityGenerator": "new_columns",
    "changes": "later",
    "enable": "session",
    "scan": "reading",
    "sql": "later",
    "write": "writing",
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
