"""What a MERGE makes of joined rows: which clause a row falls to, and the values it gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from twinlake.commit.plans import Then, When, only_matched
from twinlake.schema import GENERATION_EXPRESSION_KEY
from twinlake.spark.read.columns import visible_type
from twinlake.spark.read.table_scan import FILE_NUMBER, ROW_COMMIT_VERSION, ROW_ID, ROW_INDEX
from twinlake.spark.spark_types import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from twinlake.commit.plans import MergeClause
    from twinlake.spark.dml.merge.clauses import MergeColumns

__all__ = ["ACTION", "FROM_SOURCE", "MergeRows"]

ACTION: Final = "__twinlake_action"
"""The number of the clause that a row falls to; null if it stays as it is."""
FROM_SOURCE: Final = "__twinlake_source"
"""True in the rows of the source, null where a join found none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRows:
    """The clauses of a MERGE, applied to rows that are joined already."""

    columns: MergeColumns
    row_ids: bool
    """Whether rows carry their row ids along."""

    @property
    def clauses(self) -> list[MergeClause]:
        """The clauses as plans know them."""
        return [each.clause.planned for each in self.columns.clauses]

    @property
    def kinds(self) -> frozenset[When]:
        """The kinds of clauses there are."""
        return frozenset(clause.when for clause in self.clauses)

    def numbers(self, *wanted: Then) -> list[int]:
        """The clauses that do one of these things."""
        return [number for number, clause in enumerate(self.clauses) if clause.then in wanted]

    def taken(self, when: When) -> Column:
        """Whether some clause of a kind takes the row."""
        conditions = [e.condition for e in self.columns.clauses if e.clause.when is when]
        some: Column = F.lit(False)
        for condition in conditions:
            if condition is None:
                return F.lit(True)
            some = some | condition.column
        return some

    def counts(self, kinds: frozenset[When]) -> Column:
        """Whether a row of a join for clauses of these kinds is a match that counts.

        Delta Spark counts a match by which no clause takes the row, too; only where there are no
        other clauses than WHEN MATCHED ones, not if it is unknown whether one does.
        """
        if kinds == {When.NOT_MATCHED}:
            return F.lit(False)
        if only_matched(self.clauses):
            return self.taken(When.MATCHED).isNotNull()
        return F.col(FROM_SOURCE).isNotNull() & F.col(FILE_NUMBER).isNotNull()

    def acted(self, joined: DataFrame, kinds: frozenset[When]) -> DataFrame:
        """The rows of a join for clauses of these kinds, with their ``ACTION``."""
        # Where rows without a match are wanted, matches are there too, to be counted.
        told_apart = len(kinds) > 1 or When.NOT_MATCHED_BY_SOURCE in kinds
        return joined.select("*", self._action(kinds, told_apart=told_apart).alias(ACTION))

    def _action(self, kinds: frozenset[When], *, told_apart: bool) -> Column:
        """The first clause that holds."""
        sides = {
            When.MATCHED: F.col(FROM_SOURCE).isNotNull(),
            When.NOT_MATCHED_BY_SOURCE: F.col(FROM_SOURCE).isNull(),
        }
        if When.NOT_MATCHED in kinds:
            sides[When.NOT_MATCHED] = F.col(FILE_NUMBER).isNull()
            sides[When.MATCHED] &= F.col(FILE_NUMBER).isNotNull()
        chain: Any = F
        for number, each in enumerate(self.columns.clauses):
            if each.clause.when not in kinds:
                continue
            holds = sides[each.clause.when] if told_apart else F.lit(True)
            if each.condition is not None:
                holds = holds & each.condition.column
            chain = chain.when(holds, F.lit(number))
        column: Column = chain.otherwise(F.lit(None).cast("int"))
        return column

    def shaped(self, acted: DataFrame, kinds: frozenset[When], *more: str) -> DataFrame:
        """The table's columns as the clauses make them, where the row was, and the clause."""
        columns = self._values(kinds, None)
        for name, spelled in ((FILE_NUMBER, "int"), (ROW_INDEX, "bigint"), (ROW_ID, "bigint")):
            if name in acted.columns:
                columns.append(F.col(name))
            elif name != ROW_ID or self.row_ids:
                columns.append(F.lit(None).cast(spelled).alias(name))
        return self._generated(acted.select(*columns, F.col(ACTION), *more))

    def rewritten(self, joined: DataFrame, current: Sequence[Column]) -> DataFrame:
        """All rows of a left join that stay in the table: updated ones, and others as they are.

        ``current`` has the table's columns as they are in the join.
        """
        matched = frozenset({When.MATCHED})
        acted = joined.select("*", self._action(matched, told_apart=True).alias(ACTION))
        stays = F.col(ACTION).isNull() | F.col(ACTION).isin(self.numbers(Then.UPDATE))
        columns = self._values(matched, current)
        if self.row_ids:
            # Updated rows were last changed by this commit, whatever version they came from.
            version = F.when(F.col(ACTION).isNull(), F.col(ROW_COMMIT_VERSION))
            columns += [F.col(ROW_ID), version.alias(ROW_COMMIT_VERSION)]
        return self._generated(acted.where(stays).select(*columns, F.col(ACTION)))

    def _values(self, kinds: frozenset[When], current: Sequence[Column] | None) -> list[Column]:
        made = [
            (number, each.values)
            for number, each in enumerate(self.columns.clauses)
            if each.values and each.clause.when in kinds
        ]
        columns = []
        for position, wanted in enumerate(self.columns.metadata.schema):
            chain: Any = F
            for number, values in made:
                chain = chain.when(F.col(ACTION) == F.lit(number), values[position])
            other = F.lit(None).cast(visible_type(wanted)) if current is None else current[position]
            value = chain.otherwise(other) if made else other
            columns.append(value.alias(wanted.name))
        return columns

    def _generated(self, rows: DataFrame) -> DataFrame:
        """Generated columns follow the other values, where a clause does not set them itself."""
        made: dict[str, Column] = {}
        for wanted in self.columns.metadata.schema:
            numbers = [
                number
                for number, each in enumerate(self.columns.clauses)
                if wanted.name in each.computed
            ]
            if not numbers:
                continue
            text = str(wanted.metadata[GENERATION_EXPRESSION_KEY])
            current = F.col(quoted(wanted.name))
            follows = F.col(ACTION).isin(numbers)
            made[wanted.name] = F.when(follows, F.expr(text).cast(visible_type(wanted))).otherwise(
                current
            )
        if not made:
            return rows
        return rows.select(
            *(made[n].alias(n) if n in made else F.col(quoted(n)) for n in rows.columns)
        )
