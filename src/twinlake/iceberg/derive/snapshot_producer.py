"""From Delta commits to Iceberg snapshots, one for one.

A conversion goes on from the state of an earlier version and writes only what a commit touches: a
manifest for the files that came in, the manifests that files were taken out of, and a list. What it
makes is a function of that state and the commits, down to the names of the files.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.iceberg.derive.expiry import REMOVAL, removal_ms
from twinlake.iceberg.derive.iceberg_state import IcebergState
from twinlake.iceberg.derive.metadata_update import moment_of, next_metadata, next_row_id
from twinlake.iceberg.derive.operation import FileChanges, snapshot_summary
from twinlake.iceberg.derive.snapshot_delta import SnapshotDelta
from twinlake.iceberg.format.manifest import (
    EntryStatus,
    ManifestContent,
    ManifestHeader,
    content_name,
    path_hash,
    write_manifest,
)
from twinlake.iceberg.format.manifest_list import manifest_file, write_manifest_list
from twinlake.iceberg.format.table_metadata import SnapshotEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from twinlake.actions import AddFile
    from twinlake.iceberg.derive.manifest_port import Manifests
    from twinlake.iceberg.derive.table_layout import DeltaCommit
    from twinlake.iceberg.format.manifest import ManifestEntry
    from twinlake.iceberg.format.manifest_list import ManifestFile
    from twinlake.iceberg.format.table_metadata import TableMetadata
    from twinlake.runtime import Executor

__all__ = ["MissingFile", "SnapshotProducer"]

#: Entries of a full manifest; about as many as fit into the 8 MB that Iceberg aims at.
_FULL: Final = 8192
#: Manifests of about one size that are put together once there are so many.
_TIER: Final = 8
_TIER_BITS: Final = 3


class MissingFile(Exception):
    """A commit removes a file that no manifest lists: the metadata has to be rebuilt."""


class SnapshotProducer:
    """Converts commits one after another, from the state of the version before them.

    Files are written as they are made: nothing points to them until the metadata does.
    """

    def __init__(self, state: IcebergState | None, manifests: Manifests) -> None:
        self._state = state
        self._manifests = manifests
        # A state that was begun here knows all files there are: what it lacks was never there.
        self._knows_all = state is None

    @property
    def state(self) -> IcebergState | None:
        """The state after the last commit that was applied."""
        return self._state

    def apply(self, commit: DeltaCommit) -> None:
        """Convert one commit."""
        before = self._state
        rows = before.rows if before is not None else ()
        old = before.metadata if before is not None else None
        snapshot = None
        delta = SnapshotDelta(commit, rows, self._manifests)
        if delta.changes_table:
            # A manifest of which nothing is left records a removal that is over.
            kept = [row for row in rows if row.live_files]
            kept = self._merge(delta, self._take_out(delta, kept))
            rows = (*self.added(delta), *kept)
            snapshot = self._snapshot(delta, rows, old)
        self._state = IcebergState(metadata=next_metadata(commit, old, snapshot), rows=rows)

    def begin(self, commit: DeltaCommit, adds: Iterable[AddFile], executor: Executor) -> None:
        """Start the metadata with a version as if all its files had come in with it."""
        own = SnapshotDelta(commit, (), self._manifests)
        self._manifests.learn(commit.layout.spec)
        task = _WriteFiles(commit, self._manifests.fresh())
        rows: list[ManifestFile] = []
        for part in executor.map(task, _batches(adds)):
            rows.extend(part.rows)
            own.absorb(part.counts, part.partitions)
            self._manifests.written |= part.written
        snapshot = self._snapshot(own, rows, None) if rows else None
        self._state = IcebergState(metadata=next_metadata(commit, None, snapshot), rows=tuple(rows))

    def added(self, delta: SnapshotDelta) -> list[ManifestFile]:
        """The manifests of what comes in."""
        vectors = delta.vectors(
            self._manifests.vector,
            lambda data: self._keep(delta.commit.version, "dv", data, "puffin"),
        )
        return [
            *(
                self._write(chunk, delta, ManifestContent.DATA)
                for chunk in _chunks(delta.entries())
            ),
            *(self._write(chunk, delta, ManifestContent.DELETES) for chunk in _chunks(vectors)),
        ]

    def _snapshot(
        self, delta: SnapshotDelta, rows: Sequence[ManifestFile], old: TableMetadata | None
    ) -> SnapshotEntry:
        commit = delta.commit
        parent = old.current if old is not None else None
        parent_id = None if parent is None else parent.snapshot_id
        data = write_manifest_list(
            rows,
            snapshot_id=delta.snapshot_id,
            parent_id=parent_id,
            sequence_number=commit.version,
            format_version=commit.layout.format_version,
        )
        stamp = moment_of(commit, old)
        summary = {
            "operation": str(delta.operation),
            **snapshot_summary(delta.counts, None if parent is None else parent.counts),
            **_trace(commit, stamp),
        }
        first, after = _row_ids(commit, old)
        return SnapshotEntry(
            snapshot_id=delta.snapshot_id,
            parent_snapshot_id=parent_id,
            sequence_number=commit.version,
            timestamp_ms=stamp,
            manifest_list=self._keep(commit.version, "snap", data),
            summary=msgspec.Raw(msgspec.json.encode(summary)),
            schema_id=commit.layout.schema.id,
            first_row_id=first,
            added_rows=None if first is None or after is None else after - first,
        )

    def _take_out(self, delta: SnapshotDelta, rows: list[ManifestFile]) -> list[ManifestFile]:
        """The rows without what goes; each manifest that holds some of it is rewritten."""
        gone = {content: set(paths) for content, paths in delta.gone.items()}
        hashes = {
            ManifestContent.DATA: {
                path_hash(p) for p in (*gone[ManifestContent.DATA], *delta.restated)
            },
            ManifestContent.DELETES: {path_hash(p) for p in gone[ManifestContent.DELETES]},
        }
        left = []
        for row in rows:
            wanted = hashes[row.content]
            if not wanted or not any(hashed in self._manifests.paths(row) for hashed in wanted):
                left.append(row)
                continue
            entries = []
            for entry in self._manifests.entries(row):
                if entry.status is EntryStatus.DELETED:
                    continue
                if entry.file.key in gone[row.content]:
                    gone[row.content].discard(entry.file.key)
                    delta.count_removed(entry.file)
                    entries.append(entry.deleted(row.sequence_number, delta.snapshot_id))
                else:
                    kept = entry.carried(row.sequence_number)
                    file = delta.restated.get(kept.file.path, kept.file)
                    entries.append(msgspec.structs.replace(kept, file=file))
            left.append(self._write(entries, delta, row.content, row))
        if not self._knows_all and (lost := set().union(*gone.values())):
            raise MissingFile(min(lost))
        return left

    def _merge(self, delta: SnapshotDelta, rows: list[ManifestFile]) -> list[ManifestFile]:
        """Put small manifests of about one size together, so that their number stays low.

        An entry moves up a tier each time, so it is rewritten a few times in its life however
        long the table lives.
        """
        tiers: dict[tuple[int, ManifestContent, int], list[ManifestFile]] = {}
        for row in rows:
            # What this very snapshot rewrote records its removals and has to stay.
            if row.live_files < _FULL and row.snapshot_id != delta.snapshot_id:
                tier = row.live_files.bit_length() // _TIER_BITS
                tiers.setdefault((row.spec_id, row.content, tier), []).append(row)
        for small in tiers.values():
            if len(small) < _TIER:
                continue
            entries = [
                entry.carried(row.sequence_number)
                for row in reversed(small)
                for entry in self._manifests.entries(row)
                if entry.status is not EntryStatus.DELETED
            ]
            merged = [
                self._write(chunk, delta, small[0].content, small[0]) for chunk in _chunks(entries)
            ]
            taken = {row.path for row in small}
            rows = [*merged, *(row for row in rows if row.path not in taken)]
        return rows

    def _write(
        self,
        entries: Sequence[ManifestEntry],
        delta: SnapshotDelta,
        content: ManifestContent,
        like: ManifestFile | None = None,
    ) -> ManifestFile:
        layout, version = delta.commit.layout, delta.commit.version
        header = ManifestHeader(
            schema=layout.schema,
            spec=layout.spec
            if like is None or like.spec_id == layout.spec.id
            else self._manifests.spec(like),
            content=content,
            format_version=layout.format_version,
        )
        data = write_manifest(entries, header)
        first, _ = _row_ids(delta.commit, self._state.metadata if self._state else None)
        row = manifest_file(
            entries,
            header,
            path=self._keep(version, "m", data),
            length=len(data),
            sequence_number=version,
            snapshot_id=delta.snapshot_id,
            first_row_id=first if content is ManifestContent.DATA else None,
        )
        self._manifests.remember(row, entries, header.spec)
        return row

    def _keep(self, version: int, kind: str, data: bytes, ending: str = "avro") -> str:
        name = f"{kind}-{version:020}-{content_name(data)}.{ending}"
        return self._manifests.write(name, data)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Manifests of some of the files of a first snapshot, and what they add to its summary."""

    rows: tuple[ManifestFile, ...]
    counts: Mapping[str, int]
    partitions: frozenset[Any]
    written: frozenset[str]


@dataclass(frozen=True, slots=True)
class _WriteFiles:
    """A value and no closure, so that an executor may send it to another process."""

    commit: DeltaCommit
    manifests: Manifests

    def __call__(self, adds: Sequence[AddFile]) -> _Part:
        manifests = self.manifests.fresh()
        changes = FileChanges(added=adds, data_changes=frozenset({True}))
        delta = SnapshotDelta(replace(self.commit, changes=changes), (), manifests)
        rows = SnapshotProducer(None, manifests).added(delta)
        return _Part(
            rows=tuple(rows),
            counts=delta.counts,
            partitions=delta.partitions,
            written=frozenset(manifests.written),
        )


def _trace(commit: DeltaCommit, stamp: int) -> dict[str, str]:
    """Where a snapshot comes from."""
    found = {"delta-version": str(commit.version), "delta-timestamp": str(commit.timestamp_ms)}
    if commit.engine:
        found["engine-name"] = commit.engine
    removed = removal_ms(commit.changes)
    if removed is not None and removed < stamp:
        found[REMOVAL] = str(removed)
    return found


def _batches(adds: Iterable[AddFile]) -> Iterator[Sequence[AddFile]]:
    rest = iter(adds)
    while batch := tuple(islice(rest, _FULL)):
        yield batch


def _row_ids(commit: DeltaCommit, old: TableMetadata | None) -> tuple[int | None, int | None]:
    """The next row id before and after a commit; None before format version 3."""
    after = next_row_id(commit, old)
    before = old.next_row_id if old is not None else None
    return (before or 0, after) if after is not None else (None, None)


def _chunks(entries: Sequence[ManifestEntry]) -> Iterable[Sequence[ManifestEntry]]:
    return (entries[start : start + _FULL] for start in range(0, len(entries), _FULL))
