"""Which versions a feed is read of, and with which schema: Delta's rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinlake.actions import Metadata
from twinlake.errors import Code, UserError
from twinlake.log import CommitTimes, contiguous_commits, list_log, load_snapshot, version_at
from twinlake.schema import ColumnMappingMode
from twinlake.spark.delta_settings import (
    FEED_OUT_OF_RANGE,
    feed_schema_mode,
    may_read_out_of_range,
)
from twinlake.spark.timestamps import moment_of

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from twinlake.log import CommitActions, Snapshot

    Moment = str | int | dt.date

__all__ = ["FeedSchema", "find_schema", "resolve_range"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedSchema:
    """What the rows of a range are read with."""

    start: Metadata
    """The metadata of the first version."""
    snapshot: Snapshot
    """The snapshot whose columns the rows have."""


def resolve_range(
    spark: SparkSession,
    latest: Snapshot,
    *,
    from_version: int | None,
    to_version: int | None,
    from_timestamp: Moment | None,
    to_timestamp: Moment | None,
) -> range:
    """The versions that were asked for; none where there is nothing to read and that is no error.

    Raises:
        UserError: it has no start, ends before it starts, or starts beyond the latest version.
    """
    _check_given(from_version, from_timestamp, "from")
    _check_given(to_version, to_timestamp, "to")
    lenient = may_read_out_of_range(spark)
    starts = None if from_timestamp is None else moment_of(spark, from_timestamp)
    ends = None if to_timestamp is None else moment_of(spark, to_timestamp)
    first = from_version if starts is None else _first_since(latest, starts, lenient=lenient)
    if first is None:
        raise _no_start()
    last = to_version
    if ends is not None:
        last = version_at(latest.store, latest, ends, can_return_last=lenient)
    if first > latest.version:
        if lenient:
            return range(0)
        raise _starts_late(first, latest.version)
    if last is None:
        last = latest.version
    elif starts is not None and ends is not None and ends >= starts and last == first - 1:
        # Both times are between two versions.
        return range(0)
    elif last < first or (starts is not None and ends is not None and ends < starts):
        raise _ends_early(first, last)
    if first < 0:
        raise _negative(first)
    return range(first, min(last, latest.version) + 1)


def find_schema(
    spark: SparkSession, latest: Snapshot, commits: Sequence[CommitActions]
) -> FeedSchema:
    """The columns of a range, and those that it begins with."""
    last = commits[-1].version
    end = latest if last == latest.version else _snapshot(latest, last)
    start = _first_metadata(latest, commits, end)
    mapped = any(
        metadata.column_mapping_mode is not ColumnMappingMode.NONE
        for metadata in (start, end.metadata, latest.metadata)
    )
    # Without column mapping Delta Spark shows the latest columns, whatever the range.
    at_end = mapped and feed_schema_mode(spark) == "endVersion"
    return FeedSchema(start=start, snapshot=end if at_end else latest)


def _first_metadata(latest: Snapshot, commits: Sequence[CommitActions], end: Snapshot) -> Metadata:
    """The metadata of the first version; most ranges do not change it, which the commits say."""
    changed = [
        [action for action in commit.actions if isinstance(action, Metadata)] for commit in commits
    ]
    if changed[0]:
        return changed[0][0]
    if not any(changed):
        return end.metadata
    return _snapshot(latest, commits[0].version).metadata


def _snapshot(latest: Snapshot, version: int) -> Snapshot:
    try:
        return load_snapshot(latest.store, version)
    except UserError as error:
        # Its commit is there, and what came before it is not.
        error.delta_class = "DELTA_LOG_FILE_NOT_FOUND"
        raise


def _first_since(latest: Snapshot, moment: int, *, lenient: bool) -> int:
    """The first version made at or after a time; one later than the latest if there is none."""
    commits = contiguous_commits(list_log(latest.store), latest.version)
    times = CommitTimes(latest.store, latest, commits)
    found = times.newest_at(moment)
    if found is None:
        return times.versions.start
    if times.time(found) >= moment:
        return found
    if found == latest.version and not lenient:
        # The same error as for an end beyond the latest version.
        version_at(latest.store, latest, moment)
    return found + 1


def _check_given(version: int | None, timestamp: Moment | None, end: str) -> None:
    if version is not None and timestamp is not None:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"`{end}_version` and `{end}_timestamp` cannot be given together.",
            fix="Give one of the two.",
            delta_class="DELTA_MULTIPLE_CDC_BOUNDARY",
        )


def _no_start() -> UserError:
    return UserError(
        Code.INVALID_ARGUMENT,
        "The changes to read have no start.",
        why="neither a version nor a timestamp says where they begin",
        fix="Give `from_version=` or `from_timestamp=`; version 0 is the beginning of a table.",
        delta_class="DELTA_NO_START_FOR_CDC_READ",
    )


def _negative(version: int) -> UserError:
    return UserError(
        Code.VERSION_NOT_FOUND,
        f"There is no version {version}.",
        why="versions begin with 0",
        fix="Give `from_version=0` for all changes of the table.",
        delta_class="DELTA_LOG_FILE_NOT_FOUND",
        fields={"version": version},
    )


def _starts_late(first: int, latest: int) -> UserError:
    return UserError(
        Code.VERSION_NOT_FOUND,
        f"The changes cannot start at version {first}.",
        why=f"the latest version of the table is {latest}",
        fix=f"Start at {latest} or before, or run "
        f"`spark.conf.set({FEED_OUT_OF_RANGE!r}, 'true')` to read no rows instead.",
        delta_class="DELTA_CDC_START_VERSION_AFTER_LATEST",
        fields={"version": first, "latest": latest},
    )


def _ends_early(first: int, last: int) -> UserError:
    return UserError(
        Code.INVALID_ARGUMENT,
        f"The changes of versions {first} to {last} cannot be read.",
        why="the end is before the start",
        fix="Exchange the two; both are part of the range.",
        delta_class="DELTA_INVALID_CDC_RANGE",
        fields={"first": first, "last": last},
    )
