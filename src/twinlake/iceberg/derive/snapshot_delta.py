"""One commit on its way to a snapshot: which files and vectors come, go, or are listed again."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from twinlake.iceberg.derive.operation import SnapshotOperation, operation_of
from twinlake.iceberg.derive.snapshot_id import snapshot_id
from twinlake.iceberg.derive.table_layout import file_location
from twinlake.iceberg.format.manifest import (
    DataFile,
    EntryStatus,
    ManifestContent,
    ManifestEntry,
)
from twinlake.iceberg.format.metrics import FileMetrics
from twinlake.iceberg.format.puffin import Blob, write_puffin
from twinlake.iceberg.format.single_value import plain_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from twinlake.actions import AddFile, DeletionVectorDescriptor
    from twinlake.iceberg.derive.manifest_port import Manifests
    from twinlake.iceberg.derive.table_layout import DeltaCommit
    from twinlake.iceberg.format.manifest_list import ManifestFile

__all__ = ["SnapshotDelta"]


#: Iceberg's id of the column of position deletes that names the data file.
_FILE_PATH: Final = 2147483546


class SnapshotDelta:
    """What one commit does to the entries of the manifests, and the counts of its summary."""

    def __init__(
        self, commit: DeltaCommit, rows: Sequence[ManifestFile], manifests: Manifests
    ) -> None:
        self.commit = commit
        self.snapshot_id = commit.snapshot_id or snapshot_id(
            commit.layout.metadata.id, commit.version
        )
        self.counts: Counter[str] = Counter()
        self._partitions: set[Any] = set()
        changes, layout = commit.changes, commit.layout
        self.gone: Mapping[ManifestContent, frozenset[str]] = {
            ManifestContent.DATA: self._located(remove.path for remove in changes.removed),
            ManifestContent.DELETES: self._located(
                remove.path
                for remove in (*changes.removed, *(old for _, old in changes.remasked))
                if remove.deletion_vector is not None
            ),
        }
        files = [layout.data_file(add) for add in changes.added]
        live = manifests.live(rows, (file.path for file in files)) if files and rows else ()
        self._added = [
            (add, file)
            for add, file in zip(changes.added, files, strict=True)
            if file.path not in live
        ]
        self._masked = [
            (add, file)
            for add, file in (
                *self._added,
                *((add, layout.data_file(add)) for add, _ in changes.remasked),
            )
            if add.deletion_vector is not None
        ]
        # Committed again: only other statistics are worth a word, tags are Delta's alone.
        known = manifests.found(rows, live)
        self.restated = {f.path: f for f in files if f.path in live and f != known[f.path]}

    def _located(self, paths: Iterable[str]) -> frozenset[str]:
        root = self.commit.layout.location
        return frozenset(file_location(root, path) for path in paths)

    @property
    def changes_table(self) -> bool:
        """Whether there is anything for a snapshot to say."""
        return bool(self._added or self._masked or self.restated or any(self.gone.values()))

    @property
    def operation(self) -> SnapshotOperation:
        """Iceberg's name for it, once all that goes was counted."""
        self.counts["changed-partition-count"] = len(self._partitions)
        changes = self.commit.changes
        if self.restated:
            changes = replace(changes, added=[add for add, _ in self._added])
            if changes.is_empty:
                return SnapshotOperation.REPLACE
        return operation_of(
            changes,
            added_rows=self.counts["added-records"],
            removed_rows=self.counts["deleted-records"],
        )

    @property
    def partitions(self) -> frozenset[Any]:
        """The partitions that are touched."""
        return frozenset(self._partitions)

    def absorb(self, counts: Mapping[str, int], partitions: Iterable[Any]) -> None:
        """Count what was written elsewhere, perhaps by another process."""
        self.counts.update(counts)
        self._partitions.update(tuple(map(plain_value, values)) for values in partitions)

    def entries(self) -> list[ManifestEntry]:
        """The data files that come in."""
        for _, file in self._added:
            self.counts["added-data-files"] += 1
            self.counts["added-records"] += file.record_count
            self.counts["added-files-size"] += file.size
            self._partitions.add(file.partition)
        return [self._new(file, self._written(add)) for add, file in self._added]

    def vectors(
        self,
        payload_of: Callable[[DeletionVectorDescriptor], bytes],
        keep: Callable[[bytes], str],
    ) -> list[ManifestEntry]:
        """The vectors that come in, each in a Puffin file that ``keep`` stores.

        Not several in one: PyIceberg takes all vectors of a file that an entry names, and so would
        hide rows by one that is no longer in the table.
        """
        found = []
        for add, file in self._masked:
            blob = self._blob(add, file, payload_of)
            data, ((offset, length),) = write_puffin([blob])
            vector = DataFile(
                path=keep(data),
                partition=file.partition,
                record_count=blob.cardinality,
                size=len(data),
                metrics=_of_one_file(file.path),
                referenced_data_file=file.path,
                content_offset=offset,
                content_size=length,
            )
            self._count_vector(vector, "added")
            found.append(self._new(vector))
        return found

    def count_removed(self, file: DataFile) -> None:
        """One file or vector that goes was found."""
        if file.content is ManifestContent.DELETES:
            self._count_vector(file, "removed")
            return
        self.counts["deleted-data-files"] += 1
        self.counts["deleted-records"] += file.record_count
        self.counts["removed-files-size"] += file.size
        self._partitions.add(file.partition)

    def _count_vector(self, vector: DataFile, verb: str) -> None:
        self.counts[f"{verb}-dvs"] += 1
        self.counts[f"{verb}-delete-files"] += 1
        self.counts[f"{verb}-position-deletes"] += vector.record_count
        self.counts[f"{verb}-files-size"] += vector.content_size or 0
        self._partitions.add(vector.partition)

    def _new(self, file: DataFile, number: int | None = None) -> ManifestEntry:
        return ManifestEntry(
            status=EntryStatus.ADDED,
            snapshot_id=self.snapshot_id,
            sequence_number=number,
            file=file,
        )

    def _written(self, add: AddFile) -> int | None:
        """The version the rows of a file were written in, where rows have ids."""
        return add.default_row_commit_version if self.commit.layout.format_version > 2 else None

    @staticmethod
    def _blob(
        add: AddFile, file: DataFile, payload_of: Callable[[DeletionVectorDescriptor], bytes]
    ) -> Blob:
        descriptor = add.deletion_vector
        if descriptor is None:
            raise AssertionError(add.path)
        return Blob(
            referenced_data_file=file.path,
            cardinality=descriptor.cardinality,
            payload=payload_of(descriptor),
        )


def _of_one_file(path: str) -> FileMetrics:
    """Bounds of the paths that a vector names.

    PyIceberg goes by them: it looks for vectors in the partition of a file, and NaN is never found.
    """
    bounds = {_FILE_PATH: path.encode()}
    return FileMetrics(lower_bounds=bounds, upper_bounds=bounds)
