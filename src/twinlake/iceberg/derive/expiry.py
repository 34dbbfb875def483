"""Which snapshots stay: those whose files VACUUM cannot have deleted.

A file that was removed goes a retention later. The newest snapshot before that time still names
live files alone, and so does every later one; what came before it may name a file that is gone.

VACUUM goes by the time in the tombstone, which a writer takes when it begins and not when it
commits. So a snapshot that takes files out records that time as well. Where others committed in
between, the time lies before that of their snapshots: such removals are kept in a list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from twinlake.iceberg.derive.annotations import without_lost_annotations
from twinlake.iceberg.format.manifest import DamagedFile
from twinlake.protocol import HISTORY_AGE, requested_iceberg_properties, snapshot_age_ms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.actions import CommitInfo
    from twinlake.iceberg.derive.operation import FileChanges
    from twinlake.iceberg.derive.table_layout import DeltaCommit
    from twinlake.iceberg.format.table_metadata import SnapshotEntry, TableMetadata
    from twinlake.protocol import Metadata

__all__ = [
    "EARLY_REMOVALS",
    "REMOVAL",
    "SnapshotExpiration",
    "removal_ms",
    "retention_ms",
    "vacuum_horizon",
]

#: The property that lists removals (version and time) from before the snapshot they follow.
EARLY_REMOVALS: Final = "twinlake.early-removals"
#: What the summary of a snapshot calls the time in its tombstones.
REMOVAL: Final = "delta-removal-timestamp"
_VACUUM: Final = "VACUUM START"
_NEVER: Final = -(1 << 62)


def retention_ms(metadata: Metadata) -> int:
    """How long snapshots stay: as long as Delta keeps versions, or less if the table asks for it.

    Another engine may have stored a wish for more; nobody can grant it.
    """
    longest = snapshot_age_ms(metadata)
    return min(
        longest, int(requested_iceberg_properties(metadata.configuration).get(HISTORY_AGE, longest))
    )


def vacuum_horizon(info: CommitInfo | None, timestamp_ms: int) -> int | None:
    """The time before which a VACUUM may have deleted what was removed; None for other commits."""
    if info is None or info.operation != _VACUUM:
        return None
    parameters = info.operation_parameters or {}
    for name in ("specifiedRetentionMillis", "defaultRetentionMillis"):
        text = str(parameters.get(name, "")).strip('"')
        if text.isdigit():
            return timestamp_ms - int(text)
    return timestamp_ms


def removal_ms(changes: FileChanges) -> int | None:
    """The earliest time that a commit says files were removed at; None if it removes none.

    A tombstone without a time is one that VACUUM never waits for.
    """
    gone = (*changes.removed, *(old for _, old in changes.remasked))
    return min((one.deletion_timestamp or 0 for one in gone), default=None)


class SnapshotExpiration:
    """How far VACUUM may have come by the commits that pass by, after those of a state."""

    def __init__(self, metadata: TableMetadata) -> None:
        self._at_ms = _NEVER
        self._first = _NEVER
        """The version before which no snapshot may stay."""
        self._early = _parsed(metadata.properties.get(EARLY_REMOVALS, ""))

    def move(self, commit: DeltaCommit, info: CommitInfo | None, before: TableMetadata) -> None:
        """A commit passes by; ``before`` is the state that it follows."""
        retained = commit.timestamp_ms - retention_ms(commit.layout.metadata)
        vacuumed = vacuum_horizon(info, commit.timestamp_ms)
        at_ms = retained if vacuumed is None else max(retained, vacuumed)
        self._at_ms = max(self._at_ms, at_ms)
        # Only what was removed before this commit can be deleted by it.
        gone = (version for version, removed in self._early.items() if removed <= at_ms)
        self._first = max(self._first, max(gone, default=_NEVER))
        removed = removal_ms(commit.changes)
        parent = before.current if removed is not None else None
        if removed is not None and parent is not None and removed <= parent.timestamp_ms:
            self._early[commit.version] = removed

    def expire(self, metadata: TableMetadata) -> TableMetadata:
        """The metadata without what is too old."""
        metadata = _without_first(metadata, self._oldest_kept(metadata))
        oldest = metadata.oldest
        first = _NEVER if oldest is None else oldest.sequence_number
        if not (early := {v: at for v, at in self._early.items() if v > first}):
            return metadata
        properties = {**metadata.properties, EARLY_REMOVALS: _listed(early)}
        return msgspec.structs.replace(metadata, properties=properties)

    def _oldest_kept(self, metadata: TableMetadata) -> int:
        """The index of the oldest snapshot that stays."""
        oldest_kept = 0
        for index, snapshot in enumerate(metadata.snapshots()):
            is_past = snapshot.sequence_number <= self._first or _since(snapshot) <= self._at_ms
            if not is_past:
                break
            oldest_kept = index
        return oldest_kept


def _since(snapshot: SnapshotEntry) -> int:
    """The time from which on VACUUM may delete what a snapshot took out."""
    try:
        return int(snapshot.counts.get(REMOVAL, snapshot.timestamp_ms))
    except ValueError as error:
        raise DamagedFile(f"{REMOVAL} of snapshot {snapshot.snapshot_id}") from error


def _without_first(metadata: TableMetadata, count: int) -> TableMetadata:
    if count == 0:
        return metadata
    kept = without_lost_annotations(metadata.without_first(count))
    if len(metadata.schemas) == 1:
        return kept
    schemas = {metadata.current_schema_id, *(one.schema_id for one in kept.snapshots())}
    return msgspec.structs.replace(
        kept, schemas=tuple(one for one in metadata.schemas if one["schema-id"] in schemas)
    )


def _listed(early: Mapping[int, int]) -> str:
    return " ".join(f"{version}:{at_ms}" for version, at_ms in early.items())


def _parsed(text: str) -> dict[int, int]:
    pairs = (one.split(":") for one in text.split())
    try:
        return {int(version): int(at_ms) for version, at_ms in pairs}
    except ValueError as error:
        raise DamagedFile(EARLY_REMOVALS) from error
