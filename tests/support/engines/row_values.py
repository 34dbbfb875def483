"""Random column types, and random values of a type: as Python objects and as SQL literals.

Everything is drawn from a ``random.Random``, so a seed and a count stand for the same rows always.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pyspark.sql import types as t

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

__all__ = [
    "PRIMITIVES",
    "ddl",
    "leaves",
    "literal",
    "quoted",
    "random_rows",
    "random_type",
    "random_value",
]

PRIMITIVES: tuple[t.DataType, ...] = (
    t.StringType(),
    t.LongType(),
    t.IntegerType(),
    t.ShortType(),
    t.ByteType(),
    t.FloatType(),
    t.DoubleType(),
    t.BooleanType(),
    t.BinaryType(),
    t.DateType(),
    t.TimestampType(),
    t.TimestampNTZType(),
    t.DecimalType(5, 2),
    t.DecimalType(18, 6),
    t.DecimalType(38, 10),
    t.DecimalType(9, 0),
)
#: What keys of maps are made of: equal keys are found without a care about NaN or trailing zeros.
_KEYS = (t.StringType(), t.LongType(), t.IntegerType(), t.DateType())
_FIELD_NAMES = ("a", "B", "c", "nested", "ü")
_TEXTS = (
    "", "a", "b", "x y", "naïve", "日本", "𝒳😀", "it's", "null", "a" * 40, "%41", "/a=b", "\\n",
)  # fmt: skip
_BITS: dict[type[t.DataType], int] = {
    t.ByteType: 8,
    t.ShortType: 16,
    t.IntegerType: 32,
    t.LongType: 64,
}
_FLOATS = (0.0, -0.0, 1.5, -2.25, math.nan, math.inf, -math.inf, 1e30, 0.1)
_DAYS = (date(1970, 1, 1), date(1900, 1, 1), date(2024, 2, 29), date(9999, 12, 31), date(1, 1, 1))
_TIMES = (
    datetime(1970, 1, 1),
    datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime(2024, 2, 29, 1, 2, 3),
    datetime(2024, 2, 29, 1, 2, 3, 456789),
    datetime(1905, 6, 7, 8, 9, 10, 1000),
)
_NULL_SHARE = 0.15


def quoted(*parts: str) -> str:
    """A column's path as SQL writes it."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def ddl(kind: t.DataType) -> str:
    """A type as SQL writes it, with names quoted."""
    match kind:
        case t.StructType():
            return f"STRUCT<{', '.join(_field_ddl(field) for field in kind.fields)}>"
        case t.ArrayType():
            return f"ARRAY<{ddl(kind.elementType)}>"
        case t.MapType():
            return f"MAP<{ddl(kind.keyType)}, {ddl(kind.valueType)}>"
        case _:
            return kind.simpleString().upper()


def _field_ddl(field: t.StructField) -> str:
    return f"{quoted(field.name)}: {ddl(field.dataType)}"


def random_type(rng: Random, depth: int = 2) -> t.DataType:
    """A type: mostly a primitive, sometimes nested."""
    if depth == 0 or rng.random() < 0.6:
        return rng.choice(PRIMITIVES)
    shape = rng.randrange(3)
    if shape == 0:
        return t.ArrayType(random_type(rng, depth - 1))
    if shape == 1:
        return t.MapType(rng.choice(_KEYS), random_type(rng, depth - 1))
    names = rng.sample(_FIELD_NAMES, rng.randint(1, 3))
    return t.StructType([t.StructField(name, random_type(rng, depth - 1)) for name in names])


def leaves(schema: t.StructType, above: tuple[str, ...] = ()) -> list[tuple[str, t.DataType]]:
    """The columns and the fields of structs that hold one value, by their quoted paths."""
    found: list[tuple[str, t.DataType]] = []
    for field in schema.fields:
        path = (*above, field.name)
        if isinstance(field.dataType, t.StructType):
            found += leaves(field.dataType, path)
        elif not isinstance(field.dataType, (t.ArrayType, t.MapType)):
            found.append((quoted(*path), field.dataType))
    return found


def random_value(rng: Random, kind: t.DataType, *, nullable: bool = True) -> Any:
    """A value that often meets an earlier one, and is often an odd one."""
    if nullable and rng.random() < _NULL_SHARE:
        return None
    match kind:
        case t.StructType():
            return tuple(random_value(rng, f.dataType, nullable=f.nullable) for f in kind.fields)
        case t.ArrayType():
            return [random_value(rng, kind.elementType) for _ in range(rng.randint(0, 3))]
        case t.MapType():
            keys = (random_value(rng, kind.keyType, nullable=False) for _ in range(2))
            return {key: random_value(rng, kind.valueType) for key in [*keys][: rng.randint(0, 2)]}
        case _:
            return _MAKERS[type(kind)](rng, kind)


def _integer(rng: Random, kind: t.DataType) -> int:
    top = 2 ** (_BITS[type(kind)] - 1)
    return rng.choice((top - 1, -top)) if rng.random() < 0.04 else rng.randint(-3, 12)


def _float(rng: Random, kind: t.DataType) -> float:
    value = rng.choice(_FLOATS)
    return 0.5 if isinstance(kind, t.FloatType) and value == 0.1 else value


def _decimal(rng: Random, kind: t.DataType) -> Decimal:
    assert isinstance(kind, t.DecimalType)
    digits = 10**kind.precision - 1
    unscaled = rng.choice((0, 1, -1, 150, 9999, digits, -digits, rng.randint(-digits, digits)))
    # Not by arithmetic: the context of this thread would round to 28 digits.
    sign = 1 if unscaled < 0 else 0
    shown = tuple(int(digit) for digit in str(abs(unscaled) % (digits + 1)))
    return Decimal((sign if any(shown) else 0, shown, -kind.scale))


def _timestamp(rng: Random, _kind: t.DataType) -> datetime:
    return _plain_timestamp(rng, _kind).replace(tzinfo=UTC)


def _plain_timestamp(rng: Random, _kind: t.DataType) -> datetime:
    return rng.choice(_TIMES) + timedelta(hours=rng.randint(0, 2))


_MAKERS: dict[type[t.DataType], Callable[[Random, t.DataType], Any]] = {
    t.StringType: lambda rng, _: rng.choice(_TEXTS),
    t.LongType: _integer,
    t.IntegerType: _integer,
    t.ShortType: _integer,
    t.ByteType: _integer,
    t.FloatType: _float,
    t.DoubleType: _float,
    t.BooleanType: lambda rng, _: rng.random() < 0.5,
    t.BinaryType: lambda rng, _: rng.choice((b"", b"\x00", b"abc", b"\xff\xfe", bytes(range(40)))),
    t.DateType: lambda rng, _: rng.choice(_DAYS),
    t.TimestampType: _timestamp,
    t.TimestampNTZType: _plain_timestamp,
    t.DecimalType: _decimal,
}


def random_rows(rng: Random, schema: t.StructType, count: int) -> list[tuple[Any, ...]]:
    """Rows for a frame of that schema."""
    return [
        tuple(random_value(rng, f.dataType, nullable=f.nullable) for f in schema.fields)
        for _ in range(count)
    ]


def literal(rng: Random, kind: t.DataType) -> str:
    """A value of a primitive type as SQL writes it."""
    value = random_value(rng, kind, nullable=False)
    match kind:
        case t.LongType() | t.IntegerType():
            # The lowest value is no literal of its own, only the highest plus a sign.
            return str(max(value, -(2 ** (_BITS[type(kind)] - 1)) + 1))
        case t.BooleanType():
            return str(value).lower()
        case t.StringType():
            return _text(value)
        case t.BinaryType():
            return f"X'{value.hex()}'"
        case t.DateType():
            return f"DATE'{value.isoformat()}'"
        case t.TimestampType():
            return f"TIMESTAMP'{value.replace(tzinfo=None).isoformat(' ')}'"
        case t.TimestampNTZType():
            return f"TIMESTAMP_NTZ'{value.isoformat(' ')}'"
        case _:
            return f"CAST('{value}' AS {ddl(kind)})"


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
