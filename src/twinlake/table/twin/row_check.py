"""The rows of both sides of a table, compared file by file.

A file is read once for each way to read it, however many versions have it. Where an engine reads
whole versions, a version is read only if it has a file that no version before it had.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import metadata as packages
from typing import TYPE_CHECKING, Any, Final

from twinlake.errors import TwinlakeError
from twinlake.iceberg.derive import file_location
from twinlake.protocol import partition_zone
from twinlake.schema import render_path
from twinlake.table.twin.canonical_locations import canonical_location
from twinlake.table.twin.content_hash import ContentHash, DeltaFileHash, IcebergFileHash
from twinlake.table.twin.format_semantics import FooterCheck
from twinlake.table.twin.report import DifferenceKind, TwinFinding

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping

    from pyiceberg.table import FileScanTask

    from twinlake.actions import AddFile, Metadata
    from twinlake.log import Snapshot
    from twinlake.runtime import ContentReader, Executor, FileContent
    from twinlake.storage import Store
    from twinlake.table.twin.iceberg_side import IcebergSide

__all__ = ["RowCheck", "SnapshotRows"]

_NAME_MAPPING: Final = "schema.name-mapping.default"
_LONGEST: Final = 300
_NO_REASON: Final = "An error occurred while calling"
"""How every message begins that comes out of a JVM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRows:
    """A version whose rows are to be compared, and the Iceberg snapshot that has them."""

    version: int
    snapshot_id: int
    schema: Any
    """PyIceberg's schema to read the snapshot by."""
    is_current: bool
    """Whether the snapshot is read as the current one: by the current schema."""


@dataclass
class RowCheck:
    """Reads rows by PyIceberg and by twinlake, or by the readers of an engine."""

    side: IcebergSide
    store: Store
    executor: Executor
    reader: ContentReader | None = None
    rows: int = 0
    """How many rows the Delta side has been read for."""
    _contents: dict[Hashable, ContentHash] = field(default_factory=dict)
    _remarks: dict[Hashable, list[tuple[DifferenceKind, str, str, str]]] = field(
        default_factory=dict
    )

    @property
    def delta_reader(self) -> str:
        """What reads the rows of the Delta side."""
        return _package("twinlake") if self.reader is None else self.reader.delta_reader

    @property
    def iceberg_reader(self) -> str:
        """What reads the rows of the Iceberg side."""
        named = "" if self.reader is None else self.reader.iceberg_reader
        return named or _package("pyiceberg", "PyIceberg")

    def findings(self, delta: Snapshot, wanted: SnapshotRows) -> list[TwinFinding]:
        """What differs at one version."""
        try:
            tasks = self.side.tasks(wanted.snapshot_id)
        except Exception as error:
            # PyIceberg raises whatever it stumbles over; other readers would stumble, too.
            return [_unreadable(delta, iceberg=_told(error))]
        root = self.side.location
        adds = {file_location(root, add.path): add for add in delta.adds()}
        keys = {path: _delta_key(delta.metadata, path, add) for path, add in adds.items()}
        try:
            ours = self._delta_contents(delta, adds, keys)
        except TwinlakeError:
            raise
        except Exception as error:
            return [_unreadable(delta, delta=_told(error))]
        try:
            theirs = self._iceberg_contents(wanted, tasks)
        except TwinlakeError:
            raise
        except Exception as error:
            return [_unreadable(delta, iceberg=_told(error))]
        found = list(_row_findings(delta.version, ours, theirs))
        found += self._format_findings(delta, adds, keys)
        return found

    def _delta_contents(
        self, delta: Snapshot, adds: Mapping[str, AddFile], keys: Mapping[str, Hashable]
    ) -> dict[str, ContentHash]:
        new = {path: key for path, key in keys.items() if key not in self._contents}
        if self.reader is not None:
            self._take(new, lambda reader: reader.delta_contents(delta))
        else:
            items = [(delta.metadata, adds[path]) for path in new]
            found = self.executor.map(DeltaFileHash(delta.store), items)
            self._contents.update(zip(new.values(), found, strict=True))
        self.rows += sum(self._contents[key].rows for key in new.values())
        return {path: self._contents[key] for path, key in keys.items()}

    def _iceberg_contents(
        self, wanted: SnapshotRows, tasks: Mapping[str, FileScanTask]
    ) -> dict[str, ContentHash]:
        schema = wanted.schema
        keys = {path: _iceberg_key(schema, path, task) for path, task in tasks.items()}
        new = {path: key for path, key in keys.items() if key not in self._contents}
        if self.reader is not None and self.reader.iceberg_reader:
            snapshot = None if wanted.is_current else wanted.snapshot_id
            location = self.side.location
            self._take(new, lambda reader: reader.iceberg_contents(location, snapshot))
        else:
            table = self.side.table
            items = [(schema, tasks[path]) for path in new]
            found = self.executor.map(IcebergFileHash(table.metadata, table.io), items)
            self._contents.update(zip(new.values(), found, strict=True))
        return {path: self._contents[key] for path, key in keys.items()}

    def _take(
        self,
        new: Mapping[str, Hashable],
        read: Callable[[ContentReader], Mapping[str, FileContent]],
    ) -> None:
        """Read a version by the engine, if it has files that are not known."""
        if not new or self.reader is None:
            return
        found = read(self.reader)
        for path, key in new.items():
            one = found.get(canonical_location(path))
            self._contents[key] = ContentHash() if one is None else ContentHash(one.rows, one.hash)

    def _format_findings(
        self, delta: Snapshot, adds: Mapping[str, AddFile], keys: Mapping[str, Hashable]
    ) -> Iterator[TwinFinding]:
        """What the formats say of files, whoever has read the rows."""
        new = [path for path, key in keys.items() if key not in self._remarks]
        mapping = self.side.table.metadata.properties.get(_NAME_MAPPING)
        check = FooterCheck(self.store, self.executor, mapping)
        for path in new:
            short = self._contents[keys[path]].unpadded
            self._remarks[keys[path]] = [_padding(column) for column in short]
        paths = {add.key: path for path, add in adds.items()}
        for add, found in check.remarks((delta.metadata, adds[path]) for path in new):
            self._remarks[keys[paths[add.key]]] += found
        for path, key in keys.items():
            for what, column, ours, theirs in self._remarks[key]:
                yield TwinFinding(
                    version=delta.version,
                    what=what,
                    file=path,
                    column=column,
                    delta=ours,
                    iceberg=theirs,
                )


def _padding(column: tuple[str, ...]) -> tuple[DifferenceKind, str, str, str]:
    readings = "CHAR values filled up with spaces", "values as they are stored"
    return DifferenceKind.PADDING, render_path(column), *readings


def _row_findings(
    version: int, ours: Mapping[str, ContentHash], theirs: Mapping[str, ContentHash]
) -> Iterator[TwinFinding]:
    for path in sorted(ours.keys() | theirs.keys()):
        one, other = ours.get(path), theirs.get(path)
        if one is None or other is None or not one.is_same(other):
            yield TwinFinding(
                version=version,
                what=DifferenceKind.ROWS,
                file=path,
                delta=str(one or "no such file"),
                iceberg=str(other or "no such file"),
            )


def _unreadable(snapshot: Snapshot, *, delta: str = "", iceberg: str = "") -> TwinFinding:
    return TwinFinding(
        version=snapshot.version, what=DifferenceKind.UNREADABLE, delta=delta, iceberg=iceberg
    )


def _told(error: Exception) -> str:
    """The line of a reader's message that says why; an engine's goes on for pages."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    telling = next((line for line in lines if not line.startswith(_NO_REASON)), "")
    return f"{type(error).__name__}: {telling.lstrip(': ')[:_LONGEST]}"


def _package(name: str, shown: str = "") -> str:
    try:
        return f"{shown or name} {packages.version(name)}"
    except packages.PackageNotFoundError:
        return shown or name


def _delta_key(metadata: Metadata, path: str, add: AddFile) -> Hashable:
    """All that the rows of a file on the Delta side depend on."""
    return (
        "delta",
        path,
        add.key,
        metadata.schema_string,
        metadata.column_mapping_mode,
        tuple(metadata.partition_columns),
        partition_zone(metadata),
        frozenset(add.partition_values.items()),
    )


def _iceberg_key(schema: Any, path: str, task: FileScanTask) -> Hashable:
    """The same for the Iceberg side, where a column that the file lacks is one of its partition."""
    deletes = frozenset(one.file_path for one in task.delete_files)
    # As text: not a number would not be found again.
    return ("iceberg", path, deletes, schema.schema_id, repr(task.file.partition))
