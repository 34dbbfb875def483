"""Values in Iceberg's binary form, as PyIceberg writes and reads them."""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime
from decimal import Context
from decimal import Decimal as Number
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg import types as theirs
from pyiceberg.conversions import from_bytes, to_bytes

from twinlake.iceberg.format.single_value import bound_encoder, encode_value, plain_value
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
    DataType,
    Decimal,
)

VALUES: list[tuple[DataType, theirs.PrimitiveType, Any]] = [
    (BOOLEAN, theirs.BooleanType(), True),
    (BOOLEAN, theirs.BooleanType(), False),
    (BYTE, theirs.IntegerType(), -7),
    (SHORT, theirs.IntegerType(), 32_000),
    (INTEGER, theirs.IntegerType(), -(2**31)),
    (LONG, theirs.LongType(), 2**63 - 1),
    (LONG, theirs.LongType(), 2**53 + 1),
    (FLOAT, theirs.FloatType(), 1.5),
    (DOUBLE, theirs.DoubleType(), -0.1),
    (STRING, theirs.StringType(), "blåbær"),
    (BINARY, theirs.BinaryType(), b"\x00\xff"),
    (DATE, theirs.DateType(), date(1969, 12, 31)),
    (TIMESTAMP, theirs.TimestamptzType(), datetime(2024, 5, 1, 1, 2, 3, 456789, tzinfo=UTC)),
    (TIMESTAMP_NTZ, theirs.TimestampType(), datetime(1900, 1, 1, 0, 0, 0, 1)),
    (Decimal(10, 2), theirs.DecimalType(10, 2), Number("-1.28")),
    (Decimal(38, 0), theirs.DecimalType(38, 0), Number("9" * 38)),
    (Decimal(5, 5), theirs.DecimalType(5, 5), Number("0.00000")),
]


def encode_bound(value: Any, kind: DataType, *, upper: bool) -> bytes | None:
    encode = bound_encoder(kind)
    return None if encode is None else encode(value, upper)


@pytest.mark.parametrize(
    ("ours", "iceberg", "value"), VALUES, ids=[f"{v[0]}-{v[2]}" for v in VALUES]
)
def test_values_are_encoded_as_pyiceberg_does(
    ours: DataType, iceberg: theirs.PrimitiveType, value: Any
) -> None:
    plain = plain_value(value)

    assert encode_value(plain, ours) == to_bytes(iceberg, plain)


@given(number=st.integers(min_value=-(10**38) + 1, max_value=10**38 - 1))
def test_decimals_take_the_fewest_bytes(number: int) -> None:
    value = Number(number).scaleb(-3, Context(prec=60))
    kind = theirs.DecimalType(38, 3)

    encoded = encode_value(value, Decimal(38, 3))

    assert encoded == to_bytes(kind, value)
    assert from_bytes(kind, encoded) == value


BOUNDS: list[tuple[str, DataType, Any, bytes | None, bytes | None]] = [
    ("long above 2^53", LONG, 2**60 + 1, struct.pack("<q", 2**60 + 1), None),
    ("whole number spelt as a real", INTEGER, 3.0, struct.pack("<i", 3), None),
    ("int out of range", INTEGER, 2**40, None, None),
    ("NaN", DOUBLE, "NaN", None, None),
    ("infinity", DOUBLE, "-Infinity", struct.pack("<d", float("-inf")), None),
    ("zero", DOUBLE, 0.0, struct.pack("<d", -0.0), struct.pack("<d", 0.0)),
    ("negative zero", FLOAT, -0.0, struct.pack("<f", -0.0), struct.pack("<f", 0.0)),
    ("text that is no number", DOUBLE, "ten", None, None),
    ("date", DATE, "1970-01-02", struct.pack("<i", 1), None),
    ("date beyond the calendar", DATE, "+12024-01-01", None, None),
    ("binary has none", BINARY, "AA==", None, None),
    ("boolean has none", BOOLEAN, True, None, None),
    ("decimal of more digits", Decimal(4, 1), Number("1.25"), b"\x0c", b"\x0d"),
    ("negative decimal of more digits", Decimal(4, 1), Number("-1.25"), b"\xf3", b"\xf4"),
]


@pytest.mark.parametrize(
    ("kind", "value", "lower", "upper"), [b[1:] for b in BOUNDS], ids=[b[0] for b in BOUNDS]
)
def test_bounds_hold_or_are_left_out(
    kind: DataType, value: Any, lower: bytes | None, upper: bytes | None
) -> None:
    assert encode_bound(value, kind, upper=False) == lower
    assert encode_bound(value, kind, upper=True) == (upper or lower)


@pytest.mark.parametrize("kind", [TIMESTAMP, TIMESTAMP_NTZ], ids=str)
def test_upper_bounds_of_timestamps_reach_to_the_end_of_the_millisecond(kind: DataType) -> None:
    text = "2024-05-01T01:02:03.456" + ("Z" if kind == TIMESTAMP else "")

    lower = encode_bound(text, kind, upper=False)
    upper = encode_bound(text, kind, upper=True)

    assert lower is not None
    assert upper is not None
    assert struct.unpack("<q", upper)[0] - struct.unpack("<q", lower)[0] == 999


@given(value=st.floats(allow_nan=False, width=64))
def test_float_bounds_never_cut_a_value_off(value: float) -> None:
    lower = encode_bound(value, FLOAT, upper=False)
    upper = encode_bound(value, FLOAT, upper=True)

    assert lower is None or struct.unpack("<f", lower)[0] <= value
    assert upper is None or struct.unpack("<f", upper)[0] >= value
