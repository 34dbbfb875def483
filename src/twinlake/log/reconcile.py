"""Which files are live: action reconciliation over columns.

Newest reference to a key (path and deletion-vector id) wins; an add that wins is live, a remove
that wins is a tombstone (Delta protocol, Action Reconciliation). The state is a large reconciled
base and the few commits since: one more commit costs what the commit holds, not what the table
holds, and the two are brought together only when somebody asks for the files.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from twinlake.actions import AddFile, RemoveFile
from twinlake.errors import Code, CorruptTable
from twinlake.log.columns import ADD_SCHEMA, REMOVE_SCHEMA, add_batch, file_keys, remove_batch
from twinlake.log.commit_decoder import CommitColumns
from twinlake.log.paths.canonical import CanonicalPaths
from twinlake.log.paths.columns import are_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from twinlake.actions import Action

__all__ = [
    "FileState",
    "Layers",
    "Reconciled",
    "TypedLayout",
    "check_reconciled",
    "columns_of_actions",
    "fold",
    "overlay",
    "reconciled_file",
]


@dataclass(frozen=True, slots=True)
class Reconciled:
    """Live files and tombstones, in the raw layout."""

    adds: pa.Table
    removes: pa.Table
    canonical: bool = False
    """Whether every path is known to be its own key, so that nobody has to look again."""

    @staticmethod
    def empty() -> Reconciled:
        """The state before the first commit."""
        return Reconciled(ADD_SCHEMA.empty_table(), REMOVE_SCHEMA.empty_table(), canonical=True)


def reconciled_file(adds: pa.Table, removes: pa.Table, paths: CanonicalPaths) -> Reconciled:
    """What a compaction file or a checkpoint holds, if it is reconciled."""
    canonical = _are_canonical(adds, removes)
    check_reconciled(adds, removes, None if canonical else paths)
    return Reconciled(adds, removes, canonical=canonical)


def _are_canonical(*tables: pa.Table) -> bool:
    return all(are_keys(table["path"]) and not _has_vector_paths(table) for table in tables)


def _has_vector_paths(table: pa.Table) -> bool:
    """Whether a deletion vector is named by a path, which has spellings too."""
    if not _has_vectors(table):
        return False
    kind = pc.struct_field(table["deletion_vector"], "storage_type")
    return bool(pc.any(pc.equal(kind, "p")).as_py())


def check_reconciled(adds: pa.Table, removes: pa.Table, paths: CanonicalPaths | None) -> None:
    """Raise ``ValueError`` unless every key is named by one action, add or remove.

    So it is in compaction files and checkpoints (Delta protocol, Action Reconciliation). Which of
    two actions would count depends on who reads them.
    """
    keys = _keys_of(adds, removes, paths)
    if len(keys.unique()) == len(keys):
        return
    counted = pc.value_counts(keys)
    twice = counted.filter(pc.greater(counted.field("counts"), 1)).field("values")
    path = twice[0].as_py().partition("\x00")[0]
    raise ValueError(f"it names {len(twice)} file(s) in more than one action: {path}")


def columns_of_actions(version: int, actions: Sequence[Action]) -> CommitColumns:
    """The file actions of one commit as columns."""
    adds = [a for a in actions if isinstance(a, AddFile)]
    removes = [r for r in actions if isinstance(r, RemoveFile)]
    return CommitColumns(
        version,
        adds=[add_batch(adds)] if adds else [],
        removes=[remove_batch(removes)] if removes else [],
    )


def fold(
    commits: Sequence[CommitColumns], paths: CanonicalPaths, typed: TypedLayout | None = None
) -> Reconciled:
    """The commits (ascending) reconciled among themselves, raw or typed."""
    # Order numbers are version * 2 (removes) and version * 2 + 1 (adds): should one commit both
    # remove and add a key, which is not legal, the row that would otherwise vanish stays.
    adds, add_order = _gather([(c.version * 2 + 1, b) for c in commits for b in c.adds], ADD_SCHEMA)
    removes, remove_order = _gather(
        [(c.version * 2, b) for c in commits for b in c.removes], REMOVE_SCHEMA
    )
    canonical = _are_canonical(adds, removes)
    odd = None if canonical else paths
    keys = _keys_of(adds, removes, odd)
    names = pc.dictionary_encode(keys)
    distinct = len(names.chunk(0).dictionary) if names.num_chunks else 0
    repeated = distinct < len(keys)
    if repeated or _has_vectors(adds) or _has_vectors(removes):
        compacted = frozenset(c.version for c in commits if c.compacted)
        _check_once_a_commit(adds, odd, add_order, "add", compacted)
        _check_once_a_commit(removes, odd, remove_order, "remove", compacted)
    if not repeated:
        return Reconciled(adds if typed is None else typed.adds(adds), removes, canonical)
    order = pa.chunked_array([*add_order.chunks, *remove_order.chunks], pa.int64())
    wins = _is_newest(pa.chunked_array([c.indices for c in names.chunks]), order, distinct)
    live = wins.slice(0, len(adds))
    return Reconciled(
        adds.filter(live) if typed is None else typed.adds(adds, live),
        removes.filter(wins.slice(len(adds))),
        canonical,
    )


def overlay(base: Reconciled, newer: Reconciled, paths: CanonicalPaths) -> Reconciled:
    """The base with newer files on top: whatever the newer ones name replaces what was there."""
    if not len(newer.adds) and not len(newer.removes):
        return base
    if not len(base.adds) and not len(base.removes):
        return newer
    touched = _keys_of(newer.adds, newer.removes, None if newer.canonical else paths)
    odd = None if base.canonical else paths
    adds = [_without(base.adds, touched, odd), newer.adds]
    return Reconciled(
        pa.concat_tables(adds, promote_options="default"),
        pa.concat_tables([_without(base.removes, touched, odd), newer.removes]),
        canonical=base.canonical and newer.canonical,
    )


def _keys_of(adds: pa.Table, removes: pa.Table, paths: CanonicalPaths | None) -> pa.ChunkedArray:
    chunks = [*file_keys(adds, paths).chunks, *file_keys(removes, paths).chunks]
    return pa.chunked_array(chunks, pa.string())


def _gather(
    batches: list[tuple[int, pa.RecordBatch]], schema: pa.Schema
) -> tuple[pa.Table, pa.ChunkedArray]:
    order = [pa.repeat(pa.scalar(number, pa.int64()), len(batch)) for number, batch in batches]
    if not batches:
        return schema.empty_table(), pa.chunked_array(order, pa.int64())
    return pa.Table.from_batches([b for _, b in batches]), pa.chunked_array(order, pa.int64())


def _is_newest(keys: pa.ChunkedArray, order: pa.ChunkedArray, distinct: int) -> pa.BooleanArray:
    """Which rows are the newest of their key; keys are numbered from 0."""
    # Not by grouping: that loads Arrow's query engine, which costs more memory than many a table.
    newest_first = pc.sort_indices(order, sort_keys=[("", "descending")])
    # A lookup answers with the first place of a value, so with its newest row.
    first = pc.index_in(pa.arange(0, distinct), value_set=keys.take(newest_first).cast(pa.int64()))
    return pc.is_in(pa.arange(0, len(keys)), value_set=newest_first.take(first).cast(pa.int64()))


def _has_vectors(table: pa.Table) -> bool:
    vectors = table["deletion_vector"]
    return bool(vectors.null_count < len(vectors))


def _without(table: pa.Table, touched: pa.ChunkedArray, paths: CanonicalPaths | None) -> pa.Table:
    if not len(table):
        return table
    gone = pc.is_in(file_keys(table, paths), value_set=touched)
    return table.filter(pc.invert(gone)) if pc.any(gone).as_py() else table


def _check_once_a_commit(
    table: pa.Table,
    paths: CanonicalPaths | None,
    order: pa.ChunkedArray,
    name: str,
    compacted: frozenset[int],
) -> None:
    names = table["path"] if paths is None else paths.keys(table["path"])
    if not len(table) or pc.count_distinct(names).as_py() == len(table):
        return
    within = pc.binary_join_element_wise(names, pc.cast(order, pa.string()), "\x00")
    if pc.count_distinct(within).as_py() == len(table):
        return
    pairs = pa.table({"path": names, "order": order})
    counts = pairs.group_by(["path", "order"], use_threads=False).aggregate([([], "count_all")])
    twice = counts.filter(pc.greater(counts["count_all"], 1))
    if compacted and len(twice):
        runs = pa.array([order // 2 in compacted for order in twice["order"].to_pylist()])
        twice = twice.filter(pc.invert(runs))
    if len(twice):
        path, version = twice["path"][0].as_py(), twice["order"][0].as_py() // 2
        raise CorruptTable(
            Code.LOG_CORRUPT,
            f"Commit {version} holds {len(twice)} path(s) in more than one {name} action: {path}",
            why=f"a commit may {name} a path at most once (Delta protocol, Actions)",
            fix="Restore the commit from a backup.",
            fields={"version": version, "path": path, "action": name},
        )


class _Once:
    """A base that is read on first use and then shared by every snapshot made from it."""

    def __init__(self, load: Callable[[], Reconciled]) -> None:
        self._load: Callable[[], Reconciled] | None = load
        self._loaded: Reconciled | None = None
        self._lock = threading.Lock()

    @property
    def is_loaded(self) -> bool:
        return self._loaded is not None

    def get(self) -> Reconciled:
        with self._lock:
            if self._loaded is None:
                assert self._load is not None
                self._loaded, self._load = self._load(), None
            return self._loaded


class Layers:
    """A reconciled base and the commits not yet applied to it."""

    def __init__(
        self,
        load: Callable[[], Reconciled],
        paths: CanonicalPaths,
        pending: tuple[CommitColumns, ...] = (),
    ) -> None:
        self._base = _Once(load)
        self._paths = paths
        self._pending = pending
        self._lock = threading.Lock()

    @property
    def paths(self) -> CanonicalPaths:
        """The canonical forms of the table's paths."""
        return self._paths

    @property
    def is_loaded(self) -> bool:
        """Whether asking for the files reads nothing from the store."""
        return self._base.is_loaded

    @property
    def has_odd_paths(self) -> bool:
        """Whether the base is in memory and not all of its paths are their own keys."""
        # The commits on top are not looked at: that would be paid for by every commit.
        base = self._base
        return base.is_loaded and not base.get().canonical

    def advance(self, commit: CommitColumns) -> Layers:
        """The layers one commit later; nothing is read or merged yet."""
        later = Layers.__new__(Layers)
        later._lock = threading.Lock()
        later._paths = self._paths
        with self._lock:
            later._base, later._pending = self._base, self._pending
        if commit.adds or commit.removes:
            later._pending = (*later._pending, commit)
        return later

    def reconciled(self, typed: TypedLayout | None = None) -> Reconciled:
        """The files; the first call pays for reading and merging."""
        with self._lock:
            base = self._base.get()
            if typed is not None:
                base = typed.conform(base)
            if self._pending:
                base = overlay(base, fold(self._pending, self._paths, typed), self._paths)
                self._pending = ()
                self._base = _Once(lambda: base)
                self._base.get()  # so that it counts as loaded
            return base


class TypedLayout(Protocol):
    """Turns files into the typed layout of one schema: statistics typed instead of as text."""

    def adds(self, raw: pa.Table, live: pa.BooleanArray | None = None) -> pa.Table:
        """The raw adds that are live (all, unless told) in the typed layout."""
        ...

    def conform(self, files: Reconciled) -> Reconciled:
        """Raw files, or files typed under an earlier schema, in this typed layout."""
        ...


class FileState:
    """The files of one version, raw (for writing them again) and typed (for planning reads).

    Raw keeps the statistics as the text the log has, typed as typed columns. They are loaded apart:
    of a large table the text is most of the memory, and reading never needs it.
    """

    def __init__(self, raw: Layers, typed: Layers) -> None:
        self._raw = raw
        self._typed = typed

    @staticmethod
    def of(
        load: Callable[[], Reconciled],
        load_typed: Callable[[], Reconciled],
        root: str,
        pending: tuple[CommitColumns, ...] = (),
    ) -> FileState:
        """State whose base is read by ``load`` (raw) or ``load_typed`` when first needed."""
        paths = CanonicalPaths.of(root)
        return FileState(Layers(load, paths, pending), Layers(load_typed, paths, pending))

    @property
    def is_raw_loaded(self) -> bool:
        """Whether the raw layout is in memory."""
        return self._raw.is_loaded

    @property
    def has_odd_paths(self) -> bool:
        """Whether files are known to be spelled otherwise than usual; nothing is read or merged."""
        return self._raw.has_odd_paths or self._typed.has_odd_paths

    def advance(self, commit: CommitColumns) -> FileState:
        """The state one commit later; costs what the commit holds."""
        return FileState(self._raw.advance(commit), self._typed.advance(commit))

    def raw(self) -> Reconciled:
        """The files as the log has them."""
        return self._raw.reconciled()

    def typed(self, typed: TypedLayout) -> Reconciled:
        """The files with typed statistics."""
        if not self._typed.is_loaded and self._raw.is_loaded:
            # Nothing to read again; what the base was read from may even be gone by now.
            raw = self._raw
            self._typed = Layers(lambda: typed.conform(raw.reconciled()), raw.paths)
        return self._typed.reconciled(typed)
