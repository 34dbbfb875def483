"""Totals of a version: carried from commit to commit, exact wherever that costs little."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from twinlake._lazy_exports import lazy_module
from twinlake.actions import AddFile, RemoveFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    import pyarrow.compute as pc

    from twinlake.actions import Action
    from twinlake.log.paths.canonical import CanonicalPaths
else:
    pc = lazy_module("pyarrow.compute")

__all__ = ["MAX_TRACKED", "Counters", "LiveFiles", "count_files"]

MAX_TRACKED: Final = 10_000
"""Up to this many live files are known one by one; beyond it a commit's word is taken."""


@dataclass(frozen=True, slots=True)
class Counters:
    """Totals of a version, kept up commit by commit."""

    num_files: int
    size_in_bytes: int
    num_deletion_vectors: int
    num_deleted_records: int

    def after(self, actions: Sequence[Action]) -> Counters | None:
        """The totals after a commit, or None if only a look at the files can tell.

        Every add is taken to be new and every remove to hit; totals below zero show that it was
        not so.
        """
        files = size = vectors = deleted = 0
        for action in actions:
            match action:
                case AddFile() if not action.data_change:
                    # It may refresh a file that is already counted.
                    return None
                case AddFile():
                    sign = 1
                case RemoveFile() if action.size is None:
                    return None
                case RemoveFile():
                    sign = -1
                case _:
                    continue
            files += sign
            size += sign * (action.size or 0)
            if action.deletion_vector is not None:
                vectors += sign
                deleted += sign * action.deletion_vector.cardinality
        return self.moved(files, size, vectors, deleted)

    def moved(self, files: int, size: int, vectors: int, deleted: int) -> Counters | None:
        """The totals with these added, or None if that cannot be."""
        later = Counters(
            self.num_files + files,
            self.size_in_bytes + size,
            self.num_deletion_vectors + vectors,
            self.num_deleted_records + deleted,
        )
        possible = (
            later.num_files >= 0
            and later.size_in_bytes >= 0
            and later.num_deletion_vectors >= 0
            and later.num_deleted_records >= 0
        )
        return later if possible else None


_Files = dict[str, tuple[int, int | None]]


class LiveFiles:
    """The live files of a small table, one by one, so that totals stay exact.

    Snapshots made from one another hand one dictionary on instead of copying it, so a commit
    costs what it holds. Only the newest of them has it: an earlier one that is advanced once more
    gets nothing.
    """

    __slots__ = ("_files", "_lock", "_paths")

    def __init__(self, paths: CanonicalPaths, files: _Files | None = None) -> None:
        self._paths = paths
        self._files: _Files | None = {} if files is None else files
        self._lock = threading.Lock()

    @staticmethod
    def of(adds: pa.Table, paths: CanonicalPaths) -> LiveFiles:
        """Of files in the raw or the typed layout."""
        from twinlake.log.columns import file_keys

        cardinality = pc.struct_field(adds["deletion_vector"], "cardinality").to_pylist()
        sizes = adds["size"].to_pylist()
        keys = file_keys(adds, paths).to_pylist()
        files = dict(zip(keys, zip(sizes, cardinality, strict=True), strict=True))
        return LiveFiles(paths, files)

    def after(
        self, actions: Sequence[Action], totals: Counters
    ) -> tuple[LiveFiles | None, Counters | None] | None:
        """The files and totals after a commit; None if somebody else went on from here already."""
        with self._lock:
            files, self._files = self._files, None
        if files is None:
            return None
        before = [0, 0, 0, 0]
        # As in reconciliation a commit's removes come first.
        for action in actions:
            if isinstance(action, RemoveFile):
                _count(before, files.pop(self._key(action), None), -1)
        for action in actions:
            if isinstance(action, AddFile):
                key = self._key(action)
                _count(before, files.get(key), -1)
                vector = action.deletion_vector
                files[key] = added = (action.size, None if vector is None else vector.cardinality)
                _count(before, added, 1)
        later = LiveFiles(self._paths, files) if len(files) <= MAX_TRACKED else None
        return later, totals.moved(*before)

    def _key(self, action: AddFile | RemoveFile) -> str:
        """The key of a file, as ``file_keys`` spells it."""
        path, vector = self._paths.key(action.path), action.deletion_vector
        return path if vector is None else f"{path}\x00{self._paths.vector_key(vector)}"


def _count(totals: list[int], file: tuple[int, int | None] | None, sign: int) -> None:
    if file is None:
        return
    size, cardinality = file
    totals[0] += sign
    totals[1] += sign * (size or 0)
    if cardinality is not None:
        totals[2] += sign
        totals[3] += sign * cardinality


def count_files(raw: pa.Table) -> Counters:
    """The totals of files in either layout."""
    cardinality = pc.struct_field(raw["deletion_vector"], "cardinality")
    return Counters(
        num_files=len(raw),
        size_in_bytes=pc.sum(raw["size"]).as_py() or 0,
        num_deletion_vectors=len(cardinality) - cardinality.null_count,
        num_deleted_records=pc.sum(cardinality).as_py() or 0,
    )
