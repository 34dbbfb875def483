"""Arrow arrays brought into a form in which values compare as Spark compares them.

Whole numbers become int64, floating ones double, dates and timestamps whole numbers, booleans
small whole numbers; strings and binary compare by their bytes in Arrow as in Spark.
"""

from __future__ import annotations

import datetime as dt
import decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from twinlake.schema.predicates.constants import Domain
from twinlake.schema.predicates.expressions import Literal, Op

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["comparable_array", "comparable_scalar", "compare", "is_nan", "unified"]

_EPOCH: Final = dt.datetime(1970, 1, 1)
_EPOCH_DAY: Final = _EPOCH.date().toordinal()
_MICROSECOND: Final = dt.timedelta(microseconds=1)

_PLAIN_TYPES: Final[dict[Domain, pa.DataType]] = {
    Domain.INTEGRAL: pa.int64(),
    Domain.FLOATING: pa.float64(),
    Domain.BOOLEAN: pa.uint8(),
    Domain.STRING: pa.string(),
    Domain.BINARY: pa.binary(),
    Domain.DATE: pa.int32(),
    Domain.TIMESTAMP: pa.int64(),
    Domain.TIMESTAMP_NTZ: pa.int64(),
    Domain.DECIMAL: pa.decimal128(38, 0),
}
# What a value passes through on its way to the plain type.
_STEPS: Final[dict[Domain, Callable[[pa.DataType], pa.DataType]]] = {
    Domain.DATE: lambda _given: pa.date32(),
    Domain.TIMESTAMP: lambda given: pa.timestamp("us", getattr(given, "tz", None)),
    Domain.TIMESTAMP_NTZ: lambda given: pa.timestamp("us", getattr(given, "tz", None)),
}


def comparable_array(values: pa.Array | pa.ChunkedArray, domain: Domain) -> pa.Array:
    """The values in the form of their domain; raises ``pa.ArrowException`` if they do not fit."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    given = values.type
    if pa.types.is_dictionary(given):
        values = values.dictionary_decode()
        given = values.type
    if pa.types.is_null(given):
        return pa.nulls(len(values), _PLAIN_TYPES[domain])
    if domain is Domain.DECIMAL and pa.types.is_decimal(given):
        return values
    large = {Domain.STRING: pa.types.is_large_string, Domain.BINARY: pa.types.is_large_binary}
    if domain in large and large[domain](given):
        return values
    if domain in _STEPS:
        values = values.cast(_STEPS[domain](given))
    return values.cast(_PLAIN_TYPES[domain])


def comparable_scalar(literal: Literal, domain: Domain) -> pa.Scalar:
    """The literal in the form of its domain."""
    value: Any = literal.value
    match value:
        case bool():
            return pa.scalar(int(value), pa.uint8())
        case dt.datetime():
            value = (value.replace(tzinfo=None) - _EPOCH) // _MICROSECOND
        case dt.date():
            value = value.toordinal() - _EPOCH_DAY
        case decimal.Decimal():
            return pa.scalar(value, _decimal_of(value))
        case _:
            pass
    return pa.scalar(value, _PLAIN_TYPES[domain])


def _decimal_of(value: decimal.Decimal) -> pa.DataType:
    _, digits, exponent = value.as_tuple()
    power = exponent if isinstance(exponent, int) else 0
    scale = max(0, -power)
    return pa.decimal128(max(len(digits) + max(0, power), scale, 1), scale)


def unified(*operands: Any) -> tuple[Any, ...]:
    """Decimals of different scale in one type, large strings with plain ones; others as given."""
    types = {operand.type for operand in operands}
    if len(types) < 2:
        return operands
    if all(pa.types.is_decimal(kind) for kind in types):
        scale = max(kind.scale for kind in types)
        precision = scale + max(kind.precision - kind.scale for kind in types)
        make = pa.decimal128 if precision <= 38 else pa.decimal256
        return tuple(operand.cast(make(precision, scale)) for operand in operands)
    if pa.large_string() in types:
        return tuple(operand.cast(pa.large_string()) for operand in operands)
    if pa.large_binary() in types:
        return tuple(operand.cast(pa.large_binary()) for operand in operands)
    return operands


def is_nan(values: Any) -> Any:
    """Where a floating value is NaN; null where it is null."""
    return pc.is_nan(values)


_KERNELS: Final = {
    Op.EQ: pc.equal,
    Op.NE: pc.not_equal,
    Op.LT: pc.less,
    Op.LE: pc.less_equal,
    Op.GT: pc.greater,
    Op.GE: pc.greater_equal,
}


def compare(op: Op, left: Any, right: Any) -> Any:
    """The comparison, null where a side is null; NaN equals itself and is above all numbers."""
    left, right = unified(left, right)
    if not pa.types.is_floating(left.type):
        return _KERNELS[op](left, right)
    match op:
        case Op.GT | Op.GE:
            return compare(op.flipped, right, left)
        case Op.EQ:
            return pc.or_(pc.equal(left, right), pc.and_(is_nan(left), is_nan(right)))
        case Op.NE:
            return pc.invert(compare(Op.EQ, left, right))
        case Op.LT:
            below_nan = pc.and_(pc.invert(is_nan(left)), is_nan(right))
            return pc.or_(pc.less(left, right), below_nan)
        case _:
            return pc.or_(pc.less_equal(left, right), is_nan(right))
