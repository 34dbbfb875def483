"""What every new row of a table must fulfil, checked batch by batch before it is written.

NOT NULL, CHECK constraints, invariants, the rules of generated columns, the lengths of CHAR and
VARCHAR. A rule whose expression only Spark evaluates refuses the write before any row is looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from twinlake.errors import Code, UserError
from twinlake.schema import (
    CHAR_VARCHAR_KEY,
    GENERATION_EXPRESSION_KEY,
    STRING,
    Struct,
    string_lengths,
)
from twinlake.schema.predicates import evaluate_on, is_exact, parse_predicate
from twinlake.table.rows.row_value import RowValue, columns_at
from twinlake.table.rows.rule_errors import (
    check_constraints,
    column_invariants,
    generated_rule,
    null_value,
    text_too_long,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from twinlake.protocol import Metadata
    from twinlake.schema import ColumnPath
    from twinlake.schema.predicates import Expr

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
            *_conditions(metadata, check_constraints(metadata)),
            *_not_null(metadata.schema, ()),
            *_conditions(metadata, column_invariants(metadata)),
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
            yield _Rule(_is_valid(here), null_value(here))
        if isinstance(field.type, Struct):
            yield from _not_null(field.type, here)


def _is_valid(path: ColumnPath) -> Holds:
    return lambda rows: pc.is_valid(columns_at(rows, frozenset((path,)))[path])


def _conditions(metadata: Metadata, rules: Iterable[tuple[str, UserError]]) -> Iterator[_Rule]:
    for text, error in rules:
        expr = parse_predicate(text, metadata.schema)
        if not is_exact(expr):
            raise UserError(
                Code.SPARK_REQUIRED,
                f"Only Spark can check {error.fields['constraint']}: {text}.",
                why="The expression uses a function or a form that is not evaluated without Spark.",
                fix='Run `twinlake.spark.write(df, path, mode="append")`.',
                fields=dict(error.fields),
            )
        yield _Rule(_is_true(expr), error)


def _is_true(expr: Expr) -> Holds:
    paths = expr.columns()
    return lambda rows: evaluate_on(expr, columns_at(rows, paths), rows.num_rows)


def _generated(metadata: Metadata, computed: Collection[str]) -> Iterator[_Rule]:
    for field in metadata.schema:
        text = field.metadata.get(GENERATION_EXPRESSION_KEY)
        if not isinstance(text, str) or field.name in computed:
            continue
        value = RowValue.of(text, metadata.schema, field.type)
        yield _Rule(_equals(field.name, value), generated_rule(field.name, text))


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
            error = text_too_long((field.name, *path), spelled)
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
