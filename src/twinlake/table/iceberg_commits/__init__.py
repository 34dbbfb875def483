"""Commits of Iceberg clients as Delta commits: the loop, the translation, creation.

What a request means is decoded in ``iceberg.requests``; HTTP belongs to ``rest``.
"""

from twinlake.table.iceberg_commits.client_files import CommitLimits
from twinlake.table.iceberg_commits.commit_loop import IcebergCommits
from twinlake.table.iceberg_commits.twin_state import TwinState

__all__ = ["CommitLimits", "IcebergCommits", "TwinState"]
