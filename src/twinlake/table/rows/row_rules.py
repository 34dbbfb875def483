"""What every new row of a table must fulfil, checked batch by batch before it is written.

NOT NULL, CHECK constraints, invariants, the rules of generated columns, the lengths of CHAR and
VARCHAR. A rule whose expression only Spark evaluates refuses the write before any row is looked at.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from twinlake.errors import Code, CorruptTable, UserError, how_to_restore
from twinlake.protocol import keys
from twinlake.schema import (
    CHAR_VARCHAR_KEY,
    GENERATION_EXPRESSION_KEY,
    INVARIANTS_KEY,
    STRING,
    Struct,
    quote_name,
    render_path,
    string_lengths,
    walk_fields,
)
from twinlake.schema.predicates import evaluate_on, is_exact, parse_predicate
from twinlake.table.rows.row_value import RowValue, columns_at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from twinlake.protocol import Metadata
    from twinlake.schema import ColumnPath

__all__ = ["RowRules"]

_SHOWN: Final = 3

Holds = Callable[[pa.RecordBatch], pa.Array]


@dataclass(frozen=True, slots=True)
class _Rule:
    """What must be true of a row, and the error where it is false or null."""

    holds: Holds
    error: UserError


@dataclass(frozen=True, slots=True)
class RowRules:
    """The rules of one table."""

    rules: tuple[_Rule, ...]
    empty_is_null: tuple[str, ...]
    """Partition columns of strings: an empty one is read back as null."""

    @classmethod
    def of(cls, metadata: Metadata, *, computed: Collection[str] = ()) -> RowRules:
        """``computed`` names generated columns that were computed just now."""
        partitions = frozenset(metadata.partition_columns)
        texts = (f.name for f in metadata.schema if f.name in partitions and f.type == STRING)
        # In Delta's order: a row that violates several rules gets the error of the first.
        rules = (
            *_constraints(metadata),
            *_not_null(metadata.schema, ()),
            *_invariants(metadata),
            *_generated(metadata, computed),
            *_lengths(metadata),
        )
        return cls(rules, tuple(texts))

    def checked(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows as a reader will find them, if all of them fulfil all rules."""
        stored = rows
        for name in self.empty_is_null:
            place = rows.schema.get_field_index(name)
            column = rows.column(place)
            null = pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)
            stored = stored.set_column(place, rows.schema.field(place), null)
        for rule in self.rules:
            holds = pc.fill_null(rule.holds(stored), False)
            if not pc.all(holds).as_py():
                raise _with_rows(rule.error, stored.filter(pc.invert(holds)))
        return stored


def _with_rows(error: UserError, rows: pa.RecordBatch) -> UserError:
    shown = [str(row) for row in rows.slice(0, _SHOWN).to_pylist()]
    return UserError(
        error.code,
        error.what,
        why=f"{error.why}; {rows.num_rows} rows of a batch are like {'; '.join(shown)}",
        fix=error.fix,
        delta_class=error.delta_class,
        fields={**error.fields, "rows": shown},
    )


def _not_null(schema: Struct, path: ColumnPath) -> Iterator[_Rule]:
    """NOT NULL columns; as in Delta a null struct has null fields, elements are not looked at."""
    for field in schema:
        here = (*path, field.name)
        if not field.nullable:
            shown = render_path(here)
            error = UserError(
                Code.CONSTRAINT,
                f"Column {shown} must not be null.",
                why="the table declares it NOT NULL",
                fix="Give it a value in every row, or make the column nullable with "
                "`Table.alter_column(COLUMN, nullable=True)` or `twinlake alter PATH "
                "--nullable COLUMN`.",
                delta_class="DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
                fields={"kind": "NOT NULL", "constraint": "NOT NULL", "expression": shown},
            )
            yield _Rule(_is_valid(here), error)
        if isinstance(field.type, Struct):
            yield from _not_null(field.type, here)


def _is_valid(path: ColumnPath) -> Holds:
    return lambda rows: pc.is_valid(columns_at(rows, frozenset((path,)))[path])


def _constraints(metadata: Metadata) -> Iterator[_Rule]:
    for key, text in sorted(metadata.configuration.items()):
        if key.startswith(keys.CONSTRAINTS_PREFIX):
            name = key.removeprefix(keys.CONSTRAINTS_PREFIX)
            yield _condition(metadata, text, name, "CHECK", f"CHECK constraint {name}")


def _invariants(metadata: Metadata) -> Iterator[_Rule]:
    for path, field in walk_fields(metadata.schema):
        text = field.metadata.get(INVARIANTS_KEY)
        if text is None:
            continue
        shown = render_path(path)
        try:
            expression = str(json.loads(str(text))["expression"]["expression"])
        except (TypeError, ValueError, KeyError) as error:
            raise CorruptTable(
                Code.SCHEMA_INVALID,
                f"The invariant of column {shown} cannot be read.",
                why=f"{INVARIANTS_KEY} is {text!r}",
                fix=f"Run {how_to_restore()} with an earlier version.",
                fields={"column": shown},
            ) from error
        name = f"invariant of {shown}"
        yield _condition(metadata, expression, name, "invariant", f"the {name}")


def _condition(metadata: Metadata, text: str, name: str, kind: str, label: str) -> _Rule:
    expr = parse_predicate(text, metadata.schema)
    if not is_exact(expr):
        raise UserError(
            Code.SPARK_REQUIRED,
            f"Only Spark can check {label}: {text}.",
            why="The expression uses a function or a form that is not evaluated without Spark.",
            fix='Run `twinlake.spark.write(df, path, mode="append")`.',
            fields={"kind": kind, "constraint": name, "expression": text},
        )
    paths = expr.columns()
    return _Rule(
        lambda rows: evaluate_on(expr, columns_at(rows, paths), rows.num_rows),
        _violated(text, name, kind, label),
    )


def _violated(text: str, name: str, kind: str, label: str) -> UserError:
    return UserError(
        Code.CONSTRAINT,
        f"A row violates {label}: {text}.",
        why="the expression has to be true, and it is false or null",
        fix="Correct such rows or leave them out.",
        delta_class="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
        fields={"kind": kind, "constraint": name, "expression": text},
    )


def _generated(metadata: Metadata, computed: Collection[str]) -> Iterator[_Rule]:
    for field in metadata.schema:
        text = field.metadata.get(GENERATION_EXPRESSION_KEY)
        if not isinstance(text, str) or field.name in computed:
            continue
        value = RowValue.of(text, metadata.schema, field.type)
        expression = f"{quote_name(field.name)} <=> ({text})"
        label = f"the rule of generated column {quote_name(field.name)}"
        error = _violated(expression, "Generated Column", "generated column", label)
        yield _Rule(_equals(field.name, value), error)


def _equals(name: str, value: RowValue) -> Holds:
    def holds(rows: pa.RecordBatch) -> pa.Array:
        given, wanted = rows.column(name), value.values(rows)
        both_null = pc.and_(given.is_null(), wanted.is_null())
        return pc.or_(both_null, pc.fill_null(pc.equal(given, wanted), False))

    return holds


def _lengths(metadata: Metadata) -> Iterator[_Rule]:
    for field in metadata.schema:
        spelled = field.metadata.get(CHAR_VARCHAR_KEY)
        if not isinstance(spelled, str):
            continue
        for path, length in string_lengths(field).items():
            shown = render_path((field.name, *path))
            error = UserError(
                Code.CONSTRAINT,
                f"A value of column {shown} is longer than {spelled} allows.",
                why="trailing spaces count",
                fix="Shorten the values, or make the column a STRING.",
                delta_class="DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
                fields={"kind": "length", "constraint": spelled, "expression": shown},
            )
            yield _Rule(_short_enough(field.name, path, length), error)


def _short_enough(name: str, path: ColumnPath, length: int) -> Holds:
    def holds(rows: pa.RecordBatch) -> pa.Array:
        too_long = _longer(rows.column(name), path, length)
        return pc.invert(pc.is_in(pa.array(range(rows.num_rows)), value_set=too_long))

    return holds


def _longer(array: pa.Array, path: ColumnPath, length: int) -> pa.Array:
    """The numbers of the rows with a text that is too long at a path."""
    rows: Any = pa.array(range(len(array)), pa.int64())
    for part in path:
        if pa.types.is_struct(array.type):
            array = pc.struct_field(array, part)
            continue
        if pa.types.is_map(array.type):
            pairs = pa.struct([array.type.key_field, array.type.item_field])
            array = array.cast(pa.list_(pairs))
            rows = rows.take(pc.list_parent_indices(array))
            array = array.flatten().field(0 if part == "key" else 1)
            continue
        rows = rows.take(pc.list_parent_indices(array))
        array = array.flatten()
    return rows.filter(pc.fill_null(pc.greater(pc.utf8_length(array), length), False))
