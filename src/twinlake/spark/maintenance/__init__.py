"""OPTIMIZE, REORG and the rewriting of files: rows stay as they are, files change.

VACUUM and the rest that moves no rows is in ``twinlake.table``.
"""

from twinlake.spark.maintenance.dropped_columns import files_with_dropped_columns
from twinlake.spark.maintenance.optimize import optimize

__all__ = [
    "files_with_dropped_columns",
    "optimize",
]
