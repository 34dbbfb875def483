"""Statements about the versions of a table: DESCRIBE HISTORY, DESCRIBE DETAIL and RESTORE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from twinlake.spark.api.result_frames import detail_frame, history_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from twinlake.spark.statements.queries.statement import SparkStatement
    from twinlake.spark.statements.syntax.cursor import NameParts, TokenCursor

__all__ = ["DescribeDetail", "DescribeHistory", "PointInTime", "RestoreTable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeHistory:
    """``DESCRIBE HISTORY table [LIMIT n]``."""

    table: NameParts
    limit: int | None

    @classmethod
    def parse(cls, cursor: TokenCursor) -> Self | None:
        """The statement, if it is one; a table may be called HISTORY, too."""
        if not (_describes(cursor) and cursor.take("HISTORY")) or cursor.at_end:
            return None
        table = cursor.table()
        limit = cursor.integer() if cursor.take("LIMIT") else None
        cursor.expect_end()
        return cls(table=table, limit=limit)

    def run(self, statement: SparkStatement) -> DataFrame:
        """One row a version, newest first."""
        found = statement.names.require(
            self.table, "DESCRIBE HISTORY", delta_class="DELTA_TABLE_ONLY_OPERATION"
        )
        return history_frame(statement.spark, found.open(statement.spark).history(self.limit))


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeDetail:
    """``DESCRIBE DETAIL table``."""

    table: NameParts

    @classmethod
    def parse(cls, cursor: TokenCursor) -> Self | None:
        """The statement, if it is one; a table may be called DETAIL, too."""
        if not (_describes(cursor) and cursor.take("DETAIL")) or cursor.at_end:
            return None
        table = cursor.table()
        cursor.expect_end()
        return cls(table=table)

    def run(self, statement: SparkStatement) -> DataFrame:
        """One row about the table."""
        found = statement.names.require(self.table, "DESCRIBE DETAIL")
        table = found.open(statement.spark)
        return detail_frame(statement.spark, table, name=found.reference.name)


def _describes(cursor: TokenCursor) -> bool:
    return cursor.take("DESCRIBE") or cursor.take("DESC")


@dataclass(frozen=True, slots=True, kw_only=True)
class PointInTime:
    """``VERSION AS OF n`` or ``TIMESTAMP AS OF '...'``."""

    version: int | None = None
    timestamp: str | None = None

    @classmethod
    def parse(cls, cursor: TokenCursor) -> Self | None:
        """The version that is asked for, if one is."""
        cursor.take("FOR")
        if cursor.take("VERSION") or cursor.take("SYSTEM_VERSION"):
            cursor.expect("AS", "OF")
            return cls(version=cursor.integer())
        if cursor.take("TIMESTAMP") or cursor.take("SYSTEM_TIME"):
            cursor.expect("AS", "OF")
            return cls(timestamp=cursor.string())
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreTable:
    """``RESTORE [TABLE] table [TO] VERSION AS OF n | TIMESTAMP AS OF '...'``."""

    table: NameParts
    at: PointInTime

    @classmethod
    def parse(cls, cursor: TokenCursor) -> Self | None:
        """The statement, if it is one."""
        if not cursor.take("RESTORE"):
            return None
        cursor.take("TABLE")
        table = cursor.table()
        cursor.take("TO")
        at = PointInTime.parse(cursor)
        if at is None:
            cursor.refuse("expected VERSION AS OF or TIMESTAMP AS OF")
        cursor.expect_end()
        return cls(table=table, at=at)

    def run(self, statement: SparkStatement) -> DataFrame:
        """One row of metrics."""
        table = statement.delta_table(statement.names.require(self.table, "RESTORE"))
        if self.at.version is not None:
            return table.restoreToVersion(self.at.version)
        return table.restoreToTimestamp(str(self.at.timestamp))
