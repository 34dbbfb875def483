"""The log of a table as a stream reads it: commit by commit, and the first snapshot in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc

from twinlake.errors import Code, StorageError, TwinlakeError, UserError
from twinlake.log import LogFileKind, list_log, load_snapshot, modified_times, read_commit
from twinlake.schema import parse_path, resolve_path
from twinlake.spark.streaming.commit_content import CommitContent
from twinlake.spark.streaming.file_sequence import SnapshotFile
from twinlake.spark.streaming.schema_change import StreamSchemaChange

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    import pyarrow as pa

    from twinlake.log import Snapshot
    from twinlake.protocol import Metadata
    from twinlake.spark.streaming.source_options import SourceOptions
    from twinlake.storage import Store

__all__ = ["TableLog", "event_order"]

_KEPT: Final = 256
"""So many commits stay in memory: each is asked for when a batch is planned and when it is read."""


class TableLog:
    """What a stream knows of its table; ``latest`` looks for new versions.

    With ``fixed`` all rows are read by the columns that the table has now, because Spark was told
    of them when the stream began.
    """

    def __init__(
        self, latest: Callable[[], Snapshot], options: SourceOptions, *, fixed: bool = False
    ) -> None:
        self._open = latest
        self._options = options
        self._commits: dict[int, CommitContent] = {}
        self._snapshot: Snapshot | None = None
        self._files: tuple[int, list[SnapshotFile]] | None = None
        self._known: tuple[int, Metadata] | None = None
        self.latest: Snapshot = latest()
        self._fixed = self.latest if fixed else None

    def update(self) -> Snapshot:
        """The table at its newest version."""
        fresh = self._open()
        if fresh.metadata.id != self.latest.metadata.id:
            self._commits.clear()
            self._snapshot = self._files = self._known = None
        self.latest = fresh
        return fresh

    @property
    def store(self) -> Store:
        """Where the table is."""
        return self.latest.store

    def snapshot(self, version: int) -> Snapshot:
        """The table at a version that the stream has to read as a whole."""
        if version == self.latest.version:
            return self.latest
        if self._snapshot is None or self._snapshot.version != version:
            try:
                self._snapshot = load_snapshot(self.store, version)
            except TwinlakeError as error:
                raise _lost(version, self._earliest(version), self.latest) from error
        return self._snapshot

    def snapshot_files(self, version: int) -> list[SnapshotFile]:
        """The files of a version: in the order they were written, or of their event times."""
        if self._files is None or self._files[0] != version:
            files = self.snapshot(version).files()
            self._files = version, _ordered(files, self._options.event_time, self.latest)
        return self._files[1]

    def commits(self, first: int) -> Iterator[CommitContent]:
        """The commits from a version up to the newest that ``update`` found."""
        version = first
        while version <= self.latest.version:
            try:
                yield self.commit(version)
                version += 1
            except StorageError as error:
                if error.code != Code.STORAGE_NOT_FOUND:
                    raise
                earliest = self._earliest(version)
                if self._options.fail_on_data_loss or earliest is None:
                    raise _lost(version, earliest, self.latest) from error
                version = earliest

    def commit(self, version: int) -> CommitContent:
        """One commit."""
        found = self._commits.get(version)
        if found is None:
            found = CommitContent.of(version, read_commit(self.store, version))
            while len(self._commits) >= _KEPT:
                del self._commits[next(iter(self._commits))]
            self._commits[version] = found
        return found

    def times(self, versions: Collection[int]) -> dict[int, int]:
        """When these versions were made, in milliseconds."""
        found = modified_times(self.store, range(min(versions), max(versions) + 1))
        for version in versions:
            info = self.commit(version).info if version in found else None
            if info is not None and info.in_commit_timestamp is not None:
                found[version] = info.in_commit_timestamp
            elif version not in found:
                # The commit was cleaned up, and a checkpoint has the files of its version.
                found[version] = self.snapshot(version).timestamp_ms
        return found

    def _earliest(self, version: int) -> int | None:
        """The first version behind a gap whose commit is there."""
        files = list_log(self.store, version)
        found = [file.version for file in files if file.kind is LogFileKind.COMMIT]
        return min(found, default=None)

    def changes_columns(self, commit: CommitContent) -> bool:
        """Whether a commit leaves the table with other columns; some changes are refused."""
        if commit.metadata is None:
            return False
        before = self._metadata_before(commit.version)
        if before is None:
            return True
        change = StreamSchemaChange.between(before, commit.metadata)
        if self._fixed is None:
            change.check(commit.version, self._options)
            return bool(change)
        if change and commit.version > self._fixed.version:
            raise _other_columns(commit.version)
        change.check(commit.version, self._options)
        return False

    def columns_at(self, version: int) -> Metadata:
        """The metadata by which the files of a batch are read that ends with a version."""
        return self.metadata_at(version) if self._fixed is None else self._fixed.metadata

    def _metadata_before(self, version: int) -> Metadata | None:
        """The metadata that a commit found; None where the log does not reach back so far."""
        if version == 0:
            return None
        try:
            return self.metadata_at(version - 1)
        except TwinlakeError:
            return None

    def metadata_at(self, version: int) -> Metadata:
        """The metadata of a version, from the one that was asked for last where commits say so."""
        if version >= self.latest.version:
            return self.latest.metadata
        if self._known is not None and self._known[0] <= version:
            found, first = self._known[1], self._known[0] + 1
        else:
            found, first = load_snapshot(self.store, version).metadata, version + 1
        for between in range(first, version + 1):
            found = self.commit(between).metadata or found
        self._known = version, found
        return found


def _ordered(files: pa.Table, event_time: str | None, snapshot: Snapshot) -> list[SnapshotFile]:
    if event_time is not None:
        return _by_event_time(files, event_time, snapshot)
    order = pc.sort_indices(
        files.select(["modification_time", "path"]),
        sort_keys=[("modification_time", "ascending"), ("path", "ascending")],
    )
    rows = files.select(["path", "size"]).take(order)
    return [
        SnapshotFile(path=path, size=size)
        for path, size in zip(rows["path"].to_pylist(), rows["size"].to_pylist(), strict=True)
    ]


def _by_event_time(files: pa.Table, column: str, snapshot: Snapshot) -> list[SnapshotFile]:
    """By the least value of a column; files whose values overlap go together.

    So no batch has a row that is older than all of the batch before, whatever the watermark.
    """
    low, high = _bounds(files, column, snapshot)
    paths, sizes = files["path"].to_pylist(), files["size"].to_pylist()
    return [
        SnapshotFile(path=paths[number], size=sizes[number], follows=follows)
        for number, follows in event_order(paths, low, high)
    ]


def event_order(paths: list[str], low: list[Any], high: list[Any]) -> list[tuple[int, bool]]:
    """Files by their least value, each with whether its values overlap with those before it.

    A file without statistics may hold anything: then all files go together.

    >>> event_order(["a", "b", "c"], [5, 1, 2], [9, 3, 4])
    [(1, False), (2, True), (0, False)]
    """
    if None in low or None in high:
        order = sorted(range(len(paths)), key=paths.__getitem__)
        return [(number, place > 0) for place, number in enumerate(order)]
    found: list[tuple[int, bool]] = []
    reached: Any = None
    for number in sorted(range(len(paths)), key=lambda n: (low[n], paths[n])):
        found.append((number, reached is not None and low[number] <= reached))
        reached = high[number] if reached is None else max(reached, high[number])
    return found


def _bounds(files: pa.Table, column: str, snapshot: Snapshot) -> tuple[list[Any], list[Any]]:
    path = resolve_path(snapshot.schema, parse_path(column))
    if path[0] in files["partition_values"].type.names:
        values = pc.struct_field(files["partition_values"], path[0]).to_pylist()
        return values, values
    found = []
    for name in ("min_values", "max_values"):
        values = pc.struct_field(files["stats"], name)
        for part in path:
            known = values.type.names if hasattr(values.type, "names") else ()
            if part not in known:
                return [None] * len(files), [None] * len(files)
            values = pc.struct_field(values, part)
        found.append(values.to_pylist())
    return found[0], found[1]


def _other_columns(version: int) -> UserError:
    return UserError(
        Code.SCHEMA_EVOLUTION,
        f"Version {version} of the streamed table has other columns than the stream.",
        why="Spark fixes the columns of a stream when it begins",
        fix="Restart the stream; it goes on with the new columns.",
        delta_class="DELTA_SCHEMA_CHANGED_WITH_VERSION",
        fields={"version": version},
    )


def _lost(version: int, earliest: int | None, latest: Snapshot) -> UserError:
    there = "and no later commit is there" if earliest is None else f"the earliest is {earliest}"
    return UserError(
        Code.VERSION_NOT_FOUND,
        f"The stream has to read version {version} of table {latest.label}, whose commit is gone.",
        why=f"the log was cleaned up before the stream got there; {there}, the newest is "
        f"{latest.version}",
        fix="Restart the stream from a new checkpoint, or set `failOnDataLoss` to false to go on "
        "without the rows of the missing versions; a longer `delta.logRetentionDuration` keeps "
        "this from happening.",
        delta_class="DELTA_MISSING_FILES_UNEXPECTED_VERSION",
        fields={"version": version, "earliest": earliest, "latest": latest.version},
    )
