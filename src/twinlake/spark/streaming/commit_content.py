"""What one commit means to a stream: files to read, nothing, or the end of the stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinlake.actions import AddFile, CommitInfo, Metadata, RemoveFile
from twinlake.errors import Code, UserError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from twinlake.actions import Action
    from twinlake.spark.streaming.source_options import SourceOptions

__all__ = ["CommitContent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitContent:
    """What a stream looks at in a commit."""

    version: int
    adds: tuple[AddFile, ...] = ()
    """The files with new rows, in the order of the log."""
    removed: str | None = None
    """The first file whose rows are gone."""
    metadata: Metadata | None = None
    operation: str | None = None

    @classmethod
    def of(cls, version: int, actions: Iterable[Action]) -> CommitContent:
        """From the actions of the commit; files that were only moved do not count."""
        adds: list[AddFile] = []
        removed = metadata = operation = None
        for action in actions:
            match action:
                case AddFile(data_change=True):
                    adds.append(action)
                case RemoveFile(data_change=True):
                    removed = action.path if removed is None else removed
                case Metadata():
                    metadata = action
                case CommitInfo():
                    operation = action.operation
                case _:
                    pass
        return cls(
            version=version,
            adds=tuple(adds),
            removed=removed,
            metadata=metadata,
            operation=operation,
        )

    def files(self, options: SourceOptions) -> tuple[AddFile, ...]:
        """The files that the stream reads of this commit.

        Raises:
            UserError: rows were changed or deleted, and no option says what that means.
        """
        if self.removed is None:
            return self.adds
        allows_changes = options.ignore_changes or options.skip_change_commits
        if self.adds and not allows_changes:
            raise self._refusal(
                "changed",
                "DELTA_SOURCE_TABLE_IGNORE_CHANGES",
                "set `skipChangeCommits` to leave such commits out, or `ignoreChanges` to get "
                "the files that they wrote, unchanged rows included",
            )
        if not self.adds and not (allows_changes or options.ignore_deletes):
            raise self._refusal(
                "deleted",
                "DELTA_SOURCE_IGNORE_DELETE",
                "set `ignoreDeletes` or `skipChangeCommits` to go on without them",
            )
        return () if options.skip_change_commits else self.adds

    def _refusal(self, done: str, delta_class: str, how: str) -> UserError:
        by = f" by {self.operation}" if self.operation else ""
        return UserError(
            Code.INVALID_ARGUMENT,
            f"Version {self.version} of the streamed table has {done} rows{by}.",
            why="a stream carries new rows, and cannot take back those it has carried; the first "
            f"file concerned is {self.removed}",
            fix=f"Restart the stream from a new checkpoint, or {how}.",
            delta_class=delta_class,
            fields={"version": self.version, "path": self.removed, "operation": self.operation},
        )
