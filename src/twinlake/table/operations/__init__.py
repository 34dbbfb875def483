"""What is done to a table without moving rows, one module an operation.

An operation is one function or one class with ``run()``: it takes an ``OperationContext`` and a
snapshot, and makes a commit or several. What a person sees of a table belongs beside ``Table``,
names to ``catalog``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake._lazy_exports import lazy_exports
from twinlake.table.operations.alter import NewColumn
from twinlake.table.operations.column_dependents import dependents
from twinlake.table.operations.context import OperationContext
from twinlake.table.operations.create import clustering_domain, new_metadata

if TYPE_CHECKING:
    from twinlake.table.operations.restore import restore_snapshot
    from twinlake.table.operations.rewrite_files import narrow_files
    from twinlake.table.operations.vacuum import Vacuum, VacuumResult

__all__ = [
    "NewColumn",
    "OperationContext",
    "Vacuum",
    "VacuumResult",
    "clustering_domain",
    "dependents",
    "narrow_files",
    "new_metadata",
    "restore_snapshot",
]

if not TYPE_CHECKING:  # an operation is loaded when it is run
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "twinlake.table.operations.restore": ("restore_snapshot",),
            "twinlake.table.operations.rewrite_files": ("narrow_files",),
            "twinlake.table.operations.vacuum": ("Vacuum", "VacuumResult"),
        },
    )
