"""Spark's parsed statements, which live in the driver's JVM, as Python walks and changes them.

A tree is never changed in place: a node with another child is a copy that Spark makes, which keeps
the node's place in the text, so that errors point to what the user wrote.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

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


@dataclass(frozen=True, slots=True)
class _SparkClasses:
    """Values of the JVM that every statement needs; a session looks them up once."""

    patterns: Any
    relations: Any
    """What a tree holds somewhere if it names a table."""
    filters: Any
    """What a tree holds somewhere if it keeps some rows of a table only."""
    tree_node: Any
    logical_plan: Any
    command: Any
    objects: Any
    to_seq: Any
    alias: Any
    alias_identifier: Any

    @classmethod
    def of(cls, spark: SparkSession) -> _SparkClasses:
        """Those of a session; they do not keep it alive."""
        found = _CLASSES.get(spark)
        if found is None:
            found = _CLASSES[spark] = cls._looked_up(spark)
        return found

    @classmethod
    def _looked_up(cls, spark: SparkSession) -> _SparkClasses:
        patterns = java_class(spark, f"{_CATALYST}.trees.TreePattern")
        to_seq = java_class(spark, "org.apache.spark.api.python.PythonUtils").toSeq
        class_named = java_class(spark, "java.lang.Class").forName
        class_tags = java_class(spark, "scala.reflect.ClassTag$")
        plans = f"{_CATALYST}.plans.logical"
        return cls(
            patterns=patterns,
            relations=to_seq(
                [
                    patterns.UNRESOLVED_RELATION(),
                    patterns.RELATION_TIME_TRAVEL(),
                    patterns.UNRESOLVED_TABLE_VALUED_FUNCTION(),
                    patterns.PLAN_WITH_UNRESOLVED_IDENTIFIER(),
                ]
            ),
            filters=to_seq([patterns.FILTER(), patterns.JOIN(), patterns.UNRESOLVED_HAVING()]),
            tree_node=class_named(f"{_CATALYST}.trees.TreeNode"),
            logical_plan=class_named(f"{plans}.LogicalPlan"),
            command=class_named(f"{plans}.Command"),
            objects=getattr(class_tags, "MODULE$").AnyRef(),
            to_seq=to_seq,
            alias=java_class(spark, f"{plans}.SubqueryAlias"),
            alias_identifier=java_class(spark, f"{_CATALYST}.AliasIdentifier"),
        )


_CLASSES: Final[WeakKeyDictionary[SparkSession, _SparkClasses]] = WeakKeyDictionary()


class PlanTree:
    """What Spark's classes for trees offer."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._classes = _SparkClasses.of(spark)

    def parse(self, text: str) -> Any:
        """The statement as Spark's parser reads it; its errors are Spark's own."""
        jsession: Any = self._spark._jsparkSession
        return jsession.sessionState().sqlParser().parsePlan(text)

    def expression(self, text: str) -> Any:
        """An expression as Spark's parser reads it."""
        jsession: Any = self._spark._jsparkSession
        return jsession.sessionState().sqlParser().parseExpression(text)

    def sequence(self, values: list[Any]) -> Any:
        """A Scala sequence."""
        return self._classes.to_seq(values)

    def aliased(self, plan: Any, names: Sequence[str]) -> Any:
        """A plan whose columns can be named with these names before them."""
        *levels, name = names
        identifier = self._classes.alias_identifier(name, self.sequence(levels))
        return self._classes.alias(identifier, plan)

    def has_relations(self, node: Any) -> bool:
        """Whether a table or a function that returns rows is named somewhere below."""
        return bool(node.containsAnyPattern(self._classes.relations))

    def has_queries(self, node: Any) -> bool:
        """Whether an expression holds a query."""
        return bool(node.containsPattern(self._classes.patterns.PLAN_EXPRESSION()))

    def has_filters(self, node: Any) -> bool:
        """Whether some rows may be left out somewhere below."""
        return bool(node.containsAnyPattern(self._classes.filters))

    def is_plan(self, node: Any) -> bool:
        """Whether a node is a plan and not an expression."""
        return bool(self._classes.logical_plan.isInstance(node))

    def is_command(self, plan: Any) -> bool:
        """Whether a plan does something, and is not a query."""
        return bool(self._classes.command.isInstance(plan))

    def with_column_names(self, plan: Any, names: Sequence[str]) -> Any:
        """The plan with other names for its columns."""
        aliases = java_class(self._spark, f"{_CATALYST}.analysis.UnresolvedSubqueryColumnAliases")
        return aliases(self.sequence(list(names)), plan)

    def is_node(self, value: Any) -> bool:
        """Whether a value is a node of a tree."""
        return hasattr(value, "getClass") and self._classes.tree_node.isInstance(value)

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
        members = node.productIterator().toArray(self._classes.objects)
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
