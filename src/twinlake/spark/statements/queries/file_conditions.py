"""Queries over tables of ours: two passes, so that files are skipped by every condition.

The first pass puts an empty relation where the statement names a table, lets Spark analyse and
optimise that, and looks which conditions arrive at each of them: through joins, sub-queries, common
table expressions and views. The second pass takes the same parsed statement and puts scans there
that list just the files which may hold rows of those conditions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from twinlake.schema.predicates import And, Or
from twinlake.spark.read.conditions import empty_frame, skipping_expression
from twinlake.spark.read.table_scan import Scan
from twinlake.spark.spark_types import java_class
from twinlake.spark.statements.queries.relations import RelationFinder
from twinlake.spark.statements.syntax.plan_tree import below, items, texts

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import SparkSession

    from twinlake.protocol import Metadata
    from twinlake.schema.predicates import Expr
    from twinlake.spark.statements.queries.relations import TableUse
    from twinlake.spark.statements.queries.statement import SparkStatement
    from twinlake.spark.statements.syntax.cursor import NameParts

__all__ = ["with_tables"]

_FILTER: Final = "Filter"
_SOURCE: Final = "LogicalRDD"


def with_tables(statement: SparkStatement, plan: Any) -> Any | None:
    """The parsed query over scans of our tables, or None if it names none of them."""
    tree = statement.tree
    if not tree.has_relations(plan):
        return None
    first = _EmptyRelations(statement)
    over_empty = RelationFinder(statement, first.relation).replaced(plan)
    if not first.uses:
        return None if over_empty is plan else over_empty
    conditions: dict[int, Expr] = {}
    if tree.has_filters(over_empty):
        conditions = first.conditions(over_empty)
    second = _Scans(statement.spark, conditions)
    return RelationFinder(statement, second.relation).replaced(plan)


@dataclass
class _EmptyRelations:
    """The first pass: relations without rows, known by the number of their source."""

    statement: SparkStatement
    uses: list[TableUse] = field(default_factory=list)
    _marks: dict[int, int] = field(default_factory=dict)

    def relation(self, use: TableUse) -> Any:
        frame: Any = empty_frame(self.statement.spark, use.snapshot.metadata)
        plan = frame._jdf.queryExecution().analyzed()
        # The optimiser copies relations; the source without rows stays the same.
        self._marks[int(plan.rdd().id())] = len(self.uses)
        self.uses.append(use)
        return plan

    def conditions(self, plan: Any) -> dict[int, Expr]:
        """The condition that arrives at each relation; a relation without one is read whole."""
        spark = self.statement.spark
        dataset = java_class(spark, "org.apache.spark.sql.classic.Dataset")
        execution = dataset.ofRows(spark._jsparkSession, plan).queryExecution()
        found: dict[int, list[Expr | None]] = {}
        for node, above in below(execution.optimizedPlan()):
            number = self._number(node)
            if number is None:
                continue
            expr = None
            if above is not None and str(above.nodeName()) == _FILTER:
                metadata = self.uses[number].snapshot.metadata
                expr = _skipping(spark, above.condition(), metadata)
            found.setdefault(number, []).append(expr)
        # A relation that is used twice is read by either of the conditions.
        whole = {number for number, exprs in found.items() if None in exprs}
        some = {
            number: [expr for expr in exprs if expr is not None]
            for number, exprs in found.items()
            if number not in whole
        }
        return {
            number: exprs[0] if len(exprs) == 1 else Or(tuple(exprs))
            for number, exprs in some.items()
        }

    def _number(self, node: Any) -> int | None:
        if not str(node.nodeName()).startswith(_SOURCE):
            return None
        return self._marks.get(int(node.rdd().id()))


def _skipping(spark: SparkSession, condition: Any, metadata: Metadata) -> Expr:
    """What of a condition on one relation can skip files."""
    attributes = items(condition.references().toSeq())
    qualifiers = {tuple(part.casefold() for part in texts(each.qualifier())) for each in attributes}
    conjuncts = unqualified_conjuncts(str(condition.sql()), qualifiers - {()})
    parts = tuple(skipping_expression(spark, part, metadata) for part in conjuncts)
    return parts[0] if len(parts) == 1 else And(parts)


def unqualified_conjuncts(sql: str, qualifiers: Collection[NameParts]) -> list[str]:
    """The parts of a condition that all have to be true, without names of tables before columns.

    >>> unqualified_conjuncts("((t.id > 7) AND (t.s.x = 't.id'))", [("t",)])
    ['id > 7', "s.x = 't.id'"]
    """
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        tree = parse_one(sql, dialect="spark")
    except SqlglotError:
        return [sql]
    for column in list(tree.find_all(exp.Column)):
        parts = column.parts
        for qualifier in qualifiers:
            rest = parts[len(qualifier) :]
            before = tuple(part.name.casefold() for part in parts[: len(qualifier)])
            if rest and before == qualifier:
                name, *inside = (part.copy() for part in rest)
                bare = exp.column(name)
                column.replace(exp.Dot.build([bare, *inside]) if inside else bare)
                break
    whole: Any = tree.unnest()
    parts_of = list(whole.flatten()) if isinstance(whole, exp.And) else [whole]
    return [str(part.unnest().sql(dialect="spark")) for part in parts_of]


@dataclass
class _Scans:
    """The second pass: scans, in the order in which the first pass met the relations."""

    spark: SparkSession
    conditions: dict[int, Expr]
    _next: int = 0

    def relation(self, use: TableUse) -> Any:
        files = use.snapshot.files(self.conditions.get(self._next))
        self._next += 1
        frame: Any = Scan(snapshot=use.snapshot, files=files).frame(self.spark)
        return frame._jdf.queryExecution().analyzed()
