"""When each version was made, and what a person means by a time.

With in-commit timestamps a commit states its own time; before they were enabled, and without
them, the store's modification times count, forced to rise by at least a millisecond a version
(Delta protocol, In-Commit Timestamps).
"""

from __future__ import annotations

import datetime as dt
import math
from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING, Final

from twinlake.actions import CommitInfo, decode_lines
from twinlake.errors import Code, CorruptTable, StorageError, UserError
from twinlake.log.names import LogFile, LogFileKind, commit_key
from twinlake.protocol import keys, property_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from twinlake.log.snapshot import Snapshot
    from twinlake.storage import Store

__all__ = ["CommitTimes", "parse_timestamp", "read_info", "render_timestamp", "rising_times"]

# commitInfo comes first wherever Delta or twinlake wrote it, and is rarely longer than this.
_HEAD_BYTES: Final = 1 << 16

Moment = str | int | float | dt.date | dt.datetime
"""What a point in time may be given as."""


def parse_timestamp(value: Moment, *, zone: dt.tzinfo = dt.UTC) -> int:
    """Milliseconds since the epoch, from ISO text, a date, a datetime, or a number of them.

    A time without a zone is taken to be in ``zone``.

    >>> parse_timestamp("1970-01-02"), parse_timestamp("1970-01-01T00:00:01.5Z")
    (86400000, 1500)
    """
    try:
        if isinstance(value, bool):
            raise ValueError("a boolean is not a time")
        if isinstance(value, str):
            text = value.strip()
            if text.lstrip("-").isdigit() and len(text) > 8:
                return int(text)
            value = dt.datetime.fromisoformat(text)
        if isinstance(value, (int, float)):
            return math.floor(value)
        if not isinstance(value, dt.datetime):
            value = dt.datetime.combine(value, dt.time())
        moment = value if value.tzinfo is not None else value.replace(tzinfo=zone)
        return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1)
    except (ValueError, TypeError, OverflowError) as error:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{value!r} is not a point in time.",
            why=str(error),
            fix="Give ISO text (2024-05-01T12:00:00Z), a date, a datetime, or epoch milliseconds.",
            delta_class="DELTA_INVALID_TIMESTAMP_FORMAT",
            fields={"timestamp": str(value)},
        ) from error


def render_timestamp(ms: int) -> str:
    """Milliseconds since the epoch as ISO text in UTC."""
    try:
        moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=ms)
    except OverflowError:
        return f"{ms} ms"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read_info(store: Store, file: LogFile) -> CommitInfo | None:
    """The commitInfo of a commit, or None; of a large commit only the head is read."""
    try:
        if file.size > _HEAD_BYTES:
            head = store.read_range(file.key, 0, _HEAD_BYTES)
            first, found, _ = head.partition(b"\n")
            if found and b'"commitInfo"' in first:
                return _info(first, file.key)
        return _info(store.read(file.key), file.key)
    except StorageError as error:
        if error.code == Code.STORAGE_NOT_FOUND:
            return None
        raise


def _info(data: bytes, source: str) -> CommitInfo | None:
    lines = [line for line in data.split(b"\n") if b'"commitInfo"' in line]
    for action in decode_lines(b"\n".join(lines), source=source):
        if isinstance(action, CommitInfo):
            return action
    return None


class CommitTimes:
    """The times of the commits that are still there, up to the snapshot's version.

    ``commits`` are the contiguous commits that end with that version, ascending.
    """

    def __init__(self, store: Store, snapshot: Snapshot, commits: Sequence[LogFile]) -> None:
        self._store = store
        self._commits = commits
        self._read: dict[int, CommitInfo | None] = {}
        self.enabled_from = _enabled_from(snapshot)

    @property
    def versions(self) -> range:
        """The versions whose commits are there."""
        if not self._commits:
            return range(0)
        return range(self._commits[0].version, self._commits[-1].version + 1)

    @cached_property
    def _modified(self) -> list[int]:
        return rising_times(self._commits)

    def info(self, version: int) -> CommitInfo | None:
        """The commitInfo of a version, read once."""
        if version not in self._read:
            file = self._commits[version - self.versions.start]
            self._read[version] = read_info(self._store, file)
        return self._read[version]

    def time(self, version: int) -> int:
        """When a version was made."""
        position = version - self.versions.start
        if self.enabled_from is None or version < self.enabled_from:
            return self._modified[position]
        info = self.info(version)
        if info is None or info.in_commit_timestamp is None:
            raise CorruptTable(
                Code.LOG_CORRUPT,
                f"{commit_key(version)} states no in-commit timestamp.",
                why=f"the table has them since version {self.enabled_from}",
                fix="Restore the commit from a backup.",
                delta_class="DELTA_MISSING_COMMIT_TIMESTAMP",
                fields={"version": version},
            )
        return info.in_commit_timestamp

    def newest_at(self, timestamp_ms: int) -> int | None:
        """The newest version made at or before a time, or None if all are later."""
        versions, first = self.versions, self.enabled_from
        if not versions:
            return None
        if first is not None and first < versions.stop:
            stated = range(max(first, versions.start), versions.stop)
            found = bisect_right(stated, timestamp_ms, key=self.time)
            if found:
                return stated[found - 1]
            versions = range(versions.start, stated.start)
        modified = self._modified[: len(versions)]
        found = bisect_right(modified, timestamp_ms)
        return versions[found - 1] if found else None


def rising_times(commits: Sequence[LogFile]) -> list[int]:
    """The modification times of successive commits, each later than the one before."""
    adjusted: list[int] = []
    for commit in commits:
        if adjusted and commit.modified_ms <= adjusted[-1]:
            adjusted.append(adjusted[-1] + 1)
        else:
            adjusted.append(commit.modified_ms)
    return adjusted


def _enabled_from(snapshot: Snapshot) -> int | None:
    """The first version that states its own time; None if the table has no such."""
    if not snapshot.metadata.flag(keys.ENABLE_IN_COMMIT_TIMESTAMPS):
        return None
    version = property_value(snapshot.metadata, keys.IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION)
    return 0 if version is None else int(version)


def contiguous_commits(files: Sequence[LogFile], version: int) -> list[LogFile]:
    """The commits that end with ``version`` without a gap, ascending."""
    commits = {f.version: f for f in files if f.kind is LogFileKind.COMMIT and f.version <= version}
    found: list[LogFile] = []
    while version in commits:
        found.append(commits[version])
        version -= 1
    return found[::-1]
