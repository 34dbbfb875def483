"""The commits of a range of versions, whole: what each says, and when its version was made.

A range that is not there as a whole is refused: changes must not be missing in silence.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from twinlake.actions import CommitInfo, decode_whole_commit
from twinlake.errors import Code, CorruptTable, StorageError, UserError
from twinlake.log.listing import list_log
from twinlake.log.names import LogFileKind, commit_key
from twinlake.log.timestamps import rising_times

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from twinlake.actions import Action
    from twinlake.log.names import LogFile
    from twinlake.storage import Store

__all__ = ["CommitActions", "modified_times", "read_commits"]

# Modification times rise by force, so a commit's time depends on those before it. Delta Spark
# looks back this far, and a reader that looked further would state other times.
_LOOKED_BACK: Final = 100
# Commits are small objects far away; one after the other a long range takes minutes.
_READERS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitActions:
    """One version, or the part of it that a stream has come to."""

    version: int
    timestamp_ms: int
    """When the version was made: as the commit states it, else its file's modification time."""
    actions: Sequence[Action]

    @property
    def info(self) -> CommitInfo | None:
        """What the commit says of itself."""
        return next((a for a in self.actions if isinstance(a, CommitInfo)), None)


def read_commits(store: Store, versions: range) -> list[CommitActions]:
    """The commits of these versions, ascending.

    Raises:
        UserError: the first versions are gone.
        CorruptTable: a commit is missing in between.
    """
    if not versions:
        return []
    listed = _listed(store, versions)
    times = _rising(listed)
    _check_all_there(versions, times)
    wanted = [file for file in listed if file.version in versions]

    def read(file: LogFile) -> CommitActions:
        return _read(store, file, times[file.version])

    # A local file is read in less time than it takes to hand it to a thread.
    if store.url.startswith("file:") or len(wanted) == 1:
        return [read(file) for file in wanted]
    with ThreadPoolExecutor(min(_READERS, len(wanted))) as pool:
        return list(pool.map(read, wanted))


def modified_times(store: Store, versions: range) -> dict[int, int]:
    """When the files of these commits were written, as far as they are there.

    It is what a commit that states no time of its own was made at.
    """
    times = _rising(_listed(store, versions))
    return {version: time for version, time in times.items() if version in versions}


def _listed(store: Store, versions: range) -> list[LogFile]:
    """The commits up to the last of these versions, and some before the first."""
    earlier = max(versions.start - _LOOKED_BACK, 0)
    return [
        file
        for file in list_log(store, earlier)
        if file.kind is LogFileKind.COMMIT and file.version < versions.stop
    ]


def _rising(listed: Sequence[LogFile]) -> dict[int, int]:
    return dict(zip((file.version for file in listed), rising_times(listed), strict=True))


def _read(store: Store, file: LogFile, modified_ms: int) -> CommitActions:
    try:
        data = store.read(file.key)
    except StorageError as error:
        if error.code != Code.STORAGE_NOT_FOUND:
            raise
        # A cleanup came in between.
        raise _gone(file.version, file.version + 1) from error
    actions = decode_whole_commit(data, source=file.key)
    stated = next(
        (a.in_commit_timestamp for a in actions if isinstance(a, CommitInfo)),
        None,
    )
    return CommitActions(
        version=file.version,
        timestamp_ms=modified_ms if stated is None else stated,
        actions=actions,
    )


def _check_all_there(versions: range, present: Iterable[int]) -> None:
    found = set(present)
    missing = [version for version in versions if version not in found]
    if not missing:
        return
    # Of a log that was cleaned up the beginning is gone.
    first = min((v for v in found if v >= versions.start), default=versions.stop)
    if missing[0] == versions.start and not any(v < versions.start for v in found):
        raise _gone(versions.start, first)
    raise CorruptTable(
        Code.LOG_CORRUPT,
        f"The log has a gap: {len(missing)} commit(s) are missing between versions "
        f"{versions.start} and {versions.stop - 1}.",
        why=f"there is no {commit_key(missing[0])}",
        fix=f"Restore {commit_key(missing[0])} from a backup, or read later versions.",
        delta_class="DELTA_VERSIONS_NOT_CONTIGUOUS",
        fields={"missing": missing[:100]},
    )


def _gone(version: int, earliest: int) -> UserError:
    return UserError(
        Code.VERSION_NOT_FOUND,
        f"The commit of version {version} is no longer available.",
        why=f"the log was cleaned up: the commits before {earliest} are gone",
        fix=f"Read from version {earliest} on, and keep the log for longer with the table "
        "property `delta.logRetentionDuration`.",
        delta_class="DELTA_LOG_FILE_NOT_FOUND",
        fields={"version": version, "earliest": earliest},
    )
