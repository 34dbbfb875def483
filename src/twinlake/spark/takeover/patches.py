"""The attributes of PySpark's classes that are replaced while a takeover lasts.

Each replacement asks first whether the session is served, and calls the original otherwise; what it
calls then is exactly what PySpark had before.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.catalog import Catalog
from pyspark.sql.classic.dataframe import DataFrame

from twinlake.spark.api.catalog import table_exists_at
from twinlake.spark.errors import spark_errors
from twinlake.spark.spark_types import quoted
from twinlake.spark.takeover.names import find_name
from twinlake.spark.takeover.reader import TakeoverReader
from twinlake.spark.takeover.state import TAKEOVER
from twinlake.spark.takeover.streams import TakeoverStreamReader, TakeoverStreamWriter
from twinlake.spark.takeover.writer import TakeoverWriter
from twinlake.spark.takeover.writer_v2 import TakeoverWriterV2

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PATCHES", "Patch", "install", "restore"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """One attribute, and what stands in its place."""

    owner: type
    name: str
    make: Callable[[Any], Any]
    """From the original attribute, as it is in the class."""


def _property(session: Callable[[Any], Any], replacement: Callable[[Any], Any]) -> Any:
    """A property whose value is ours where the session is served."""

    def make(original: property) -> property:
        def value(self: Any) -> Any:
            if TAKEOVER.serves(session(self)):
                return replacement(self)
            return original.__get__(self)

        return property(value, doc=original.__doc__)

    return make


def _sql(original: Any) -> Any:
    @functools.wraps(original)
    def sql(self: SparkSession, sqlQuery: str, args: Any = None, **kwargs: Any) -> Any:
        if not TAKEOVER.serves(self):
            return original(self, sqlQuery, args, **kwargs)
        from pyspark.sql.sql_formatter import SQLStringFormatter

        from twinlake.spark import sql as run

        if not kwargs:
            with TAKEOVER.inside():
                return run(self, sqlQuery, args)
        # Frames among the arguments become views for as long as the statement is read.
        formatter = SQLStringFormatter(self)
        try:
            with TAKEOVER.inside():
                return run(self, formatter.format(sqlQuery, **kwargs), args)
        finally:
            formatter.clear()

    return sql


def _table(original: Any) -> Any:
    @functools.wraps(original)
    def table(self: SparkSession, tableName: str) -> Any:
        if not TAKEOVER.serves(self):
            return original(self, tableName)
        return TakeoverReader(self).named(tableName, lambda: original(self, tableName))

    return table


def _write_to(original: Any) -> Any:
    @functools.wraps(original)
    def writeTo(self: DataFrame, table: str) -> Any:
        if not TAKEOVER.serves(self.sparkSession):
            return original(self, table)
        return TakeoverWriterV2(self, table)

    return writeTo


def _table_exists(original: Any) -> Any:
    @functools.wraps(original)
    def tableExists(self: Catalog, tableName: str, dbName: str | None = None) -> bool:
        if original(self, tableName, dbName):
            return True
        session = self._sparkSession
        if not TAKEOVER.serves(session):
            return False
        with spark_errors(), TAKEOVER.inside():
            name = tableName if dbName is None else f"{quoted(dbName)}.{quoted(tableName)}"
            found = find_name(session, name)
            return found is not None and table_exists_at(session, found.location)

    return tableExists


PATCHES: Final[tuple[Patch, ...]] = (
    Patch(owner=SparkSession, name="sql", make=_sql),
    Patch(owner=SparkSession, name="table", make=_table),
    Patch(owner=SparkSession, name="read", make=_property(lambda spark: spark, TakeoverReader)),
    Patch(
        owner=DataFrame,
        name="write",
        make=_property(lambda frame: frame.sparkSession, TakeoverWriter),
    ),
    Patch(owner=DataFrame, name="writeTo", make=_write_to),
    Patch(
        owner=SparkSession,
        name="readStream",
        make=_property(lambda spark: spark, TakeoverStreamReader),
    ),
    Patch(
        owner=DataFrame,
        name="writeStream",
        make=_property(lambda frame: frame.sparkSession, TakeoverStreamWriter),
    ),
    Patch(owner=Catalog, name="tableExists", make=_table_exists),
)
"""All of them."""

_originals: dict[tuple[type, str], Any] = {}


def install() -> None:
    """Replace the attributes, unless they are replaced already."""
    if _originals:
        return
    for patch in PATCHES:
        original = vars(patch.owner)[patch.name]
        _originals[patch.owner, patch.name] = original
        setattr(patch.owner, patch.name, patch.make(original))


def restore() -> None:
    """Put the attributes back."""
    while _originals:
        (owner, name), original = _originals.popitem()
        setattr(owner, name, original)
