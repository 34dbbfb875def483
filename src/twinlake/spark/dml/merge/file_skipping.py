"""Which files a MERGE need not read, by those of its conditions that concern the table alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twinlake.commit.plans import When
from twinlake.schema.predicates import And, Opaque, Or
from twinlake.spark.dml.merge.resolution import conjuncts
from twinlake.spark.read.conditions import skipping_expression

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from twinlake.protocol import Metadata
    from twinlake.schema.predicates import Expr
    from twinlake.spark.dml.merge.clauses import MergeScopes, ResolvedClause
    from twinlake.spark.dml.merge.resolution import ResolvedExpression

__all__ = ["target_only"]


def target_only(
    spark: SparkSession,
    metadata: Metadata,
    scopes: MergeScopes,
    condition: ResolvedExpression,
    clauses: Sequence[ResolvedClause],
    *,
    alias: str | None,
) -> Expr | None:
    """What has to be true of a row of the table for the MERGE to look at it; None: nothing.

    Where there are just WHEN MATCHED clauses, one of their conditions has to be true as well. Delta
    Spark leaves out files by these, too, and with them the rows that are matched more than once.
    """

    def parts(of: ResolvedExpression | None) -> list[Expr]:
        found = () if of is None else conjuncts(of.expression)
        return [
            _skipping(spark, metadata, alias, part) for part in found if scopes.target.covers(part)
        ]

    wanted = parts(condition)
    if all(clause.clause.when is When.MATCHED for clause in clauses):
        taken = [parts(clause.condition) for clause in clauses]
        if all(taken):
            wanted.append(_one(Or, [_one(And, found) for found in taken]))
    return _one(And, wanted) if wanted else None


def _one(join: Callable[[tuple[Expr, ...]], Expr], parts: Sequence[Expr]) -> Expr:
    return parts[0] if len(parts) == 1 else join(tuple(parts))


def _skipping(spark: SparkSession, metadata: Metadata, alias: str | None, part: Any) -> Expr:
    """A condition on the table alone as files are skipped by it."""
    from sqlglot.errors import SqlglotError

    sql = str(part.sql())
    try:
        return skipping_expression(spark, _unqualified(sql, alias), metadata)
    except SqlglotError:
        return Opaque(sql)


def _unqualified(sql: str, alias: str | None) -> str:
    """The condition without the name of the table before its columns."""
    if alias is None:
        return sql
    from sqlglot import exp, parse_one

    tree = parse_one(sql, dialect="spark")
    for column in list(tree.find_all(exp.Column)):
        parts = column.parts
        if len(parts) > 1 and parts[0].name.casefold() == alias.casefold():
            _, name, *below = (part.copy() for part in parts)
            bare = exp.column(name)
            column.replace(exp.Dot.build([bare, *below]) if below else bare)
    return tree.sql(dialect="spark")
