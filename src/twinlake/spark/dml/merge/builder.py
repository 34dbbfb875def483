"""The builder of a MERGE, with the names and arguments of ``delta.tables.DeltaMergeBuilder``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from twinlake.commit.plans import Then, When
from twinlake.spark.dml.assignments import check_assignments
from twinlake.spark.dml.merge.clauses import Clause
from twinlake.spark.dml.merge.execution import MergeRequest, merge
from twinlake.spark.errors import raises_spark_errors
from twinlake.spark.read.conditions import check_condition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

    from twinlake.table import Table

__all__ = ["DeltaMergeBuilder"]

_RESULT = {
    "num_affected_rows": ("Updated", "Deleted", "Inserted"),
    "num_updated_rows": ("Updated",),
    "num_deleted_rows": ("Deleted",),
    "num_inserted_rows": ("Inserted",),
}


class DeltaMergeBuilder:
    """Collects the clauses of a MERGE and runs it; get one from ``DeltaTable.merge``.

    Clauses are tried in the order they were added. Each method returns a new builder.
    """

    def __init__(
        self, spark: SparkSession, current: Callable[[], Table], request: MergeRequest
    ) -> None:
        """``current`` opens the table as it is when the MERGE runs."""
        self._spark = spark
        self._current = current
        self._request = request

    def whenMatchedUpdate(
        self,
        condition: str | Column | None = None,
        set: Mapping[str, str | Column] | None = None,
    ) -> DeltaMergeBuilder:
        """Give columns of matched rows new values."""
        values = check_assignments(set, "'set' in whenMatchedUpdate")
        return self._with(When.MATCHED, Then.UPDATE, condition, values)

    def whenMatchedUpdateAll(self, condition: str | Column | None = None) -> DeltaMergeBuilder:
        """Give all columns of matched rows the values of the source's columns of that name."""
        return self._with(When.MATCHED, Then.UPDATE, condition, None)

    def whenMatchedDelete(self, condition: str | Column | None = None) -> DeltaMergeBuilder:
        """Delete matched rows."""
        return self._with(When.MATCHED, Then.DELETE, condition, None)

    def whenNotMatchedInsert(
        self,
        condition: str | Column | None = None,
        values: Mapping[str, str | Column] | None = None,
    ) -> DeltaMergeBuilder:
        """Insert source rows that no row of the table matches."""
        given = check_assignments(values, "'values' in whenNotMatchedInsert")
        return self._with(When.NOT_MATCHED, Then.INSERT, condition, given)

    def whenNotMatchedInsertAll(self, condition: str | Column | None = None) -> DeltaMergeBuilder:
        """Insert source rows that no row of the table matches, column by column."""
        return self._with(When.NOT_MATCHED, Then.INSERT, condition, None)

    def whenNotMatchedBySourceUpdate(
        self,
        condition: str | Column | None = None,
        set: Mapping[str, str | Column] | None = None,
    ) -> DeltaMergeBuilder:
        """Give columns of rows that no source row matches new values."""
        values = check_assignments(set, "'set' in whenNotMatchedBySourceUpdate")
        return self._with(When.NOT_MATCHED_BY_SOURCE, Then.UPDATE, condition, values)

    def whenNotMatchedBySourceDelete(
        self, condition: str | Column | None = None
    ) -> DeltaMergeBuilder:
        """Delete rows that no source row matches."""
        return self._with(When.NOT_MATCHED_BY_SOURCE, Then.DELETE, condition, None)

    def withSchemaEvolution(self) -> DeltaMergeBuilder:
        """Add columns to the table that only the source has."""
        return self._but(replace(self._request, evolution=True))

    @raises_spark_errors
    def execute(self) -> DataFrame:
        """Run the MERGE; one row says how many rows were updated, deleted and inserted."""
        metrics = merge(self._spark, self._current(), self._request)
        counts = [
            sum(metrics.get(f"numTargetRows{part}", 0) for part in parts)
            for parts in _RESULT.values()
        ]
        schema = ", ".join(f"{name} BIGINT" for name in _RESULT)
        return self._spark.createDataFrame([tuple(counts)], schema)

    def _with(
        self,
        when: When,
        then: Then,
        condition: str | Column | None,
        values: Mapping[str, str | Column] | None,
    ) -> DeltaMergeBuilder:
        check_condition(condition)
        clause = Clause(when=when, then=then, condition=condition, assignments=values)
        return self._but(replace(self._request, clauses=(*self._request.clauses, clause)))

    def _but(self, request: MergeRequest) -> DeltaMergeBuilder:
        return type(self)(self._spark, self._current, request)
