"""Constants of SQL text, and how Spark compares them with a column.

A constant is brought into the type of its column once, here. Where Spark would convert the
*column* instead (a string column compared with a number), or where its answer depends on a
session setting, there is no such conversion and the comparison stays opaque. ``None`` as a result
always means that.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import struct
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from twinlake.schema.metadata_keys import CHAR_VARCHAR_KEY, COLLATIONS_KEY
from twinlake.schema.predicates.expressions import (
    FALSE,
    NULL,
    Column,
    Comparison,
    Expr,
    IsNull,
    Literal,
    Not,
    Op,
    Value,
    all_of,
    any_of,
)
from twinlake.schema.predicates.value_parsers import (
    read_boolean,
    read_date,
    read_double,
    read_integer,
    read_timestamp,
)
from twinlake.schema.types import LONG, DataType, Decimal, Primitive, StructField

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "Constant",
    "ConstantKind",
    "Domain",
    "cast_constant",
    "comparable",
    "compare_constant",
    "compare_constants",
    "domain_of",
    "number",
]

_INT64: Final = (-(2**63), 2**63 - 1)
_EXACT_DIGITS: Final = 15  # decimals of so many digits are distinct as doubles
_MAX_PRECISION: Final = 38


class Domain(StrEnum):
    """Types that compare with each other without loss."""

    INTEGRAL = "integral"
    FLOATING = "floating"
    DECIMAL = "decimal"
    STRING = "string"
    BOOLEAN = "boolean"
    BINARY = "binary"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMP_NTZ = "timestamp_ntz"


_DOMAINS: Final = {
    "byte": Domain.INTEGRAL,
    "short": Domain.INTEGRAL,
    "integer": Domain.INTEGRAL,
    "long": Domain.INTEGRAL,
    "float": Domain.FLOATING,
    "double": Domain.FLOATING,
    "string": Domain.STRING,
    "boolean": Domain.BOOLEAN,
    "binary": Domain.BINARY,
    "date": Domain.DATE,
    "timestamp": Domain.TIMESTAMP,
    "timestamp_ntz": Domain.TIMESTAMP_NTZ,
}


def domain_of(kind: DataType) -> Domain | None:
    """The domain of a type, or None if its values are not compared here."""
    match kind:
        case Decimal():
            return Domain.DECIMAL
        case Primitive(name):
            return _DOMAINS.get(name)
        case _:
            return None


def comparable(field: StructField) -> bool:
    """Whether values of the field compare by their bytes: not so for CHAR(n) and collations."""
    padded = str(field.metadata.get(CHAR_VARCHAR_KEY, "")).strip().lower().startswith("char")
    return not padded and COLLATIONS_KEY not in field.metadata


class ConstantKind(StrEnum):
    """The type of a constant as Spark sees it."""

    NULL = "null"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    DECIMAL = "decimal"
    FLOAT = "float"
    DOUBLE = "double"
    STRING = "string"
    BINARY = "binary"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMP_NTZ = "timestamp_ntz"


@dataclass(frozen=True, slots=True)
class Constant:
    """A value with its Spark type."""

    kind: ConstantKind
    value: Value


@dataclass(frozen=True, slots=True)
class _Between:
    """A number that no value of an integral column equals."""

    value: decimal.Decimal


def number(text: str) -> Constant:
    """A number as SQL spells it: with an exponent a double, with a point a decimal.

    >>> number("1.50")
    Constant(kind=<ConstantKind.DECIMAL: 'decimal'>, value=Decimal('1.50'))
    """
    if "e" in text.lower():
        return Constant(ConstantKind.DOUBLE, float(text))
    if "." in text:
        return Constant(ConstantKind.DECIMAL, decimal.Decimal(text))
    # int() refuses very long texts; a decimal does not.
    return Constant(ConstantKind.INTEGER, int(decimal.Decimal(text)))


def compare_constant(column: Column, op: Op, constant: Constant, zone: dt.tzinfo) -> Expr | None:
    """The comparison in the column's type, or None if only Spark can do it."""
    if constant.kind is ConstantKind.NULL:
        return IsNull(column) if op is Op.NULL_SAFE_EQ else NULL
    domain = domain_of(column.type)
    if domain is None:
        return None
    found = _TO_DOMAIN[domain](constant, column, zone)
    if isinstance(found, _Between):
        return _between(column, op, found.value)
    return None if found is None else Comparison(op, column, found)


def compare_constants(left: Constant, op: Op, right: Constant) -> Literal | None:
    """Two constants of one kind compared; None where Spark would convert one."""
    if ConstantKind.NULL in (left.kind, right.kind):
        if op is not Op.NULL_SAFE_EQ:
            return NULL
        return Literal(left.kind is right.kind, NULL.type)
    exact = {ConstantKind.INTEGER, ConstantKind.DECIMAL}
    same = left.kind is right.kind and left.kind not in (ConstantKind.FLOAT, ConstantKind.DOUBLE)
    if not same and not {left.kind, right.kind} <= exact:
        return None
    a, b = left.value, right.value
    equal = a == b
    less = _sort_key(a) < _sort_key(b)
    answers = {
        Op.EQ: equal,
        Op.NULL_SAFE_EQ: equal,
        Op.NE: not equal,
        Op.LT: less,
        Op.LE: less or equal,
        Op.GT: not less and not equal,
        Op.GE: not less,
    }
    return Literal(answers[op], NULL.type)


def _sort_key(value: Value) -> Any:
    match value:
        case str():
            return value.encode("utf-8", "surrogatepass")
        case dt.datetime():
            return value.replace(tzinfo=None).toordinal() * 86_400_000_000 + _micros(value)
        case dt.date():
            return value.toordinal()
        case None:
            return 0
        case _:
            return value


def _micros(value: dt.datetime) -> int:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1_000_000 + value.microsecond


def _between(column: Column, op: Op, value: decimal.Decimal) -> Expr:
    """A whole number compared with one that is fractional or beyond 64 bits."""
    if op is Op.NULL_SAFE_EQ:
        return FALSE
    never = all_of([IsNull(column), NULL])
    always = any_of([Not(IsNull(column)), NULL])
    if op in (Op.EQ, Op.NE):
        return never if op is Op.EQ else always
    low, high = _INT64
    below = op in (Op.LT, Op.LE)
    if value > high:
        return always if below else never
    if value < low:
        return never if below else always
    whole = math.floor(value) if below else math.ceil(value)
    return Comparison(Op.LE if below else Op.GE, column, Literal(whole, LONG))


_Converted = Literal | _Between | None


def _to_integral(constant: Constant, column: Column, _zone: dt.tzinfo) -> _Converted:
    value = constant.value
    match constant.kind:
        case ConstantKind.INTEGER | ConstantKind.DECIMAL:
            exact = _exact(value)
        case ConstantKind.STRING:
            exact = decimal.Decimal(read_integer(str(value), column))
        case ConstantKind.DOUBLE | ConstantKind.FLOAT:
            # Spark turns the column into a floating number, which is exact only up to here.
            limit = 2**53 if constant.kind is ConstantKind.DOUBLE else 2**24
            if not isinstance(value, float) or not abs(value) < limit:
                return None
            exact = decimal.Decimal(value)
        case _:
            return None
    if exact != exact.to_integral_value() or not _INT64[0] <= exact <= _INT64[1]:
        return _Between(exact)
    return Literal(int(exact), LONG)


def _to_floating(constant: Constant, column: Column, _zone: dt.tzinfo) -> _Converted:
    single = column.type == Primitive("float")
    match constant.kind:
        case ConstantKind.STRING:
            value = read_double(str(constant.value), column)
        case ConstantKind.INTEGER | ConstantKind.DECIMAL | ConstantKind.FLOAT | ConstantKind.DOUBLE:
            value = _as_double(constant.value)
        case _:
            return None
    # Whether Spark compares these as float or as double depends on ANSI mode.
    unsure = single and constant.kind in (ConstantKind.STRING, ConstantKind.INTEGER)
    if unsure and not math.isnan(value) and _as_single(value) != value:
        return None
    overflown = math.isinf(value) and constant.kind in (ConstantKind.INTEGER, ConstantKind.DECIMAL)
    return None if overflown else Literal(value, Primitive("double"))


def _to_decimal(constant: Constant, column: Column, _zone: dt.tzinfo) -> _Converted:
    value = constant.value
    match constant.kind:
        case ConstantKind.INTEGER | ConstantKind.DECIMAL:
            exact = _exact(value)
        case ConstantKind.STRING | ConstantKind.DOUBLE:
            # Spark compares these as doubles; with few digits that is the same.
            double = value if isinstance(value, float) else read_double(str(value), column)
            if not math.isfinite(double):
                return None
            exact = decimal.Decimal(str(value).strip())
            few = _digits(exact).precision <= _EXACT_DIGITS
            if not few or _decimal_type(column).precision > _EXACT_DIGITS:
                return None
        case _:
            return None
    kind = _digits(exact)
    given = _decimal_type(column)
    scale = max(kind.scale, given.scale)
    whole = max(kind.precision - kind.scale, given.precision - given.scale)
    if whole + scale > _MAX_PRECISION:
        return None
    return Literal(exact, kind)


def _to_string(constant: Constant, column: Column, _zone: dt.tzinfo) -> _Converted:
    return Literal(constant.value, column.type) if constant.kind is ConstantKind.STRING else None


def _to_boolean(constant: Constant, column: Column, _zone: dt.tzinfo) -> _Converted:
    match constant.kind:
        case ConstantKind.BOOLEAN:
            return Literal(constant.value, column.type)
        case ConstantKind.STRING:
            return Literal(read_boolean(str(constant.value), column), column.type)
        case _:
            return None


def _to_binary(constant: Constant, column: Column, _zone: dt.tzinfo) -> _Converted:
    match constant.value:
        case bytes():
            return Literal(constant.value, column.type)
        case str():
            return Literal(constant.value.encode("utf-8", "surrogatepass"), column.type)
        case _:
            return None


def _to_date(constant: Constant, column: Column, _zone: dt.tzinfo) -> _Converted:
    match constant.kind:
        case ConstantKind.DATE:
            return Literal(constant.value, column.type)
        case ConstantKind.STRING:
            found = read_date(str(constant.value), column)
            return None if found is None else Literal(found, column.type)
        case _:
            return None


def _to_timestamp(constant: Constant, column: Column, zone: dt.tzinfo) -> _Converted:
    value = constant.value
    match constant.kind:
        case ConstantKind.STRING:
            found = read_timestamp(str(value), column)
            moment = None if found is None else _in_utc(found, zone)
        case ConstantKind.DATE | ConstantKind.TIMESTAMP | ConstantKind.TIMESTAMP_NTZ:
            moment = _in_utc(_midnight(value), zone)
        case _:
            return None
    return None if moment is None else Literal(moment, column.type)


def _to_timestamp_ntz(constant: Constant, column: Column, zone: dt.tzinfo) -> _Converted:
    value = constant.value
    match constant.kind:
        case ConstantKind.STRING:
            moment = read_timestamp(str(value), column)
        case ConstantKind.DATE | ConstantKind.TIMESTAMP_NTZ:
            moment = _midnight(value)
        case ConstantKind.TIMESTAMP:
            # Spark moves the column into the session's zone; only UTC has no gaps or overlaps.
            moment = _midnight(value) if zone is dt.UTC else None
            moment = None if moment is None else moment.replace(tzinfo=None)
        case _:
            return None
    if moment is None or moment.tzinfo is not None:
        return None
    return Literal(moment, column.type)


_TO_DOMAIN: Final[dict[Domain, Callable[[Constant, Column, dt.tzinfo], _Converted]]] = {
    Domain.INTEGRAL: _to_integral,
    Domain.FLOATING: _to_floating,
    Domain.DECIMAL: _to_decimal,
    Domain.STRING: _to_string,
    Domain.BOOLEAN: _to_boolean,
    Domain.BINARY: _to_binary,
    Domain.DATE: _to_date,
    Domain.TIMESTAMP: _to_timestamp,
    Domain.TIMESTAMP_NTZ: _to_timestamp_ntz,
}


def cast_constant(constant: Constant, target: DataType, zone: dt.tzinfo) -> Constant | None:
    """``CAST(constant AS target)`` where it loses nothing; None where it might."""
    if constant.kind is ConstantKind.NULL:
        return constant
    domain = domain_of(target)
    if domain is None:
        return None
    found = _TO_DOMAIN[domain](constant, Column((f"CAST AS {target}",), target), zone)
    if not isinstance(found, Literal):
        return None
    value = found.value
    match target:
        case Decimal(precision, scale):
            kind = _digits(_exact(value))
            fits = kind.scale <= scale and kind.precision - kind.scale <= precision - scale
            return Constant(ConstantKind.DECIMAL, value) if fits else None
        case Primitive("float"):
            single = _as_single(_as_double(value))
            return Constant(ConstantKind.FLOAT, single) if not math.isinf(single) else None
        case Primitive("double"):
            return Constant(ConstantKind.DOUBLE, value)
        case Primitive(name) if domain is Domain.INTEGRAL:
            bits = {"byte": 7, "short": 15, "integer": 31}.get(name, 63)
            fits = isinstance(value, int) and -(2**bits) <= value < 2**bits
            return Constant(ConstantKind.INTEGER, value) if fits else None
        case _:
            return Constant(ConstantKind(domain.value), value)


def _decimal_type(column: Column) -> Decimal:
    return column.type if isinstance(column.type, Decimal) else Decimal()


def _digits(value: decimal.Decimal) -> Decimal:
    """The smallest decimal type that holds the value."""
    _, digits, exponent = value.as_tuple()
    exponent = exponent if isinstance(exponent, int) else 0
    scale = max(0, -exponent)
    return Decimal(max(len(digits) + max(0, exponent), scale, 1), scale)


def _exact(value: Value) -> decimal.Decimal:
    return decimal.Decimal(value if isinstance(value, int | decimal.Decimal) else str(value))


def _as_double(value: Value) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:
        return math.inf


def _as_single(value: float) -> float:
    try:
        single: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return single


def _midnight(value: Value) -> dt.datetime:
    if isinstance(value, dt.datetime):
        return value
    day = value if isinstance(value, dt.date) else dt.date.min
    return dt.datetime.combine(day, dt.time())


def _in_utc(moment: dt.datetime, zone: dt.tzinfo) -> dt.datetime | None:
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(dt.UTC)
    except OverflowError:
        return None
