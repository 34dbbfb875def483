"""A table as the source of a stream: where it begins, how far it is, what a batch reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinlake.errors import Code, UserError
from twinlake.log import commit_key, readable_commits, snapshot_of_files
from twinlake.spark.streaming.file_sequence import FileSequence, first_batch_start
from twinlake.spark.streaming.offset import StreamOffset
from twinlake.spark.streaming.source_options import LATEST
from twinlake.spark.streaming.table_log import TableLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from twinlake.actions import AddFile
    from twinlake.log import Snapshot
    from twinlake.protocol import Metadata
    from twinlake.spark.streaming.admission import ReadLimits
    from twinlake.spark.streaming.source_options import SourceOptions

__all__ = ["StreamBatch", "StreamSource"]


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
        whole = [f.path for f in found if f.add is None and f.path is not None]
        adds = [f.add for f in found if f.add is not None]
        if whole:
            known = self.log.snapshot(start.version).live_files(whole)
            adds = [*(known[path] for path in whole), *adds]
        last = end.version - 1 if end.is_base else end.version
        return StreamBatch(
            base=self.log.latest,
            metadata=self.log.columns_at(max(last, 0)),
            files=tuple(adds),
        )


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
