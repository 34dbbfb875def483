"""Names of tables in a session: the catalog that holds them, and locations of managed tables."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from twinlake.errors import Code, UserError
from twinlake.spark.session import check_session, session_conf, settings_of
from twinlake.storage import parse_location
from twinlake.table import Table, default_catalog_path, open_names
from twinlake.table.catalog import split_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from twinlake.table import Names, TableName

__all__ = [
    "CatalogTableReference",
    "find_table",
    "managed_location",
    "missing_table",
    "session_catalog",
    "table_exists_at",
    "table_location",
    "without_spark_catalog",
]

_CATALOG: Final = "spark.twinlake.catalog"
_WAREHOUSE: Final = "spark.sql.warehouse.dir"
#: How Spark calls its own catalog; code that spells names in full keeps working.
_SPARK_CATALOG: Final = "spark_catalog"


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogTableReference:
    """The location of a table, and the name it was opened by."""

    location: str
    name: str | None = None


def session_catalog(spark: SparkSession) -> Names:
    """The catalog of names of the session; bare names are in its current database."""
    check_session(spark)
    file = session_conf(spark, _CATALOG, "") or default_catalog_path(os.environ)
    return open_names(file, namespace=spark.catalog.currentDatabase())


def without_spark_catalog(name: str) -> str:
    """A name without Spark's own catalog before it.

    >>> without_spark_catalog("spark_catalog.sales.orders"), without_spark_catalog("sales.orders")
    ('sales.orders', 'sales.orders')
    """
    parts = split_name(name)
    if len(parts) > 2 and parts[0].lower() == _SPARK_CATALOG:
        return ".".join("`" + p.replace("`", "``") + "`" if "." in p else p for p in parts[1:])
    return name


def find_table(spark: SparkSession, name: str) -> CatalogTableReference:
    """The table with a name; ``delta.`/path``` is its own location."""
    names, wanted = session_catalog(spark), without_spark_catalog(name)
    full = names.parse(wanted)
    by_path = full.namespace == "delta" and "/" in full.table
    if not by_path and not names.exists(wanted):
        raise missing_table(name, f"{names.place} has no table of that name")
    location = names.locate(wanted)
    if not table_exists_at(spark, location):
        raise missing_table(name, f"there is no Delta log at {location}")
    return CatalogTableReference(location=location, name=None if by_path else str(full))


def table_location(
    spark: SparkSession, path_or_name: str | os.PathLike[str]
) -> str | os.PathLike[str]:
    """The location of a table given by path or name.

    As on the command line: what has a slash or a scheme, or exists, is a path.
    """
    if not isinstance(path_or_name, str):
        return path_or_name
    is_by_path = path_or_name.lower().startswith("delta.`")
    if not is_by_path and ("/" in path_or_name or ":" in path_or_name):
        return path_or_name
    if not is_by_path and Path(path_or_name).exists():
        return path_or_name
    return find_table(spark, path_or_name).location


def table_exists_at(spark: SparkSession, location: str) -> bool:
    """Whether there is a table, asked with the session's store settings."""
    return Table.exists(location, options=settings_of(spark, location).options or None)


def managed_location(spark: SparkSession, name: TableName) -> str:
    """The location of a table without one, as Spark lays out its warehouse."""
    warehouse = session_conf(spark, _WAREHOUSE, "spark-warehouse").rstrip("/")
    folder = "" if name.namespace == "default" else f"{name.namespace}.db/"
    return parse_location(f"{warehouse}/{folder}{name.table}").url


def missing_table(asked: str, why: str) -> UserError:
    """The error of Delta for a path or name without a table."""
    return UserError(
        Code.TABLE_NOT_FOUND,
        f"`{asked}` is not a Delta table.",
        why=why,
        fix="Check the spelling, or create the table with `DeltaTable.create(spark)`.",
        delta_class="DELTA_MISSING_DELTA_TABLE",
        fields={"table": asked},
    )
