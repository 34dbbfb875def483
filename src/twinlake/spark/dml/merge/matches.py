"""The rows of the table that a MERGE changes, and the rows of the source that match."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow.compute as pc
from pyspark.sql import functions as F

from twinlake.commit.plans import Then, When, refuse_ambiguous
from twinlake.spark.dml.merge.rows import ACTION
from twinlake.spark.dml.row_change import positions_by_file
from twinlake.spark.read.packed_positions import (
    CHUNK_KEY,
    CHUNK_WORDS,
    IS_UNSET,
    chunk_key_sql,
    pack_positions,
)
from twinlake.spark.read.table_scan import FILE_NUMBER, ROW_INDEX

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from pyroaring import AbstractBitMap64 as Positions
    from pyspark.sql import Column, DataFrame

    from twinlake.commit.plans import MergeClause

__all__ = ["SOURCE_ROW", "MergeMatches", "numbered_rows"]

SOURCE_ROW: Final = "__twinlake_source_row"
"""The number of a row of the source."""
_NO_CLAUSE: Final = -1
# Spark numbers rows by their partition, above these bits, and their place in it.
_ROW_BITS: Final = 33


def numbered_rows(source: DataFrame) -> DataFrame:
    """The source with a number for each row; another one each time it is read."""
    return source.select("*", F.monotonically_increasing_id().alias(SOURCE_ROW))


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeMatches:
    """What the join of a MERGE found, by position."""

    delete: Mapping[int, Positions] = field(default_factory=dict)
    update: Mapping[int, Positions] = field(default_factory=dict)
    deleted_by_source: int = 0
    updated_by_source: int = 0
    matched_source: Mapping[int, Positions] = field(default_factory=dict)
    """Rows of the source that match some row, by partition; where they were numbered."""

    @staticmethod
    def of(joined: DataFrame, clauses: Sequence[MergeClause]) -> MergeMatches:
        """What is in joined rows with their actions; refuses ambiguous matches.

        Rows of the table that are there more than once are matched more than once, whether or not
        a clause takes them: matches that do not count have to be left out before.
        """
        if all(clause.then is Then.INSERT for clause in clauses):
            return MergeMatches()
        rows = joined.where(F.col(FILE_NUMBER).isNotNull())
        names = [n for n in (FILE_NUMBER, ROW_INDEX, ACTION, SOURCE_ROW) if n in rows.columns]
        return _found(rows.select(*names).toArrow(), clauses)

    @property
    def matched_source_rows(self) -> int:
        """How many rows of the source match some row."""
        return sum(len(rows) for rows in self.matched_source.values())

    def unmatched(self, source: DataFrame) -> DataFrame:
        """The rows of a numbered source that match nothing."""
        if not self.matched_source:
            return source
        packed = source.sparkSession.createDataFrame(pack_positions(self.matched_source))
        partition = f"shiftright({SOURCE_ROW}, {_ROW_BITS})"
        row = f"({SOURCE_ROW} & {(1 << _ROW_BITS) - 1}L)"
        key: Column = F.expr(chunk_key_sql(partition, row))
        joined = source.join(F.broadcast(packed), key == F.col(CHUNK_KEY), "left")
        return joined.where(IS_UNSET.format(words=CHUNK_WORDS, row=row)).drop(
            CHUNK_KEY, CHUNK_WORDS
        )


def _found(table: pa.Table, clauses: Sequence[MergeClause]) -> MergeMatches:
    seen: dict[int, Positions] = {}
    if SOURCE_ROW in table.column_names:
        numbers = np.unique(table[SOURCE_ROW].to_numpy())
        rows = numbers & np.int64((1 << _ROW_BITS) - 1)
        seen = positions_by_file(numbers >> np.int64(_ROW_BITS), rows)
    files, places = (table[name].to_numpy() for name in (FILE_NUMBER, ROW_INDEX))
    actions = pc.fill_null(table[ACTION], _NO_CLAUSE).to_numpy()
    order = np.lexsort((places, files))
    files, places, actions = files[order], places[order], actions[order]
    again = np.zeros(len(files), bool)
    again[1:] = (files[1:] == files[:-1]) & (places[1:] == places[:-1])
    repeated = Counter(zip(files[again].tolist(), places[again].tolist(), strict=True))
    refuse_ambiguous(clauses, [(row, count + 1) for row, count in repeated.items()])
    # Of several matches that are allowed, all do the same: they delete the row, or nothing.
    taken = ~again & (actions != _NO_CLAUSE)
    files, places, actions = files[taken], places[taken], actions[taken]

    def chosen(then: Then, when: When | None = None) -> Any:
        numbers = [n for n, c in enumerate(clauses) if c.then is then and when in (None, c.when)]
        return np.isin(actions, numbers)

    deleted, updated = chosen(Then.DELETE), chosen(Then.UPDATE)
    by_source = When.NOT_MATCHED_BY_SOURCE
    return MergeMatches(
        delete=positions_by_file(files[deleted], places[deleted]),
        update=positions_by_file(files[updated], places[updated]),
        deleted_by_source=int(chosen(Then.DELETE, by_source).sum()),
        updated_by_source=int(chosen(Then.UPDATE, by_source).sum()),
        matched_source=seen,
    )
