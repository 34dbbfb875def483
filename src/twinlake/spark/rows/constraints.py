"""NOT NULL, CHECK, generated columns, invariants and lengths, checked in the plan that writes.

All rules of a table become one filter that lets every row through or raises, so a frame is
evaluated once. The filter is not deterministic on purpose: Spark moves a deterministic one below
joins and projections, and takes an outer join whose null rows it would stop for an inner one, so
that a violation would vanish instead of being reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql import types as T

from twinlake.errors import Code, CorruptTable, UserError, how_to_restore
from twinlake.runtime import OffendingRows
from twinlake.schema import (
    CHAR_VARCHAR_KEY,
    GENERATION_EXPRESSION_KEY,
    STRING,
    Struct,
    StructField,
    parse_predicate,
    quote_name,
    render_path,
    walk_fields,
)
from twinlake.spark.rows.row_errors import raise_for_row, row_text
from twinlake.spark.spark_types import from_spark, quoted
from twinlake.table.rows import (
    check_constraints,
    column_invariants,
    generated_rule,
    null_value,
    text_too_long,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from twinlake.protocol import Metadata
    from twinlake.schema import ColumnPath

__all__ = [
    "as_stored",
    "enforce",
    "filter_or_raise",
    "first_cells",
    "offending_rows",
    "sized_type",
]

_BARRIER: Final = "__twinlake_checked"
_SHOWN_COLUMNS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """What must be true of a row, and the error of one that violates it."""

    holds: Column
    error: UserError
    shows: tuple[ColumnPath, ...]


def enforce(frame: DataFrame, metadata: Metadata, *, computed: Collection[str] = ()) -> DataFrame:
    """The same rows, checked as they pass; the frame itself if the table has no rules.

    The frame has the table's columns. ``computed`` names generated columns that were computed
    just now and need no check.
    """
    stored = as_stored(frame, metadata)
    # In Delta's order: a row that violates several rules gets the error of the first.
    rules = [
        *_conditions(metadata, check_constraints(metadata)),
        *_not_null(metadata, from_spark(stored.schema)),
        *_conditions(metadata, column_invariants(metadata)),
        *_generated(metadata, computed),
        *_lengths(metadata),
    ]
    if not rules:
        return frame
    spark = frame.sparkSession
    return filter_or_raise(stored, [(rule.holds, _raised(spark, rule)) for rule in rules])


def as_stored(frame: DataFrame, metadata: Metadata) -> DataFrame:
    """The rows as a reader will find them: an empty string is null in a partition column."""
    partitions = frozenset(metadata.partition_columns)
    texts = [f.name for f in metadata.schema if f.name in partitions and f.type == STRING]
    return frame.withColumns({name: F.nullif(_at((name,)), F.lit("")) for name in texts})


def filter_or_raise(frame: DataFrame, rules: Sequence[tuple[Column, Column]]) -> DataFrame:
    """The same rows; for each rule a condition that has to be true, and what raises if it is not.

    It is a filter for itself. Put together with one below it, it would be asked about rows that
    are not let through: Spark goes on after a condition that is null, and stops only at false.
    """
    passes: Any = F
    for holds, raised in rules:
        passes = passes.when(~holds.eqNullSafe(F.lit(True)), raised)
    # Spark moves any filter below a projection of deterministic columns and computes the columns
    # twice; the extra column stops that, and the filter's use of it keeps it from being pruned.
    checked = frame.withColumn(_BARRIER, F.spark_partition_id()).where(
        passes.otherwise(F.col(_BARRIER) + F.spark_partition_id() >= 0)
    )
    return checked.drop(_BARRIER)


def first_cells(schema: Struct) -> dict[str, Column]:
    """The first columns of a table, by name."""
    return _cells([(field.name,) for field in schema][:_SHOWN_COLUMNS])


def offending_rows(frame: DataFrame, expression: str, shown: int) -> OffendingRows:
    """How many rows there are for which the expression is not true.

    ``shown`` of them as JSON of the columns that it names.
    """
    broken = frame.where(~F.expr(expression).eqNullSafe(F.lit(True)))
    count = broken.count()
    if not count or not shown:
        return OffendingRows(count=count)
    text = row_text(_cells(_columns_of(expression, from_spark(frame.schema))))
    sample = broken.select(text).limit(shown).collect()
    return OffendingRows(count=count, shown=tuple(str(row[0]) for row in sample))


def _not_null(metadata: Metadata, has: Struct) -> Iterator[_Rule]:
    """NOT NULL columns; as in Delta a null struct has null fields, and elements are not looked at.

    What Spark itself knows never to be null needs no look.
    """
    first = tuple((field.name,) for field in metadata.schema)[:_SHOWN_COLUMNS]

    def inside(wanted: Struct, has: Struct | None, path: ColumnPath, sure: bool) -> Iterator[_Rule]:
        for field in wanted:
            here = (*path, field.name)
            own = has.get(field.name) if has is not None else None
            known = sure and own is not None and not own.nullable
            if not field.nullable and not known:
                yield _Rule(holds=_at(here).isNotNull(), error=null_value(here), shows=first)
            if isinstance(field.type, Struct):
                inner = own.type if own is not None and isinstance(own.type, Struct) else None
                yield from inside(field.type, inner, here, known)

    yield from inside(metadata.schema, has, (), True)


def _conditions(metadata: Metadata, rules: Iterable[tuple[str, UserError]]) -> Iterator[_Rule]:
    for text, error in rules:
        yield _Rule(holds=F.expr(text), error=error, shows=_columns_of(text, metadata.schema))


def _generated(metadata: Metadata, computed: Collection[str]) -> Iterator[_Rule]:
    for field in metadata.schema:
        text = field.metadata.get(GENERATION_EXPRESSION_KEY)
        if isinstance(text, str) and field.name not in computed:
            error = generated_rule(field.name, text)
            yield _Rule(
                # Put together from parts: the text may end in a comment.
                holds=_at((field.name,)).eqNullSafe(F.expr(text)),
                error=error,
                shows=_columns_of(str(error.fields["expression"]), metadata.schema),
            )


def _lengths(metadata: Metadata) -> Iterator[_Rule]:
    for path, field in walk_fields(metadata.schema):
        spelled = field.metadata.get(CHAR_VARCHAR_KEY)
        if not isinstance(spelled, str) or {"element", "key", "value"} & set(path[:-1]):
            # Spark keeps the lengths of nested strings at their column, not below it.
            continue
        holds = _short_enough(_at(path), sized_type(field, spelled))
        if holds is None:
            continue
        yield _Rule(holds=holds, error=text_too_long(path, spelled), shows=(path[:1],))


def sized_type(field: StructField, spelled: str) -> T.DataType:
    """The type with its lengths, as Spark spelled it."""
    try:
        return T.DataType.fromDDL(spelled)
    except PySparkException as error:
        raise CorruptTable(
            Code.SCHEMA_INVALID,
            f"The char or varchar type of column {quote_name(field.name)} cannot be read.",
            why=f"{CHAR_VARCHAR_KEY} is {spelled!r}",
            fix=f"Run {how_to_restore()} with an earlier version.",
            fields={"column": field.name},
        ) from error


def _short_enough(column: Column, kind: T.DataType) -> Column | None:
    """That all sized strings in the column keep their length; None if there are none."""
    match kind:
        case T.CharType() | T.VarcharType():
            return column.isNull() | (F.length(column) <= F.lit(kind.length))
        case T.StructType():
            parts = [_short_enough(column.getField(f.name), f.dataType) for f in kind.fields]
        case T.ArrayType():
            parts = [_each(column, kind.elementType)]
        case T.MapType():
            parts = [
                _each(F.map_keys(column), kind.keyType),
                _each(F.map_values(column), kind.valueType),
            ]
        case _:
            parts = []
    found = [part for part in parts if part is not None]
    whole = None
    for part in found:
        whole = part if whole is None else whole & part
    return whole


def _each(items: Column, kind: T.DataType) -> Column | None:
    if _short_enough(F.lit(None), kind) is None:
        return None

    def holds(item: Column) -> Column:
        inner = _short_enough(item, kind)
        return F.lit(True) if inner is None else inner

    return items.isNull() | F.forall(items, holds)


def _columns_of(expression: str, schema: Struct) -> tuple[ColumnPath, ...]:
    """The columns an expression names; the first ones of the table if it cannot be parsed."""
    try:
        named = sorted(parse_predicate(expression, schema).columns())
    except UserError:
        named = []
    return tuple(named or [(field.name,) for field in schema])[:_SHOWN_COLUMNS]


def _raised(spark: SparkSession, rule: _Rule) -> Column:
    return raise_for_row(spark, rule.error, _cells(rule.shows)).cast("boolean")


def _cells(paths: Sequence[ColumnPath]) -> dict[str, Column]:
    return {render_path(path): _at(path) for path in paths}


def _at(path: ColumnPath) -> Column:
    column = F.col(quoted(path[0]))
    for name in path[1:]:
        column = column.getField(name)
    return column
