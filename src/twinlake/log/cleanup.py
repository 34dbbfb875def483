"""Deleting expired history: commits, checkpoints and the files beside them.

What is kept is decided by a pure function; the newest checkpoint that is old enough stays,
with its own commit and everything later, so that the table is readable at every moment of the
cleanup and after it (Delta protocol, Metadata Cleanup).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from twinlake.errors import Code, CorruptTable, StorageError, UserError
from twinlake.log.listing import Checkpoint, complete_checkpoints
from twinlake.log.names import LOG_FOLDER, SIDECAR_FOLDER, LogFile, LogFileKind, parse_log_file
from twinlake.log.timestamps import CommitTimes, contiguous_commits
from twinlake.protocol import features, keys, property_value
from twinlake.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from twinlake.log.snapshot import Snapshot
    from twinlake.storage import ObjectMeta, Store

__all__ = ["CleanupPlan", "cleanup_log", "plan_cleanup"]

_DAY_MS: Final = 86_400_000
_STAGED: Final = re.compile(rf"{LOG_FOLDER}/_staged_commits/(\d{{20}})\.[0-9a-fA-F-]{{36}}\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupPlan:
    """Which files of the log go, in the order they go; ``reason`` says why none do."""

    kept_checkpoint: int | None = None
    commits: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    checkpoints: tuple[str, ...] = ()
    sidecars: tuple[str, ...] = ()
    reason: str = ""

    @property
    def files(self) -> tuple[str, ...]:
        """Everything that goes. Commits go before their checkpoints."""
        return (*self.commits, *self.beside, *self.checkpoints, *self.sidecars)

    def to_dict(self) -> dict[str, object]:
        """The plan as plain data."""
        return {
            "kept_checkpoint": self.kept_checkpoint,
            "files": list(self.files),
            "reason": self.reason,
        }


def plan_cleanup(
    files: Sequence[LogFile],
    *,
    cutoff_version: int | None,
    staged: Iterable[tuple[int, str]] = (),
    unusable: frozenset[int] = frozenset(),
    protected_before: int = 0,
) -> CleanupPlan:
    """What to delete of a log.

    Args:
        files: the recognised files of the log folder.
        cutoff_version: the newest version that is old enough to go, None if there is none.
        staged: version and key of staged commits.
        unusable: versions whose checkpoint cannot be read and so cannot stand for older commits.
        protected_before: ``delta.requireCheckpointProtectionBeforeVersion`` where the table has
            the feature ``checkpointProtection``, else 0.
    """
    if cutoff_version is None:
        return CleanupPlan(reason="no version is old enough")
    bases = [
        c.version
        for c in complete_checkpoints(files)
        if c.version <= cutoff_version and c.version not in unusable
    ]
    if not bases:
        return CleanupPlan(reason="there is no checkpoint among the versions that are old enough")
    kept = bases[-1]
    if 0 < kept < protected_before:
        # Versions before that one may have protocols only their checkpoints shield readers from;
        # they go all at once or not at all.
        return CleanupPlan(
            kept_checkpoint=kept,
            reason=(
                f"history before version {protected_before} must be cleaned up as a whole, "
                f"and only versions before {kept} are old enough"
            ),
        )

    def older(*kinds: LogFileKind) -> tuple[str, ...]:
        return tuple(f.key for f in files if f.kind in kinds and f.version < kept)

    compactions = (f.key for f in files if f.kind is LogFileKind.COMPACTION and f.version <= kept)
    plan = CleanupPlan(
        kept_checkpoint=kept,
        commits=older(LogFileKind.COMMIT),
        beside=(
            *older(LogFileKind.CHECKSUM),
            *compactions,
            *(key for version, key in staged if version <= kept),
        ),
        checkpoints=older(LogFileKind.CLASSIC, LogFileKind.MULTIPART, LogFileKind.UUID),
    )
    return plan if plan.files else CleanupPlan(kept_checkpoint=kept, reason="nothing is expired")


def cleanup_log(
    snapshot: Snapshot,
    *,
    runtime: Runtime | None = None,
    retention_ms: int | None = None,
    granularity_ms: int = _DAY_MS,
    dry_run: bool = False,
) -> CleanupPlan:
    """Delete the history that is older than ``delta.logRetentionDuration``; returns what went.

    Args:
        snapshot: the latest snapshot.
        runtime: where the time comes from.
        retention_ms: another retention than the table's.
        granularity_ms: what the cutoff is rounded down to; whole days, so that a log is not
            cleaned up with every commit.
        dry_run: only say what would go.

    Raises:
        UnsupportedFeature: the table needs features that this release lacks.
    """
    runtime = runtime or Runtime()
    snapshot.protocol.check_read_write(metadata=snapshot.metadata)
    if not property_value(snapshot.metadata, keys.ENABLE_EXPIRED_LOG_CLEANUP):
        return CleanupPlan(reason="delta.enableExpiredLogCleanup is false")
    if retention_ms is None:
        retention_ms = property_value(snapshot.metadata, keys.LOG_RETENTION_DURATION)
    if retention_ms is None or retention_ms < 0:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"A retention of {retention_ms} milliseconds cannot be used.",
            why="it is negative",
            fix="Give a retention of 0 or more.",
            fields={"retention_ms": retention_ms},
        )
    now = runtime.clock.now_ms()
    found = list(snapshot.store.list_from(LOG_FOLDER))
    files = _log_files(found)
    cutoff_ms = (now - retention_ms) // granularity_ms * granularity_ms
    times = CommitTimes(snapshot.store, snapshot, contiguous_commits(files, snapshot.version))
    cutoff = times.newest_at(cutoff_ms)
    plan = plan_cleanup(
        files,
        cutoff_version=cutoff,
        staged=_staged(found),
        unusable=_unusable(snapshot.store, files, cutoff),
        protected_before=_protected_before(snapshot),
    )
    plan = _with_sidecars(snapshot.store, plan, found, files, now - _DAY_MS)
    if not dry_run:
        for group in (plan.commits, plan.beside, plan.checkpoints, plan.sidecars):
            if group:
                snapshot.store.delete(group)
    return plan


def _log_files(found: list[ObjectMeta]) -> list[LogFile]:
    parsed = (parse_log_file(item.key, item.size, item.modified_ms) for item in found)
    known = [item for item in parsed if item is not None]
    known.sort(key=lambda item: (item.version, item.key))
    return known


def _staged(found: list[ObjectMeta]) -> list[tuple[int, str]]:
    matches = (_STAGED.fullmatch(item.key) for item in found)
    return [(int(m[1]), m[0]) for m in matches if m is not None]


def _protected_before(snapshot: Snapshot) -> int:
    if not snapshot.protocol.is_supported(features.CHECKPOINT_PROTECTION):
        return 0
    key = keys.REQUIRE_CHECKPOINT_PROTECTION
    return property_value(snapshot.metadata, key) or 0


def _unusable(store: Store, files: list[LogFile], cutoff: int | None) -> frozenset[int]:
    """The newest checkpoints up to the cutoff that cannot be read, down to one that can."""
    bad: set[int] = set()
    if cutoff is None:
        return frozenset()
    candidates: dict[int, list[Checkpoint]] = {}
    for checkpoint in complete_checkpoints(files):
        if checkpoint.version <= cutoff:
            candidates.setdefault(checkpoint.version, []).append(checkpoint)
    for version in sorted(candidates, reverse=True):
        if any(_is_readable(store, c) for c in reversed(candidates[version])):
            break
        bad.add(version)
    return frozenset(bad)


def _is_readable(store: Store, checkpoint: Checkpoint) -> bool:
    # Footers and state, and that sidecars are there: enough to trust it, cheap for any size.
    from twinlake.log.checkpoint.reader import read_sidecars

    try:
        sidecars = read_sidecars(store, checkpoint)
    except CorruptTable:
        return False
    return all(store.head(key) is not None for key in sidecars)


def _with_sidecars(
    store: Store, plan: CleanupPlan, found: list[ObjectMeta], files: list[LogFile], before_ms: int
) -> CleanupPlan:
    """The plan with the sidecars that no remaining checkpoint refers to.

    Young ones stay: their checkpoint may be about to be written.
    """
    from twinlake.log.checkpoint.reader import read_sidecars

    old = [
        item.key
        for item in found
        if item.key.startswith(f"{SIDECAR_FOLDER}/") and item.modified_ms < before_ms
    ]
    if not old:
        return plan
    going = frozenset(plan.checkpoints)
    remaining = [f for f in files if f.key not in going]
    referenced: set[str] = set()
    try:
        for checkpoint in complete_checkpoints(remaining):
            if checkpoint.kind is not LogFileKind.MULTIPART:
                referenced |= read_sidecars(store, checkpoint)
    except (CorruptTable, StorageError):
        # What an unreadable checkpoint refers to is not known; nothing of it may go.
        return plan
    orphans = tuple(key for key in old if key not in referenced)
    if not orphans:
        return plan
    return CleanupPlan(
        kept_checkpoint=plan.kept_checkpoint,
        commits=plan.commits,
        beside=plan.beside,
        checkpoints=plan.checkpoints,
        sidecars=orphans,
    )
