"""A table as the source of a stream: where it begins, how far it is, what a batch reads."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import msgspec

from twinlake.actions import AddCDCFile, AddFile, RemoveFile
from twinlake.commit.plans import check_change_feed
from twinlake.errors import Code, UserError
from twinlake.log import CommitActions, commit_key, readable_commits, snapshot_of_files
from twinlake.spark.streaming.file_sequence import FileSequence, first_batch_start
from twinlake.spark.streaming.offset import StreamOffset
from twinlake.spark.streaming.source_options import LATEST
from twinlake.spark.streaming.table_log import TableLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from twinlake.actions import Action
    from twinlake.log import Snapshot
    from twinlake.protocol import Metadata
    from twinlake.spark.streaming.admission import ReadLimits
    from twinlake.spark.streaming.commit_content import CommitContent
    from twinlake.spark.streaming.file_sequence import StreamedFile
    from twinlake.spark.streaming.source_options import SourceOptions

__all__ = ["ChangeBatch", "StreamBatch", "StreamSource"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeBatch:
    """What a batch of a change data feed reads: commits or parts of them, and the columns."""

    columns: Snapshot
    """It has the columns; its files do not count."""
    commits: tuple[CommitActions, ...]

    @property
    def has_files(self) -> bool:
        """Whether there may be rows in it."""
        kinds = AddFile, RemoveFile, AddCDCFile
        return any(isinstance(a, kinds) for commit in self.commits for a in commit.actions)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamBatch:
    """What a batch reads: files, and the columns to read them by."""

    base: Snapshot
    metadata: Metadata
    files: tuple[AddFile, ...]

    def snapshots(self) -> list[Snapshot]:
        """The files as snapshots, in each of which no path is there twice.

        A file is, if rows of it were deleted between two versions of the batch.
        """
        return [snapshot_of_files(self.base, self.metadata, group) for group in self._groups()]

    def _groups(self) -> Iterable[list[AddFile]]:
        groups: list[dict[str, AddFile]] = [{}]
        for file in self.files:
            group = next((g for g in groups if file.path not in g), None)
            if group is None:
                groups.append(group := {})
            group[file.path] = file
        return [list(group.values()) for group in groups]


class StreamSource:
    """One stream on one table; it lives as long as the stream runs."""

    def __init__(
        self, latest: Callable[[], Snapshot], options: SourceOptions, *, fixed: bool = False
    ) -> None:
        self.options = options
        self.log = TableLog(latest, options, fixed=fixed)
        self._sequence = FileSequence(log=self.log, options=options)
        self.table_id = self.log.latest.metadata.id

    def parse(self, given: Mapping[str, Any] | str) -> StreamOffset:
        """An offset of a checkpoint, which has to be one of this table."""
        offset = StreamOffset.parse(given)
        self._check_table(offset.table_id)
        if offset.is_initial and offset.event_time != self.options.event_time:
            raise UserError(
                Code.INVALID_ARGUMENT,
                "The order of the initial snapshot cannot be changed while a stream reads it.",
                why=f"the checkpoint has it by {offset.event_time or 'the time of writing'}",
                fix="Restart the stream with the same `withEventTimeOrder` and `eventTimeColumn`, "
                "or from a new checkpoint.",
                fields={"checkpoint": offset.event_time, "option": self.options.event_time},
            )
        return offset

    def _check_table(self, known: str) -> None:
        current = self.log.latest.metadata.id
        if known != current:
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"The stream has read another table than {self.log.latest.label}.",
                why=f"its checkpoint is of the table with id {known}, and this one has id "
                f"{current}: it was replaced, or the checkpoint belongs to another stream",
                fix="Restart the stream from a new checkpoint, or name the table it began with.",
                delta_class="DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
                fields={"checkpoint": known, "table": current},
            )

    def update(self) -> Snapshot:
        """Look for new versions of the table, which must still be the same."""
        fresh = self.log.update()
        self._check_table(self.table_id)
        return fresh

    def beginning(self) -> StreamOffset:
        """Where a new stream begins, by its options."""
        latest = self.update()
        version = self._starting_version(latest)
        if version is not None:
            return StreamOffset(table_id=self.table_id, version=version)
        return StreamOffset(
            table_id=self.table_id,
            version=latest.version,
            is_initial=True,
            event_time=self.options.event_time,
        )

    def _starting_version(self, latest: Snapshot) -> int | None:
        options = self.options
        if options.starting_version == LATEST:
            return latest.version + 1
        if isinstance(options.starting_version, int):
            self._check_starting_version(options.starting_version, latest)
            return options.starting_version
        if options.starting_timestamp is not None:
            return _version_from(options.starting_timestamp, latest)
        return None

    def _check_starting_version(self, version: int, latest: Snapshot) -> None:
        available = readable_commits(latest.store, latest).versions
        if version > latest.version or (version not in available and self._is_gone(version)):
            first = available.start if available else latest.version
            raise UserError(
                Code.VERSION_NOT_FOUND,
                f"A stream on table {latest.label} cannot begin at version {version}.",
                why=f"versions {first} to {latest.version} are available",
                fix="Give `startingVersion` one of them, or `latest`.",
                delta_class="DELTA_VERSION_NOT_FOUND",
                fields={"version": version, "earliest": first, "latest": latest.version},
            )

    def _is_gone(self, version: int) -> bool:
        if not self.options.fail_on_data_loss:
            return False
        return self.log.store.head(commit_key(version)) is None

    def next_offset(
        self, start: StreamOffset, limits: ReadLimits, until: StreamOffset | None = None
    ) -> StreamOffset:
        """How far the batch reaches that begins at an offset."""
        self.update()
        return self._sequence.next_offset(start, limits, None if until is None else until.place)

    def batch(self, start: StreamOffset, end: StreamOffset) -> StreamBatch:
        """What is between two offsets."""
        self.update()
        if start.is_initial and start.is_base:
            start = first_batch_start(end)
        found = self._sequence.files_between(start, end)
        initial = _initial_paths(found)
        adds = [a for f in found for a in f.actions if isinstance(a, AddFile)]
        if initial:
            adds = [*self._initial_files(start.version, initial), *adds]
        return StreamBatch(
            base=self.log.latest,
            metadata=self.log.columns_at(_last_version(end)),
            files=tuple(adds),
        )

    def change_batch(self, start: StreamOffset, end: StreamOffset) -> ChangeBatch:
        """What changed between two offsets; the rows of the initial snapshot are inserts.

        Raises:
            UserError: changes were not recorded in one of the versions.
        """
        self.update()
        if start.is_initial and start.is_base:
            start = first_batch_start(end)
        files = self._sequence.files_between(start, end)
        found: dict[int, list[Action]] = {}
        for file in files:
            found.setdefault(file.version, []).extend(file.actions)
        if initial := _initial_paths(files):
            found[start.version] = [
                msgspec.structs.replace(add, data_change=True)
                for add in self._initial_files(start.version, initial)
            ]
        last = _last_version(end)
        metadata = self.log.columns_at(last)
        commits = self._change_commits(start, last, found)
        if commits:
            first = self.log.metadata_at(commits[0].version)
            check_change_feed(commits, first, metadata, read_version=last)
        columns = snapshot_of_files(self.log.latest, metadata, ())
        return ChangeBatch(columns=columns, commits=tuple(commits))

    def _change_commits(
        self, start: StreamOffset, last: int, found: Mapping[int, list[Action]]
    ) -> list[CommitActions]:
        """The commits of a batch, with what they say of themselves and of the columns."""
        contents: dict[int, CommitContent | None] = {}
        if start.is_initial and start.version in found:
            contents[start.version] = None
        first = start.version + 1 if start.is_initial else start.version
        if first <= last:
            commits = takewhile(lambda commit: commit.version <= last, self.log.commits(first))
            contents |= {commit.version: commit for commit in commits}
        if not contents:
            return []
        times = self.log.times(contents.keys())
        return [
            CommitActions(
                version=version,
                timestamp_ms=times[version],
                actions=(*_statements(commit), *found.get(version, ())),
            )
            for version, commit in contents.items()
        ]

    def _initial_files(self, version: int, paths: list[str]) -> list[AddFile]:
        known = self.log.snapshot(version).live_files(paths)
        return [known[path] for path in paths]


def _initial_paths(files: Iterable[StreamedFile]) -> list[str]:
    """The files of the initial snapshot among these."""
    return [file.path for file in files if not file.actions and file.path is not None]


def _last_version(end: StreamOffset) -> int:
    """The version by whose columns a batch is read that ends there."""
    return max(end.version - 1 if end.is_base else end.version, 0)


def _statements(commit: CommitContent | None) -> list[Action]:
    """What a commit says beside its files."""
    said = () if commit is None else (commit.info, commit.metadata)
    return [action for action in said if action is not None]


def _version_from(timestamp: int, latest: Snapshot) -> int:
    """The first version made at a time or later."""
    times = readable_commits(latest.store, latest)
    before = times.newest_at(timestamp)
    if before is None:
        return times.versions.start
    if times.time(before) >= timestamp:
        return before
    if before + 1 > latest.version:
        raise UserError(
            Code.VERSION_NOT_FOUND,
            f"No version of table {latest.label} was made at the starting time or later.",
            why=f"its newest version {latest.version} is older",
            fix="Give an earlier `startingTimestamp`, or `startingVersion` as `latest`.",
            delta_class="DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
            fields={"timestamp": timestamp, "latest": latest.version},
        )
    return before + 1
