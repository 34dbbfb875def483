"""Where batches end, and which files are in them: the whole of a stream as tables of cases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from twinlake.actions import AddCDCFile, AddFile
from twinlake.errors import UserError
from twinlake.protocol import Metadata
from twinlake.spark.streaming.admission import UNLIMITED, ReadLimits
from twinlake.spark.streaming.commit_content import CommitContent
from twinlake.spark.streaming.file_sequence import FileSequence, SnapshotFile, first_batch_start
from twinlake.spark.streaming.offset import BASE_INDEX, END_INDEX, StreamOffset
from twinlake.spark.streaming.source_options import SourceOptions

if TYPE_CHECKING:
    from collections.abc import Iterator


def add(path: str, size: int = 10) -> AddFile:
    return AddFile(path=path, partition_values={}, size=size, modification_time=0, data_change=True)


def commit(version: int, *paths: str, columns: bool = False) -> CommitContent:
    return CommitContent(
        version=version,
        files=tuple(add(path) for path in paths),
        metadata=Metadata() if columns else None,
    )


@dataclass(frozen=True)
class Log:
    """A table in memory: the files of version 2 and the commits around it."""

    history: tuple[CommitContent, ...]
    initial: tuple[SnapshotFile, ...] = ()

    def snapshot_files(self, version: int) -> tuple[SnapshotFile, ...]:
        assert version == 2
        return self.initial

    def commits(self, first: int) -> Iterator[CommitContent]:
        yield from (one for one in self.history if one.version >= first)

    def changes_columns(self, commit: CommitContent) -> bool:
        return commit.metadata is not None


INITIAL = tuple(SnapshotFile(path=path, size=10) for path in "abc")
LOG = Log((commit(3, "d", "e"), commit(4), commit(5, "f")), INITIAL)
BEGIN = StreamOffset(table_id="t", version=2, is_initial=True)


def at(version: int, index: int = BASE_INDEX, *, initial: bool = False) -> StreamOffset:
    return StreamOffset(table_id="t", version=version, index=index, is_initial=initial)


def sequence(log: Log = LOG, **options: object) -> FileSequence:
    return FileSequence(log=log, options=SourceOptions.parse(options))


@pytest.mark.parametrize(
    ("start", "limits", "end", "paths"),
    [
        (BEGIN, UNLIMITED, at(6), "abcdef"),
        (BEGIN, ReadLimits(max_files=1), at(2, 0, initial=True), "a"),
        (BEGIN, ReadLimits(max_files=2), at(2, 1, initial=True), "ab"),
        # Marks are not files: at the end of the snapshot the offset moves on to the next version.
        (BEGIN, ReadLimits(max_files=3), at(3), "abc"),
        (BEGIN, ReadLimits(max_files=4), at(3, 0), "abcd"),
        (at(2, 0, initial=True), ReadLimits(max_files=1), at(2, 1, initial=True), "b"),
        (at(2, 1, initial=True), ReadLimits(max_files=2), at(3, 0), "cd"),
        (at(3), ReadLimits(max_files=1), at(3, 0), "d"),
        # A version without files takes nothing of the limit.
        (at(3, 0), ReadLimits(max_files=2), at(6), "ef"),
        (at(3, 0), ReadLimits(max_files=1), at(5), "e"),
        (at(4), ReadLimits(max_files=1), at(6), "f"),
        (at(6), UNLIMITED, at(6), ""),
        # Bytes: a file is taken while there is room before it, however large it is.
        (BEGIN, ReadLimits(max_bytes=1), at(2, 0, initial=True), "a"),
        (BEGIN, ReadLimits(max_bytes=11), at(2, 1, initial=True), "ab"),
        (BEGIN, ReadLimits(max_bytes=20), at(2, 1, initial=True), "ab"),
        (BEGIN, ReadLimits(max_bytes=100, max_files=1), at(2, 0, initial=True), "a"),
    ],
)
def test_a_batch_ends_where_the_limits_are_reached(
    start: StreamOffset, limits: ReadLimits, end: StreamOffset, paths: str
) -> None:
    files = sequence()
    assert files.next_offset(start, limits) == end
    assert "".join(f.path or "" for f in files.files_between(start, end)) == paths


@pytest.mark.parametrize("limit", range(1, 8))
def test_batches_of_any_size_have_every_file_once(limit: int) -> None:
    files, offset, found = sequence(), BEGIN, ""
    while True:
        following = files.next_offset(offset, ReadLimits(max_files=limit))
        if following == offset:
            break
        assert following.place > offset.place
        found += "".join(f.path or "" for f in files.files_between(offset, following))
        offset = following
    assert (found, offset) == ("abcdef", at(6))


def test_a_stream_that_ends_with_a_version_reads_no_later_one() -> None:
    assert sequence().next_offset(BEGIN, UNLIMITED, (4, END_INDEX)) == at(5)
    assert sequence().next_offset(at(5), UNLIMITED, (4, END_INDEX)) == at(5)


def test_a_batch_does_not_go_past_new_columns() -> None:
    log = Log((commit(3, "d"), commit(4, "e", columns=True), commit(5, "f")), INITIAL)
    files = sequence(log)
    assert files.next_offset(BEGIN, UNLIMITED) == at(4)
    assert files.next_offset(at(4), UNLIMITED) == at(6)
    assert "".join(f.path or "" for f in files.files_between(at(4), at(6))) == "ef"


def test_files_that_follow_each_other_are_in_one_batch() -> None:
    initial = tuple(
        SnapshotFile(path=path, size=10, follows=path in "bc") for path in ("a", "b", "c", "d")
    )
    files = sequence(Log((), initial))
    assert files.next_offset(BEGIN, ReadLimits(max_files=1)) == at(2, 2, initial=True)


@pytest.mark.parametrize(
    ("limits", "ends"),
    [
        (UNLIMITED, [at(5)]),
        # Files that belong together come in one batch, alone if they are too many for it.
        (ReadLimits(max_files=1), [at(3, 0), at(4), at(5)]),
        (ReadLimits(max_files=3), [at(4), at(5)]),
        (ReadLimits(max_bytes=25), [at(4), at(5)]),
        (ReadLimits(max_files=4), [at(5)]),
    ],
)
def test_change_files_of_a_commit_are_in_one_batch(
    limits: ReadLimits, ends: list[StreamOffset]
) -> None:
    changes = tuple(
        AddCDCFile(path=path, partition_values={}, size=10, data_change=False) for path in "xy"
    )
    log = Log((commit(3, "a", "b"), CommitContent(version=4, change_files=changes)))
    files, offset, found = sequence(log, readChangeFeed="true"), at(3), []
    while (following := files.next_offset(offset, limits)) != offset:
        offset = following
        found.append(offset)
    assert found == ends
    # Where Delta Spark's batches end that has come past them.
    assert files.files_between(at(4, 1), at(5)) == []


def test_excluded_change_files_leave_the_others() -> None:
    changes = tuple(
        AddCDCFile(path=path, partition_values={}, size=10, data_change=False) for path in "xy"
    )
    log = Log((CommitContent(version=3, change_files=changes),))
    files = sequence(log, readChangeFeed="true", excludeRegex="^x")
    (file,) = files.files_between(at(3), at(4))
    assert [action.path for action in file.actions] == ["y"]


def test_excluded_files_count_and_are_not_read() -> None:
    files = sequence(excludeRegex="^[ae]$")
    end = files.next_offset(BEGIN, ReadLimits(max_files=4))
    assert end == at(3, 0)
    assert "".join(f.path or "" for f in files.files_between(BEGIN, at(6))) == "bcdf"


def test_a_stream_does_not_go_back() -> None:
    with pytest.raises(UserError, match="would go back from version 5 to 3"):
        sequence().files_between(at(5), at(3))


@pytest.mark.parametrize(
    ("end", "start"),
    [
        (at(2, 1, initial=True), at(2, initial=True)),
        (at(3), at(2, initial=True)),
        (at(6), at(5, initial=True)),
    ],
)
def test_the_first_batch_is_planned_again_by_its_end(
    end: StreamOffset, start: StreamOffset
) -> None:
    assert first_batch_start(end) == start
