"""The commits to convert, read from the Delta log in order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from twinlake.actions import (
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    RemoveFile,
    find_annotations,
    find_clustering,
    find_row_tracking,
)
from twinlake.errors import (
    Code,
    CompatViolation,
    CorruptTable,
    StorageError,
    TwinlakeError,
    how_to_upgrade,
)
from twinlake.iceberg.derive.assumed_zone import AssumedZones
from twinlake.iceberg.derive.file_spelling import check_listed_once, has_odd_paths, settled
from twinlake.iceberg.derive.operation import FileChanges, file_changes
from twinlake.iceberg.derive.partition_change import moves_files, with_moved_files
from twinlake.iceberg.derive.snapshot_id import recorded_id
from twinlake.iceberg.derive.table_layout import DeltaCommit, layout_of
from twinlake.iceberg.sync.foreign_files import ForeignFiles, is_judged, unjudged_paths
from twinlake.log import commit_key, load_snapshot, read_commit, readable_commits
from twinlake.protocol import (
    CLUSTERING_DOMAIN,
    ICEBERG_DOMAIN,
    NO_ANNOTATIONS,
    Clustering,
    IcebergAnnotations,
    features,
    keys,
)
from twinlake.runtime import silent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from twinlake.actions import Action
    from twinlake.iceberg.derive.table_layout import TableLayout
    from twinlake.log import CommitTimes, Snapshot
    from twinlake.runtime import Executor, Progress
    from twinlake.storage import ObjectMeta

__all__ = ["LogCommit", "LogGap", "LogReader"]


_COMPAT_KEYS: Final = (
    keys.ENABLE_ICEBERG_COMPAT_V1,
    keys.ENABLE_ICEBERG_COMPAT_V2,
    keys.ENABLE_ICEBERG_COMPAT_V3,
)


class LogGap(Exception):
    """The log does not lead on from where the metadata ends, for the reason given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCommit:
    """A commit to convert, and what it says of itself."""

    commit: DeltaCommit
    info: CommitInfo | None


class LogReader:
    """Reads the log of a table up to one snapshot."""

    def __init__(
        self,
        snapshot: Snapshot,
        location: str,
        executor: Executor,
        progress: Progress = silent,
    ) -> None:
        self._progress = progress
        self._snapshot = snapshot
        self._store = snapshot.store
        self._location = location
        self._commits: dict[int, tuple[Action, ...]] = {}
        self._heads: dict[int, ObjectMeta | None] = {}
        self._zones = AssumedZones()
        self._foreign = ForeignFiles(snapshot.store, snapshot.protocol, executor)

    @property
    def version(self) -> int:
        """The version the log is read up to."""
        return self._snapshot.version

    @cached_property
    def times(self) -> CommitTimes:
        """The commits whose versions can be read."""
        return readable_commits(self._store, self._snapshot)

    def first_convertible(self, first: int) -> int:
        """The first version, from ``first`` on, after which every one has an Iceberg form."""
        start: int | None = None
        metadata = self._at(first).metadata
        for version in range(first, self.version + 1):
            if version > first:
                found = next((a for a in self._read(version) if isinstance(a, Metadata)), None)
                if found is None:
                    continue
                metadata = found
            problem = self._problem(metadata)
            if problem is not None:
                start = None
            elif start is None:
                start = version
        if start is None:
            problem = self._problem(self._snapshot.metadata)
            raise problem if problem is not None else AssertionError(first)
        return start

    def _problem(self, metadata: Metadata) -> CompatViolation | None:
        """Why a table has no Iceberg form."""
        if not any(metadata.flag(key) for key in _COMPAT_KEYS):
            return CompatViolation(
                Code.COMPAT,
                f"Table {self._snapshot.label} has no Iceberg compat feature.",
                why=f"None of {', '.join(_COMPAT_KEYS)} is true.",
                fix=f"Run {how_to_upgrade(features.ICEBERG_COMPAT_V2)}.",
                fields={"table": self._snapshot.label},
            )
        layout = layout_of(metadata, self._location)
        newest = layout_of(self._snapshot.metadata, self._location)
        if layout.format_version != newest.format_version:
            # Row ids and vectors of version 3 cannot be added to metadata of an earlier version.
            return CompatViolation(
                Code.COMPAT,
                f"Table {self._snapshot.label} was of format version {layout.format_version}.",
                why=f"It is of format version {newest.format_version} now.",
                fix="Read this version as a Delta table.",
                fields={"table": self._snapshot.label},
            )
        try:
            _ = layout.schema, layout.spec
        except CompatViolation as error:
            return error
        return None

    def has_files(self, version: int) -> bool:
        """Whether a commit names any file."""
        return any(isinstance(a, AddFile | RemoveFile) for a in self._read(version))

    def past(self, problem: TwinlakeError, after: int) -> int:
        """The commit after a version from which on what a problem names is in order.

        Raises:
            TwinlakeError: ``problem``, if it is as it was in the newest version.
        """
        if "domain" in problem.fields:
            return self._past_domain(problem, after)
        left = set(problem.fields.get("paths") or (problem.fields.get("path"),))
        layout = layout_of(self._snapshot.metadata, self._location)
        mended = None
        for version in range(self.version, after, -1):
            files = [a for a in self._read(version) if isinstance(a, AddFile | RemoveFile)]
            named = [file for file in files if file.path in left]
            added = [file for file in named if isinstance(file, AddFile)]
            for file in added:
                layout.data_file(file)
            if added and "paths" in problem.fields:
                self._foreign.judge(added, layout.metadata, version)
            left -= {file.path for file in named}
            if named and mended is None:
                mended = version
            if mended is not None and not left:
                return mended
        raise problem

    def _past_domain(self, problem: TwinlakeError, after: int) -> int:
        mended = None
        for version in range(self.version, after, -1):
            state = self._at(version)
            try:
                _clustering(state.domains.values()).physical_paths(state.metadata)
                _row_id_mark(state.domains.values())
            except CorruptTable:
                break
            mended = version
        if mended is None:
            raise problem
        return mended

    def mark(self, version: int) -> str:
        """Size and time of a commit file, by which another one is noticed; empty without one."""
        found = self._head(version)
        return "" if found is None else f"{found.size}-{found.modified_ms}"

    def base(self, version: int) -> tuple[LogCommit, Iterator[AddFile]]:
        """A version, and all files that are live in it."""
        snapshot = self._at(version)
        info = snapshot.commit_info
        commit = DeltaCommit(
            version=version,
            timestamp_ms=snapshot.timestamp_ms,
            layout=layout_of(snapshot.metadata, self._location),
            changes=FileChanges(data_changes=frozenset({True})),
            engine=_engine(info),
            row_id_mark=_row_id_mark(snapshot.domains.values()),
            clustering=_clustering(snapshot.domains.values()).physical_paths(snapshot.metadata),
            snapshot_id=recorded_id(snapshot.metadata.id, info),
            annotations=_annotations(snapshot.domains.values()),
        )
        check_listed_once(snapshot)
        self._judge_all(snapshot)
        adds = self._zones.watched(snapshot.adds(), commit.layout)
        return LogCommit(commit=commit, info=info), adds

    def _judge_all(self, snapshot: Snapshot) -> None:
        """Judge the files of a version that came past twinlake."""
        paths = unjudged_paths(
            snapshot.version, self.times, self._read, lambda version: self._at(version).metadata
        )
        if paths is None:
            self._foreign.judge(snapshot.adds(), snapshot.metadata, snapshot.version)
        elif paths:
            adds = snapshot.live_files(paths).values()
            self._foreign.judge(adds, snapshot.metadata, snapshot.version)

    def after(self, version: int) -> Iterator[LogCommit]:
        """Every commit after ``version``, oldest first."""
        commits = [(v, self._read(v)) for v in range(version + 1, self._snapshot.version + 1)]
        metadata = self._metadata_before(commits, version)
        clustering = _clustering(self._domains_before(commits, version, CLUSTERING_DOMAIN))
        annotations = _annotations(self._domains_before(commits, version, ICEBERG_DOMAIN))
        for done, (number, actions) in enumerate(commits):
            self._progress("sync", done, len(commits))
            before = layout_of(metadata, self._location)
            info = next((a for a in actions if isinstance(a, CommitInfo)), None)
            found = next((a for a in actions if isinstance(a, Metadata)), None)
            if found is not None:
                metadata = found
                if (problem := self._problem(found)) is not None:
                    raise LogGap(f"version {number} has no Iceberg form: {problem.what}")
            domains = [a for a in actions if isinstance(a, DomainMetadata)]
            clustering = find_clustering(domains) or clustering
            annotations = find_annotations(domains) or annotations
            layout = layout_of(metadata, self._location)
            stamp = self._timestamp(number, metadata, info)
            changes = self._changes(number, actions, (before, layout), stamp)
            if changes.added and not is_judged(info, metadata):
                self._foreign.judge(changes.added, metadata, number)
            commit = DeltaCommit(
                version=number,
                timestamp_ms=stamp,
                layout=layout,
                changes=changes,
                engine=_engine(info),
                row_id_mark=_row_id_mark(domains),
                clustering=clustering.physical_paths(metadata),
                snapshot_id=recorded_id(metadata.id, info),
                annotations=annotations,
            )
            yield LogCommit(commit=commit, info=info)

    def _changes(
        self,
        version: int,
        actions: Iterable[Action],
        layouts: tuple[TableLayout, TableLayout],
        stamp: int,
    ) -> FileChanges:
        """The files of a commit, and those that lie in another partition since."""
        before, after = layouts
        changes = file_changes(actions, self._snapshot.paths)
        if has_odd_paths(changes, self._snapshot.paths):
            changes = settled(changes, self._at(version))
        if before is not after and moves_files(before, after):
            live = self._at(version).adds()
            changes = with_moved_files(
                changes, live, before=before, after=after, timestamp_ms=stamp
            )
        self._zones.look(changes.added, after)
        return changes

    def _metadata_before(
        self, commits: list[tuple[int, tuple[Action, ...]]], version: int
    ) -> Metadata:
        """What counts until a commit says otherwise; the old state is loaded only if it must."""
        changes = [n for n, found in commits if any(isinstance(a, Metadata) for a in found)]
        if not changes:
            return self._snapshot.metadata
        if changes[0] == version + 1:
            first = next(a for a in commits[0][1] if isinstance(a, Metadata))
            # What partition values meant before must be known: see `moves_files`.
            if not first.partition_columns:
                return first
        return self._before(version).metadata

    def _domains_before(
        self, commits: list[tuple[int, tuple[Action, ...]]], version: int, name: str
    ) -> Iterable[DomainMetadata]:
        """The domains until a commit states the one of a name; none where the first one does."""
        changes = [n for n, found in commits if any(_states(a, name) for a in found)]
        if changes[:1] == [version + 1]:
            return ()
        state = self._before(version) if changes else self._snapshot
        return state.domains.values()

    def _before(self, version: int) -> Snapshot:
        """The table as the metadata shows it, which may be older than the log."""
        try:
            return self._at(version)
        except TwinlakeError as error:
            if error.code is not Code.VERSION_NOT_FOUND:
                raise
            raise LogGap(f"the log does not hold version {version} any more") from error

    def _at(self, version: int) -> Snapshot:
        is_newest = version == self._snapshot.version
        return self._snapshot if is_newest else load_snapshot(self._store, version)

    def _read(self, version: int) -> tuple[Action, ...]:
        try:
            if version not in self._commits:
                self._commits[version] = read_commit(self._store, version)
            return self._commits[version]
        except StorageError as error:
            if error.code is Code.STORAGE_NOT_FOUND:
                raise LogGap(f"the log does not hold version {version} any more") from error
            raise

    def _timestamp(self, version: int, metadata: Metadata, info: CommitInfo | None) -> int:
        if metadata.flag(keys.ENABLE_IN_COMMIT_TIMESTAMPS) and info is not None:
            stamp = info.in_commit_timestamp
            if stamp is not None:
                return stamp
        found = self._head(version)
        return 0 if found is None else found.modified_ms

    def _head(self, version: int) -> ObjectMeta | None:
        if version not in self._heads:
            self._heads[version] = self._store.head(commit_key(version))
        return self._heads[version]


def _engine(info: CommitInfo | None) -> str:
    """The name in front of the version, as in ``Apache-Spark/4.1.4 Delta-Lake/4.4.0``."""
    known = info.engine_info if info is not None else None
    return (known or "").partition("/")[0]


def _states(action: Action, domain: str) -> bool:
    return isinstance(action, DomainMetadata) and action.domain == domain


def _clustering(domains: Iterable[DomainMetadata]) -> Clustering:
    return find_clustering(domains) or Clustering()


def _annotations(domains: Iterable[DomainMetadata]) -> IcebergAnnotations:
    return find_annotations(domains) or NO_ANNOTATIONS


def _row_id_mark(domains: Iterable[DomainMetadata]) -> int | None:
    """The high-water mark of row ids, where one of the domains states it."""
    tracking = find_row_tracking(domain for domain in domains if not domain.removed)
    return None if tracking is None else tracking.high_water_mark
