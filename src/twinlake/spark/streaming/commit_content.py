"""What one commit means to a stream: files to read, nothing, or the end of the stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinlake.actions import AddCDCFile, AddFile, CommitInfo, Metadata, RemoveFile
from twinlake.errors import Code, UserError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from twinlake.actions import Action
    from twinlake.spark.streaming.source_options import SourceOptions

    FileAction = AddFile | RemoveFile | AddCDCFile

__all__ = ["CommitContent", "CommitPart"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitPart:
    """What a batch takes of a commit as a whole, or not at all."""

    actions: tuple[FileAction, ...]
    is_whole: bool = False
    """Whether it is all that the stream reads of the commit."""

    @property
    def size(self) -> int:
        """The bytes of the files, as far as the log says so."""
        return sum(action.size or 0 for action in self.actions)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitContent:
    """What a stream looks at in a commit."""

    version: int
    files: tuple[AddFile | RemoveFile, ...] = ()
    """The files with new rows and those whose rows are gone, in the order of the log."""
    change_files: tuple[AddCDCFile, ...] = ()
    metadata: Metadata | None = None
    info: CommitInfo | None = None

    @classmethod
    def of(cls, version: int, actions: Iterable[Action]) -> CommitContent:
        """From the actions of the commit; files that were only moved do not count."""
        files: list[AddFile | RemoveFile] = []
        change_files: list[AddCDCFile] = []
        metadata = info = None
        for action in actions:
            match action:
                case AddFile(data_change=True) | RemoveFile(data_change=True):
                    files.append(action)
                case AddCDCFile():
                    change_files.append(action)
                case Metadata():
                    metadata = action
                case CommitInfo():
                    info = action
                case _:
                    pass
        return cls(
            version=version,
            files=tuple(files),
            change_files=tuple(change_files),
            metadata=metadata,
            info=info,
        )

    def parts(self, options: SourceOptions) -> list[CommitPart]:
        """What the stream reads of this commit, in the order in which offsets count it.

        Raises:
            UserError: rows were changed or deleted, and no option says what that means.
        """
        if not options.change_feed:
            return [CommitPart(actions=(add,)) for add in self.new_files(options)]
        if self.change_files:
            return [CommitPart(actions=self.change_files, is_whole=True)]
        if self._belongs_together():
            return [CommitPart(actions=self.files, is_whole=True)]
        return [CommitPart(actions=(file,)) for file in self.files]

    def _belongs_together(self) -> bool:
        """Whether only all files tell which rows changed: one may be there with two vectors."""
        paths = {file.path for file in self.files}
        return len(paths) < len(self.files) or any(file.deletion_vector for file in self.files)

    def new_files(self, options: SourceOptions) -> tuple[AddFile, ...]:
        """The files that the stream reads of this commit.

        Raises:
            UserError: rows were changed or deleted, and no option says what that means.
        """
        adds = tuple(file for file in self.files if isinstance(file, AddFile))
        removed = next((file.path for file in self.files if isinstance(file, RemoveFile)), None)
        if removed is None:
            return adds
        allows_changes = options.ignore_changes or options.skip_change_commits
        if adds and not allows_changes:
            raise self._refusal(
                "changed",
                removed,
                "DELTA_SOURCE_TABLE_IGNORE_CHANGES",
                "set `skipChangeCommits` to leave such commits out, or `ignoreChanges` to get "
                "the files that they wrote, unchanged rows included",
            )
        if not adds and not (allows_changes or options.ignore_deletes):
            raise self._refusal(
                "deleted",
                removed,
                "DELTA_SOURCE_IGNORE_DELETE",
                "set `ignoreDeletes` or `skipChangeCommits` to go on without them",
            )
        return () if options.skip_change_commits else adds

    def _refusal(self, done: str, path: str, delta_class: str, how: str) -> UserError:
        operation = None if self.info is None else self.info.operation
        by = f" by {operation}" if operation else ""
        return UserError(
            Code.INVALID_ARGUMENT,
            f"Version {self.version} of the streamed table has {done} rows{by}.",
            why="a stream carries new rows, and cannot take back those it has carried; the first "
            f"file concerned is {path}",
            fix=f"Restart the stream from a new checkpoint, or {how}.",
            delta_class=delta_class,
            fields={"version": self.version, "path": path, "operation": operation},
        )
