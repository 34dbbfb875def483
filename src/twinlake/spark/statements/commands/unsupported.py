"""Statements of Delta whose operation a later release brings: read, and refused by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, Self

from twinlake.errors import Code, UnsupportedFeature
from twinlake.spark.statements.commands.versions import PointInTime
from twinlake.spark.unsupported import unsupported_call

if TYPE_CHECKING:
    from twinlake.spark.statements.queries.statement import SparkStatement
    from twinlake.spark.statements.syntax.cursor import NameParts, TokenCursor

__all__ = ["AnalyzeDelta", "CloneTable", "ConvertToDelta", "GenerateManifest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateManifest:
    """``GENERATE mode FOR TABLE table``."""

    table: NameParts
    mode: str

    @classmethod
    def parse(cls, cursor: TokenCursor) -> Self | None:
        """The statement, if it is one."""
        if not cursor.take("GENERATE"):
            return None
        mode = cursor.name_part()
        cursor.expect("FOR", "TABLE")
        table = cursor.table()
        cursor.expect_end()
        return cls(table=table, mode=mode)

    def run(self, statement: SparkStatement) -> NoReturn:
        """Refuse it."""
        statement.names.require(self.table, "GENERATE")
        raise unsupported_call("DeltaTable.generate")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertToDelta:
    """``CONVERT TO DELTA table [NO STATISTICS] [PARTITIONED BY (...)]``."""

    table: NameParts

    @classmethod
    def parse(cls, cursor: TokenCursor) -> Self | None:
        """The statement, if it is one."""
        if not cursor.take("CONVERT"):
            return None
        cursor.expect("TO", "DELTA")
        table = cursor.table()
        cursor.take("NO", "STATISTICS")
        if cursor.take("PARTITIONED", "BY"):
            cursor.bracketed_text()
        cursor.expect_end()
        return cls(table=table)

    def run(self, statement: SparkStatement) -> NoReturn:  # noqa: ARG002
        """Refuse it."""
        raise unsupported_call("DeltaTable.convertToDelta")


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneTable:
    """``CREATE [OR REPLACE] | REPLACE TABLE target [SHALLOW | DEEP] CLONE source [at] ...``."""

    target: NameParts
    source: NameParts
    at: PointInTime | None

    @classmethod
    def parse(cls, cursor: TokenCursor) -> Self | None:
        """The statement, if it is one; other ways to create a table are not looked at."""
        begins = (("CREATE", "OR", "REPLACE"), ("CREATE",), ("REPLACE",))
        if not any(cursor.take(*words) for words in begins) or not cursor.take("TABLE"):
            return None
        cursor.take("IF", "NOT", "EXISTS")
        target = cursor.table_or_none()
        if target is None:
            return None
        cursor.take("SHALLOW") or cursor.take("DEEP")
        if not cursor.take("CLONE"):
            return None
        source = cursor.table()
        at = PointInTime.parse(cursor)
        if cursor.take("TBLPROPERTIES"):
            cursor.bracketed_text()
        if cursor.take("LOCATION"):
            cursor.string()
        cursor.expect_end()
        return cls(target=target, source=source, at=at)

    def run(self, statement: SparkStatement) -> NoReturn:
        """Refuse it."""
        statement.names.require(self.source, "CLONE")
        if self.at is None:
            raise unsupported_call("DeltaTable.clone")
        by_version = self.at.version is not None
        name = "cloneAtVersion" if by_version else "cloneAtTimestamp"
        raise unsupported_call(f"DeltaTable.{name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyzeDelta:
    """``ANALYZE TABLE table COMPUTE DELTA STATISTICS``."""

    table: NameParts

    @classmethod
    def parse(cls, cursor: TokenCursor) -> Self | None:
        """The statement, if it is one; Spark has its own ANALYZE TABLE."""
        if not cursor.take("ANALYZE", "TABLE"):
            return None
        table = cursor.table_or_none()
        if table is None or not cursor.take("COMPUTE", "DELTA", "STATISTICS"):
            return None
        cursor.expect_end()
        return cls(table=table)

    def run(self, statement: SparkStatement) -> NoReturn:
        """Refuse it."""
        statement.names.require(self.table, "ANALYZE TABLE")
        raise UnsupportedFeature(
            Code.NOT_YET,
            "ANALYZE TABLE ... COMPUTE DELTA STATISTICS is not supported yet.",
            why="a later release of twinlake will compute statistics of files that have none",
            fix="Pack the files with `OPTIMIZE`, which gives new files statistics.",
            fields={"name": "ANALYZE TABLE COMPUTE DELTA STATISTICS"},
        )
