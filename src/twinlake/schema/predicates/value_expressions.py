"""SQL expressions that give a value for each row, computed exactly as Spark computes them.

For generated columns and assignments without Spark. A table of handlers says which forms are
computed; one without a handler, or with types for which the result might differ from Spark's (with
ANSI mode on and UTC as time zone), is not computed at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from twinlake.errors import Code, UserError
from twinlake.schema.arrow import type_to_arrow
from twinlake.schema.predicates.constants import ConstantKind
from twinlake.schema.predicates.evaluation import evaluate_on
from twinlake.schema.predicates.expressions import is_exact
from twinlake.schema.predicates.parser import ExpressionReader, cast_target, unwrapped
from twinlake.schema.predicates.sql_text import parse_condition
from twinlake.schema.types import (
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
    VOID,
    ColumnPath,
    DataType,
    Struct,
)

if TYPE_CHECKING:
    import datetime as dt

__all__ = ["ValueExpression", "parse_value"]

Columns = Mapping[ColumnPath, pa.Array]
Compute = Callable[[Columns, int], pa.Array]

_INTEGRAL: Final = (BYTE, SHORT, INTEGER, LONG)
_TIMES: Final = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
_CONSTANTS: Final = {
    ConstantKind.NULL: VOID,
    ConstantKind.BOOLEAN: BOOLEAN,
    ConstantKind.DOUBLE: DOUBLE,
    ConstantKind.STRING: STRING,
    ConstantKind.BINARY: BINARY,
    ConstantKind.DATE: DATE,
    ConstantKind.TIMESTAMP: TIMESTAMP,
    ConstantKind.TIMESTAMP_NTZ: TIMESTAMP_NTZ,
}
_CAST_CONSTANTS: Final = frozenset(
    (
        ConstantKind.DOUBLE,
        ConstantKind.DATE,
        ConstantKind.TIMESTAMP,
        ConstantKind.TIMESTAMP_NTZ,
    )
)
#: The units of ``date_trunc`` and ``trunc``, as Spark spells them and as Arrow does.
_UNITS: Final = {
    "YEAR": "year",
    "YYYY": "year",
    "YY": "year",
    "QUARTER": "quarter",
    "MONTH": "month",
    "MON": "month",
    "MM": "month",
    "WEEK": "week",
    "DAY": "day",
    "DD": "day",
    "HOUR": "hour",
    "MINUTE": "minute",
    "SECOND": "second",
}
_DATE_UNITS: Final = frozenset(("year", "quarter", "month", "week"))


@dataclass(frozen=True, slots=True)
class ValueExpression:
    """An expression whose values are computed here."""

    type: DataType
    columns: frozenset[ColumnPath]
    compute: Compute

    def evaluate(self, columns: Columns, n: int) -> pa.Array:
        """The value of each of ``n`` rows; ``UserError`` where Spark raises as well."""
        try:
            return self.compute(columns, n)
        except pa.ArrowInvalid as error:
            raise UserError(
                Code.CONSTRAINT,
                "A value is out of the range of its type.",
                why=str(error).splitlines()[0],
                fix="Correct the rows, or use a wider type.",
            ) from error


def parse_value(text: str, schema: Struct, *, timezone: dt.tzinfo) -> ValueExpression | None:
    """The expression, or None if only Spark computes it."""
    reader = ExpressionReader(text, schema, timezone)
    return _value(reader, parse_condition(text))


def _value(reader: ExpressionReader, node: exp.Expr) -> ValueExpression | None:
    node = unwrapped(node)
    handler = _HANDLERS.get(type(node))
    found = None if handler is None else handler(reader, node)
    if found is not None:
        return found
    column = reader.column(node)
    if column is not None:
        path = column.column.path
        if not column.whole:
            return None
        return ValueExpression(column.column.type, frozenset((path,)), lambda c, _n: c[path])
    return _constant(reader, node) or _condition(reader, node)


def _constant(reader: ExpressionReader, node: exp.Expr) -> ValueExpression | None:
    is_cast = isinstance(node, exp.Cast)
    if not is_cast and not isinstance(
        node, exp.Literal | exp.Boolean | exp.Null | exp.HexString | exp.RawString
    ):
        return None
    constant = reader.constant(node)
    # A whole number that was cast no longer says to which of the types.
    if constant is None or (is_cast and constant.kind not in _CAST_CONSTANTS):
        return None
    kind = _CONSTANTS.get(constant.kind)
    if constant.kind is ConstantKind.INTEGER and isinstance(constant.value, int):
        kind = INTEGER if -(2**31) <= constant.value < 2**31 else LONG
    if kind is None:
        return None
    scalar = pa.scalar(constant.value, type_to_arrow(kind))
    return ValueExpression(kind, frozenset(), lambda _c, n: pa.repeat(scalar, n))


def _condition(reader: ExpressionReader, node: exp.Expr) -> ValueExpression | None:
    if not isinstance(node, exp.Predicate | exp.And | exp.Or | exp.Not):
        return None
    expr = reader.condition(node)
    if not is_exact(expr):
        return None
    return ValueExpression(BOOLEAN, expr.columns(), lambda c, n: evaluate_on(expr, c, n))


def _applied(
    kind: DataType, inner: ValueExpression, function: Callable[[pa.Array], pa.Array]
) -> ValueExpression:
    return ValueExpression(kind, inner.columns, lambda c, n: function(inner.compute(c, n)))


def _arithmetic(kernel: Any) -> Callable[[ExpressionReader, exp.Expr], ValueExpression | None]:
    def read(reader: ExpressionReader, node: exp.Expr) -> ValueExpression | None:
        left, right = _value(reader, node.this), _value(reader, node.expression)
        if left is None or right is None:
            return None
        kind = _common(left.type, right.type)
        if kind is None:
            return None
        arrow = type_to_arrow(kind)
        return ValueExpression(
            kind,
            left.columns | right.columns,
            lambda c, n: kernel(
                left.compute(c, n).cast(arrow, safe=False),
                right.compute(c, n).cast(arrow, safe=False),
            ),
        )

    return read


def _common(left: DataType, right: DataType) -> DataType | None:
    """The type that both sides of an operation are brought to; None where Spark's is not sure."""
    if left in _INTEGRAL and right in _INTEGRAL:
        return _INTEGRAL[max(_INTEGRAL.index(left), _INTEGRAL.index(right))]
    if DOUBLE in (left, right) and {left, right} <= {DOUBLE, *_INTEGRAL}:
        return DOUBLE
    return None


def _divided(reader: ExpressionReader, node: exp.Expr) -> ValueExpression | None:
    """``/`` is a division of doubles, also of whole numbers."""
    left, right = _value(reader, node.this), _value(reader, node.expression)
    if left is None or right is None or not {left.type, right.type} <= {DOUBLE, *_INTEGRAL}:
        return None

    def compute(columns: Columns, n: int) -> pa.Array:
        up, low = (
            side.compute(columns, n).cast(pa.float64(), safe=False) for side in (left, right)
        )
        _refuse_zero(up, low)
        return pc.divide(up, low)

    return ValueExpression(DOUBLE, left.columns | right.columns, compute)


def _remainder(up: pa.Array, low: pa.Array) -> pa.Array:
    """With the sign of the dividend, as in Java."""
    if not pa.types.is_integer(up.type):
        raise pa.ArrowInvalid("a remainder of doubles")
    _refuse_zero(up, low)
    # The lowest number divided by -1 is out of range; its remainder is 0.
    low = pc.if_else(pc.equal(low, -1), pa.scalar(1, low.type), low)
    return pc.subtract(up, pc.multiply(pc.divide(up, low), low))


def _modulo(reader: ExpressionReader, node: exp.Expr) -> ValueExpression | None:
    found = _arithmetic(_remainder)(reader, node)
    return found if found is not None and found.type in _INTEGRAL else None


def _refuse_zero(up: pa.Array, low: pa.Array) -> None:
    bad = pc.and_(pc.is_valid(up), pc.fill_null(pc.equal(low, 0), False))
    if pc.any(bad).as_py():
        raise UserError(
            Code.CONSTRAINT,
            "A row divides by zero.",
            why="The expression has no value for it.",
            fix="Correct the rows, or test the divisor in the expression.",
            delta_class="DIVIDE_BY_ZERO",
        )


def _negated(reader: ExpressionReader, node: exp.Expr) -> ValueExpression | None:
    inner = _value(reader, node.this)
    if inner is None or inner.type not in (*_INTEGRAL, DOUBLE):
        return None
    return _applied(inner.type, inner, pc.negate_checked)


def _cast(reader: ExpressionReader, node: exp.Expr) -> ValueExpression | None:
    """Casts that every value survives: whether the text says CAST or TRY_CAST is lost here."""
    inner, target = _value(reader, node.this), node.args.get("to")
    kind = cast_target(target) if isinstance(target, exp.DataType) else None
    if inner is None or kind is None:
        return None
    if inner.type == kind:
        return inner
    if kind == DATE and inner.type in _TIMES:
        return _to_date(inner)
    arrow = type_to_arrow(kind)
    widens = (
        inner.type in _INTEGRAL
        and kind in _INTEGRAL
        and _INTEGRAL.index(inner.type) < _INTEGRAL.index(kind)
    )
    if widens or (inner.type == FLOAT and kind == DOUBLE) or inner.type == VOID:
        return _applied(kind, inner, lambda array: array.cast(arrow))
    if inner.type in _INTEGRAL and kind in (STRING, DOUBLE):
        return _applied(kind, inner, lambda array: array.cast(arrow, safe=False))
    return None


def _to_date(inner: ValueExpression) -> ValueExpression:
    if inner.type == DATE:
        return inner
    return _applied(DATE, inner, lambda array: _floored(_local(array), "day").cast(pa.date32()))


def _date_of(reader: ExpressionReader, node: exp.Expr) -> ValueExpression | None:
    inner = _value(reader, node.this)
    return _to_date(inner) if inner is not None and inner.type in _TIMES else None


def _local(array: pa.Array) -> pa.Array:
    """Timestamps as those of clocks in UTC; dates as midnight."""
    if pa.types.is_date(array.type):
        return array.cast(pa.timestamp("us"))
    return array.view(pa.timestamp("us"))


def _floored(array: pa.Array, unit: str) -> pa.Array:
    return pc.floor_temporal(array, unit=unit)


def _part(kernel: Any) -> Callable[[ExpressionReader, exp.Expr], ValueExpression | None]:
    def read(reader: ExpressionReader, node: exp.Expr) -> ValueExpression | None:
        inner = node.this
        if isinstance(inner, exp.TsOrDsToDate) and set(inner.args) <= {"this"}:
            inner = inner.this
        value = _value(reader, inner)
        if value is None or value.type not in _TIMES:
            return None
        return _applied(INTEGER, value, lambda array: kernel(_local(array)).cast(pa.int32()))

    return read


def _time_part(kernel: Any) -> Callable[[ExpressionReader, exp.Expr], ValueExpression | None]:
    read_part = _part(kernel)

    def read(reader: ExpressionReader, node: exp.Expr) -> ValueExpression | None:
        value = _value(reader, node.this)
        is_time = value is not None and value.type in (TIMESTAMP, TIMESTAMP_NTZ)
        return read_part(reader, node) if is_time else None

    return read


def _timestamp_trunc(reader: ExpressionReader, node: exp.Expr) -> ValueExpression | None:
    value, unit = _value(reader, node.this), _unit(node)
    if value is None or unit is None or value.type not in (DATE, TIMESTAMP):
        return None
    arrow = type_to_arrow(TIMESTAMP)
    return _applied(TIMESTAMP, value, lambda array: _floored(_local(array), unit).view(arrow))


def _date_trunc(reader: ExpressionReader, node: exp.Expr) -> ValueExpression | None:
    value, unit = _value(reader, node.this), _unit(node)
    if value is None or unit not in _DATE_UNITS or value.type != DATE:
        return None
    return _applied(DATE, value, lambda array: _floored(_local(array), unit).cast(pa.date32()))


def _unit(node: exp.Expr) -> str | None:
    unit = node.args.get("unit")
    return _UNITS.get(unit.name.upper()) if isinstance(unit, exp.Expr) else None


def _substring(reader: ExpressionReader, node: exp.Expr) -> ValueExpression | None:
    value, start = _value(reader, node.this), _whole(node.args.get("start"))
    length = node.args.get("length")
    size = None if length is None else _whole(length)
    if value is None or value.type != STRING or start is None or (length and size is None):
        return None
    # Positions count from 1, and Spark takes 0 for 1.
    first = max(start - 1, 0)
    stop = None if size is None else first + size
    return _applied(
        STRING, value, lambda array: pc.utf8_slice_codeunits(array, start=first, stop=stop)
    )


def _left(reader: ExpressionReader, node: exp.Expr) -> ValueExpression | None:
    value, size = _value(reader, node.this), _whole(node.expression)
    if value is None or value.type != STRING or size is None:
        return None
    return _applied(STRING, value, lambda array: pc.utf8_slice_codeunits(array, 0, size))


def _whole(node: Any) -> int | None:
    """A number of the text that is not negative."""
    is_number = isinstance(node, exp.Literal) and not node.is_string and node.name.isdecimal()
    return int(node.name) if is_number else None


def _concat(reader: ExpressionReader, node: exp.Expr) -> ValueExpression | None:
    parts = [_value(reader, part) for part in node.expressions]
    known = [part for part in parts if part is not None and part.type == STRING]
    if not known or len(known) != len(parts):
        return None
    columns = frozenset().union(*(part.columns for part in known))
    return ValueExpression(
        STRING,
        columns,
        lambda c, n: pc.binary_join_element_wise(
            *(part.compute(c, n) for part in known), "", null_handling="emit_null"
        ),
    )


_Handler = Callable[[ExpressionReader, exp.Expr], ValueExpression | None]
_HANDLERS: Final[dict[type[exp.Expr], _Handler]] = {
    exp.Add: _arithmetic(pc.add_checked),
    exp.Sub: _arithmetic(pc.subtract_checked),
    exp.Mul: _arithmetic(pc.multiply_checked),
    exp.Div: _divided,
    exp.Mod: _modulo,
    exp.Neg: _negated,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.TsOrDsToDate: _date_of,
    exp.Year: _part(pc.year),
    exp.Month: _part(pc.month),
    exp.Day: _part(pc.day),
    exp.DayOfMonth: _part(pc.day),
    exp.Hour: _time_part(pc.hour),
    exp.Minute: _time_part(pc.minute),
    exp.TimestampTrunc: _timestamp_trunc,
    exp.DateTrunc: _date_trunc,
    exp.Substring: _substring,
    exp.Left: _left,
    exp.Concat: _concat,
}
