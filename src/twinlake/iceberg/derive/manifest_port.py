"""The manifests of a table as a conversion needs them: a port, so that deriving does no I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from twinlake.actions import DeletionVectorDescriptor
    from twinlake.iceberg.format.manifest import DataFile, ManifestEntry, PathHashes
    from twinlake.iceberg.format.manifest_list import ManifestFile
    from twinlake.iceberg.format.partition_spec import PartitionSpec

__all__ = ["Manifests"]


class Manifests(Protocol):
    """Entries and paths of the manifests of a table, and a store for new ones."""

    written: set[str]
    """Where files were written."""

    def fresh(self) -> Manifests:
        """Manifests of the same table of which nothing is known and nothing was written."""
        ...

    def spec(self, row: ManifestFile) -> PartitionSpec:
        """The spec the files of a manifest lie under."""
        ...

    def paths(self, row: ManifestFile) -> PathHashes:
        """The hashes of the paths that are live in a manifest."""
        ...

    def entries(self, row: ManifestFile) -> Sequence[ManifestEntry]:
        """The entries of a manifest."""
        ...

    def live(self, rows: Iterable[ManifestFile], paths: Iterable[str]) -> frozenset[str]:
        """Those of the paths that are live in one of the manifests."""
        ...

    def found(self, rows: Iterable[ManifestFile], paths: Collection[str]) -> dict[str, DataFile]:
        """The live files with these paths, as the manifests list them."""
        ...

    def vector(self, descriptor: DeletionVectorDescriptor) -> bytes:
        """The payload of a deletion vector of the Delta table."""
        ...

    def write(self, name: str, data: bytes) -> str:
        """Write a file; returns its location."""
        ...

    def remember(
        self, row: ManifestFile, entries: Sequence[ManifestEntry], spec: PartitionSpec
    ) -> None:
        """Keep the entries of a manifest that was just written."""
        ...

    def learn(self, spec: PartitionSpec) -> None:
        """Keep the spec of manifests that somebody else writes."""
        ...
