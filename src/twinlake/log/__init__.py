"""The Delta log: listing, replay, checkpoints, checksums, cleanup, deletion vectors, snapshots.

Names that need pyarrow are loaded on first use, so that importing twinlake stays cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake._lazy_exports import lazy_exports
from twinlake.log.commit_actions import CommitActions, modified_times, read_commits
from twinlake.log.deletion_vectors import (
    decode_payload,
    dv_key,
    dv_path,
    encode_bitmap,
    inline_descriptor,
    read_dv,
    write_dv_file,
)
from twinlake.log.listing import Checkpoint, complete_checkpoints, list_log, read_last_checkpoint
from twinlake.log.names import IMPORT_MARK, LOG_FOLDER, LogFileKind, commit_key, parse_log_file
from twinlake.log.paths.canonical import CanonicalPaths
from twinlake.log.snapshot import Counters, Snapshot, count_files, read_commit, read_commit_info
from twinlake.log.snapshot_loader import (
    CACHE,
    SnapshotCache,
    first_snapshot,
    has_table,
    load_snapshot,
    snapshot_of_files,
    update_snapshot,
)
from twinlake.log.timestamps import CommitTimes, contiguous_commits

if TYPE_CHECKING:
    from twinlake.log.checkpoint.reader import is_v2_checkpoint
    from twinlake.log.checkpoint.writer import CheckpointKind, checkpoint_kind, write_checkpoint
    from twinlake.log.checksum import (
        VersionChecksum,
        check_checksum,
        checksum_of,
        read_checksum,
        verify_checksum,
        write_checksum,
    )
    from twinlake.log.cleanup import CleanupPlan, cleanup_log, plan_cleanup
    from twinlake.log.columns import adds_from, file_keys, removes_from
    from twinlake.log.commit_history import history, readable_commits, version_at
    from twinlake.log.commit_record import COMMIT_HEADER, CommitHistory, CommitRecord, commit_rows
    from twinlake.log.compaction import write_compaction
    from twinlake.log.footer.nodes import FooterNodes, read_nodes
    from twinlake.log.footer.page_sizes import page_sizes
    from twinlake.log.footer.stats import Footer, read_footer, stats_json
    from twinlake.log.footer.thrift import footer_bytes
    from twinlake.log.stats.batch import BatchStats
    from twinlake.log.stats.columns import StatsColumn, StatsColumns
    from twinlake.log.timestamps import parse_timestamp, render_timestamp
    from twinlake.log.typed_files import view_adds

__all__ = [
    "CACHE",
    "COMMIT_HEADER",
    "IMPORT_MARK",
    "LOG_FOLDER",
    "BatchStats",
    "CanonicalPaths",
    "Checkpoint",
    "CheckpointKind",
    "CleanupPlan",
    "CommitActions",
    "CommitHistory",
    "CommitRecord",
    "CommitTimes",
    "Counters",
    "Footer",
    "FooterNodes",
    "LogFileKind",
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
    "commit_rows",
    "complete_checkpoints",
    "contiguous_commits",
    "count_files",
    "decode_payload",
    "dv_key",
    "dv_path",
    "encode_bitmap",
    "file_keys",
    "first_snapshot",
    "footer_bytes",
    "has_table",
    "history",
    "inline_descriptor",
    "is_v2_checkpoint",
    "list_log",
    "load_snapshot",
    "modified_times",
    "page_sizes",
    "parse_log_file",
    "parse_timestamp",
    "plan_cleanup",
    "read_checksum",
    "read_commit",
    "read_commit_info",
    "read_commits",
    "read_dv",
    "read_footer",
    "read_last_checkpoint",
    "read_nodes",
    "readable_commits",
    "removes_from",
    "render_timestamp",
    "snapshot_of_files",
    "stats_json",
    "update_snapshot",
    "verify_checksum",
    "version_at",
    "view_adds",
    "write_checkpoint",
    "write_checksum",
    "write_compaction",
    "write_dv_file",
]

if not TYPE_CHECKING:  # what needs pyarrow
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "twinlake.log.stats.batch": ("BatchStats",),
            "twinlake.log.checkpoint.reader": ("is_v2_checkpoint",),
            "twinlake.log.checkpoint.writer": (
                "CheckpointKind",
                "checkpoint_kind",
                "write_checkpoint",
            ),
            "twinlake.log.checksum": (
                "VersionChecksum",
                "check_checksum",
                "checksum_of",
                "read_checksum",
                "verify_checksum",
                "write_checksum",
            ),
            "twinlake.log.cleanup": (
                "CleanupPlan",
                "cleanup_log",
                "plan_cleanup",
            ),
            "twinlake.log.columns": (
                "file_keys",
                "adds_from",
                "removes_from",
            ),
            "twinlake.log.commit_history": (
                "history",
                "readable_commits",
                "version_at",
            ),
            "twinlake.log.commit_record": (
                "COMMIT_HEADER",
                "CommitRecord",
                "CommitHistory",
                "commit_rows",
            ),
            "twinlake.log.compaction": ("write_compaction",),
            "twinlake.log.footer.nodes": (
                "FooterNodes",
                "read_nodes",
            ),
            "twinlake.log.footer.page_sizes": ("page_sizes",),
            "twinlake.log.footer.stats": (
                "Footer",
                "read_footer",
                "stats_json",
            ),
            "twinlake.log.footer.thrift": ("footer_bytes",),
            "twinlake.log.stats.columns": (
                "StatsColumn",
                "StatsColumns",
            ),
            "twinlake.log.timestamps": (
                "parse_timestamp",
                "render_timestamp",
            ),
            "twinlake.log.typed_files": ("view_adds",),
        },
    )
