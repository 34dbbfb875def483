"""What happened to a table, and which version was current at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from twinlake.errors import Code, UserError
from twinlake.log.commit_record import CommitHistory, CommitRecord
from twinlake.log.listing import complete_checkpoints, list_log
from twinlake.log.timestamps import (
    CommitTimes,
    Moment,
    contiguous_commits,
    parse_timestamp,
    render_timestamp,
)

if TYPE_CHECKING:
    from twinlake.actions import CommitInfo
    from twinlake.log.snapshot import Snapshot
    from twinlake.storage import Store

__all__ = ["history", "parse_timestamp", "readable_commits", "version_at"]

# Commits are small objects far away; one after the other a long history takes minutes.
_READERS: Final = 16


def _record(version: int, timestamp: int, info: CommitInfo | None) -> CommitRecord:
    if info is None:
        return CommitRecord(version=version, timestamp=timestamp)
    return CommitRecord(
        version=version,
        timestamp=timestamp,
        operation=info.operation,
        operation_parameters=info.operation_parameters or {},
        operation_metrics=info.operation_metrics or {},
        user_id=info.user_id,
        user_name=info.user_name,
        read_version=info.read_version,
        isolation_level=info.isolation_level,
        is_blind_append=info.is_blind_append,
        engine_info=info.engine_info,
        user_metadata=info.user_metadata,
        txn_id=info.txn_id,
        tags=info.tags,
        in_commit_timestamp=info.in_commit_timestamp,
        extra=info.extra,
    )


def history(store: Store, snapshot: Snapshot, limit: int | None = None) -> CommitHistory:
    """The commits up to the snapshot's version that are still there, newest first."""
    if limit is not None and limit < 0:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{limit} versions of history cannot be shown.",
            why="the limit is negative",
            fix="Give a limit of 0 or more, or none at all.",
            fields={"limit": limit},
        )
    commits = contiguous_commits(list_log(store), snapshot.version)
    times = CommitTimes(store, snapshot, commits)
    wanted = times.versions[::-1][:limit]
    if not wanted:
        return CommitHistory()
    with ThreadPoolExecutor(min(_READERS, len(wanted))) as pool:
        infos = list(pool.map(times.info, wanted))
    return CommitHistory(
        _record(version, times.time(version), info)
        for version, info in zip(wanted, infos, strict=True)
    )


def readable_commits(store: Store, snapshot: Snapshot) -> CommitTimes:
    """The commits up to the snapshot whose versions can be read, with their times."""
    files = list_log(store)
    commits = contiguous_commits(files, snapshot.version)
    earliest = _earliest_readable(commits[0].version, files) if commits else None
    commits = [c for c in commits if earliest is not None and c.version >= earliest]
    return CommitTimes(store, snapshot, commits)


def version_at(
    store: Store, snapshot: Snapshot, timestamp: Moment, *, can_return_last: bool = False
) -> int:
    """The newest version made at or before a time (time travel by timestamp).

    Args:
        store: the table's store.
        snapshot: the latest snapshot.
        timestamp: epoch milliseconds, or anything ``parse_timestamp`` takes.
        can_return_last: answer with the latest version for a later time, instead of refusing it.

    Raises:
        UserError: the time is before the first version that can be read, or after the last.
    """
    wanted = parse_timestamp(timestamp)
    times = readable_commits(store, snapshot)
    if not times.versions:
        raise _unavailable(
            wanted,
            "no commit is left that says when its version was made",
            "Ask for a version by its number: `Table.open(PATH, version=N)` or "
            "`twinlake show PATH --version N`.",
            "DELTA_NO_COMMITS_FOUND",
        )
    first, last = times.versions[0], times.versions[-1]
    found = times.newest_at(wanted)
    if found is None:
        begin = render_timestamp(times.time(first))
        raise _unavailable(
            wanted,
            f"the earliest version that can be read is {first}, made at {begin}",
            f"Ask for {begin} or later.",
            "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
            earliest=first,
            earliest_timestamp=times.time(first),
        )
    if found == last and not can_return_last and wanted > times.time(last):
        end = render_timestamp(times.time(last))
        raise _unavailable(
            wanted,
            f"the latest version is {last}, made at {end}",
            f"Ask for {end} or earlier, or leave the time out for the latest version.",
            "DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
            latest=last,
            latest_timestamp=times.time(last),
        )
    return found


def _earliest_readable(first: int, files: list[Any]) -> int | None:
    """The first version that can be read, ``first`` being the first that has a commit."""
    if first == 0:
        return 0
    # A checkpoint right before the first commit serves as well as one beside it.
    bases = [c.version for c in complete_checkpoints(files) if c.version >= first - 1]
    return max(bases[0], first) if bases else None


def _unavailable(wanted: int, why: str, fix: str, delta_class: str, **more: int) -> UserError:
    return UserError(
        Code.VERSION_NOT_FOUND,
        f"There is no version for {render_timestamp(wanted)}.",
        why=why,
        fix=fix,
        delta_class=delta_class,
        fields={"timestamp": wanted, **more},
    )
