"""The tables that a parsed query names, found in their scopes and put in place of their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from twinlake.errors import Code, UserError
from twinlake.spark.spark_types import java_class
from twinlake.spark.statements.queries.names import NO_ROWS
from twinlake.spark.statements.syntax.cursor import TokenCursor
from twinlake.spark.statements.syntax.plan_tree import items, option, texts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from twinlake.log import Snapshot
    from twinlake.spark.statements.queries.names import SqlTable
    from twinlake.spark.statements.queries.statement import SparkStatement

__all__ = ["RelationFinder", "TableUse"]

_CHANGES: Final = "table_changes"
_Hidden = frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableUse:
    """A table where a query names it, at the version that it means."""

    table: SqlTable
    snapshot: Snapshot


class RelationFinder:
    """Puts what ``relation`` makes of a table where a query names the table."""

    def __init__(self, statement: SparkStatement, relation: Callable[[TableUse], Any]) -> None:
        self._statement = statement
        self._tree = statement.tree
        self._relation = relation
        self._handlers: Mapping[str, Callable[[Any, _Hidden], Any]] = {
            "UnresolvedRelation": self._named,
            "RelationTimeTravel": self._past,
            "UnresolvedTableValuedFunction": self._function,
            "PlanWithUnresolvedIdentifier": self._computed_name,
            "UnresolvedWith": self._with,
        }

    def replaced(self, plan: Any, hidden: _Hidden = frozenset()) -> Any:
        """The plan with our tables in it; itself if it names none.

        ``hidden``: names of common table expressions, which hide tables.
        """
        if not self._tree.has_relations(plan):
            return plan
        handler = self._handlers.get(str(plan.nodeName()))
        if handler is not None:
            return handler(plan, hidden)
        return self._tree.rebuilt(plan, lambda each: self.replaced(each, hidden))

    def _named(self, plan: Any, hidden: _Hidden) -> Any:
        parts = texts(plan.multipartIdentifier())
        if len(parts) == 1 and parts[0].casefold() in hidden:
            return plan
        view = self._statement.views.find(self._statement.names, parts)
        if view is not None:
            parsed = self._statement.views.plan_of(self._tree, view)
            # A view sees nothing of the query around it.
            return self._tree.aliased(self.replaced(parsed), (view.name,))
        table = self._statement.names.find(parts, missing=NO_ROWS)
        if table is None:
            return plan
        return self._of_table(table, self._statement.snapshot(table))

    def _past(self, plan: Any, hidden: _Hidden) -> Any:
        relation = plan.relation()
        if str(relation.nodeName()) != "UnresolvedRelation":
            return plan
        parts = texts(relation.multipartIdentifier())
        if len(parts) == 1 and parts[0].casefold() in hidden:
            return plan
        table = self._statement.names.find(parts, missing=NO_ROWS)
        if table is None:
            return plan
        timestamp, version = option(plan.timestamp()), option(plan.version())
        snapshot = self._statement.past_snapshot(table, version, timestamp)
        return self._of_table(table, snapshot)

    def _of_table(self, table: SqlTable, snapshot: Snapshot) -> Any:
        self._statement.read.append(snapshot)
        plan = self._relation(TableUse(table=table, snapshot=snapshot))
        return self._tree.aliased(plan, self._statement.names.qualifier(table))

    def _function(self, plan: Any, hidden: _Hidden) -> Any:
        if texts(plan.name())[-1].casefold() != _CHANGES:
            return self._tree.rebuilt(plan, lambda each: self.replaced(each, hidden))
        arguments = [self._tree.evaluated(each) for each in items(plan.functionArgs())]
        if not 2 <= len(arguments) <= 3 or not isinstance(arguments[0], str):
            raise _misused_changes(arguments)
        parts = TokenCursor.of(arguments[0]).name()
        table = self._statement.names.find(parts, missing=NO_ROWS)
        if table is None:
            return plan
        from twinlake.spark import changes

        bounds = dict(zip(("from", "to"), arguments[1:], strict=False))
        given = {
            f"{side}_{'version' if isinstance(bound, int) else 'timestamp'}": bound
            for side, bound in bounds.items()
        }
        key = (table.location, *sorted(given.items()))
        frame: Any = self._statement.feeds.get(key)
        if frame is None:
            frame = changes(self._statement.spark, table.location, **given)
            self._statement.feeds[key] = frame
        return self._tree.aliased(frame._jdf.queryExecution().analyzed(), (_CHANGES,))

    def _computed_name(self, plan: Any, hidden: _Hidden) -> Any:
        """``IDENTIFIER('name')``, where the name is written out or a parameter."""
        name = self._tree.evaluated(plan.identifierExpr())
        if not isinstance(name, str):
            return plan
        parts = self._tree.sequence(list(TokenCursor.of(name).name()))
        return self.replaced(plan.planBuilder().apply(parts, plan.children()), hidden)

    def _with(self, plan: Any, hidden: _Hidden) -> Any:
        """Each expression sees those before it; a recursive one sees itself too."""
        recursive = bool(plan.allowRecursion())
        relations, changed = [], False
        for relation in items(plan.cteRelations()):
            name = str(relation._1()).casefold()
            inside = hidden | {name} if recursive else hidden
            new = self.replaced(relation._2(), inside)
            hidden = hidden | {name}
            changed = changed or new is not relation._2()
            relations.append(_with_second(self._statement.spark, relation, new))
        child = self.replaced(plan.child(), hidden)
        if not changed and child is plan.child():
            return plan
        return plan.copy(child, self._tree.sequence(relations), recursive)


def _with_second(spark: Any, entry: Any, plan: Any) -> Any:
    """An entry of a WITH clause: its name, its query, and how deep it may recurse."""
    kind = str(entry.getClass().getName()).partition("$")[0]
    if kind == "scala.Tuple3":
        return java_class(spark, "scala.Tuple3")(entry._1(), plan, entry._3())
    return java_class(spark, "scala.Tuple2")(entry._1(), plan)


def _misused_changes(arguments: list[Any]) -> UserError:
    return UserError(
        Code.INVALID_ARGUMENT,
        "table_changes cannot be called with these arguments.",
        why="it takes the name of a table as a string, a version or timestamp to begin with, and "
        f"one to end with; these are {arguments}",
        fix="Write `table_changes('sales.orders', 3)`.",
        delta_class="INCORRECT_NUMBER_OF_ARGUMENTS",
        fields={"arguments": [str(each) for each in arguments]},
    )
