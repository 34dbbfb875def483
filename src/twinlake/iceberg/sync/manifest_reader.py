"""Manifests that are there already, read as far as a conversion needs them."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from twinlake.iceberg.format.manifest import (
    DamagedFile,
    EntryStatus,
    path_hash,
    path_hashes,
    read_manifest,
    read_path_hashes,
)
from twinlake.log import encode_bitmap, read_dv

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from twinlake.actions import DeletionVectorDescriptor
    from twinlake.iceberg.format.manifest import DataFile, ManifestEntry, PathHashes
    from twinlake.iceberg.format.manifest_list import ManifestFile
    from twinlake.iceberg.format.partition_spec import PartitionSpec
    from twinlake.iceberg.sync.metadata_files import MetadataFiles

__all__ = ["ManifestCache", "StoredManifests"]

#: Entries that are kept in memory during a conversion, and from one to the next.
_MANY: Final = 4096
_FEW: Final = 512


class ManifestCache:
    """What is known of manifests by their location: their content never changes."""

    def __init__(self) -> None:
        self._paths: dict[str, PathHashes] = {}
        self._entries: OrderedDict[str, tuple[ManifestEntry, ...]] = OrderedDict()
        self._held = 0

    def paths(self, row: ManifestFile, read: Callable[[], PathHashes]) -> PathHashes:
        """The hashes of the paths that are live in a manifest, read once."""
        if (found := self._paths.get(row.path)) is None:
            found = self._paths[row.path] = read()
        return found

    def entries(self, row: ManifestFile) -> tuple[ManifestEntry, ...] | None:
        """The entries of a manifest; None if they are not known."""
        return self._entries.get(row.path)

    def remember(self, row: ManifestFile, entries: Sequence[ManifestEntry]) -> None:
        """A manifest that was just made: small ones are soon read again, to be merged."""
        self._paths[row.path] = path_hashes(entries)
        self._entries[row.path] = tuple(entries)
        self._held += len(entries)
        self._let_go(_MANY)

    def rest(self, rows: Iterable[ManifestFile]) -> None:
        """Keep what the next conversion may ask for, now that only some manifests are left."""
        left = {row.path for row in rows}
        self._paths = {path: found for path, found in self._paths.items() if path in left}
        self._entries = OrderedDict((p, found) for p, found in self._entries.items() if p in left)
        self._held = sum(map(len, self._entries.values()))
        self._let_go(_FEW)

    def _let_go(self, most: int) -> None:
        while self._held > most:
            _, oldest = self._entries.popitem(last=False)
            self._held -= len(oldest)


class StoredManifests:
    """The manifests of a table in its store, read or remembered."""

    def __init__(
        self,
        files: MetadataFiles,
        specs: Mapping[int, PartitionSpec] | None = None,
        known: ManifestCache | None = None,
    ) -> None:
        self.files = files
        self._specs = dict(specs or {})
        self._known = known or ManifestCache()
        self.written: set[str] = set()
        """Where files were written."""

    def fresh(self) -> StoredManifests:
        """Manifests of the same table of which nothing is known and nothing was written."""
        return StoredManifests(self.files)

    def spec(self, row: ManifestFile) -> PartitionSpec:
        """The spec the files of a manifest lie under."""
        return self._specs[row.spec_id]

    def paths(self, row: ManifestFile) -> PathHashes:
        """The hashes of the paths that are live in a manifest."""
        return self._known.paths(row, lambda: self._read_paths(row))

    def _read_paths(self, row: ManifestFile) -> PathHashes:
        try:
            return read_path_hashes(
                row.live_files, lambda at, size: self.files.read_range(row.path, at, size)
            )
        except (ValueError, IndexError) as error:
            raise DamagedFile(row.path) from error

    def entries(self, row: ManifestFile) -> Sequence[ManifestEntry]:
        """The entries of a manifest."""
        known = self._known.entries(row)
        return read_manifest(self.files.read(row.path)) if known is None else known

    def live(self, rows: Iterable[ManifestFile], paths: Iterable[str]) -> frozenset[str]:
        """Those of the paths that are live in one of the manifests."""
        wanted = frozenset(paths)
        hashes = {path_hash(path) for path in wanted}
        hit = [row for row in rows if any(hashed in self.paths(row) for hashed in hashes)]
        return frozenset(self.found(hit, wanted))

    def found(self, rows: Iterable[ManifestFile], paths: Collection[str]) -> dict[str, DataFile]:
        """The live files with these paths, as the manifests list them."""
        if not paths:
            return {}
        return {
            entry.file.path: entry.file
            for row in rows
            for entry in self.entries(row)
            if entry.file.path in paths and entry.status is not EntryStatus.DELETED
        }

    def vector(self, descriptor: DeletionVectorDescriptor) -> bytes:
        """The payload of a deletion vector of the Delta table."""
        return encode_bitmap(read_dv(self.files.store, descriptor))

    def write(self, name: str, data: bytes) -> str:
        """Write a file of the Iceberg side; returns where it is."""
        location = self.files.write(name, data)
        self.written.add(location)
        return location

    def remember(
        self, row: ManifestFile, entries: Sequence[ManifestEntry], spec: PartitionSpec
    ) -> None:
        """A manifest that was just made."""
        self.learn(spec)
        self._known.remember(row, entries)

    def learn(self, spec: PartitionSpec) -> None:
        """A spec that manifests lie under which somebody else made."""
        self._specs[spec.id] = spec
