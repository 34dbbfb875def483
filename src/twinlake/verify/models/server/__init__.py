"""Models of servers that turn Iceberg commits into Delta commits, and of cleanup on both sides.

Here belongs whatever needs an Iceberg client and a Delta log in one model. Models of one format
belong in ``iceberg`` and ``delta``, configurations and expected results in ``catalogue``.
"""

from twinlake.verify.models.server.cleanup import TwinTableCleanup, safe_wait
from twinlake.verify.models.server.file_check_comparison import FileCheckReport, compare_file_checks
from twinlake.verify.models.server.model import ServerCommits, ServerReachability

__all__ = [
    "FileCheckReport",
    "ServerCommits",
    "ServerReachability",
    "TwinTableCleanup",
    "compare_file_checks",
    "safe_wait",
]
