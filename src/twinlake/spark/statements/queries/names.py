"""Which names of a statement mean tables of ours.

In this order: ``delta.`/path``` and ``twinlake.`/path```, temporary views, which are Spark's, the
session's catalog of names, and whatever else Spark knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from twinlake.errors import Code, UserError
from twinlake.spark.api.catalog import (
    CatalogTableReference,
    missing_table,
    session_catalog,
    table_exists_at,
)
from twinlake.spark.session import open_table, session_conf
from twinlake.spark.spark_types import quoted
from twinlake.storage import parse_location

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from twinlake.spark.statements.syntax.cursor import NameParts
    from twinlake.table import Names, Table

__all__ = ["FORMATS", "NO_ROWS", "SqlTable", "TableNames", "is_path", "shown_name"]

FORMATS: Final = frozenset({"delta", "twinlake"})
"""What a path is written after, and what USING may name."""
NO_ROWS: Final = "DELTA_TABLE_NOT_FOUND"
"""Delta's name for a path without a table in statements about rows."""
_SPARK_CATALOG: Final = "spark_catalog"


def is_path(parts: NameParts) -> bool:
    """Whether a name is a path of a table.

    >>> is_path(("delta", "/data/t")), is_path(("sales", "orders"))
    (True, False)
    """
    return len(parts) == 2 and parts[0].lower() in FORMATS and "/" in parts[1]


def shown_name(parts: NameParts) -> str:
    """A name as one writes it.

    >>> shown_name(("delta", "/data/t"))
    'delta.`/data/t`'
    """
    return ".".join(part if part.isidentifier() else quoted(part) for part in parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlTable:
    """A table of ours under the name that the statement has for it."""

    parts: NameParts
    reference: CatalogTableReference

    @property
    def location(self) -> str:
        """The URL of its folder."""
        return self.reference.location

    def open(
        self, spark: SparkSession, version: int | None = None, timestamp: object = None
    ) -> Table:
        """The table as it is now, or was."""
        return open_table(spark, self.location, version, timestamp)


class TableNames:
    """The names that one statement can use; the catalog is looked at when a name asks for it."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._found: dict[NameParts, SqlTable | None] = {}

    @cached_property
    def catalog(self) -> Names:
        """The session's catalog of names."""
        return session_catalog(self.spark)

    @cached_property
    def _views(self) -> Any:
        jsession: Any = self.spark._jsparkSession
        return jsession.sessionState().catalog()

    def temporary_view(self, parts: NameParts) -> Any:
        """Spark's temporary view of that name, or None."""
        if len(parts) != 1:
            return None
        found = self._views.getRawTempView(parts[0])
        return found.get() if found.isDefined() else None

    def find(self, parts: NameParts, *, missing: str | None = None) -> SqlTable | None:
        """The table of ours with a name, or None if the name is Spark's.

        ``missing``: Delta's name for the error where a path has no table.
        """
        if is_path(parts):
            return self._at_path(parts, missing)
        if self.temporary_view(parts) is not None:
            return None
        if parts not in self._found:
            self._found[parts] = self._named(parts)
        return self._found[parts]

    def require(
        self, parts: NameParts, statement: str, *, delta_class: str | None = None
    ) -> SqlTable:
        """The table of ours with a name, for a statement that nothing else can be used with.

        ``delta_class``: Delta's name for the error where a path has no table.
        """
        if self.temporary_view(parts) is not None:
            raise not_a_table(parts, statement)
        found = self.find(parts, missing=delta_class)
        if found is None:
            why = f"{self.catalog.place} has no table of that name"
            missing = missing_table(shown_name(parts), why)
            missing.delta_class = "TABLE_OR_VIEW_NOT_FOUND"
            raise missing
        return found

    def _at_path(self, parts: NameParts, missing: str | None) -> SqlTable:
        location = parse_location(parts[1]).url
        if not table_exists_at(self.spark, location):
            error = missing_table(shown_name(parts), f"there is no Delta log at {location}")
            error.delta_class = missing or error.delta_class
            raise error
        return SqlTable(parts=parts, reference=CatalogTableReference(location=location))

    def _named(self, parts: NameParts) -> SqlTable | None:
        bare = without_spark_catalog(parts)
        if not all(part.isprintable() and part for part in bare) or self._is_spark_catalog(bare):
            return None
        name = ".".join(quoted(part) for part in bare)
        if not self.catalog.exists(name):
            return None
        location, full = self.catalog.locate(name), str(self.catalog.parse(name))
        if not table_exists_at(self.spark, location):
            raise missing_table(shown_name(parts), f"there is no Delta log at {location}")
        return SqlTable(parts=parts, reference=CatalogTableReference(location=location, name=full))

    def _is_spark_catalog(self, parts: NameParts) -> bool:
        """Whether a name begins with a catalog that Spark was given."""
        if len(parts) < 3:
            return False
        return bool(session_conf(self.spark, f"spark.sql.catalog.{parts[0]}", ""))

    def qualifier(self, table: SqlTable) -> NameParts:
        """What may stand before the columns of a table, in full."""
        if is_path(table.parts):
            return (_SPARK_CATALOG, *table.parts)
        full = self.catalog.parse(self.text(table.parts))
        catalog = _SPARK_CATALOG if table.parts[0].lower() == _SPARK_CATALOG else full.catalog
        return (catalog, full.namespace, full.table)

    def is_taken(self, parts: NameParts) -> bool:
        """Whether the catalog has the name, with a table behind it or not."""
        return self.catalog.exists(self.text(parts))

    def text(self, parts: NameParts) -> str:
        """A name as the catalog of names takes it."""
        return ".".join(quoted(part) for part in without_spark_catalog(parts))


def without_spark_catalog(parts: NameParts) -> NameParts:
    """A name without Spark's own catalog before it."""
    if len(parts) > 2 and parts[0].lower() == _SPARK_CATALOG:
        return parts[1:]
    return parts


def not_a_table(parts: NameParts, statement: str) -> UserError:
    """The error for a statement on a view."""
    name = shown_name(parts)
    return UserError(
        Code.INVALID_ARGUMENT,
        f"{statement} cannot be run on {name}.",
        why="it is a temporary view, and only tables can be changed",
        fix="Name the table that the view reads, or its path.",
        delta_class="EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE",
        fields={"name": name, "statement": statement},
    )
