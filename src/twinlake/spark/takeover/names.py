"""Which names are tables of ours, in calls of PySpark's.

In this order: ``delta.`/path``` and ``twinlake.`/path```, temporary views, the session's catalog of
names. Every other name is Spark's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinlake.errors import TwinlakeError, UserError
from twinlake.spark.api.catalog import session_catalog, without_spark_catalog
from twinlake.spark.takeover.paths import TimeTravel, without_time_travel
from twinlake.spark.takeover.state import is_ours
from twinlake.storage import parse_location
from twinlake.table.catalog import split_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from twinlake.table import TableName

__all__ = ["NamedTable", "find_name", "path_in"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTable:
    """A table that a name means."""

    location: str
    name: TableName | None = None
    travel: TimeTravel | None = None
    by_path: bool = False


def path_in(name: str) -> str | None:
    """The path of ``delta.`/path```; None for other names.

    >>> path_in("delta.`/data/t`"), path_in("sales.orders")
    ('/data/t', None)
    """
    parts = _parts(name)
    if parts is not None and len(parts) == 2 and is_ours(parts[0]) and "/" in parts[1]:
        return parts[1]
    return None


def find_name(spark: SparkSession, name: str) -> NamedTable | None:
    """The table with a name; None if it is Spark's to know."""
    path = path_in(name)
    if path is not None:
        plain, travel = without_time_travel(spark, path)
        return NamedTable(location=parse_location(plain).url, travel=travel, by_path=True)
    parts = _parts(name)
    if parts is None:
        return None
    names, wanted = session_catalog(spark), without_spark_catalog(name)
    try:
        if not names.exists(wanted):
            return None
    except UserError:
        # Not a name that the catalog could have.
        return None
    if len(parts) == 1 and _is_view(spark, parts[0]):
        return None
    return NamedTable(location=names.locate(wanted), name=names.parse(wanted))


def _parts(name: str) -> tuple[str, ...] | None:
    try:
        return tuple(split_name(name))
    except TwinlakeError:
        return None


def _is_view(spark: SparkSession, name: str) -> bool:
    jsession: Any = spark._jsparkSession
    return bool(jsession.sessionState().catalog().getRawTempView(name).isDefined())
