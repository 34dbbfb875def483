"""Statements that rewrite files and leave rows as they are: OPTIMIZE and REORG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from twinlake.errors import Code, UnsupportedFeature
from twinlake.spark.api.reorg import reorg
from twinlake.spark.maintenance.optimize import optimize
from twinlake.spark.unsupported import unsupported_call
from twinlake.table import clustering_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from twinlake.spark.statements.queries.statement import SparkStatement
    from twinlake.spark.statements.syntax.cursor import NameParts, TokenCursor

__all__ = ["OptimizeTable", "ReorgTable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizeTable:
    """``OPTIMIZE table [FULL] [WHERE ...] [ZORDER BY (...)]``."""

    table: NameParts
    full: bool
    where: str | None
    order: tuple[NameParts, ...]

    @classmethod
    def parse(cls, cursor: TokenCursor) -> Self | None:
        """The statement, if it is one."""
        if not cursor.take("OPTIMIZE"):
            return None
        table = cursor.table()
        full = cursor.take("FULL")
        where = cursor.text_before("ZORDER") if cursor.take("WHERE") else None
        order: list[NameParts] = []
        if cursor.take("ZORDER"):
            cursor.take("BY")
            order = cursor.names()
        cursor.expect_end()
        return cls(table=table, full=full, where=where, order=tuple(order))

    def run(self, statement: SparkStatement) -> DataFrame:
        """One row with path and metrics."""
        if self.order:
            raise unsupported_call("DeltaOptimizeBuilder.executeZOrderBy")
        table = statement.names.require(self.table, "OPTIMIZE").open(statement.spark)
        if self.full and not clustering_columns(table.snapshot):
            raise UnsupportedFeature(
                Code.NOT_YET,
                "OPTIMIZE FULL is for tables with clustering columns.",
                why=f"{table.location} has none",
                fix="Leave FULL out.",
                delta_class="DELTA_OPTIMIZE_FULL_NOT_SUPPORTED",
                fields={"table": table.location},
            )
        return optimize(statement.spark, table, self.where).to_frame(statement.spark)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReorgTable:
    """``REORG TABLE table [WHERE ...] APPLY (PURGE | UPGRADE UNIFORM (...))``."""

    table: NameParts
    where: str | None
    upgrade: int | None

    @classmethod
    def parse(cls, cursor: TokenCursor) -> Self | None:
        """The statement, if it is one."""
        if not cursor.take("REORG"):
            return None
        cursor.expect("TABLE")
        table = cursor.table()
        where = cursor.text_before("APPLY") if cursor.take("WHERE") else None
        cursor.expect("APPLY", "(")
        upgrade = None
        if cursor.take("UPGRADE"):
            cursor.expect("UNIFORM", "(", "ICEBERG_COMPAT_VERSION", "=")
            upgrade = cursor.integer()
            cursor.expect(")")
        else:
            cursor.expect("PURGE")
        cursor.expect(")")
        cursor.expect_end()
        return cls(table=table, where=where, upgrade=upgrade)

    def run(self, statement: SparkStatement) -> DataFrame:
        """One row with path and metrics."""
        spark = statement.spark
        table = statement.names.require(self.table, "REORG TABLE").open(spark)
        done = reorg(spark, table, self.where, upgrade_uniform=self.upgrade)
        return done.to_frame(spark)
