"""The Delta log: listing, replay, checkpoints, checksums, cleanup, deletion vectors, snapshots.

Names that need pyarrow are loaded on first use, so that importing twinlake stays cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from twinlake.log.listing import read_last_checkpoint
from twinlake.log.loading import (
    CACHE,
    SnapshotCache,
    first_snapshot,
    has_table,
    load_snapshot,
    update_snapshot,
)
from twinlake.log.names import commit_key
from twinlake.log.snapshot import Counters, Snapshot, read_commit, read_commit_info

if TYPE_CHECKING:
    from twinlake.log.batch_stats import BatchStats
    from twinlake.log.checkpoint_read import is_v2_checkpoint
    from twinlake.log.checkpoint_write import CheckpointKind, checkpoint_kind, write_checkpoint
    from twinlake.log.checksum import (
        VersionChecksum,
        check_checksum,
        checksum_of,
        read_checksum,
        verify_checksum,
        write_checksum,
    )
    from twinlake.log.cleanup import CleanupPlan, cleanup_log, plan_cleanup
    from twinlake.log.columns import adds_from, removes_from
    from twinlake.log.commit_history import CommitRecord, history, readable_commits, version_at
    from twinlake.log.compaction import write_compaction
    from twinlake.log.footer_nodes import FooterNodes, read_nodes
    from twinlake.log.footer_stats import Footer, read_footer, stats_json
    from twinlake.log.parquet_footer import footer_bytes
    from twinlake.log.stats_columns import StatsColumn, StatsColumns
    from twinlake.log.timestamps import parse_timestamp, render_timestamp

_LAZY = {
    "BatchStats": "batch_stats",
    "FooterNodes": "footer_nodes",
    "read_nodes": "footer_nodes",
    "footer_bytes": "parquet_footer",
    "Footer": "footer_stats",
    "read_footer": "footer_stats",
    "stats_json": "footer_stats",
    "StatsColumn": "stats_columns",
    "StatsColumns": "stats_columns",
    "adds_from": "columns",
    "CheckpointKind": "checkpoint_write",
    "checkpoint_kind": "checkpoint_write",
    "write_checkpoint": "checkpoint_write",
    "VersionChecksum": "checksum",
    "check_checksum": "checksum",
    "checksum_of": "checksum",
    "read_checksum": "checksum",
    "verify_checksum": "checksum",
    "write_checksum": "checksum",
    "CleanupPlan": "cleanup",
    "cleanup_log": "cleanup",
    "plan_cleanup": "cleanup",
    "write_compaction": "compaction",
    "CommitRecord": "commit_history",
    "history": "commit_history",
    "readable_commits": "commit_history",
    "is_v2_checkpoint": "checkpoint_read",
    "version_at": "commit_history",
    "parse_timestamp": "timestamps",
    "render_timestamp": "timestamps",
    "removes_from": "columns",
}

__all__ = [
    "CACHE",
    "BatchStats",
    "CheckpointKind",
    "CleanupPlan",
    "CommitRecord",
    "Counters",
    "Footer",
    "FooterNodes",
    "Snapshot",
    "SnapshotCache",
    "StatsColumn",
    "StatsColumns",
    "VersionChecksum",
    "adds_from",
    "check_checksum",
    "checkpoint_kind",
    "checksum_of",
    "cleanup_log",
    "commit_key",
    "first_snapshot",
    "footer_bytes",
    "has_table",
    "history",
    "is_v2_checkpoint",
    "load_snapshot",
    "parse_timestamp",
    "plan_cleanup",
    "read_checksum",
    "read_commit",
    "read_commit_info",
    "read_footer",
    "read_last_checkpoint",
    "read_nodes",
    "readable_commits",
    "removes_from",
    "render_timestamp",
    "stats_json",
    "update_snapshot",
    "verify_checksum",
    "version_at",
    "write_checkpoint",
    "write_checksum",
    "write_compaction",
]


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)
