"""Predicates: SQL text to a small expression, evaluated over Arrow columns.

sqlglot and pyarrow are loaded when the first predicate is parsed or evaluated, not on import.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from twinlake._lazy_exports import lazy_exports
from twinlake.schema.predicates.expressions import (
    And,
    Column,
    Comparison,
    Expr,
    In,
    IsNull,
    Literal,
    Not,
    Op,
    Opaque,
    Or,
    StartsWith,
    Value,
    all_of,
    any_of,
    is_exact,
    is_partition_only,
    split_conjuncts,
)
from twinlake.schema.predicates.file_stats import FileStats

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from twinlake.schema.predicates.constants import comparable
    from twinlake.schema.predicates.value_expressions import ValueExpression
    from twinlake.schema.types import ColumnPath, DataType, Struct

__all__ = [
    "And",
    "Column",
    "Comparison",
    "Expr",
    "FileStats",
    "In",
    "IsNull",
    "Literal",
    "Not",
    "Op",
    "Opaque",
    "Or",
    "StartsWith",
    "ValueExpression",
    "all_of",
    "any_of",
    "comparable",
    "evaluate_on",
    "is_exact",
    "is_partition_only",
    "parse_constant",
    "parse_predicate",
    "parse_value",
    "prune",
    "split_conjuncts",
]

if not TYPE_CHECKING:  # they need pyarrow and sqlglot
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "twinlake.schema.predicates.constants": ("comparable",),
            "twinlake.schema.predicates.value_expressions": ("ValueExpression",),
        },
    )


def parse_predicate(text: str, schema: Struct, *, timezone: dt.tzinfo = dt.UTC) -> Expr:
    """The predicate that ``text`` spells over the columns of ``schema``.

    ``timezone`` is the session's: texts without a zone are timestamps there.

    >>> from twinlake.schema.types import DATE, Struct, StructField
    >>> str(parse_predicate("d > '2024-1-31'", Struct((StructField("d", DATE),))))
    "d > DATE '2024-01-31'"
    """
    from twinlake.schema.predicates import parser

    return parser.parse_predicate(text, schema, timezone=timezone)


def parse_constant(text: str, kind: DataType, *, timezone: dt.tzinfo = dt.UTC) -> Value:
    """The value of a type that ``text`` spells; None for null and for what is no constant.

    What the type cannot hold without a loss is no constant of it.

    >>> from twinlake.schema.types import DATE
    >>> parse_constant("CAST('2024-02-29' AS DATE)", DATE)
    datetime.date(2024, 2, 29)
    >>> parse_constant("current_date()", DATE) is None
    True
    """
    from twinlake.schema.predicates import parser

    return parser.parse_constant(text, kind, timezone=timezone)


def evaluate_on(expr: Expr, columns: Mapping[ColumnPath, pa.Array], n: int) -> pa.BooleanArray:
    """For each of ``n`` rows true, false or null, as a WHERE clause sees it.

    Raises ``UserError`` for an opaque part; ``is_exact`` and ``is_partition_only`` tell
    beforehand, and ``prune`` copes with it.
    """
    from twinlake.schema.predicates import evaluation

    return evaluation.evaluate_on(expr, columns, n)


def prune(expr: Expr, stats: FileStats) -> pa.BooleanArray:
    """For each file whether it may hold a row for which the predicate is true.

    >>> import pyarrow as pa
    >>> from twinlake.schema.types import LONG, Struct, StructField
    >>> expr = parse_predicate("n > 5", Struct((StructField("n", LONG),)))
    >>> prune(expr, FileStats(num_rows=2, max={("n",): pa.array([5, 6])})).to_pylist()
    [False, True]
    """
    from twinlake.schema.predicates import data_skipping

    return data_skipping.prune(expr, stats)


def parse_value(
    text: str, schema: Struct, *, timezone: dt.tzinfo = dt.UTC
) -> ValueExpression | None:
    """An expression that gives each row a value, or None if only Spark computes it as Spark does.

    >>> from twinlake.schema.types import LONG, Struct, StructField
    >>> str(parse_value("n + 1", Struct((StructField("n", LONG),))).type)
    'long'
    """
    from twinlake.schema.predicates import value_expressions

    return value_expressions.parse_value(text, schema, timezone=timezone)
