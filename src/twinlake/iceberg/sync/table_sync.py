"""Bringing the Iceberg side up to the Delta log.

The log is the truth. Metadata that is behind is continued, commit by commit. Metadata that
is lost, damaged, of another table or behind a log that was cleaned up is rebuilt from the oldest
version that both formats still keep. Either way the result is the same.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import msgspec

from twinlake.errors import Code, CompatViolation, CorruptTable, StorageError
from twinlake.iceberg.derive.expiry import SnapshotExpiration, retention_ms, vacuum_horizon
from twinlake.iceberg.derive.iceberg_state import IcebergState
from twinlake.iceberg.derive.snapshot_producer import MissingFile, SnapshotProducer
from twinlake.iceberg.derive.table_layout import layout_of
from twinlake.iceberg.format.manifest import DamagedFile
from twinlake.iceberg.format.partition_spec import PartitionSpec
from twinlake.iceberg.format.table_metadata import table_uuid
from twinlake.iceberg.sync.cleanup import LEFTOVERS, clean_up, only_before, sweep, with_log
from twinlake.iceberg.sync.integrity import IntegrityCheck, find_damage
from twinlake.iceberg.sync.log_reader import LogGap, LogReader
from twinlake.iceberg.sync.manifest_reader import ManifestCache, StoredManifests
from twinlake.iceberg.sync.metadata_cache import METADATA_CACHE, CachedState
from twinlake.iceberg.sync.metadata_files import MetadataFiles
from twinlake.log import load_snapshot
from twinlake.runtime import InProcess, silent

if TYPE_CHECKING:
    from twinlake.iceberg.derive.table_layout import DeltaCommit
    from twinlake.iceberg.format.table_metadata import TableMetadata
    from twinlake.log import Snapshot
    from twinlake.runtime import Executor, Progress
    from twinlake.storage import ObjectMeta

__all__ = ["SyncResult", "sync_table", "synced_version"]

_NEVER: Final = -(1 << 62)
_MARK: Final = "delta-commit"


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncResult:
    """What a sync did."""

    version: int
    """The Delta version the Iceberg side is at."""
    converted: int = 0
    """How many commits were converted."""
    rebuilt: str = ""
    """Why the metadata was rebuilt; empty where it was continued."""
    metadata_location: str


def synced_version(snapshot: Snapshot) -> int | None:
    """The Delta version the Iceberg side is at; None where there is none."""
    return MetadataFiles(snapshot.store).newest()


def sync_table(
    snapshot: Snapshot,
    *,
    executor: Executor | None = None,
    check: IntegrityCheck = IntegrityCheck.SIZES,
    progress: Progress = silent,
) -> SyncResult:
    """Bring the Iceberg side to the version of a snapshot; metadata that is ahead is left alone.

    Raises:
        CompatViolation, CorruptTable: a version has no Iceberg form and none after it mends that;
            the Iceberg side is at the version before it.
    """
    executor = executor or InProcess()
    files = MetadataFiles(snapshot.store)
    source = LogReader(snapshot, files.location, executor, progress)
    # First of all: what is rebuilt after this look is not what is read after it.
    marker = files.rebuild_marker()
    newest = files.newest()
    trust = _trust(check, newest, snapshot.version)
    cached = None if newest is None else _cached_state(files, newest, marker, trust=trust)
    why = _why_rebuild(cached.state if cached else None, newest, snapshot, source)
    if cached is not None and cached.published is None and not why:
        why = find_damage(cached.state, files, check)
    if cached is not None and not why:
        state = cached.state
        if state.metadata.delta_version >= snapshot.version:
            return _unchanged(state, files)
        try:
            return _convert_since(cached, source, files)
        except LogGap as gap:
            why = gap.args[0]
        except MissingFile as lost:
            why = f"no manifest listed {lost.args[0]}"
        except DamagedFile as damaged:
            why = f"{damaged.args[0]} is damaged"
        except msgspec.DecodeError:
            # Snapshots are parsed when they are looked at.
            why = f"{files.metadata_location(state.metadata.delta_version)} is damaged"
        except StorageError as error:
            if error.code is not Code.STORAGE_NOT_FOUND:
                raise
            why = error.what
        except _Mended as mended:
            why = mended.args[0]
    if newest is not None and newest > snapshot.version:
        # The Iceberg side was further than this value: going back to it would lose what came since.
        latest = load_snapshot(snapshot.store)
        if latest.version > snapshot.version:
            snapshot = latest
            source = LogReader(latest, files.location, executor, progress)
    return _rebuild(snapshot, files, source, why, executor)


def _trust(check: IntegrityCheck, newest: int | None, wanted: int) -> bool:
    """Whether what this process has published may be taken as it remembers it."""
    # Whoever asks although there is nothing to convert wants to know whether all is well.
    is_asked = newest is not None and newest >= wanted
    return check is IntegrityCheck.NOTHING or (check is IntegrityCheck.SIZES and not is_asked)


def _cached_state(
    files: MetadataFiles, newest: int, marker: ObjectMeta | None, *, trust: bool
) -> CachedState | None:
    """The newest state; None where it cannot be read."""
    kept = METADATA_CACHE.take(files.store)
    if trust and kept is not None and kept.is_current(files, newest, marker):
        return kept
    state = files.load(newest)
    return (
        None
        if state is None
        else CachedState(state=state, known=ManifestCache(), rebuild_marker=marker)
    )


def _why_rebuild(
    state: IcebergState | None, newest: int | None, snapshot: Snapshot, source: LogReader
) -> str:
    """Why a state cannot be continued."""
    if newest is None:
        return "there was none"
    if state is None:
        return f"that of version {newest} cannot be read"
    wanted = layout_of(snapshot.metadata, state.metadata.location).format_version
    if state.metadata.format_version != wanted:
        return f"the table changed to format version {wanted}"
    mark = source.mark(newest)
    if mark and mark == state.metadata.properties.get(_MARK):
        return ""
    # A table that was replaced by a commit of its own log has another id, too.
    if state.metadata.table_uuid != table_uuid(snapshot.metadata.id):
        return "it was that of another table"
    if mark:
        return f"version {newest} of the log is not the one that was converted"
    return f"the log ends before version {newest}" if newest > snapshot.version else ""


def _unchanged(state: IcebergState, files: MetadataFiles) -> SyncResult:
    version = state.metadata.delta_version
    files.point_to(version)
    return SyncResult(version=version, metadata_location=files.metadata_location(version))


class _Mended(Exception):
    """A version has no Iceberg form, and a later one has: the metadata is rebuilt from there."""


@dataclass(frozen=True, slots=True)
class _Converted:
    """What there is to publish."""

    metadata: TableMetadata
    commits: int
    """How many commits were converted."""
    problem: CompatViolation | CorruptTable | None
    """What the next commit was not converted for."""


def _mended(problem: CompatViolation | CorruptTable, source: LogReader, after: int) -> int | None:
    """The version after the given one that mends a problem; None where none does."""
    try:
        return source.past(problem, after)
    except (CompatViolation, CorruptTable):
        return None


def _convert_since(cached: CachedState, source: LogReader, files: MetadataFiles) -> SyncResult:
    state, before = cached.state, cached.state.metadata
    conversion = SnapshotProducer(state, StoredManifests(files, _specs(state), cached.known))
    done = _convert(conversion, source, files, before.delta_version)
    problem = done.problem
    if problem is not None:
        mended = _mended(problem, source, before.delta_version)
        if mended is not None:
            raise _Mended(f"before version {mended} there is no Iceberg form: {problem.what}")
        if not done.commits:
            raise problem
    metadata = done.metadata
    location = files.metadata_location(before.delta_version)
    metadata, fallen = with_log(metadata, before, location)
    files.publish(metadata)
    clean_up(metadata, fallen, files)
    # The Iceberg side is published: a store that fails now costs the next conversion its reading.
    with contextlib.suppress(StorageError):
        after = IcebergState(metadata=metadata, rows=_reached(conversion).rows)
        METADATA_CACHE.keep(files.store, cached.after_publish(after, files))
    if problem is not None:
        raise problem
    return SyncResult(
        version=metadata.delta_version,
        converted=done.commits,
        metadata_location=files.metadata_location(metadata.delta_version),
    )


def _rebuild(
    snapshot: Snapshot, files: MetadataFiles, source: LogReader, why: str, executor: Executor
) -> SyncResult:
    bad = files.hint()
    start = _oldest(snapshot, source)
    manifests = StoredManifests(files)
    while True:
        try:
            done = _convert_all(start, source, manifests, executor)
        except (CompatViolation, CorruptTable) as first:
            # Without the history up to where it is mended there is metadata all the same.
            start = source.past(first, start)
            continue
        mended = None if done.problem is None else _mended(done.problem, source, start)
        if mended is None:
            break
        start = mended
    metadata = done.metadata
    version = metadata.delta_version
    files.publish(metadata, instead_of=bad)
    files.delete_ahead(version)
    # Whoever read the old metadata does not go on from it after the next look at this mark.
    files.write_rebuild_marker()
    if sweep(metadata, manifests.written, files):
        # Nor who read it while files of it were deleted.
        files.write_rebuild_marker()
    if done.problem is not None:
        raise done.problem
    return SyncResult(
        version=version,
        converted=done.commits + 1,
        rebuilt=why,
        metadata_location=files.metadata_location(version),
    )


def _convert_all(
    start: int, source: LogReader, manifests: StoredManifests, executor: Executor
) -> _Converted:
    """What there is to publish if the first snapshot holds all files of a version."""
    first, adds = source.base(start)
    conversion = SnapshotProducer(None, manifests)
    conversion.begin(first.commit, adds, executor)
    return _convert(conversion, source, manifests.files)


def _convert(
    conversion: SnapshotProducer, source: LogReader, files: MetadataFiles, published: int = -1
) -> _Converted:
    """Convert the commits that are left, up to one that has no Iceberg form.

    ``published`` is the version that there is metadata of.
    """
    before = _reached(conversion).metadata
    horizon, converted, problem = SnapshotExpiration(before), 0, None
    try:
        for version in source.after(before.delta_version):
            commit = _with_free_id(version.commit, before)
            conversion.apply(commit)
            converted += 1
            horizon.move(commit, version.info, before)
            before = _reached(conversion).metadata
    except (CompatViolation, CorruptTable) as error:
        problem = error
    whole = before
    metadata = horizon.expire(whole)
    properties = {**metadata.properties, _MARK: source.mark(metadata.delta_version)}
    # What was made and is too old at once is named by nobody, and nobody would delete it.
    oldest = metadata.oldest
    if oldest is not None and oldest.sequence_number > published:
        made = (one for one in whole.snapshots() if one.sequence_number > published)
        if left := only_before(oldest, made, files):
            properties[LEFTOVERS] = "\n".join(left)
    metadata = msgspec.structs.replace(metadata, properties=properties)
    return _Converted(metadata, converted, problem)


def _with_free_id(commit: DeltaCommit, metadata: TableMetadata) -> DeltaCommit:
    """The commit, without an id of its own where an earlier snapshot has that id already."""
    own = commit.snapshot_id
    return replace(commit, snapshot_id=None) if own and metadata.has_snapshot(own) else commit


def _reached(conversion: SnapshotProducer) -> IcebergState:
    if conversion.state is None:
        raise AssertionError("nothing was converted")
    return conversion.state


def _specs(state: IcebergState) -> dict[int, PartitionSpec]:
    """The specs that manifests of a state may lie under."""
    current = state.metadata.current_schema_id
    schemas = sorted(state.metadata.schemas, key=lambda one: one["schema-id"] == current)
    found = (PartitionSpec.from_dict(one, schemas) for one in state.metadata.partition_specs)
    return {spec.id: spec for spec in found if spec is not None}


def _oldest(snapshot: Snapshot, source: LogReader) -> int:
    """The oldest version that can be read, that VACUUM left whole, and that Iceberg can have."""
    times = source.times
    horizon = snapshot.timestamp_ms - retention_ms(snapshot.metadata)
    for version in times.versions:
        own = vacuum_horizon(times.info(version), times.time(version))
        horizon = max(horizon, _NEVER if own is None else own)
    found = times.newest_at(horizon)
    start = times.versions.start if found is None else found
    # A commit without files makes no snapshot: the one before it is the newest at that time.
    while start > times.versions.start and not source.has_files(start):
        start -= 1
    return source.first_convertible(start)
