"""The value of an SQL expression for the rows of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from twinlake.errors import Code, UserError
from twinlake.schema import type_to_arrow
from twinlake.schema.predicates import parse_value
from twinlake.table.rows.fitted_array import fit_array

if TYPE_CHECKING:
    from twinlake.schema import ColumnPath, DataType, Struct
    from twinlake.schema.predicates import ValueExpression

__all__ = ["RowValue", "columns_at"]


@dataclass(frozen=True, slots=True)
class RowValue:
    """An expression over the columns of a table, and the type its values are stored in."""

    text: str
    expression: ValueExpression
    kind: DataType

    @classmethod
    def of(cls, text: str, schema: Struct, kind: DataType) -> RowValue:
        """The expression; refused if only Spark computes it."""
        found = parse_value(text, schema)
        if found is None or not _is_stored_as(found.type, kind):
            raise UserError(
                Code.SPARK_REQUIRED,
                f"Only Spark can compute {text}.",
                why="Without Spark, expressions of columns, constants, + - * / %, casts that lose "
                "nothing, parts of dates, date_trunc, substring and concat are computed.",
                fix="Run the operation on Spark: `twinlake.spark.write(df, path)` or "
                "`twinlake.spark.DeltaTable.forPath(spark, path)`.",
                fields={"expression": text},
            )
        return cls(text, found, kind)

    def values(self, rows: pa.RecordBatch) -> pa.Array:
        """The values for rows that have the columns of the table."""
        values = columns_at(rows, self.expression.columns)
        found = self.expression.evaluate(values, rows.num_rows)
        return fit_array(found, type_to_arrow(self.kind), (self.text,))


def _is_stored_as(given: DataType, kind: DataType) -> bool:
    """Whether values of a type can be those of a column; Spark casts more of them."""
    try:
        fit_array(pa.array([], type_to_arrow(given)), type_to_arrow(kind), ())
    except UserError:
        return False
    return True


def columns_at(rows: pa.RecordBatch, paths: frozenset[ColumnPath]) -> dict[Any, pa.Array]:
    """The columns and fields of structs at these paths; null where a struct around them is."""
    found = {}
    for path in paths:
        array = rows.column(path[0])
        for name in path[1:]:
            array = pc.struct_field(array, name)
        found[path] = array
    return found
