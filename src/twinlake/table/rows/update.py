"""UPDATE in this process: rows that match a predicate get new values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from twinlake.commit import Operation, OperationName, ReadSet
from twinlake.commit.plans import TableRules, plan_update
from twinlake.errors import Code, UserError, listed
from twinlake.schema import GENERATION_EXPRESSION_KEY, to_arrow, type_to_arrow
from twinlake.schema.predicates import parse_predicate
from twinlake.table.rows.arrow_data import values_array
from twinlake.table.rows.fitted_array import fit_array
from twinlake.table.rows.given_columns import refuse_update
from twinlake.table.rows.row_change import LocalRowChange
from twinlake.table.rows.row_rules import RowRules
from twinlake.table.rows.row_scan import exact_predicate
from twinlake.table.rows.row_value import RowValue

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from twinlake.commit import CommitOptions, CommitResult
    from twinlake.protocol import Metadata
    from twinlake.schema import StructField
    from twinlake.table.view import TableView

__all__ = ["ChangedRows", "update_rows"]

Value = Callable[[pa.RecordBatch], pa.Array]


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """Rows some columns of which have new values: what follows from these, and what must hold."""

    schema: pa.Schema
    generated: tuple[tuple[int, RowValue], ...]
    rules: RowRules

    @classmethod
    def of(cls, metadata: Metadata, assigned: Collection[int]) -> ChangedRows:
        """``assigned`` are the columns with new values, by position."""
        generated = [
            (place, RowValue.of(text, metadata.schema, field.type))
            for place, field in enumerate(metadata.schema)
            if isinstance(text := field.metadata.get(GENERATION_EXPRESSION_KEY), str)
            and place not in assigned
        ]
        computed = [metadata.schema.names()[place] for place, _ in generated]
        rules = RowRules.of(metadata, computed=computed)
        return cls(to_arrow(metadata.schema), tuple(generated), rules)

    def batch(self, arrays: list[pa.Array]) -> pa.RecordBatch:
        """The rows as they are stored, checked."""
        rows = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        for place, value in self.generated:
            rows = rows.set_column(place, self.schema.field(place), value.values(rows))
        return self.rules.checked(rows)


@dataclass(frozen=True, slots=True)
class _Assignments:
    """New values of columns, computed from the row before the update."""

    values: tuple[tuple[int, Value], ...]
    changed: ChangedRows

    @classmethod
    def of(cls, assigned: Mapping[str, Any], metadata: Metadata) -> _Assignments:
        places = _places(assigned, metadata)
        refuse_update(metadata.schema, {metadata.schema.names()[place] for place in places})
        values: list[tuple[int, Value]] = []
        for place, given in places.items():
            field = metadata.schema.fields[place]
            if isinstance(given, str):
                values.append((place, RowValue.of(given, metadata.schema, field.type).values))
            else:
                values.append((place, _constant(given, field)))
        return cls(tuple(values), ChangedRows.of(metadata, frozenset(places)))

    def apply(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of the table with their new values."""
        arrays = [rows.column(name) for name in self.changed.schema.names]
        for place, value in self.values:
            arrays[place] = value(rows)
        return self.changed.batch(arrays)


def _places(assigned: Mapping[str, Any], metadata: Metadata) -> dict[int, Any]:
    names = [name.casefold() for name in metadata.schema.names()]
    found: dict[int, Any] = {}
    problems = []
    for name, value in assigned.items():
        if name.casefold() not in names:
            problems.append(f"{name} is not a column of the table")
        elif names.index(name.casefold()) in found:
            problems.append(f"{name} is assigned twice")
        else:
            found[names.index(name.casefold())] = value
    if problems or not found:
        raise UserError(
            Code.COLUMN_NOT_FOUND if problems else Code.INVALID_ARGUMENT,
            "The assignments cannot be used.",
            why=listed(problems) or "There are none.",
            fix="Name columns of the table; of a struct, the whole column.",
            fields={"problems": problems, "columns": list(metadata.schema.names())},
        )
    return found


def _constant(value: Any, field: StructField) -> Value:
    try:
        given = values_array([value], field.type)
        one = fit_array(given, type_to_arrow(field.type), (field.name,))[0]
    except (pa.ArrowException, TypeError, ValueError, ArithmeticError) as error:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{value!r} cannot be stored in column {field.name}.",
            why=str(error).splitlines()[0] if str(error) else "",
            fix="Pass a value of the column's type, or an SQL expression as text.",
            fields={"column": field.name},
        ) from error
    return lambda rows: pa.repeat(one, rows.num_rows)


def update_rows(
    table: TableView, assigned: Mapping[str, Any], where: str | None, *, options: CommitOptions
) -> CommitResult | None:
    """Give columns new values in the rows for which the predicate is true."""
    TableRules.of(table.metadata).refuse_row_loss("UPDATE")
    snapshot = table.snapshot
    expr = (
        parse_predicate("true", snapshot.schema)
        if where is None
        else exact_predicate(where, snapshot)
    )
    assignments = _Assignments.of(assigned, table.metadata)
    parameters = {} if where is None else {"predicate": [f"({expr})"]}
    operation = Operation(name=OperationName.UPDATE, parameters=parameters)
    with LocalRowChange(table, operation, table.metadata, options=options) as change:
        files = list(snapshot.adds(expr))
        reads = ReadSet(predicates=(expr,), files=frozenset(add.path for add in files))
        touched = [
            change.touched_file(add, update=rows.tolist())
            for add, rows in zip(files, change.matches(files, expr), strict=True)
            if len(rows)
        ]
        plan = plan_update(touched, rules=change.rules, reads=reads)
        written = change.write(plan, updated=lambda _path, rows: assignments.apply(rows))
        return change.commit(plan.finish(written, now=table.runtime.clock.now_ms()))
