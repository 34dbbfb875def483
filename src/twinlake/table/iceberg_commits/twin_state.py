"""The newest version of a twin table together with its Iceberg metadata."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from twinlake.compat import enabled_compats
from twinlake.errors import Code, CompatViolation, CorruptTable, UserError, how_to_upgrade
from twinlake.iceberg import IntegrityCheck, sync_and_record
from twinlake.iceberg.format import encode_metadata, with_referenced_snapshots
from twinlake.iceberg.sync import METADATA_CACHE, MetadataFiles
from twinlake.log import CACHE
from twinlake.protocol import features

if TYPE_CHECKING:
    from twinlake.iceberg.derive import IcebergState
    from twinlake.iceberg.format import TableMetadata
    from twinlake.log import Snapshot, SnapshotCache
    from twinlake.runtime import Runtime
    from twinlake.storage import Store

__all__ = ["TwinState", "load_state"]

_ATTEMPTS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinState:
    """What an Iceberg client sees of a table, and the Delta version it comes from."""

    snapshot: Snapshot
    iceberg: IcebergState
    metadata_location: str
    lag: str = ""
    """Why the metadata is older than the newest Delta version; empty where it is not."""

    @property
    def table_metadata(self) -> TableMetadata:
        """The Iceberg metadata as a value."""
        return self.iceberg.metadata

    @property
    def uuid(self) -> str:
        """Iceberg's id of the table."""
        return self.iceberg.metadata.table_uuid

    @property
    def version(self) -> int:
        """The Delta version that the Iceberg metadata is at."""
        return self.iceberg.metadata.delta_version

    def metadata(self, snapshots: str = "all") -> bytes:
        """The metadata file as JSON; ``refs`` leaves out snapshots that no branch or tag names."""
        metadata = self.iceberg.metadata
        if snapshots == "refs":
            metadata = with_referenced_snapshots(metadata)
        return b"".join(encode_metadata(metadata))


def load_state(store: Store, runtime: Runtime, cache: SnapshotCache = CACHE) -> TwinState:
    """The newest version of a table, with its Iceberg metadata converted as far as it can be.

    Raises:
        UserError: the table has no compat feature, so that it is no Iceberg table.
        CompatViolation, CorruptTable: no version of it has an Iceberg form.
    """
    files = MetadataFiles(store)
    lag = ""
    for _ in range(_ATTEMPTS):
        snapshot = cache.latest(store)
        if not enabled_compats(snapshot.metadata):
            raise _not_iceberg(snapshot)
        newest = files.newest()
        if newest is None or newest < snapshot.version:
            try:
                sync_and_record(snapshot, executor=runtime.executor, check=IntegrityCheck.NOTHING)
            except (CompatViolation, CorruptTable) as error:
                lag = error.what
                if files.newest() is None:
                    raise
            newest = files.newest()
        if newest is not None and newest > snapshot.version:
            # Somebody has committed since the snapshot was taken.
            cache.forget(store.url)
            continue
        state = None if newest is None else _state(store, files, newest)
        if newest is not None and state is not None:
            return TwinState(
                snapshot=snapshot,
                iceberg=state,
                metadata_location=files.metadata_location(newest),
                lag=lag,
            )
        # It is damaged, or was expired under our eyes: a sync that looks closely rebuilds it.
        sync_and_record(snapshot, executor=runtime.executor, check=IntegrityCheck.SIZES)
    raise CorruptTable(
        Code.STORAGE,
        f"The Iceberg metadata of table {store.url} cannot be read.",
        why=f"{_ATTEMPTS} attempts found it changed each time",
        fix="Run `twinlake verify-twin PATH` when fewer writers are active.",
        fields={"store": store.url},
    )


def _state(store: Store, files: MetadataFiles, version: int) -> IcebergState | None:
    kept = METADATA_CACHE.peek(store)
    if kept is not None and kept.is_published(files, version):
        return kept.state
    return files.load(version)


def _not_iceberg(snapshot: Snapshot) -> UserError:
    return UserError(
        Code.COMPAT,
        f"Table {snapshot.label} is not an Iceberg table.",
        why="it has no Iceberg compat feature",
        fix=f"Run {how_to_upgrade(features.ICEBERG_WRITER_COMPAT_V1)}.",
        fields={"table": snapshot.label},
    )
