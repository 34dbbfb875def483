"""RESTORE: the commit that makes the files of the table those of an earlier version again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from twinlake.commit.plans.file_statistics import rendered, total_size
from twinlake.commit.plans.model import Outcome, refuse
from twinlake.commit.read_set import ReadSet
from twinlake.errors import Code, UserError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from twinlake.actions import AddFile, DeletionVectorDescriptor, FileKey

__all__ = ["RestorePlan", "plan_restore"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePlan:
    """The difference between two sets of files.

    Files are the same only if path *and* deletion vector are: a path that is in both under
    different vectors is removed under one and added under the other.
    """

    to_add: tuple[AddFile, ...]
    to_remove: tuple[AddFile, ...]
    target_files: int
    target_size: int

    @property
    def needed_paths(self) -> tuple[str, ...]:
        """Data files, as the log names them, that must still be in the store."""
        return tuple(file.path for file in self.to_add)

    @property
    def needed_vectors(self) -> tuple[DeletionVectorDescriptor, ...]:
        """Deletion vectors that must still be in the store; inline ones always are."""
        vectors = (file.deletion_vector for file in self.to_add)
        return tuple(v for v in vectors if v is not None and v.storage_type != "i")

    def finish(self, *, now: int, missing: Iterable[str] = ()) -> Outcome:
        """The commit; refuses when files of the version are gone (``missing``)."""
        gone = sorted(set(missing))
        if gone:
            raise UserError(
                Code.STORAGE_NOT_FOUND,
                f"The version cannot be restored: {len(gone)} of its files are gone.",
                why="VACUUM or another process deleted " + ", ".join(gone[:10]) + ".",
                fix="Restore a later version, or bring the files back first.",
                fields={"missing": gone},
            )
        adds = tuple(msgspec.structs.replace(file, data_change=True) for file in self.to_add)
        return Outcome(
            operation="RESTORE",
            removes=tuple(file.remove(deletion_timestamp=now) for file in self.to_remove),
            adds=adds,
            metrics=rendered(
                {
                    "tableSizeAfterRestore": self.target_size,
                    "numOfFilesAfterRestore": self.target_files,
                    "numRemovedFiles": len(self.to_remove),
                    "numRestoredFiles": len(adds),
                    "removedFilesSize": total_size(self.to_remove),
                    "restoredFilesSize": total_size(adds),
                }
            ),
            reads=ReadSet(whole_table=True),
        )


def plan_restore(current: Iterable[AddFile], target: Iterable[AddFile]) -> RestorePlan:
    """What has to come and go for the files of ``current`` to become those of ``target``."""
    now, then = _by_key("the current version", current), _by_key("the restored version", target)
    return RestorePlan(
        to_add=tuple(then[key] for key in _ordered(then.keys() - now.keys())),
        to_remove=tuple(now[key] for key in _ordered(now.keys() - then.keys())),
        target_files=len(then),
        target_size=total_size(tuple(then.values())),
    )


def _by_key(name: str, files: Iterable[AddFile]) -> dict[FileKey, AddFile]:
    keyed: dict[FileKey, AddFile] = {}
    paths: set[str] = set()
    problems = []
    for file in files:
        if file.path in paths:
            problems.append(f"{file.path}: live twice in {name}")
        paths.add(file.path)
        keyed[file.key] = file
    if problems:
        raise refuse("RESTORE cannot be planned.", problems)
    return keyed


def _ordered(keys: Iterable[FileKey]) -> list[FileKey]:
    return sorted(keys, key=lambda key: (key[0], key[1] or ""))
