"""Paths as Delta's readers take them: with a version or a time behind ``@``, or inside a table."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote
from zoneinfo import ZoneInfo

from twinlake.errors import Code, UserError
from twinlake.schema import HIVE_NULL, STRING
from twinlake.schema.predicates import Column, Comparison, IsNull, Literal, Op
from twinlake.spark.api.catalog import missing_table, table_exists_at
from twinlake.spark.session import session_conf, settings_of
from twinlake.storage import parse_location
from twinlake.table import shared_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from twinlake.spark.delta_options import OptionValues

__all__ = [
    "TimeTravel",
    "missing_path",
    "partition_inside",
    "requested_travel",
    "without_time_travel",
]

_IN_PATH: Final = re.compile(r"(?P<path>.+)@(?:v(?P<version>\d+)|(?P<time>\d{17}))", re.DOTALL)
_WHOLE: Final = re.compile(r"-?\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeTravel:
    """A version of the past."""

    version: int | None = None
    timestamp: dt.datetime | None = None


def without_time_travel(spark: SparkSession, path: str) -> tuple[str, TimeTravel | None]:
    """The path of a table, and the version behind ``@``; a folder with such a name goes first."""
    found = _IN_PATH.fullmatch(path)
    if found is None or _is_something(spark, path):
        return path, None
    if found["version"] is not None:
        return found["path"], TimeTravel(version=int(found["version"]))
    digits = found["time"]
    day = f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}"
    time = f"{digits[8:10]}:{digits[10:12]}:{digits[12:14]}.{digits[14:]}"
    return found["path"], TimeTravel(timestamp=point_in_time(spark, f"{day} {time}"))


def requested_travel(
    spark: SparkSession, values: OptionValues, in_path: TimeTravel | None
) -> TimeTravel:
    """The version that options or the path ask for."""
    version, timestamp = values.text("versionAsOf"), values.text("timestampAsOf")
    if version is not None and timestamp is not None:
        raise UserError(
            Code.INVALID_ARGUMENT,
            "Please either provide 'timestampAsOf' or 'versionAsOf' for time travel.",
            why="both options are set",
            fix="Leave the option `timestampAsOf` or `versionAsOf` out.",
            delta_class="DELTA_ONEOF_IN_TIMETRAVEL",
        )
    if version is None and timestamp is None:
        return in_path or TimeTravel()
    if in_path is not None:
        raise UserError(
            Code.INVALID_ARGUMENT,
            "Cannot specify time travel in multiple formats.",
            why="both the path and an option name a version",
            fix="Leave the option out, or take the part after `@` off the path.",
            delta_class="DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS",
        )
    if timestamp is not None:
        return TimeTravel(timestamp=point_in_time(spark, timestamp))
    assert version is not None
    if not _WHOLE.fullmatch(version.strip()):
        raise UserError(
            Code.INVALID_ARGUMENT,
            "versionAsOf needs to be a valid begin value.",
            why=f"{version!r} is not a whole number",
            fix="Give a version of the table, such as `0`.",
            delta_class="DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE",
            fields={"versionAsOf": version},
        )
    return TimeTravel(version=int(version))


def missing_path(spark: SparkSession, path: str) -> UserError:
    """The error of Delta for a path without a table."""
    location = parse_location(path).url
    if _is_something(spark, path):
        return missing_table(path, f"there is no Delta log at {location}")
    return UserError(
        Code.TABLE_NOT_FOUND,
        f"Path does not exist: {path}.",
        why=f"there is nothing at {location}",
        fix="Check the spelling, or create the table with `DeltaTable.create(spark)`.",
        delta_class="PATH_NOT_FOUND",
        fields={"path": path},
    )


def point_in_time(spark: SparkSession, text: str) -> dt.datetime:
    """A time as Spark reads one: in the zone of the session, unless it names a zone."""
    zone = ZoneInfo(session_conf(spark, "spark.sql.session.timeZone", "UTC"))
    try:
        found = dt.datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"The provided timestamp ({text!r}) cannot be converted to a valid timestamp.",
            why=str(error),
            fix="Give a date or a time such as `2024-05-01 12:00:00`.",
            delta_class="DELTA_TIMESTAMP_INVALID",
            fields={"timestamp": text},
        ) from error
    return found if found.tzinfo is not None else found.replace(tzinfo=zone)


def _is_something(spark: SparkSession, path: str) -> bool:
    store = shared_store(path, True, settings_of(spark, path).options or None)
    return next(iter(store.list_from("")), None) is not None


def partition_inside(spark: SparkSession, path: str) -> tuple[str, str] | None:
    """The table that a folder is a partition of, and the condition for its rows."""
    root, folders = parse_location(path).url, []
    while True:
        parent, _, folder = root.rpartition("/")
        name, equals, value = folder.partition("=")
        if not equals:
            return None
        folders.append((unquote(unquote(name)), unquote(unquote(value))))
        root = parent
        if table_exists_at(spark, root):
            return root, " AND ".join(_is_in(*one) for one in reversed(folders))


def _is_in(name: str, value: str) -> str:
    column = Column((name,), STRING)
    if value == HIVE_NULL:
        return str(IsNull(column))
    return str(Comparison(Op.EQ, column, Literal(value, STRING)))
