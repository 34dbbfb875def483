"""Temporary views over tables of ours, kept as the text of their query.

Spark's own view of the name holds the rows as they were found when it was made. A statement of ours
reads the query instead, so that it sees the tables as they are, and skips files by what it asks of
the view. A view that was dropped or replaced since is Spark's alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from twinlake.spark.statements.queries.names import TableNames
    from twinlake.spark.statements.syntax.cursor import NameParts
    from twinlake.spark.statements.syntax.plan_tree import PlanTree

__all__ = ["SqlView", "Views"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlView:
    """A view with its query."""

    name: str
    query: str
    columns: tuple[str, ...]
    """Other names of its columns, if it has any."""
    spark_view: Any
    """Spark's view of that name, to see whether it is still this one."""


class Views:
    """The views of a session that read tables of ours."""

    def __init__(self) -> None:
        self._views: dict[str, SqlView] = {}

    @classmethod
    def of(cls, spark: SparkSession) -> Views:
        """Those of a session; they live as long as it does."""
        found = _VIEWS.get(spark)
        if found is None:
            found = _VIEWS[spark] = cls()
        return found

    @property
    def names(self) -> frozenset[str]:
        """The names of the views, folded; some may be gone."""
        return frozenset(self._views)

    def add(self, view: SqlView) -> None:
        """Keep a view that Spark has as well."""
        self._views[view.name.casefold()] = view

    def find(self, names: TableNames, parts: NameParts) -> SqlView | None:
        """The view of that name, if Spark still has it."""
        view = self._views.get(parts[0].casefold()) if len(parts) == 1 else None
        if view is None:
            return None
        now = names.temporary_view(parts)
        if now is not None and now.equals(view.spark_view):
            return view
        del self._views[parts[0].casefold()]
        return None

    def plan_of(self, tree: PlanTree, view: SqlView) -> Any:
        """The parsed query of a view."""
        plan = tree.parse(view.query)
        return tree.with_column_names(plan, view.columns) if view.columns else plan


_VIEWS: Final[WeakKeyDictionary[SparkSession, Views]] = WeakKeyDictionary()
