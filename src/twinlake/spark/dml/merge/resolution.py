"""Expressions of a MERGE, resolved by Spark before anything is read.

Expressions are tried on stand-ins: frames without rows that have the column ids of the real ones.
So looking at them costs the same however large the source's plan is, and what was resolved here
means the same columns in the real join.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql.classic.column import Column as ClassicColumn

from twinlake.errors import Code, UserError
from twinlake.spark.spark_types import from_spark, java_class

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from twinlake.schema import DataType, Struct

__all__ = [
    "ExpressionScope",
    "ResolvedExpression",
    "conjuncts",
    "has_equal_keys",
    "is_repeatable",
    "shares_columns",
]

_AGGREGATE: Final = ("MISSING_GROUP_BY", "GROUP_BY_AGGREGATE")
_EQUATIONS: Final = ("EqualTo", "EqualNullSafe")
_EXPRESSIONS: Final = "org.apache.spark.sql.catalyst.expressions"
_UNRESOLVED: Final = ("UNRESOLVED_COLUMN", "UNRESOLVED_FIELD", "FIELD_NOT_FOUND")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedExpression:
    """An expression whose columns are known."""

    column: Column
    type: DataType
    text: str
    """As Delta's history shows it."""
    expression: Any
    """The expression itself, in the driver's JVM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionScope:
    """The columns that the expressions of a clause may name."""

    frame: DataFrame

    @property
    def schema(self) -> Struct:
        """The columns with their types."""
        return from_spark(self.frame.schema)

    @property
    def _plan(self) -> Any:
        jdf: Any = self.frame._jdf
        return jdf.queryExecution().analyzed()

    def attributes(self) -> tuple[ResolvedExpression, ...]:
        """All columns, in order."""
        output = self._plan.output()
        return tuple(
            self._resolved(output.apply(position), field.type, "")
            for position, field in enumerate(self.schema)
        )

    def covers(self, expression: Any) -> bool:
        """Whether an expression needs no other columns than these."""
        return bool(expression.references().subsetOf(self._plan.outputSet()))

    def condition(self, condition: str | Column, place: str) -> ResolvedExpression:
        """A condition: true or false, the same each time, about one pair of rows."""
        column = F.expr(condition) if isinstance(condition, str) else condition
        (found,) = self.values([column], place)
        expression: Any = found.expression
        subqueries = java_class(self.frame.sparkSession, f"{_EXPRESSIONS}.SubqueryExpression")
        if not expression.deterministic():
            raise _not_allowed(
                "Functions that are not deterministic",
                place,
                expression,
                "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
            )
        if subqueries.hasSubquery(expression):
            raise _not_allowed("Subqueries", place, expression, "DELTA_UNSUPPORTED_SUBQUERY")
        return found

    def values(self, columns: Sequence[Column], place: str) -> tuple[ResolvedExpression, ...]:
        """Expressions, resolved together."""
        if not columns:
            return ()
        named = [column.alias(f"c{position}") for position, column in enumerate(columns)]
        try:
            chosen = self.frame.select(*named)
        except AnalysisException as error:
            raise self._translated(error, place) from error
        jdf: Any = chosen._jdf
        analyzed = jdf.queryExecution().analyzed()
        if analyzed.nodeName() == "Aggregate":
            raise _not_allowed(
                "Aggregate functions", place, None, "DELTA_AGGREGATION_NOT_SUPPORTED"
            )
        shown = jdf.queryExecution().optimizedPlan()
        same = shown.nodeName() == "Project"
        found = []
        for position, field in enumerate(from_spark(chosen.schema)):
            expression = analyzed.projectList().apply(position).child()
            if not self.covers(expression):
                raise _not_allowed(
                    "Window functions and generators",
                    place,
                    expression,
                    "DELTA_UNSUPPORTED_EXPRESSION",
                )
            simple = shown.projectList().apply(position) if same else expression
            text = str((simple.child() if simple.nodeName() == "Alias" else simple).toString())
            found.append(self._resolved(expression, field.type, text))
        return tuple(found)

    def _resolved(self, expression: Any, kind: DataType, text: str) -> ResolvedExpression:
        utils = java_class(self.frame.sparkSession, "org.apache.spark.sql.classic.ExpressionUtils")
        column = ClassicColumn(utils.column(expression))
        return ResolvedExpression(column=column, type=kind, text=text, expression=expression)

    def _translated(self, error: AnalysisException, place: str) -> UserError | AnalysisException:
        condition = error.getCondition() or ""
        if condition.startswith(_AGGREGATE):
            return _not_allowed(
                "Aggregate functions", place, None, "DELTA_AGGREGATION_NOT_SUPPORTED"
            )
        if not condition.startswith(_UNRESOLVED):
            return error
        name = (error.getMessageParameters() or {}).get("objectName", "")
        columns = [str(self._plan.output().apply(i).sql()) for i in range(len(self.frame.columns))]
        return UserError(
            Code.COLUMN_NOT_FOUND,
            f"{name} in the {place} of MERGE cannot be resolved.",
            why=f"the columns are {', '.join(columns)}",
            fix="Name a column that the clause can see: NOT MATCHED clauses see the source only, "
            "NOT MATCHED BY SOURCE clauses the target only.",
            delta_class="DELTA_MERGE_UNRESOLVED_EXPRESSION",
            fields={"column": name, "place": place},
        )


def _not_allowed(what: str, place: str, expression: Any, delta_class: str) -> UserError:
    text = "" if expression is None else str(expression.sql())
    return UserError(
        Code.INVALID_ARGUMENT,
        f"{what} cannot be used in the {place} of MERGE.",
        why=f"the expression is {text}" if text else "each pair of rows is looked at on its own",
        fix="Compute the value in the source before merging.",
        delta_class=delta_class,
        fields={"place": place, "expression": text},
    )


def conjuncts(expression: Any) -> Iterator[Any]:
    """The parts of a condition that all have to be true."""
    if expression.nodeName() == "And":
        yield from conjuncts(expression.left())
        yield from conjuncts(expression.right())
    else:
        yield expression


def has_equal_keys(
    condition: ResolvedExpression, one: ExpressionScope, other: ExpressionScope
) -> bool:
    """Whether a condition has an equation that an equi-join can use.

    That is an equation of an expression of one side and an expression of the other.
    """

    def sides(part: Any) -> bool:
        left, right = part.left(), part.right()
        if left.references().isEmpty() or right.references().isEmpty():
            return False
        return (one.covers(left) and other.covers(right)) or (
            other.covers(left) and one.covers(right)
        )

    equations = (p for p in conjuncts(condition.expression) if p.nodeName() in _EQUATIONS)
    return any(sides(part) for part in equations)


def is_repeatable(spark: SparkSession, condition: ResolvedExpression) -> bool:
    """Whether a deterministic condition comes out the same in another query, later."""
    jvm: Any = spark._jvm
    patterns = jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    passing = (patterns.CURRENT_LIKE(), patterns.PYTHON_UDF())
    return not any(condition.expression.containsPattern(pattern) for pattern in passing)


def shares_columns(one: DataFrame, other: DataFrame) -> bool:
    """Whether two frames have columns with the same ids, as frames made from each other have."""
    plans: list[Any] = [frame._jdf.queryExecution().analyzed() for frame in (one, other)]
    return not plans[0].outputSet().intersect(plans[1].outputSet()).isEmpty()
