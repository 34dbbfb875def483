"""Filters as Spark offers them to a data source, as predicates of ours.

Spark checks every filter again, so one that is not understood is left to it. Filters are told by
the names of their classes, which PySpark has since 4.1.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from twinlake.schema import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Struct,
    type_at,
)
from twinlake.schema import (
    Decimal as DecimalType,
)
from twinlake.schema.predicates import (
    Column,
    Comparison,
    Expr,
    In,
    IsNull,
    Literal,
    Not,
    Op,
    StartsWith,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from twinlake.schema import DataType

__all__ = ["filter_expression"]

_COMPARISONS: Final[Mapping[str, Op]] = {
    "EqualTo": Op.EQ,
    "EqualNullSafe": Op.NULL_SAFE_EQ,
    "GreaterThan": Op.GT,
    "GreaterThanOrEqual": Op.GE,
    "LessThan": Op.LT,
    "LessThanOrEqual": Op.LE,
}


def filter_expression(one: Any, schema: Struct) -> Expr | None:
    """The filter as a predicate on the table's columns; None if it cannot be said exactly."""
    kind = type(one).__name__
    if kind == "Not":
        inner = filter_expression(one.child, schema)
        return None if inner is None else Not(inner)
    path = getattr(one, "attribute", None)
    column = None if path is None else _column(tuple(path), schema)
    if column is None:
        return None
    operator = _COMPARISONS.get(kind)
    if operator is not None:
        value = _literal(getattr(one, "value", None), column.type)
        return None if value is None else Comparison(operator, column, value)
    make = _OTHERS.get(kind)
    return None if make is None else make(one, column)


def _column(path: tuple[str, ...], schema: Struct) -> Column | None:
    at: list[str] = []
    inside: DataType = schema
    for name in path:
        field = inside.get(name) if isinstance(inside, Struct) else None
        if field is None:
            return None
        at.append(field.name)
        inside = field.type
    return Column(tuple(at), type_at(schema, tuple(at)))


def _literal(value: object, kind: DataType) -> Literal | None:
    """A constant of the column's own type; None for what could compare in another way here."""
    wanted = Decimal if isinstance(kind, DecimalType) else _PYTHON.get(kind)
    if wanted is None or type(value) is not wanted:
        return None
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, dt.datetime):
        if (value.tzinfo is None) != (kind == TIMESTAMP_NTZ):
            return None
        value = value if value.tzinfo is None else value.astimezone(dt.UTC)
    return Literal(value, kind)  # type: ignore[arg-type]


_PYTHON: Final[Mapping[DataType, type]] = {
    BOOLEAN: bool,
    **dict.fromkeys((BYTE, SHORT, INTEGER, LONG), int),
    **dict.fromkeys((FLOAT, DOUBLE), float),
    STRING: str,
    BINARY: bytes,
    DATE: dt.date,
    **dict.fromkeys((TIMESTAMP, TIMESTAMP_NTZ), dt.datetime),
}


def _in(one: Any, column: Column) -> Expr | None:
    values = [_literal(value, column.type) for value in one.value if value is not None]
    if not values or None in values or len(values) != len(one.value):
        return None
    return In(column, tuple(value for value in values if value is not None))


def _starts_with(one: Any, column: Column) -> Expr | None:
    return StartsWith(column, one.value) if column.type == STRING else None


_OTHERS: Final[Mapping[str, Callable[[Any, Column], Expr | None]]] = {
    "In": _in,
    "IsNull": lambda _, column: IsNull(column),
    "IsNotNull": lambda _, column: Not(IsNull(column)),
    "StringStartsWith": _starts_with,
}
