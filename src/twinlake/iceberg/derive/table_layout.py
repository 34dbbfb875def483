"""What the conversion needs to know of a Delta version, read from the log once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from twinlake.errors import Code, CompatViolation, CorruptTable, how_to_purge, how_to_upgrade
from twinlake.iceberg.format.manifest import DataFile
from twinlake.iceberg.format.metrics import MetricsReader
from twinlake.iceberg.format.name_mapping import name_mapping
from twinlake.iceberg.format.partition_spec import PartitionSpec, partition_spec, partition_tuple
from twinlake.iceberg.format.schema import IcebergSchema, iceberg_schema
from twinlake.log import CanonicalPaths
from twinlake.protocol import NO_ANNOTATIONS, features, keys, partition_zone
from twinlake.storage import decode_path, split_scheme

if TYPE_CHECKING:
    from datetime import tzinfo

    from twinlake.actions import AddFile
    from twinlake.iceberg.derive.operation import FileChanges
    from twinlake.protocol import IcebergAnnotations, Metadata
    from twinlake.schema import ColumnPath

__all__ = ["DeltaCommit", "TableLayout", "file_location", "layout_of"]


@dataclass(frozen=True)
class TableLayout:
    """A table's metadata as Iceberg sees it."""

    metadata: Metadata
    location: str
    zone: tzinfo = UTC

    def __getstate__(self) -> dict[str, Any]:
        # What was computed is not all picklable, and is soon computed again.
        return {"metadata": self.metadata, "location": self.location, "zone": self.zone}

    @cached_property
    def format_version(self) -> int:
        """Of Iceberg: 3 where the table has icebergCompatV3."""
        return 3 if self.metadata.flag(keys.ENABLE_ICEBERG_COMPAT_V3) else 2

    @cached_property
    def schema(self) -> IcebergSchema:
        """The schema."""
        return iceberg_schema(self.metadata, format_version=self.format_version)

    @cached_property
    def spec(self) -> PartitionSpec:
        """The partition spec."""
        return partition_spec(self.metadata)

    @cached_property
    def name_mapping(self) -> str:
        """How to read files without ids."""
        return name_mapping(self.metadata.schema)

    @cached_property
    def _metrics(self) -> MetricsReader:
        return MetricsReader(self.metadata)

    def partition(self, add: AddFile) -> tuple[Any, ...]:
        """The typed values of the partition of a file of the log."""
        try:
            return partition_tuple(add.partition_values, self.spec, self.zone)
        except CorruptTable as error:
            # The value alone does not name its file.
            error.fields["path"] = add.path
            raise

    def data_file(self, add: AddFile) -> DataFile:
        """A file of the log as a manifest lists it."""
        if add.deletion_vector is not None and self.format_version < 3:
            raise CompatViolation(
                Code.COMPAT,
                f"File {add.path} has a deletion vector.",
                why="Iceberg has deletion vectors from format version 3 on.",
                fix=f"Run {how_to_purge()}, or {how_to_upgrade(features.ICEBERG_COMPAT_V3)}.",
                fields={"path": add.path},
            )
        metrics = self._metrics.read(add.stats)
        if metrics.record_count is None:
            raise CorruptTable(
                Code.COMPAT,
                f"File {add.path} has no row count in the log.",
                why="Iceberg needs the number of rows of every file.",
                fix=f"Run {how_to_upgrade(features.ICEBERG_COMPAT_V2)}: it rewrites files without "
                "statistics.",
                fields={"path": add.path},
            )
        return DataFile(
            path=file_location(self.location, add.path),
            partition=self.partition(add),
            record_count=metrics.record_count,
            size=add.size,
            metrics=metrics,
            first_row_id=add.base_row_id if self.format_version > 2 else None,
        )


@lru_cache(maxsize=32)
def layout_of(metadata: Metadata, location: str) -> TableLayout:
    """The layout of a table: most commits leave it alone, and making it costs a third of one."""
    return TableLayout(metadata, location, partition_zone(metadata))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaCommit:
    """One Delta version."""

    version: int
    timestamp_ms: int
    layout: TableLayout
    changes: FileChanges
    engine: str = ""
    """The name of the one that made it."""
    row_id_mark: int | None = None
    """The highest row id that was given out, where the commit says so."""
    clustering: tuple[ColumnPath, ...] = ()
    """The columns the table is clustered by, as paths of physical names."""
    snapshot_id: int | None = None
    """The id an Iceberg client gave to its own commit, if the log records one."""
    annotations: IcebergAnnotations = NO_ANNOTATIONS
    """Tags and statistics of the table's snapshots."""


def file_location(root: str, path: str) -> str:
    """The absolute path of a file of the log, as Iceberg spells it: literally, not encoded.

    >>> file_location("file:///lake/t", "day=1%20May/x.parquet")
    'file:///lake/t/day=1 May/x.parquet'
    >>> file_location("file:///lake/t", "/lake/t/./x.parquet")
    'file:///lake/t/x.parquet'
    """
    file = CanonicalPaths.of(root).file(path)
    below = split_scheme(file) is None and not file.startswith("/")
    return f"{root}/{decode_path(file)}" if below else decode_path(file)
