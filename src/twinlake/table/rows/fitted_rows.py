"""Batches of any columns as batches of a table's columns: by name, in its order and types.

What the data lacks is the column's default, the value of its generation expression, or null. A
value that does not fit its column is an error, never a null and never another value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from twinlake.errors import Code, UserError
from twinlake.schema import (
    CURRENT_DEFAULT_KEY,
    GENERATION_EXPRESSION_KEY,
    StructField,
    quote_name,
    to_arrow,
)
from twinlake.schema.predicates import parse_constant
from twinlake.table.rows.fitted_array import fit_array
from twinlake.table.rows.given_columns import identity_fields
from twinlake.table.rows.row_value import RowValue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from twinlake.protocol import Metadata

__all__ = ["FittedRows"]

Column = Callable[[pa.RecordBatch], pa.Array]


@dataclass(frozen=True, slots=True)
class FittedRows:
    """How batches of one schema become rows of a table."""

    schema: pa.Schema
    columns: tuple[Column, ...]
    computed: tuple[tuple[int, RowValue], ...]
    """Generated columns that the data leaves to us, by position."""

    @classmethod
    def of(cls, given: Sequence[str], metadata: Metadata) -> FittedRows:
        """For data with the ``given`` columns, which are all columns of the table."""
        by_name = {name.casefold(): name for name in given}
        schema = to_arrow(metadata.schema)
        columns: list[Column] = []
        computed: list[tuple[int, RowValue]] = []
        for place, field in enumerate(metadata.schema):
            own = by_name.get(field.name.casefold())
            if own is not None:
                columns.append(_given(own, schema.field(place).type, field.name))
                continue
            text = field.metadata.get(GENERATION_EXPRESSION_KEY)
            if isinstance(text, str):
                computed.append((place, RowValue.of(text, metadata.schema, field.type)))
            columns.append(_constant(field, schema.field(place).type))
        _refuse_identity(metadata, given)
        return cls(schema, tuple(columns), tuple(computed))

    def batch(self, data: pa.RecordBatch) -> pa.RecordBatch:
        """The rows with the columns of the table."""
        arrays = [column(data) for column in self.columns]
        made = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        for place, value in self.computed:
            arrays[place] = value.values(made)
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema) if self.computed else made


def _given(name: str, kind: pa.DataType, shown: str) -> Column:
    return lambda batch: fit_array(batch.column(name), kind, (shown,))


def _constant(field: StructField, kind: pa.DataType) -> Column:
    text = field.metadata.get(CURRENT_DEFAULT_KEY)
    value: Any = None
    if isinstance(text, str) and text.strip().lower() != "null":
        value = parse_constant(text, field.type)
        if value is None:
            raise UserError(
                Code.SPARK_REQUIRED,
                f"The default value of column {quote_name(field.name)} takes Spark: {text}.",
                why="Only constants are computed without it.",
                fix="Give the column a value in the data, or run "
                '`twinlake.spark.write(df, path, mode="append")`.',
                fields={"column": field.name, "default": text},
            )
    return lambda batch: pa.repeat(pa.scalar(value, kind), batch.num_rows)


def _refuse_identity(metadata: Metadata, given: Sequence[str]) -> None:
    present = {name.casefold() for name in given}
    found = [f.name for f in identity_fields(metadata.schema) if f.name.casefold() not in present]
    if found:
        raise UserError(
            Code.SPARK_REQUIRED,
            f"Values of identity columns take Spark: {', '.join(found)}.",
            why="They are given out by the writer on Spark.",
            fix='Run `twinlake.spark.write(df, path, mode="append")`.',
            fields={"columns": found},
        )
