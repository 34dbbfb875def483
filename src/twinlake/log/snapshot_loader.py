"""Snapshots from the store: load, bring up to date, and a cache for the process."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from twinlake.actions import CommitInfo, Metadata, Protocol, decode_whole_commit
from twinlake.errors import Code, CorruptTable, StorageError, TwinlakeError
from twinlake.log.counters import Counters, LiveFiles
from twinlake.log.listing import LogSegment, find_segment
from twinlake.log.names import LOG_FOLDER, LogFile, LogFileKind, commit_key, parse_log_file
from twinlake.log.paths.canonical import CanonicalPaths
from twinlake.log.snapshot import Snapshot, check_complete

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from twinlake.actions import Action, AddFile, DomainMetadata, SetTransaction
    from twinlake.log.checkpoint.reader import CheckpointState
    from twinlake.log.commit_decoder import CommitColumns
    from twinlake.log.reconcile import FileState, Reconciled
    from twinlake.storage import Store

__all__ = [
    "SnapshotCache",
    "first_snapshot",
    "has_table",
    "load_snapshot",
    "snapshot_of_files",
    "update_snapshot",
]

_LOGGER: Final = logging.getLogger("twinlake.log")
_TABLE_KINDS: Final = frozenset(
    {LogFileKind.COMMIT, LogFileKind.CLASSIC, LogFileKind.MULTIPART, LogFileKind.UUID}
)


def load_snapshot(store: Store, version: int | None = None) -> Snapshot:
    """The snapshot of a version, or of the latest one, from the log alone.

    An unreadable checkpoint is passed over as long as the commits reach further back.
    """
    damaged: frozenset[str] = frozenset()
    first_failure: CorruptTable | None = None
    tried: LogSegment | None = None
    while True:
        try:
            segment = find_segment(store, version, damaged=damaged)
        except TwinlakeError:
            if first_failure is not None:
                raise first_failure from None
            raise
        try:
            return _load(store, segment)
        except CorruptTable as error:
            if error.code != Code.CHECKPOINT_CORRUPT or segment.checkpoint is None:
                raise
            _LOGGER.warning("%s An earlier checkpoint or the commits are read instead.", error.what)
            first_failure = first_failure or error
            damaged |= {file.key for file in segment.checkpoint.files}
        except StorageError as error:
            # What was listed is gone: a cleanup came in between, and what stands for it is there.
            if error.code != Code.STORAGE_NOT_FOUND or segment == tried:
                raise
            tried = segment


def _load(store: Store, segment: LogSegment) -> Snapshot:
    from twinlake.log.checkpoint.reader import CheckpointState, read_checkpoint
    from twinlake.log.checksum import stated_counters

    base = (
        CheckpointState()
        if segment.checkpoint is None
        else read_checkpoint(store, segment.checkpoint)
    )
    protocol, metadata = base.protocol, base.metadata
    transactions: dict[str, SetTransaction] = dict(base.set_transactions)
    domains: dict[str, DomainMetadata] = dict(base.domains)
    commits: list[CommitColumns] = []
    for commit in _commits(store, segment):
        protocol = commit.protocol or protocol
        metadata = commit.metadata or metadata
        transactions |= commit.set_transactions
        domains |= commit.domains
        if commit.adds or commit.removes:
            commits.append(commit)
    protocol, metadata = check_complete(segment.version, protocol, metadata)
    return Snapshot(
        store=store,
        version=segment.version,
        protocol=protocol,
        metadata=metadata,
        set_transactions=transactions,
        domains={name: d for name, d in domains.items() if not d.removed},
        state=_state(store, segment, base, metadata, tuple(commits)),
        checkpoint=segment.checkpoint,
        modified_ms=segment.modified_ms,
        stated=stated_counters if segment.version in segment.checksums else None,
    )


def _state(
    store: Store,
    segment: LogSegment,
    base: CheckpointState,
    metadata: Metadata,
    commits: tuple[CommitColumns, ...],
) -> FileState:
    """The files, none of which is read from the checkpoint before somebody asks."""
    from twinlake.log.reconcile import FileState, Reconciled

    checkpoint = segment.checkpoint
    if checkpoint is None:
        return FileState.of(Reconciled.empty, Reconciled.empty, store.url, commits)

    def load(*, typed: bool) -> Reconciled:
        from twinlake.log.checkpoint.reader import read_files
        from twinlake.log.typed_files import TypedFiles

        make = TypedFiles(metadata).batch if typed else None
        try:
            return read_files(store, checkpoint, base, typed=make)
        except CorruptTable as error:
            damaged = frozenset(file.key for file in checkpoint.files)
            try:
                older = _load(store, find_segment(store, checkpoint.version, damaged=damaged))
            except TwinlakeError:
                raise error from None
            _LOGGER.warning(
                "%s An earlier checkpoint or the commits are read instead: %s",
                error.what,
                error.why,
            )
            return older.state.raw()

    return FileState.of(lambda: load(typed=False), lambda: load(typed=True), store.url, commits)


def _commits(store: Store, segment: LogSegment) -> Iterator[CommitColumns]:
    """The commits after the checkpoint, a compaction file in place of a run of them."""
    from twinlake.log.commit_decoder import decode_commit

    best: dict[int, LogFile] = {}
    for item in segment.compactions:
        if item.version not in best or item.end_version > best[item.version].end_version:
            best[item.version] = item
    position = 0
    while position < len(segment.commits):
        commit = segment.commits[position]
        compaction = best.get(commit.version)
        if compaction is not None:
            columns = _read_compaction(store, compaction)
            if columns is None:
                best.pop(commit.version)
                continue
            yield columns
            position += compaction.end_version - compaction.version + 1
            continue
        yield decode_commit(store.read(commit.key), commit.version, commit.key)
        position += 1


def _read_compaction(store: Store, file: LogFile) -> CommitColumns | None:
    """What a compaction file says; None if it cannot be trusted, and its commits are to be read."""
    import pyarrow as pa

    from twinlake.log.columns import ADD_SCHEMA, REMOVE_SCHEMA
    from twinlake.log.commit_decoder import decode_commit
    from twinlake.log.reconcile import check_reconciled

    try:
        # Its actions count as those of its last version: newer ones come after.
        columns = decode_commit(store.read(file.key), file.end_version, file.key)
        check_reconciled(
            pa.Table.from_batches(columns.adds, ADD_SCHEMA),
            pa.Table.from_batches(columns.removes, REMOVE_SCHEMA),
            CanonicalPaths.of(store.url),
        )
    except StorageError:
        return None
    except (CorruptTable, ValueError) as error:
        why = error.why if isinstance(error, CorruptTable) else error
        _LOGGER.warning("The compaction file %s is not used: %s.", file.key, why)
        return None
    columns.compacted = True
    return columns


def update_snapshot(snapshot: Snapshot) -> Snapshot:
    """The latest snapshot, from an earlier one: only the new commits are read.

    Versions are contiguous, so asking for the next name until it is missing finds them all
    without a listing. If the commit of ``snapshot`` itself is gone or another, the table was
    cleaned up or replaced, and everything is read again.
    """
    store = snapshot.store
    current = snapshot
    while True:
        key = commit_key(current.version + 1)
        try:
            data = store.read(key)
        except StorageError as error:
            if error.code != Code.STORAGE_NOT_FOUND:
                raise
            # Only now: a cleanup deletes upwards, so while our own commit is there, the next one
            # is not written yet, rather than deleted under our eyes.
            return current if current.is_still_there() else load_snapshot(store)
        if current is snapshot and not snapshot.is_still_there():
            return load_snapshot(store)
        actions = decode_whole_commit(data, source=key)
        modified = None if _is_named(actions) else store.head(key)
        current = current.advance(
            current.version + 1,
            actions,
            modified_ms=modified.modified_ms if modified is not None else None,
        )


def first_snapshot(store: Store, actions: Sequence[Action]) -> Snapshot:
    """The snapshot of version 0 from its own commit; nothing is read."""
    protocol, metadata = check_complete(
        0,
        next((action for action in actions if isinstance(action, Protocol)), None),
        next((action for action in actions if isinstance(action, Metadata)), None),
    )
    return _empty(store, -1, protocol, metadata).advance(0, actions)


def snapshot_of_files(base: Snapshot, metadata: Metadata, adds: Sequence[AddFile]) -> Snapshot:
    """A snapshot of the same table that has just these files; nothing is read."""
    return _empty(base.store, base.version - 1, base.protocol, metadata).advance(base.version, adds)


def _empty(store: Store, version: int, protocol: Protocol, metadata: Metadata) -> Snapshot:
    from twinlake.log.reconcile import FileState, Reconciled

    return Snapshot(
        store=store,
        version=version,
        protocol=protocol,
        metadata=metadata,
        set_transactions={},
        domains={},
        state=FileState.of(Reconciled.empty, Reconciled.empty, store.url),
        counters=Counters(0, 0, 0, 0),
        live=LiveFiles(CanonicalPaths.of(store.url)),
    )


def has_table(store: Store) -> bool:
    """Whether there is a table, be it one whose first versions were cleaned up."""
    found = (parse_log_file(item.key) for item in store.list_from(LOG_FOLDER))
    return any(item is not None and item.kind in _TABLE_KINDS for item in found)


def _is_named(actions: tuple[Action, ...]) -> bool:
    """Whether the commit has an id to know it by; else only its time tells it from another."""
    return any(isinstance(action, CommitInfo) and action.txn_id for action in actions)


class SnapshotCache:
    """The latest known snapshot of each table of this process, least recently used out first."""

    def __init__(self, capacity: int = 64) -> None:
        self._capacity = capacity
        self._latest: OrderedDict[str, Snapshot] = OrderedDict()
        self._lock = threading.Lock()

    def latest(self, store: Store) -> Snapshot:
        """The latest snapshot, brought up to date from the cached one where there is one."""
        with self._lock:
            cached = self._latest.get(store.url)
        # The caller's store may carry other credentials or another durability than the cached.
        usable = cached is not None and cached.store is store
        fresh = update_snapshot(cached) if usable and cached is not None else load_snapshot(store)
        self.offer(fresh)
        return fresh

    def offer(self, snapshot: Snapshot) -> None:
        """Keep a snapshot unless a newer one of the same table is already there."""
        with self._lock:
            held = self._latest.get(snapshot.store.url)
            same = held is not None and held.metadata.id == snapshot.metadata.id
            if held is None or not same or held.version <= snapshot.version:
                self._latest[snapshot.store.url] = snapshot
            self._latest.move_to_end(snapshot.store.url)
            while len(self._latest) > self._capacity:
                self._latest.popitem(last=False)

    def forget(self, url: str) -> None:
        """Drop a table, for instance because it was deleted."""
        with self._lock:
            self._latest.pop(url, None)


CACHE: Final = SnapshotCache()
"""The cache of the process."""
