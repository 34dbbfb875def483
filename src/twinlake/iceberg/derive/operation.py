"""What a Delta commit does to the set of files, in Iceberg's words.

One Delta commit that changes files is one Iceberg snapshot: its operation, and a summary whose
totals are the parent's plus what was added minus what was removed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from twinlake.actions import AddFile, RemoveFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from twinlake.actions import Action
    from twinlake.log import CanonicalPaths

__all__ = ["FileChanges", "SnapshotOperation", "file_changes", "operation_of", "snapshot_summary"]


class SnapshotOperation(StrEnum):
    """The four operations of Iceberg."""

    APPEND = "append"
    REPLACE = "replace"
    OVERWRITE = "overwrite"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChanges:
    """The files of one commit, after adds and removes of one path were set against each other."""

    added: Sequence[AddFile] = ()
    """Files of the commit that were not removed by it as well."""
    removed: Sequence[RemoveFile] = ()
    """Files that go."""
    remasked: Sequence[tuple[AddFile, RemoveFile]] = ()
    """Files that stay, under another deletion vector."""
    data_changes: frozenset[bool] = field(default_factory=frozenset)
    """The values of ``dataChange`` among all of them."""

    @property
    def is_empty(self) -> bool:
        """Whether no file is named."""
        return not (self.added or self.removed or self.remasked)


def file_changes(actions: Iterable[Action], paths: CanonicalPaths) -> FileChanges:
    """Set the file actions of one commit against each other."""
    adds = {paths.file(a.path): a for a in actions if isinstance(a, AddFile)}
    removes = {paths.file(a.path): a for a in actions if isinstance(a, RemoveFile)}
    # Removed and added again under the same vector, a file was only listed again.
    both = adds.keys() & removes.keys()
    stays = {path for path in both if adds[path].key[1] == removes[path].key[1]}
    return FileChanges(
        added=[add for path, add in adds.items() if path not in removes or path in stays],
        removed=[remove for path, remove in removes.items() if path not in adds],
        remasked=[
            (add, removes[path])
            for path, add in adds.items()
            if path in removes and path not in stays
        ],
        data_changes=frozenset(add.data_change for add in adds.values())
        | frozenset(remove.data_change for remove in removes.values()),
    )


def operation_of(changes: FileChanges, *, added_rows: int, removed_rows: int) -> SnapshotOperation:
    """The operation of a commit that changes files; one that names none brings all of them."""
    if changes.is_empty:
        return SnapshotOperation.APPEND
    if changes.removed and not changes.added and not changes.remasked:
        return SnapshotOperation.DELETE
    if changes.data_changes == {False}:
        # Reference libraries refuse a replace that comes out with more rows than went in.
        return (
            SnapshotOperation.REPLACE if added_rows <= removed_rows else SnapshotOperation.OVERWRITE
        )
    if changes.added and not changes.removed and not changes.remasked:
        return (
            SnapshotOperation.APPEND
            if changes.data_changes == {True}
            else SnapshotOperation.OVERWRITE
        )
    if changes.added or any(_shows_more(add, old) for add, old in changes.remasked):
        return SnapshotOperation.OVERWRITE
    return SnapshotOperation.DELETE


def _shows_more(add: AddFile, old: RemoveFile) -> bool:
    """Whether rows come back because fewer are hidden than before."""
    before = old.deletion_vector.cardinality if old.deletion_vector is not None else 0
    after = add.deletion_vector.cardinality if add.deletion_vector is not None else 0
    return after < before


_TOTALS: Final[Mapping[str, tuple[str, str]]] = {
    "total-data-files": ("added-data-files", "deleted-data-files"),
    "total-delete-files": ("added-delete-files", "removed-delete-files"),
    "total-records": ("added-records", "deleted-records"),
    "total-files-size": ("added-files-size", "removed-files-size"),
    "total-position-deletes": ("added-position-deletes", "removed-position-deletes"),
    "total-equality-deletes": ("added-equality-deletes", "removed-equality-deletes"),
}
"""Each total, and the counts that raise and lower it."""


def snapshot_summary(counts: Mapping[str, int], parent: Mapping[str, str] | None) -> dict[str, str]:
    """The counts of a commit and the running totals after it; all values are texts.

    ``parent`` is the summary of the snapshot before, None for the first. A total the parent does
    not know is left out, because it would be wrong.
    """
    summary = {name: str(count) for name, count in counts.items() if count}
    for total, (up, down) in _TOTALS.items():
        before = 0 if parent is None else _number(parent.get(total))
        if before is not None:
            summary[total] = str(before + counts.get(up, 0) - counts.get(down, 0))
    return summary


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None
