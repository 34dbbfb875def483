"""ALTER TABLE as Delta has it: constraints, features, clustering and identity columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, Self

from twinlake.errors import Code, UnsupportedFeature

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from twinlake.spark.statements.queries.statement import SparkStatement
    from twinlake.spark.statements.syntax.cursor import NameParts, TokenCursor

__all__ = ["AddConstraint", "ClusterTable", "DropConstraint", "DropFeature", "SyncIdentity"]


def _altered(cursor: TokenCursor) -> NameParts | None:
    """The table of an ALTER TABLE."""
    return cursor.table_or_none() if cursor.take("ALTER", "TABLE") else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddConstraint:
    """``ALTER TABLE table ADD CONSTRAINT name CHECK (expression)``."""

    table: NameParts
    name: str
    expression: str
    """As it is written, comments included."""

    @classmethod
    def parse(cls, cursor: TokenCursor) -> Self | None:
        """The statement, if it is one; keys are Spark's to refuse."""
        table = _altered(cursor)
        if table is None or not cursor.take("ADD", "CONSTRAINT"):
            return None
        name = cursor.name_part()
        if not cursor.take("CHECK"):
            return None
        expression = cursor.bracketed_text()
        cursor.expect_end()
        return cls(table=table, name=name, expression=expression)

    def run(self, statement: SparkStatement) -> DataFrame:
        """Nothing."""
        spark = statement.spark
        table = statement.names.require(self.table, "ALTER TABLE").open(spark)
        table.add_constraint(self.name, self.expression, spark=spark)
        return statement.nothing()


@dataclass(frozen=True, slots=True, kw_only=True)
class DropConstraint:
    """``ALTER TABLE table DROP CONSTRAINT [IF EXISTS] name``."""

    table: NameParts
    name: str
    if_exists: bool

    @classmethod
    def parse(cls, cursor: TokenCursor) -> Self | None:
        """The statement, if it is one."""
        table = _altered(cursor)
        if table is None or not cursor.take("DROP", "CONSTRAINT"):
            return None
        if_exists = cursor.take("IF", "EXISTS")
        name = cursor.name_part()
        cursor.expect_end()
        return cls(table=table, name=name, if_exists=if_exists)

    def run(self, statement: SparkStatement) -> DataFrame:
        """Nothing."""
        table = statement.names.require(self.table, "ALTER TABLE").open(statement.spark)
        table.drop_constraint(self.name, if_exists=self.if_exists)
        return statement.nothing()


@dataclass(frozen=True, slots=True, kw_only=True)
class DropFeature:
    """``ALTER TABLE table DROP FEATURE name [TRUNCATE HISTORY]``."""

    table: NameParts
    feature: str
    truncate: bool

    @classmethod
    def parse(cls, cursor: TokenCursor) -> Self | None:
        """The statement, if it is one; the feature is a word or a string."""
        table = _altered(cursor)
        if table is None or not cursor.take("DROP", "FEATURE"):
            return None
        feature = cursor.name_part() if cursor.token.name else cursor.string()
        truncate = cursor.take("TRUNCATE", "HISTORY")
        cursor.expect_end()
        return cls(table=table, feature=feature, truncate=truncate)

    def run(self, statement: SparkStatement) -> DataFrame:
        """Nothing."""
        table = statement.delta_table(statement.names.require(self.table, "ALTER TABLE"))
        table.dropFeatureSupport(self.feature, self.truncate)
        return statement.nothing()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTable:
    """``ALTER TABLE table CLUSTER BY (columns) | NONE``."""

    table: NameParts

    @classmethod
    def parse(cls, cursor: TokenCursor) -> Self | None:
        """The statement, if it is one."""
        table = _altered(cursor)
        if table is None or not cursor.take("CLUSTER", "BY"):
            return None
        if not cursor.take("NONE"):
            cursor.names()
        cursor.expect_end()
        return cls(table=table)

    def run(self, statement: SparkStatement) -> NoReturn:
        """Refuse it."""
        statement.names.require(self.table, "ALTER TABLE")
        raise _later(
            "ALTER TABLE ... CLUSTER BY",
            "change the clustering columns of a table",
            "Give the columns when the table is made: `CREATE TABLE ... CLUSTER BY (COLUMNS)`.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncIdentity:
    """``ALTER TABLE table ALTER COLUMN column SYNC IDENTITY``."""

    table: NameParts

    @classmethod
    def parse(cls, cursor: TokenCursor) -> Self | None:
        """The statement, if it is one."""
        table = _altered(cursor)
        if table is None or not (cursor.take("ALTER") or cursor.take("CHANGE")):
            return None
        cursor.take("COLUMN")
        if not cursor.token.name:
            return None
        cursor.name()
        if not cursor.take("SYNC", "IDENTITY"):
            return None
        cursor.expect_end()
        return cls(table=table)

    def run(self, statement: SparkStatement) -> NoReturn:
        """Refuse it."""
        statement.names.require(self.table, "ALTER TABLE")
        raise _later(
            "ALTER TABLE ... SYNC IDENTITY",
            "move the next value of an identity column behind the largest one",
            "Let the table give out the values, which moves it with every write.",
        )


def _later(name: str, what: str, fix: str) -> UnsupportedFeature:
    return UnsupportedFeature(
        Code.NOT_YET,
        f"{name} is not supported yet.",
        why=f"a later release of twinlake will {what}",
        fix=fix,
        fields={"name": name},
    )
