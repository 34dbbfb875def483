"""The Iceberg side of a table as PyIceberg reads it: no code of ours between the files and it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyiceberg.avro.file import AvroFile
from pyiceberg.manifest import (
    DATA_FILE_TYPE,
    MANIFEST_ENTRY_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    clear_manifest_cache,
    read_manifest_list,
)
from pyiceberg.table import StaticTable

from twinlake.errors import Code, CorruptTable, StorageError, UserError, how_to_sync

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import FileScanTask
    from pyiceberg.table.snapshots import Snapshot

__all__ = ["IcebergFile", "IcebergManifest", "IcebergSide", "IcebergVector", "IcebergVersion"]

_VERSION = "delta-version"
_UNKNOWN_TYPE = "Unsupported field type"
_FILE_PATH = 2147483546
"""The id of the column of delete files that holds the path of the data file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergFile:
    """A data file as its manifest lists it."""

    path: str
    size: int
    record_count: int
    partition: Mapping[int, Any]
    """Typed values by the id of the column."""
    value_counts: Mapping[int, int]
    null_value_counts: Mapping[int, int]
    lower_bounds: Mapping[int, bytes]
    upper_bounds: Mapping[int, bytes]
    sequence_number: int | None = None
    first_row_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergVector:
    """A deletion vector as its manifest lists it."""

    referenced_data_file: str
    """Empty where it names none."""
    bounds: frozenset[str]
    """The data files that its bounds name."""
    record_count: int
    """How many rows it hides."""
    sequence_number: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergManifest:
    """A manifest: what it lists, and what the manifest list says of it."""

    path: str
    files: tuple[IcebergFile, ...]
    vectors: tuple[IcebergVector, ...] = ()
    stated_files: int | None = None
    stated_rows: int | None = None
    summaries: Mapping[int, Any] = field(default_factory=dict)
    """The summary of each partition column, by the id of the column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergVersion:
    """One snapshot."""

    version: int
    snapshot_id: int
    format_version: int
    totals: Mapping[str, str]
    manifests: tuple[IcebergManifest, ...]
    schema: Any
    """PyIceberg's schema of the snapshot."""


class IcebergSide:
    """Opens ``<table>/_iceberg`` as any path reader does."""

    def __init__(self, location: str, properties: Mapping[str, str] | None = None) -> None:
        self.location = location
        # Files that changed under their names must be seen as they are now.
        clear_manifest_cache()
        try:
            self.table = StaticTable.from_metadata(f"{location}/_iceberg", dict(properties or {}))
            self.version = int(self.table.metadata.properties[_VERSION])
        except FileNotFoundError as error:
            raise UserError(
                Code.TABLE_NOT_FOUND,
                f"The table at {location} has no Iceberg metadata.",
                why=str(error),
                fix=f"Run {how_to_sync()} first.",
                fields={"location": location},
            ) from error
        except OSError as error:
            raise StorageError(
                Code.STORAGE,
                f"PyIceberg cannot reach {location}/_iceberg.",
                why=str(error),
                fix="Check endpoint, region and credentials (`--option`, `--iceberg-option`).",
                fields={"location": location},
            ) from error
        except Exception as error:
            # Whatever it stumbles over, another reader would, too; but for types it does not know.
            if _UNKNOWN_TYPE in str(error):
                raise UserError(
                    Code.INVALID_ARGUMENT,
                    f"PyIceberg cannot open {location}/_iceberg.",
                    why=f"it does not know a type of the table: {_unknown_type(str(error))}",
                    fix="Read both sides by engines that know the type, such as Delta Spark and "
                    "Iceberg Spark, or install a PyIceberg that does.",
                    fields={"location": location},
                ) from error
            raise CorruptTable(
                Code.COMPAT,
                f"PyIceberg cannot open {location}/_iceberg.",
                why=f"{type(error).__name__}: {error}",
                fix=f"Delete the folder `_iceberg` and run {how_to_sync()}, which rebuilds it "
                "from the Delta log.",
                fields={"location": location},
            ) from error

    def snapshots(self) -> Iterator[tuple[int | None, Snapshot]]:
        """The snapshots with the Delta versions they state, oldest first."""
        for snapshot in self.table.metadata.snapshots:
            stated = None if snapshot.summary is None else snapshot.summary.get(_VERSION)
            yield (int(stated) if stated and stated.isdigit() else None), snapshot

    def read(self, version: int, snapshot: Snapshot) -> IcebergVersion:
        """All that a snapshot lists."""
        summary = snapshot.summary
        return IcebergVersion(
            version=version,
            snapshot_id=snapshot.snapshot_id,
            format_version=self.table.metadata.format_version,
            totals={} if summary is None else dict(summary.additional_properties),
            manifests=tuple(self._manifest(one) for one in self._listed(snapshot)),
            schema=self._schema(snapshot),
        )

    def tasks(self, snapshot_id: int) -> dict[str, FileScanTask]:
        """What PyIceberg would read for a snapshot, by the path of the data file."""
        planned = self.table.scan(snapshot_id=snapshot_id).plan_files()
        return {task.file.file_path: task for task in planned}

    def _schema(self, snapshot: Snapshot) -> Any:
        if snapshot.schema_id is None:
            return self.table.schema()
        found = self.table.metadata.schema_by_id(snapshot.schema_id)
        if found is None:
            raise LookupError(
                f"snapshot {snapshot.snapshot_id} names schema {snapshot.schema_id}, "
                "which the metadata does not have"
            )
        return found

    def _listed(self, snapshot: Snapshot) -> Iterator[ManifestFile]:
        # Not by way of the snapshot, which takes the rows of manifests it knows from other lists.
        return read_manifest_list(self.table.io.new_input(snapshot.manifest_list))

    def _manifest(self, manifest: ManifestFile) -> IcebergManifest:
        spec = self.table.metadata.specs()[manifest.partition_spec_id]
        columns = [part.source_id for part in spec.fields]
        entries = list(self._entries(manifest))
        is_data = manifest.content == ManifestContent.DATA
        return IcebergManifest(
            path=manifest.manifest_path,
            files=tuple(_file(one, columns) for one in entries) if is_data else (),
            vectors=() if is_data else tuple(_vector(one) for one in entries),
            stated_files=_sum(manifest.added_files_count, manifest.existing_files_count)
            if is_data
            else None,
            stated_rows=_sum(manifest.added_rows_count, manifest.existing_rows_count)
            if is_data
            else None,
            summaries=dict(zip(columns, manifest.partitions or (), strict=False)),
        )

    def _entries(self, manifest: ManifestFile) -> Iterator[_Entry]:
        """The live entries. PyIceberg's own way to them leaves out the fields of format 3."""
        names = [part.name for part in DATA_FILE_TYPE[3].fields]
        positions = {name: names.index(name) for name in ("first_row_id", "referenced_data_file")}
        with AvroFile[ManifestEntry](
            self.table.io.new_input(manifest.manifest_path),
            MANIFEST_ENTRY_SCHEMAS[3],
            read_types={-1: ManifestEntry, 2: DataFile},
            read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
        ) as reader:
            for entry in reader:
                if entry.status == ManifestEntryStatus.DELETED:
                    continue
                number = entry.sequence_number
                if number is None and entry.status == ManifestEntryStatus.ADDED:
                    number = manifest.sequence_number
                newer = {name: entry.data_file[position] for name, position in positions.items()}
                yield _Entry(file=entry.data_file, sequence_number=number, **newer)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """A file in a manifest, with what PyIceberg has no names for."""

    file: DataFile
    sequence_number: int | None
    first_row_id: int | None
    referenced_data_file: str | None


def _vector(entry: _Entry) -> IcebergVector:
    bounds = (entry.file.lower_bounds, entry.file.upper_bounds)
    named = [bound[_FILE_PATH] for bound in bounds if bound and _FILE_PATH in bound]
    return IcebergVector(
        referenced_data_file=entry.referenced_data_file or "",
        bounds=frozenset(name.decode("utf-8", "replace") for name in named),
        record_count=entry.file.record_count,
        sequence_number=entry.sequence_number,
    )


def _file(entry: _Entry, columns: list[int]) -> IcebergFile:
    found = entry.file
    return IcebergFile(
        path=found.file_path,
        size=found.file_size_in_bytes,
        record_count=found.record_count,
        partition={column: found.partition[position] for position, column in enumerate(columns)},
        value_counts=dict(found.value_counts or {}),
        null_value_counts=dict(found.null_value_counts or {}),
        lower_bounds=dict(found.lower_bounds or {}),
        upper_bounds=dict(found.upper_bounds or {}),
        sequence_number=entry.sequence_number,
        first_row_id=entry.first_row_id,
    )


def _unknown_type(text: str) -> str:
    """The line of PyIceberg's message that names the type."""
    return next(line.strip() for line in text.splitlines() if _UNKNOWN_TYPE in line)


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second
