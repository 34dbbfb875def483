"""``Table.iceberg``: the Iceberg side of a table, for people."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from twinlake.errors import (
    Code,
    CompatViolation,
    CorruptTable,
    TwinlakeError,
    UserError,
    how_to_unset,
)
from twinlake.iceberg import lag_of, sync_and_record, synced_version
from twinlake.iceberg.sync import MetadataFiles
from twinlake.protocol import keys
from twinlake.runtime import engine_for
from twinlake.table.arguments import checked_arguments
from twinlake.table.catalog.publish import PublishedName, follow, full_name, point

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from twinlake.iceberg import Lag, SyncResult
    from twinlake.iceberg.format import SnapshotEntry
    from twinlake.log import Snapshot
    from twinlake.runtime import Runtime

__all__ = ["IcebergView"]


@checked_arguments
class IcebergView:
    """Where the Iceberg metadata of a table is, how new it is, and how to bring it up to date."""

    def __init__(
        self, snapshot: Snapshot, runtime: Runtime, named: Callable[[str], IcebergView]
    ) -> None:
        self._snapshot = snapshot
        self._runtime = runtime
        self._named = named
        """Writes a name into the table, and returns this side of the table it becomes."""

    def __repr__(self) -> str:
        try:
            lag = self._lag_text
        except TwinlakeError as error:
            lag = f"cannot be read: {error.what}"
        return (
            f"<IcebergView of {self._snapshot.store.url} version {self._snapshot.version}: {lag}>"
        )

    @property
    def _lag_text(self) -> str:
        lag = self.lag
        if lag.iceberg_version is None:
            return f"no Iceberg metadata, {lag.why}"
        at = f"Iceberg metadata at version {lag.iceberg_version}"
        return f"{at}, {lag.versions:,} behind: {lag.why}" if lag.versions else at

    def _repr_html_(self) -> str:
        from twinlake._html import fields, page

        return page(
            f"Iceberg side of {self._snapshot.store.url}",
            fields(
                [
                    ("Delta version", str(self._snapshot.version)),
                    ("state", self._lag_text),
                    ("metadata", self.metadata_location),
                    ("published as", self.name),
                ]
            ),
        )

    @property
    def version(self) -> int | None:
        """The Delta version the Iceberg metadata is at; None where there is none yet."""
        return synced_version(self._snapshot)

    @property
    def metadata_location(self) -> str | None:
        """The newest metadata file, as an Iceberg catalog would point to it."""
        version = self.version
        files = MetadataFiles(self._snapshot.store)
        return None if version is None else files.metadata_location(version)

    @property
    def lag(self) -> Lag:
        """How far the Iceberg metadata is behind this version of the table, and why."""
        return lag_of(self._snapshot)

    @property
    def name(self) -> str | None:
        """The name in a catalog that follows the metadata; None for a table without one."""
        return self._snapshot.metadata.get(keys.ICEBERG_PUBLISH) or None

    def snapshot_id(self, version: int | None = None) -> int | None:
        """The snapshot that Iceberg has at a Delta version, or at this one; None if it has none."""
        wanted = self._snapshot.version if version is None else version
        newest = self.version
        if newest is None or newest < wanted:
            return None
        known = (
            entry.snapshot_id for entry in self._snapshots() if entry.sequence_number <= wanted
        )
        return next(known, None)

    def version_of(self, snapshot_id: int) -> int | None:
        """The Delta version that made a snapshot; None if Iceberg has no such snapshot."""
        found = (e.sequence_number for e in self._snapshots() if e.snapshot_id == snapshot_id)
        return next(found, None)

    def _snapshots(self) -> Iterator[SnapshotEntry]:
        """What Iceberg keeps, newest first."""
        version = self.version
        state = None if version is None else MetadataFiles(self._snapshot.store).load(version)
        return iter(()) if state is None else reversed(tuple(state.metadata.snapshots()))

    def sync(self, spark: Any = None) -> SyncResult:
        """Bring the Iceberg metadata to this version; with ``spark`` a first one is made there.

        The pointer of a published table is moved with it.

        Raises:
            CompatViolation, CorruptTable: a version has no Iceberg form; the metadata is brought
                to the version before it.
        """
        try:
            done = self._keep_up(spark)
        except (CompatViolation, CorruptTable):
            # Where the pointer cannot be moved either, that is not why.
            with contextlib.suppress(TwinlakeError):
                follow(self._snapshot)
            raise
        follow(self._snapshot)
        return done

    def _keep_up(self, spark: Any) -> SyncResult:
        engine = engine_for(spark)
        executor = self._runtime.executor if engine is None else engine.executor
        progress = self._runtime.progress
        return sync_and_record(self._snapshot, executor=executor, progress=progress)

    def publish(self, name: str, spark: Any = None) -> PublishedName:
        """Give the table a name in a catalog, which from now on follows every sync.

        ``table`` and ``namespace.table`` are names in the catalog of names, an SQLite file;
        ``catalog.namespace.table`` names a catalog of PyIceberg's configuration.
        """
        full = full_name(name)
        if self.name not in (None, full):
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"The table is published as {self.name}.",
                why="one name follows the table; another one would stay behind unnoticed",
                fix=f"Run {how_to_unset(keys.ICEBERG_PUBLISH)} first, and drop the old name in its "
                "catalog.",
                fields={"name": full, "published": self.name},
            )
        # The pointer may be where nobody follows it from: to publish is to take it back.
        self._keep_up(spark)
        # A name that is taken is found out before the table says that it has it.
        published = point(self._snapshot.store, full)
        if self.name == full:
            return published
        self._named(full).sync(spark)
        return point(self._snapshot.store, full)
