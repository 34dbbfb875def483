"""The files of a table as a stream sees them: one sequence, and offsets as places in it.

First come the files of the initial snapshot, then those of each commit. Before and after the files
of a version stands a mark without a file, so that a stream also gets past versions that have none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from twinlake.errors import Code, UserError
from twinlake.spark.streaming.admission import Admission
from twinlake.spark.streaming.offset import BASE_INDEX, END_INDEX, StreamOffset

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator

    from twinlake.spark.streaming.admission import ReadLimits
    from twinlake.spark.streaming.commit_content import CommitContent, FileAction
    from twinlake.spark.streaming.source_options import SourceOptions

__all__ = ["FileSequence", "SnapshotFile", "StreamLog", "StreamedFile", "first_batch_start"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFile:
    """A file of the initial snapshot."""

    path: str
    size: int
    follows: bool = False
    """Whether it has to be read in one batch with the file before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedFile:
    """A place in the sequence."""

    version: int
    index: int
    path: str | None = None
    """None for the marks around the files of a version."""
    size: int = 0
    actions: tuple[FileAction, ...] = ()
    """What the commit says of it; nothing for files of the initial snapshot, found by path."""
    is_whole: bool = False
    """Whether it stands for all files of its commit, which are read together."""
    follows: bool = False
    new_schema: bool = False
    """Whether the version changes columns."""

    @property
    def place(self) -> tuple[int, int]:
        """What files and offsets are compared by."""
        return self.version, self.index


class StreamLog(Protocol):
    """What the sequence is made of."""

    def snapshot_files(self, version: int) -> Iterable[SnapshotFile]:
        """The files of a version in the order in which a stream reads them."""

    def commits(self, first: int) -> Iterator[CommitContent]:
        """The commits from a version up to the newest."""

    def changes_columns(self, commit: CommitContent) -> bool:
        """Whether the commit leaves the table with other columns than before; it may refuse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSequence:
    """The files of one table under the options of one stream."""

    log: StreamLog
    options: SourceOptions

    def after(
        self, start: StreamOffset, until: tuple[int, int] | None = None
    ) -> Iterator[StreamedFile]:
        """What comes behind an offset, up to a place and with it."""
        for file in self._from(start):
            if until is not None and file.place > until:
                return
            if file.place > start.place:
                yield file

    def _from(self, start: StreamOffset) -> Iterator[StreamedFile]:
        first = start.version
        if start.is_initial:
            yield StreamedFile(version=first, index=BASE_INDEX)
            for index, file in enumerate(self.log.snapshot_files(first)):
                yield StreamedFile(
                    version=first,
                    index=index,
                    path=file.path,
                    size=file.size,
                    follows=file.follows,
                )
            yield StreamedFile(version=first, index=END_INDEX)
            first += 1
        for commit in self.log.commits(first):
            yield from self._of_commit(commit)

    def _of_commit(self, commit: CommitContent) -> Iterator[StreamedFile]:
        version = commit.version
        new_schema = commit.metadata is not None and self.log.changes_columns(commit)
        yield StreamedFile(version=version, index=BASE_INDEX, new_schema=new_schema)
        index = -1
        for part in commit.parts(self.options):
            index += len(part.actions)
            yield StreamedFile(
                version=version,
                index=index,
                path=part.actions[0].path,
                size=part.size,
                actions=part.actions,
                is_whole=part.is_whole,
            )
        yield StreamedFile(version=version, index=END_INDEX)

    def next_offset(
        self, start: StreamOffset, limits: ReadLimits, until: tuple[int, int] | None = None
    ) -> StreamOffset:
        """Where a batch ends that begins at an offset; the same offset if there is nothing new.

        A batch never goes past a change of columns: all its files have one schema.
        """
        admission, last = Admission(limits), None
        for file in self.after(start, until):
            if file.new_schema and last is not None:
                break
            if file.path is not None and not _is_admitted(file, admission):
                break
            last = file
        return start if last is None else _offset_at(last, start)

    def files_between(self, start: StreamOffset, end: StreamOffset) -> list[StreamedFile]:
        """The files behind one offset up to another."""
        if start.place > end.place:
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"The stream would go back from version {start.version} to {end.version}.",
                why=f"its last batch begins at {start.to_dict()} and ends at {end.to_dict()}",
                fix="Restore the folder of the checkpoint as a whole, or begin with an empty one.",
                fields={"start": start.to_dict(), "end": end.to_dict()},
            )
        excluded = self.options.exclude_regex
        files = (file for file in self.after(start, until=end.place) if file.path is not None)
        if excluded is None:
            return list(files)
        return [kept for file in files if (kept := _without(excluded, file)) is not None]


def _is_admitted(file: StreamedFile, admission: Admission) -> bool:
    if file.is_whole:
        return admission.admits_whole(len(file.actions), file.size)
    return admission.admits(file.size, must_follow=file.follows)


def _without(excluded: re.Pattern[str], file: StreamedFile) -> StreamedFile | None:
    """What of it is read if files whose path matches are not."""
    if not file.is_whole:
        return None if excluded.search(file.path or "") else file
    kept = tuple(action for action in file.actions if not excluded.search(action.path))
    return replace(file, actions=kept) if kept else None


def _offset_at(last: StreamedFile, start: StreamOffset) -> StreamOffset:
    """The offset behind the last file of a batch."""
    if last.index == END_INDEX:
        return StreamOffset(table_id=start.table_id, version=last.version + 1)
    initial = start.is_initial and last.version == start.version
    return StreamOffset(
        table_id=start.table_id,
        version=last.version,
        index=last.index,
        is_initial=initial,
        event_time=start.event_time if initial else None,
    )


def first_batch_start(end: StreamOffset) -> StreamOffset:
    """Where the first batch of a stream that reads the initial snapshot begins, by its end.

    A checkpoint has only the ends of batches. A stream that died in its first one may find the
    table at a newer version when it plans the batch again, and has to find the same files.
    """
    if end.is_initial:
        return StreamOffset(
            table_id=end.table_id, version=end.version, is_initial=True, event_time=end.event_time
        )
    return StreamOffset(table_id=end.table_id, version=max(end.version - 1, 0), is_initial=True)
