"""Which defaults are literals of their type."""

from __future__ import annotations

import pytest

from twinlake.compat.rules.default_literal import is_literal_of
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
    VARIANT,
    Array,
    DataType,
    Decimal,
    Struct,
)

GOOD: list[tuple[DataType, str]] = [
    (INTEGER, "42"), (INTEGER, " -42 "), (INTEGER, "+7"), (INTEGER, "'42'"), (INTEGER, "NULL"),
    (INTEGER, "null"), (INTEGER, str(2**31 - 1)), (INTEGER, str(-(2**31))), (LONG, "5L"),
    (LONG, str(2**63 - 1)), (SHORT, "7S"), (BYTE, "127"), (BYTE, "-128"),
    (DOUBLE, "1"), (DOUBLE, "-1.5e3"), (DOUBLE, ".5"), (DOUBLE, "2D"), (FLOAT, "1.0f"),
    (Decimal(4, 2), "12.34"), (Decimal(4, 2), "12.3400"), (Decimal(4, 2), "-1BD"),
    (Decimal(4, 2), "0"),
    (Decimal(4, 2), "0.0000"), (Decimal(38, 0), "9" * 38), (STRING, "'x'"), (STRING, '"x"'),
    (STRING, "''"), (STRING, "'it''s'"), (STRING, r"'it\'s'"), (STRING, "'a\nb'"),
    (BOOLEAN, "true"), (BOOLEAN, "FALSE"), (BINARY, "X'00ff'"), (BINARY, "x''"),
    (BINARY, "'x'"), (DATE, "DATE '2020-02-29'"), (DATE, "'2020-02-29'"),
    (TIMESTAMP, "TIMESTAMP '2020-01-01 00:00:00'"), (TIMESTAMP, "'2020-01-01T00:00:00Z'"),
    (TIMESTAMP_NTZ, "TIMESTAMP_NTZ '2020-01-01 00:00:00.123456'"),
    (Array(LONG), "NULL"), (VARIANT, "null"),
]  # fmt: skip
BAD: list[tuple[DataType, str]] = [
    (INTEGER, ""), (INTEGER, "x"), (INTEGER, "1 + 1"), (INTEGER, "1.5"), (INTEGER, "rand()"),
    (INTEGER, str(2**31)), (INTEGER, str(-(2**31) - 1)), (LONG, str(2**63)), (BYTE, "128"),
    (SHORT, "32768"), (INTEGER, "'x'"), (INTEGER, "true"), (INTEGER, "\u0663"),
    (INTEGER, "1" * 5000), (DOUBLE, "1/3"), (DOUBLE, "e5"), (Decimal(4, 2), "123.4"),
    (Decimal(4, 2), "1.234"), (Decimal(4, 2), "1e3"), (Decimal(4, 2), "NaN"), (STRING, "x"),
    (STRING, "'x"), (STRING, "'x' || 'y'"), (STRING, "5"), (STRING, "current_user()"),
    (BOOLEAN, "1"), (BOOLEAN, "maybe"), (BINARY, "X'0'"), (BINARY, "X'zz'"), (BINARY, "5"),
    (DATE, "DATE '2020-02-30'"), (DATE, "current_date()"), (DATE, "TIMESTAMP '2020-02-28'"),
    (DATE, "2020-02-28"), (TIMESTAMP, "DATE '2020-01-01'"), (TIMESTAMP, "now()"),
    (TIMESTAMP_NTZ, "TIMESTAMP_LTZ '2020-01-01 00:00:00'"), (Array(LONG), "array(1)"),
    (VARIANT, "'x'"), (Struct(), "'x'"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text"), GOOD, ids=lambda value: str(value)[:40])
def test_literal(kind: DataType, text: str) -> None:
    assert is_literal_of(kind, text)


@pytest.mark.parametrize(("kind", "text"), BAD, ids=lambda value: str(value)[:40])
def test_no_literal(kind: DataType, text: str) -> None:
    assert not is_literal_of(kind, text)
