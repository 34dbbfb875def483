"""A snapshot: the state of the table at one version, as an immutable value.

It is the only door to a table: reading goes snapshot to files, writing goes snapshot to
transaction to commit.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import astuple
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from twinlake._lazy_exports import lazy_module
from twinlake.actions import (
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    decode_lines,
    decode_whole_commit,
)
from twinlake.errors import Code, CorruptTable, StorageError
from twinlake.log.counters import MAX_TRACKED, Counters, LiveFiles, count_files
from twinlake.log.names import checksum_key, commit_key
from twinlake.log.paths.canonical import CanonicalPaths
from twinlake.protocol import keys
from twinlake.storage import decode_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa
    import pyarrow.compute as pc

    from twinlake.log.listing import Checkpoint
    from twinlake.log.reconcile import FileState
    from twinlake.schema import Struct
    from twinlake.schema.predicates import Expr
    from twinlake.storage import Store
else:
    pa = lazy_module("pyarrow")
    pc = lazy_module("pyarrow.compute")

__all__ = ["Counters", "Snapshot", "count_files", "read_commit", "read_commit_info"]

# commitInfo comes first and names the commit; a commit may be as large as its table.
_BEGINNING: Final = 4096
#: The totals as a checksum file names them.
_STATED: Final = ("numFiles", "tableSizeBytes", "numDeletionVectorsOpt", "numDeletedRecordsOpt")
_LOGGER: Final = logging.getLogger("twinlake.log")


class Snapshot:
    """The table at one version. Files are read and merged only when asked for."""

    def __init__(
        self,
        *,
        store: Store,
        version: int,
        protocol: Protocol,
        metadata: Metadata,
        set_transactions: Mapping[str, SetTransaction],
        domains: Mapping[str, DomainMetadata],
        state: FileState,
        checkpoint: Checkpoint | None = None,
        commit_info: CommitInfo | None = None,
        modified_ms: int | None = None,
        counters: Counters | None = None,
        stated: Callable[[Snapshot], Counters | None] | None = None,
        live: LiveFiles | None = None,
    ) -> None:
        self.store = store
        self.version = version
        self.protocol = protocol
        self.metadata = metadata
        self.set_transactions = set_transactions
        self.domains = domains
        self.checkpoint = checkpoint
        self.state = state
        self._commit_info = commit_info
        self._modified_ms = modified_ms
        self._counters = counters
        self._stated = stated
        self._stated_totals: Counters | None = None
        self._live = live
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"Snapshot({self.store.url!r}, version={self.version})"

    @property
    def label(self) -> str:
        """What reports call the table: its name, or the path that commands take."""
        url = self.store.url
        return self.metadata.name or (decode_path(url[7:]) if url.startswith("file:///") else url)

    @property
    def paths(self) -> CanonicalPaths:
        """The canonical forms of the paths in this table's log."""
        return CanonicalPaths.of(self.store.url)

    @property
    def schema(self) -> Struct:
        """The table's schema."""
        return self.metadata.schema

    @property
    def commit_info(self) -> CommitInfo | None:
        """What the commit of this version says of itself; None if it is gone or says nothing."""
        with self._lock:
            if self._commit_info is None:
                self._commit_info = read_commit_info(self.store, self.version)
            return self._commit_info

    @property
    def in_commit_timestamp(self) -> int | None:
        """The commit's own time, where the table keeps in-commit timestamps."""
        if not self.metadata.flag(keys.ENABLE_IN_COMMIT_TIMESTAMPS):
            return None
        info = self.commit_info
        return info.in_commit_timestamp if info is not None else None

    @property
    def modified_ms(self) -> int:
        """When the store says the commit was written; 0 if the commit is gone."""
        with self._lock:
            if self._modified_ms is None:
                meta = self.store.head(commit_key(self.version))
                self._modified_ms = meta.modified_ms if meta is not None else 0
            return self._modified_ms

    def is_still_there(self) -> bool:
        """Whether the commit of this version is the one this snapshot was made from."""
        with self._lock:
            known = self._commit_info.txn_id if self._commit_info is not None else None
            if self._modified_ms is None and known:
                # Its time was never asked for, but its id is known, which says even more.
                return self._is_named(known)
            meta = self.store.head(commit_key(self.version))
            return meta is not None and _is_same_time(meta.modified_ms, self.modified_ms)

    def _is_named(self, txn_id: str) -> bool:
        try:
            start = self.store.read_range(commit_key(self.version), 0, _BEGINNING)
        except StorageError as error:
            if error.code == Code.STORAGE_NOT_FOUND:
                return False
            raise
        if txn_id.encode() in start:
            return True
        found = read_commit_info(self.store, self.version)
        return found is not None and found.txn_id == txn_id

    @property
    def timestamp_ms(self) -> int:
        """The time of this version, as time travel sees it."""
        return self.in_commit_timestamp or self.modified_ms

    @property
    def counters(self) -> Counters:
        """Totals; computed from the files once, then carried along."""
        with self._lock:
            if self._counters is None:
                loaded = self.state.is_raw_loaded
                self._take_count(count_files(self.add_files() if loaded else self._view))
                assert self._counters is not None
            return self._counters

    def _take_count(self, counted: Counters) -> None:
        """From now on the totals are those of the files themselves."""
        stated, self._stated_totals = self._stated_totals, None
        self._counters = counted
        if stated is not None and stated != counted:
            self.warn_of_checksum(
                f"{name} is {found} in the log and {told} in the file"
                for name, told, found in zip(
                    _STATED, astuple(stated), astuple(counted), strict=True
                )
                if told != found
            )

    def warn_of_checksum(self, differences: Iterable[str]) -> None:
        """Log that the checksum file of this version contradicts it."""
        _LOGGER.warning(
            "The checksum file %s of %s contradicts the log and is not used: %s.",
            checksum_key(self.version),
            self.store.url,
            "; ".join(differences),
        )

    @property
    def known_counters(self) -> Counters | None:
        """The totals if they are known without looking at the files.

        A checksum file of exactly this version will do, if it speaks of this very table.
        """
        with self._lock:
            if self._counters is None and self._stated is not None:
                self._counters, self._stated = self._stated(self), None
                self._stated_totals = self._counters
            return self._counters

    @property
    def num_files(self) -> int:
        """How many files are live."""
        return self.counters.num_files

    @property
    def size_in_bytes(self) -> int:
        """The size of the live files together."""
        return self.counters.size_in_bytes

    def add_files(self) -> pa.Table:
        """The live files in the raw layout: physical names, statistics as JSON text."""
        return self.state.raw().adds

    def tombstones(self) -> pa.Table:
        """The removed files the log still remembers, in the raw layout."""
        return self.state.raw().removes

    @cached_property
    def _view(self) -> pa.Table:
        from twinlake.log.file_view import view_files
        from twinlake.log.paths.check import check_paths
        from twinlake.log.typed_files import TypedFiles

        files = self.state.typed(TypedFiles(self.metadata))
        adds = files.adds
        check_paths(adds["path"], canonical=files.canonical)
        with self._lock:
            # Carried counters believe every add to be new and every remove to hit; now we know.
            self._take_count(count_files(adds))
        return view_files(adds, self.metadata)

    def files(self, where: str | Expr | None = None) -> pa.Table:
        """The live files that may hold rows matching ``where``, with statistics as columns."""
        return self._view if where is None else self._view.filter(self._mask(where))

    def adds(self, where: str | Expr | None = None) -> Iterator[AddFile]:
        """The live files as actions, as they would be committed again."""
        from twinlake.log.columns import adds_from
        from twinlake.log.paths.check import check_paths
        from twinlake.log.stats.parsed import with_json_stats

        raw = self.add_files()
        check_paths(raw["path"], canonical=self.state.raw().canonical)
        wanted = raw if where is None else raw.filter(self._mask(where))
        return adds_from(with_json_stats(wanted))

    def files_to_read(self, where: str | Expr | None = None) -> Iterator[AddFile]:
        """The files that may hold rows matching ``where``, as actions without statistics.

        Reading takes only the typed layout, of which a large table has far less in memory.
        """
        from twinlake.log.columns import adds_from
        from twinlake.log.typed_files import TypedFiles

        mask = None if where is None else self._mask(where)
        len(self._view)  # its paths are checked
        files = self.state.typed(TypedFiles(self.metadata)).adds.drop_columns(["stats_parsed"])
        wanted = files if mask is None else files.filter(mask)
        return adds_from(wanted.append_column("stats", pa.nulls(len(wanted), pa.string())))

    def _mask(self, where: str | Expr) -> Any:
        from twinlake.log.file_view import file_stats
        from twinlake.schema.predicates import parse_predicate, prune

        expr = parse_predicate(where, self.schema) if isinstance(where, str) else where
        return prune(expr, file_stats(self._view))

    def live_files(self, paths: Iterable[str]) -> dict[str, AddFile]:
        """The live files among ``paths``, which are spelled as the log spells them."""
        from twinlake.log.columns import adds_from
        from twinlake.log.stats.parsed import with_json_stats

        wanted = pa.array(list(paths), pa.string())
        raw = self.add_files()
        found = raw.filter(pc.is_in(raw["path"], value_set=wanted))
        return {add.path: add for add in adds_from(with_json_stats(found))}

    def advance(
        self, version: int, actions: Sequence[Action], *, modified_ms: int | None = None
    ) -> Snapshot:
        """The snapshot one commit later; costs what the commit holds, not what the table holds."""
        from twinlake.log.commit_decoder import check_once
        from twinlake.log.reconcile import columns_of_actions

        source = commit_key(version)
        protocol: Protocol | None = None
        metadata: Metadata | None = None
        info: CommitInfo | None = None
        transactions = dict[str, SetTransaction]()
        domains = dict[str, DomainMetadata]()
        for action in actions:
            match action:
                case Protocol():
                    check_once(protocol, "protocol", source)
                    protocol = action
                case Metadata():
                    check_once(metadata, "metaData", source)
                    metadata = action
                case SetTransaction():
                    transactions[action.app_id] = action
                case DomainMetadata():
                    domains[action.domain] = action
                case CommitInfo():
                    info = action
                case _:
                    pass
        live, counters = self._totals_after(actions)
        return Snapshot(
            store=self.store,
            version=version,
            protocol=protocol or self.protocol,
            metadata=metadata or self.metadata,
            set_transactions={**self.set_transactions, **transactions}
            if transactions
            else self.set_transactions,
            domains=_live_domains({**self.domains, **domains}) if domains else self.domains,
            state=self.state.advance(columns_of_actions(version, actions)),
            checkpoint=self.checkpoint,
            commit_info=info,
            modified_ms=modified_ms,
            counters=counters,
            live=live,
        )

    def _totals_after(self, actions: Sequence[Action]) -> tuple[LiveFiles | None, Counters | None]:
        """What is known of the files one commit later; no file is read for it."""
        known = self.known_counters
        if known is None:
            return None, None
        with self._lock:
            live = self._live
            if not any(isinstance(action, AddFile | RemoveFile) for action in actions):
                return live, known
            if live is not None and (exact := live.after(actions, known)) is not None:
                return exact
            files = self._few_in_memory(known)
        if files is not None:
            exact = LiveFiles.of(files, self.paths).after(actions, count_files(files))
            if exact is not None:
                return exact
        return None, known.after(actions)

    def _few_in_memory(self, known: Counters) -> pa.Table | None:
        """The files, if they are in memory and few enough to be known one by one."""
        if known.num_files > MAX_TRACKED:
            return None
        if self.state.is_raw_loaded:
            return self.add_files()
        if "_view" in self.__dict__:
            from twinlake.log.typed_files import TypedFiles

            return self.state.typed(TypedFiles(self.metadata)).adds
        return None


def _is_same_time(one: int, other: int) -> bool:
    """Whether two times of one object agree; asked by name, some stores tell only the second."""
    whole = one % 1000 == 0 or other % 1000 == 0
    return one == other or (whole and one // 1000 == other // 1000)


def _live_domains(domains: Mapping[str, DomainMetadata]) -> dict[str, DomainMetadata]:
    return {name: domain for name, domain in domains.items() if not domain.removed}


def read_commit(store: Store, version: int) -> tuple[Action, ...]:
    """The actions of one commit, nothing lost."""
    key = commit_key(version)
    return decode_whole_commit(store.read(key), source=key)


def read_commit_info(store: Store, version: int) -> CommitInfo | None:
    """The commitInfo of a version, or None if the commit is gone or has none."""
    try:
        data = store.read(commit_key(version))
    except StorageError as error:
        if error.code == Code.STORAGE_NOT_FOUND:
            return None
        raise
    # It is the first line wherever twinlake or Delta wrote it; others may put it anywhere.
    lines = [line for line in data.split(b"\n") if b'"commitInfo"' in line]
    for action in decode_lines(b"\n".join(lines), source=commit_key(version)):
        if isinstance(action, CommitInfo):
            return action
    return None


def check_complete(
    version: int, protocol: Protocol | None, metadata: Metadata | None
) -> tuple[Protocol, Metadata]:
    """The two actions no table can be without."""
    missing = [
        name for name, value in (("protocol", protocol), ("metaData", metadata)) if value is None
    ]
    if protocol is None or metadata is None:
        raise CorruptTable(
            Code.LOG_CORRUPT,
            f"The log up to version {version} holds no {' and no '.join(missing)} action.",
            why="version 0 of every Delta table sets both",
            fix="Restore the missing commits from a backup.",
            delta_class="DELTA_STATE_RECOVER_ERROR",
            fields={"missing": missing, "version": version},
        )
    return protocol, metadata
