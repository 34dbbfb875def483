"""The data plane on PySpark: scan, write, change and rewrite tables, with no jar.

``DeltaTable`` has the names, arguments and results of ``delta.tables.DeltaTable``, so that code
changes one import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake._lazy_exports import lazy_exports

if TYPE_CHECKING:
    from twinlake.spark.api.column_definition import IdentityGenerator
    from twinlake.spark.api.delta_table import DeltaTable
    from twinlake.spark.api.reorg import DeltaReorgBuilder, reorg
    from twinlake.spark.api.table_builders import DeltaTableBuilder
    from twinlake.spark.change_feed.table_changes import changes
    from twinlake.spark.dml.merge.builder import DeltaMergeBuilder
    from twinlake.spark.dml.write import write
    from twinlake.spark.maintenance.optimize import DeltaOptimizeBuilder
    from twinlake.spark.read.scan import scan
    from twinlake.spark.session_setup import disable, enable
    from twinlake.spark.statements import sql
    from twinlake.spark.streaming.follow import follow
    from twinlake.spark.streaming.into import into

__all__ = [
    "DeltaMergeBuilder",
    "DeltaOptimizeBuilder",
    "DeltaReorgBuilder",
    "DeltaTable",
    "DeltaTableBuilder",
    "IdentityGenerator",
    "changes",
    "disable",
    "enable",
    "follow",
    "into",
    "reorg",
    "scan",
    "sql",
    "write",
]

if not TYPE_CHECKING:  # Python workers import this package and need none of it
    _load, __dir__ = lazy_exports(
        __name__,
        {
            "twinlake.spark.api.delta_table": ("DeltaTable",),
            "twinlake.spark.api.column_definition": ("IdentityGenerator",),
            "twinlake.spark.api.reorg": (
                "DeltaReorgBuilder",
                "reorg",
            ),
            "twinlake.spark.api.table_builders": ("DeltaTableBuilder",),
            "twinlake.spark.dml.merge.builder": ("DeltaMergeBuilder",),
            "twinlake.spark.dml.write": ("write",),
            "twinlake.spark.change_feed.table_changes": ("changes",),
            "twinlake.spark.statements": ("sql",),
            "twinlake.spark.read.scan": ("scan",),
            "twinlake.spark.session_setup": (
                "disable",
                "enable",
            ),
            "twinlake.spark.streaming.follow": ("follow",),
            "twinlake.spark.streaming.into": ("into",),
            "twinlake.spark.maintenance.optimize": ("DeltaOptimizeBuilder",),
        },
    )

    def __getattr__(name: str) -> object:
        """Load a name; where PySpark is not installed, say what to install."""
        try:
            return _load(name)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in ("py4j", "pyspark"):
                raise
            raise ModuleNotFoundError(
                "twinlake.spark needs PySpark, which is not installed: "
                "run `pip install 'twinlake[spark]'`.",
                name="pyspark",
            ) from error
