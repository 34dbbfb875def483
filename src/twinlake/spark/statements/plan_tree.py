"""Spark's parsed statements, which live in the driver's JVM, as Python walks and changes them.

A tree is never changed in place: a node with another child is a copy that Spark makes, which keeps
the node's place in the text, so that errors point to what the user wrote.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.classic.column import Column as ClassicColumn

from twinlake.spark.spark_types import java_class

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import Column, SparkSession

__all__ = ["PlanTree", "below", "items", "option", "text_of", "texts"]

_CATALYST = "org.apache.spark.sql.catalyst"


def items(sequence: Any) -> list[Any]:
    """The elements of a Scala sequence."""
    return [sequence.apply(position) for position in range(sequence.size())]


def texts(sequence: Any) -> tuple[str, ...]:
    """The elements of a Scala sequence of strings."""
    return tuple(str(each) for each in items(sequence))


def option(value: Any) -> Any:
    """What is in a Scala option, or None."""
    return value.get() if value.isDefined() else None


class PlanTree:
    """What Spark's classes for trees offer, with the classes looked up once."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def parse(self, text: str) -> Any:
        """The statement as Spark's parser reads it; its errors are Spark's own."""
        jsession: Any = self._spark._jsparkSession
        return jsession.sessionState().sqlParser().parsePlan(text)

    def expression(self, text: str) -> Any:
        """An expression as Spark's parser reads it."""
        jsession: Any = self._spark._jsparkSession
        return jsession.sessionState().sqlParser().parseExpression(text)

    @cached_property
    def _patterns(self) -> Any:
        return java_class(self._spark, f"{_CATALYST}.trees.TreePattern")

    @cached_property
    def _relations(self) -> Any:
        """What a tree holds somewhere if it names a table."""
        patterns = self._patterns
        return self.sequence(
            [
                patterns.UNRESOLVED_RELATION(),
                patterns.RELATION_TIME_TRAVEL(),
                patterns.UNRESOLVED_TABLE_VALUED_FUNCTION(),
                patterns.PLAN_WITH_UNRESOLVED_IDENTIFIER(),
            ]
        )

    @cached_property
    def _filters(self) -> Any:
        """What a tree holds somewhere if it keeps some rows of a table only."""
        patterns = self._patterns
        return self.sequence([patterns.FILTER(), patterns.JOIN(), patterns.UNRESOLVED_HAVING()])

    @cached_property
    def _tree_node(self) -> Any:
        return java_class(self._spark, "java.lang.Class").forName(f"{_CATALYST}.trees.TreeNode")

    @cached_property
    def _objects(self) -> Any:
        return java_class(self._spark, "scala.reflect.ClassTag$").__getattr__("MODULE$").AnyRef()

    def sequence(self, values: list[Any]) -> Any:
        """A Scala sequence."""
        return java_class(self._spark, "org.apache.spark.api.python.PythonUtils").toSeq(values)

    def has_relations(self, node: Any) -> bool:
        """Whether a table or a function that returns rows is named somewhere below."""
        return bool(node.containsAnyPattern(self._relations))

    def has_filters(self, node: Any) -> bool:
        """Whether some rows may be left out somewhere below."""
        return bool(node.containsAnyPattern(self._filters))

    @cached_property
    def _logical_plan(self) -> Any:
        name = f"{_CATALYST}.plans.logical.LogicalPlan"
        return java_class(self._spark, "java.lang.Class").forName(name)

    def is_plan(self, node: Any) -> bool:
        """Whether a node is a plan and not an expression."""
        return bool(self._logical_plan.isInstance(node))

    def is_command(self, plan: Any) -> bool:
        """Whether a plan does something, and is not a query."""
        name = f"{_CATALYST}.plans.logical.Command"
        return bool(java_class(self._spark, "java.lang.Class").forName(name).isInstance(plan))

    def with_column_names(self, plan: Any, names: Sequence[str]) -> Any:
        """The plan with other names for its columns."""
        aliases = java_class(self._spark, f"{_CATALYST}.analysis.UnresolvedSubqueryColumnAliases")
        return aliases(self.sequence(list(names)), plan)

    def is_node(self, value: Any) -> bool:
        """Whether a value is a node of a tree."""
        return hasattr(value, "getClass") and self._tree_node.isInstance(value)

    def rebuilt(self, node: Any, change: Callable[[Any], Any], *, whole: bool = False) -> Any:
        """The node with its members changed, those within sequences and options included.

        ``change`` gets each node right below and returns it, or what stands for it.
        ``whole``: look at members that are no children as well.
        """
        if not whole and self.is_plan(node) and node.subqueries().isEmpty():
            # Expressions without a query in them are many, and there is nothing to change in them.
            old = items(node.children())
            new = [change(each) for each in old]
            if all(o is n for o, n in zip(old, new, strict=True)):
                return node
            return node.withNewChildren(self.sequence(new))
        members = node.productIterator().toArray(self._objects)
        changed = False
        for position in range(len(members)):
            new = self._changed(members[position], change)
            if new is not None:
                members[position] = new
                changed = True
        return node.makeCopy(members) if changed else node

    def _changed(self, member: Any, change: Callable[[Any], Any]) -> Any:
        """The member after the change, or None if it stays."""
        if not hasattr(member, "getClass"):
            return None
        if self.is_node(member):
            new = change(member)
            return None if new is member else new
        kind = str(member.getClass().getName())
        if kind == "scala.Some":
            new = self._changed(member.get(), change)
            return None if new is None else java_class(self._spark, "scala.Some")(new)
        if kind.startswith("scala.Tuple2"):
            new = self._changed(member._2(), change)
            first = member._1()
            return None if new is None else java_class(self._spark, "scala.Tuple2")(first, new)
        if kind.startswith("scala.collection.immutable.") and hasattr(member, "apply"):
            return self._changed_sequence(member, change)
        return None

    def _changed_sequence(self, sequence: Any, change: Callable[[Any], Any]) -> Any:
        if "Map" in str(sequence.getClass().getName()):
            return None
        old = items(sequence)
        new = [self._changed(each, change) for each in old]
        if all(each is None for each in new):
            return None
        return self.sequence([o if n is None else n for o, n in zip(old, new, strict=True)])

    def column(self, expression: Any) -> Column:
        """A parsed expression as a column, as it is."""
        utils = java_class(self._spark, "org.apache.spark.sql.classic.ExpressionUtils")
        return ClassicColumn(utils.column(expression))

    def evaluated(self, expression: Any) -> Any:
        """The value of a literal; None for anything that needs more than looking at it."""
        if str(expression.nodeName()) != "Literal":
            return None
        value = expression.value()
        return None if value is None else value if isinstance(value, int) else str(value)


def text_of(node: Any, text: str) -> str:
    """What the user wrote for a node."""
    origin = node.origin()
    first, last = option(origin.startIndex()), option(origin.stopIndex())
    return text if first is None or last is None else text[first : last + 1]


def below(plan: Any) -> Iterator[tuple[Any, Any]]:
    """Each node of a plan and of the queries within it, and the node right above."""
    waiting = [(plan, None)]
    while waiting:
        node, above = waiting.pop()
        yield node, above
        waiting += [(child, node) for child in items(node.children())]
        waiting += [(query, None) for query in items(node.subqueries())]
