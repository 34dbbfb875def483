"""twinlake: one table, two formats.

>>> import tempfile, twinlake
>>> t = twinlake.Table.create(tempfile.mkdtemp(), "id INT")
>>> t.version
0

What is not listed in ``__all__`` here or in ``twinlake.protocol``, ``twinlake.spark``,
``twinlake.spark.exceptions`` and ``twinlake.verify`` is private and may change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake._lazy_exports import lazy_exports

if TYPE_CHECKING:
    from twinlake.commit import CommitResult
    from twinlake.compat import Plan, Report, Violation
    from twinlake.errors import (
        CommitUnknown,
        CompatViolation,
        ConcurrentAppendException,
        ConcurrentDeleteDeleteException,
        ConcurrentDeleteReadException,
        ConcurrentTransactionException,
        ConcurrentWriteException,
        ConflictError,
        CorruptTable,
        MetadataChangedException,
        ProtocolChangedException,
        StorageError,
        TwinlakeError,
        UnsupportedFeature,
        UserError,
    )
    from twinlake.iceberg import Lag, SyncResult
    from twinlake.log import CommitRecord
    from twinlake.table import (
        Catalog,
        Detail,
        Diff,
        ImportResult,
        Table,
        TwinReport,
        import_iceberg,
        verify_twin,
    )
    from twinlake.table.operations import VacuumResult

__all__ = [
    "Catalog",
    "CommitRecord",
    "CommitResult",
    "CommitUnknown",
    "CompatViolation",
    "ConcurrentAppendException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentDeleteReadException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "ConflictError",
    "CorruptTable",
    "Detail",
    "Diff",
    "ImportResult",
    "Lag",
    "MetadataChangedException",
    "Plan",
    "ProtocolChangedException",
    "Report",
    "StorageError",
    "SyncResult",
    "Table",
    "TwinReport",
    "TwinlakeError",
    "UnsupportedFeature",
    "UserError",
    "VacuumResult",
    "Violation",
    "import_iceberg",
    "verify_twin",
]

if not TYPE_CHECKING:  # the checker alone, for one, loads in a tenth of the time
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "twinlake.commit": ("CommitResult",),
            "twinlake.compat": ("Plan", "Report", "Violation"),
            "twinlake.errors": (
                "CommitUnknown",
                "CompatViolation",
                "ConcurrentAppendException",
                "ConcurrentDeleteDeleteException",
                "ConcurrentDeleteReadException",
                "ConcurrentTransactionException",
                "ConcurrentWriteException",
                "ConflictError",
                "CorruptTable",
                "MetadataChangedException",
                "ProtocolChangedException",
                "StorageError",
                "TwinlakeError",
                "UnsupportedFeature",
                "UserError",
            ),
            "twinlake.iceberg": ("Lag", "SyncResult"),
            "twinlake.log": ("CommitRecord",),
            "twinlake.table": (
                "Detail",
                "Diff",
                "ImportResult",
                "Catalog",
                "Table",
                "TwinReport",
                "import_iceberg",
                "verify_twin",
            ),
            "twinlake.table.operations": ("VacuumResult",),
        },
    )
