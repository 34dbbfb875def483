"""The change data feed: which files hold the changed rows of a range of versions.

Delta protocol, "Change Data Files": a version with change files is told by them alone; of another
one the rows of added files are inserts and those of removed files deletes, as far as the commit
says ``dataChange``. A file that is removed and added in one commit stays where it is, and only the
rows by which its two deletion vectors differ have changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from twinlake.actions import AddCDCFile, AddFile, RemoveFile
from twinlake.errors import Code, CorruptTable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from twinlake.actions import CommitInfo, DeletionVectorDescriptor
    from twinlake.log import CommitActions

__all__ = ["ChangeFeedPlan", "FeedFile", "VectorChange", "plan_change_feed"]

_FileAction = TypeVar("_FileAction", AddFile, RemoveFile)
_MERGE_COUNTS: Final = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedFile:
    """A file all of whose live rows are changes of one version."""

    version: int
    timestamp_ms: int
    file: AddFile
    """As it is to be read; rows that its deletion vector hides are no changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorChange:
    """A file that got another deletion vector: what one hides and the other does not, changed."""

    after: FeedFile
    """The file as it is now. Rows that only its new vector hides were deleted."""
    before: DeletionVectorDescriptor | None
    """The old vector. Rows that only this one hides were inserted, as by RESTORE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFeedPlan:
    """The files to read, each for the version that it is named with."""

    change_files: tuple[FeedFile, ...] = ()
    """Their rows say themselves what happened to them."""
    added: tuple[FeedFile, ...] = ()
    removed: tuple[FeedFile, ...] = ()
    vector_changes: tuple[VectorChange, ...] = ()


def plan_change_feed(commits: Iterable[CommitActions]) -> ChangeFeedPlan:
    """What to read for these commits.

    Of a commit with change files nothing else counts, so a stream that hands over a commit in
    parts leaves out its ``add`` and ``remove`` actions; and it keeps both of one path together.
    """
    change_files: list[FeedFile] = []
    added: list[FeedFile] = []
    removed: list[FeedFile] = []
    vector_changes: list[VectorChange] = []
    for commit in commits:
        changes = [a for a in commit.actions if isinstance(a, AddCDCFile)]
        if changes:
            change_files += [_feed_file(commit, action) for action in changes]
            continue
        if _changed_no_row(commit.info):
            continue
        adds, removes = _by_path(commit, AddFile), _by_path(commit, RemoveFile)
        added += [_feed_file(commit, add) for path, add in adds.items() if path not in removes]
        for path, remove in removes.items():
            add = adds.get(path)
            if add is None:
                removed.append(_feed_file(commit, remove))
            elif add.key != remove.key:
                vector_changes.append(
                    VectorChange(after=_feed_file(commit, add), before=remove.deletion_vector)
                )
    return ChangeFeedPlan(
        change_files=tuple(change_files),
        added=tuple(added),
        removed=tuple(removed),
        vector_changes=tuple(vector_changes),
    )


def _by_path(commit: CommitActions, kind: type[_FileAction]) -> dict[str, _FileAction]:
    return {a.path: a for a in commit.actions if isinstance(a, kind) and a.data_change}


def _changed_no_row(info: CommitInfo | None) -> bool:
    """Whether a MERGE says that it only copied rows.

    Some releases of Delta Spark rewrote files for it as if rows had changed.
    """
    if info is None or info.operation != "MERGE":
        return False
    metrics = info.operation_metrics or {}
    return all(metrics.get(name) == "0" for name in _MERGE_COUNTS)


def _feed_file(commit: CommitActions, action: AddFile | RemoveFile | AddCDCFile) -> FeedFile:
    if action.partition_values is None or action.size is None:
        raise CorruptTable(
            Code.LOG_CORRUPT,
            f"Version {commit.version} does not say enough about the file {action.path} that it "
            "removes.",
            why="its remove action has no partition values or no size, and so its rows cannot be "
            "read as changes",
            fix=f"Read the changes from version {commit.version + 1} on.",
            delta_class="DELTA_REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA",
            fields={"version": commit.version, "path": action.path},
        )
    # Statistics are left out: all the rows are read.
    file = AddFile(
        path=action.path,
        partition_values=action.partition_values,
        size=action.size,
        modification_time=0,
        data_change=True,
        deletion_vector=None if isinstance(action, AddCDCFile) else action.deletion_vector,
    )
    return FeedFile(version=commit.version, timestamp_ms=commit.timestamp_ms, file=file)
