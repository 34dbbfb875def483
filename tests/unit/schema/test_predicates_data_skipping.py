"""File skipping: what statistics rule out, and what they never may."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal as D
from typing import Any

import pyarrow as pa
import pytest

from twinlake.schema.predicates import FileStats, parse_predicate, prune
from twinlake.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal,
    Struct,
    StructField,
)

SCHEMA = Struct(
    (
        StructField("p", INTEGER),
        StructField("q", DOUBLE),
        StructField("a", LONG),
        StructField("b", LONG),
        StructField("x", DOUBLE),
        StructField("s", STRING),
        StructField("d", DATE),
        StructField("t", TIMESTAMP),
        StructField("n", TIMESTAMP_NTZ),
        StructField("flag", BOOLEAN),
        StructField("bin", BINARY),
        StructField("dec", Decimal(10, 2)),
        StructField("st", Struct((StructField("k", INTEGER),))),
    )
)


def column(values: list[Any], kind: pa.DataType | None = None) -> pa.Array:
    return pa.array(values, kind)


# Files: [1, 5] | [10, 20] with nulls | all null | one value, 7 | no statistics.
NUMBERS = FileStats(
    num_rows=5,
    partition={("p",): column([1, 2, 3, None, 1], pa.int32())},
    min={("a",): column([1, 10, None, 7, None]), ("b",): column([6, 10, None, 7, None])},
    max={("a",): column([5, 20, None, 7, None]), ("b",): column([9, 20, None, 7, None])},
    null_count={("a",): column([0, 3, 10, 0, None]), ("b",): column([0, 0, 0, 0, None])},
    num_records=column([10, 10, 10, 10, None]),
)
T, F = True, False
CASES = {
    "a = 3": [T, F, F, F, T],
    "a = 7": [F, F, F, T, T],
    "a < 1": [F, F, F, F, T],
    "a <= 1": [T, F, F, F, T],
    "a > 20": [F, F, F, F, T],
    "a >= 20": [F, T, F, F, T],
    "a > 6.5": [F, T, F, T, T],
    "a != 7": [T, T, F, F, T],
    "NOT (a = 7)": [T, T, F, F, T],
    "NOT (a < 6)": [F, T, F, T, T],
    "NOT (a >= 6)": [T, F, F, F, T],
    "a IS NULL": [F, T, T, F, T],
    "a IS NOT NULL": [T, T, F, T, T],
    "NOT (a IS NOT NULL)": [F, T, T, F, T],
    "a <=> 7": [F, F, F, T, T],
    "NOT (a <=> 7)": [T, T, T, F, T],
    "a <=> NULL": [F, T, T, F, T],
    "a = NULL": [F, F, F, F, F],
    "(a = 3) IS NULL": [F, T, T, F, T],
    "(a = 3) IS NOT NULL": [T, T, F, T, T],
    "a IN (3, 15)": [T, T, F, F, T],
    "a IN (6, 30)": [F, F, F, F, T],
    "a IN (6, NULL)": [F, F, F, F, T],
    "NOT (a IN (7, 8))": [T, T, F, F, T],
    "NOT (a IN (7, NULL))": [F, F, F, F, F],
    "a BETWEEN 6 AND 9": [F, F, F, T, T],
    "a NOT BETWEEN 6 AND 9": [T, T, F, F, T],
    "a < b": [T, T, F, F, T],
    "a = b": [F, T, F, T, T],
    "a > b": [F, T, F, F, T],
    "NOT (a < b)": [F, T, F, T, T],
    "a <=> b": [F, T, F, T, T],
    "p = 1": [T, F, F, F, T],
    "p != 1": [F, T, T, F, F],
    "NOT (p = 1)": [F, T, T, F, F],
    "p IS NULL": [F, F, F, T, F],
    "p IN (2, 3)": [F, T, T, F, F],
    "p = 1 AND a = 3": [T, F, F, F, T],
    "p = 1 OR a = 15": [T, T, F, F, T],
    "NOT (p = 1 OR a = 15)": [F, T, F, F, F],
    "p < a": [T, T, F, F, T],
    "p >= a": [T, F, F, F, T],
    "p <=> a": [T, F, F, F, T],
    "abs(a) = 3": [T, T, T, T, T],
    "NOT (abs(a) = 3)": [T, T, T, T, T],
    "abs(a) = 3 AND a = 3": [T, F, F, F, T],
    "abs(a) = 3 OR p = 1": [T, T, T, T, T],
    "st.k = 1": [T, T, T, T, T],
    "st IS NULL": [T, T, T, T, T],
    "true": [T, T, T, T, T],
    "false": [F, F, F, F, F],
    "NULL": [F, F, F, F, F],
}


@pytest.mark.parametrize(("text", "expected"), CASES.items(), ids=list(CASES))
def test_numbers(text: str, expected: list[bool]) -> None:
    mask = prune(parse_predicate(text, SCHEMA), NUMBERS)
    assert mask.type == pa.bool_()
    assert mask.to_pylist() == expected


def test_long_lists_are_judged_by_their_ends() -> None:
    inside = ", ".join(map(str, range(6, 100)))
    outside = ", ".join(map(str, range(100, 300)))
    expected = [F, T, F, T, T]
    assert prune(parse_predicate(f"a IN ({inside})", SCHEMA), NUMBERS).to_pylist() == expected
    assert prune(parse_predicate(f"a IN ({outside})", SCHEMA), NUMBERS).to_pylist() == [F] * 4 + [T]
    kept = prune(parse_predicate(f"a NOT IN ({inside})", SCHEMA), NUMBERS).to_pylist()
    assert kept[0] is True


NAN = math.nan


def bounds(name: str, low: Any, high: Any, kind: pa.DataType) -> FileStats:
    path = (name,)
    return FileStats(num_rows=1, min={path: column([low], kind)}, max={path: column([high], kind)})


def seen(text: str, stats: FileStats) -> bool:
    (answer,) = prune(parse_predicate(text, SCHEMA), stats).to_pylist()
    return bool(answer)


FLOATING = {
    "x > 100.0": T,
    "x >= 100.0": T,
    "x != 1.0": T,
    "x = double('NaN')": T,
    "x <= double('NaN')": T,
    "x < double('NaN')": T,
    "NOT (x <= 100.0)": T,
    "NOT (x < 100.0)": T,
    "x = 100.0": F,
    "x < 1.0": F,
    "x <= 0.5": F,
    "NOT (x > 0.5)": F,
    "x IN (0.5, 3.0)": F,
    "x IN (0.5, double('NaN'))": T,
    "x <=> 3.0": F,
}


@pytest.mark.parametrize(("text", "expected"), FLOATING.items(), ids=list(FLOATING))
def test_nan_may_hide_above_every_maximum(text: str, expected: bool) -> None:
    assert seen(text, bounds("x", 1.0, 2.0, pa.float64())) is expected


def test_nan_as_a_bound_is_no_bound() -> None:
    assert seen("x = 5.0", bounds("x", 1.0, NAN, pa.float64()))
    assert seen("x < 0.0", bounds("x", NAN, NAN, pa.float64()))


def test_zero_has_no_sign() -> None:
    assert seen("x = 0.0", bounds("x", -0.0, -0.0, pa.float64()))
    assert seen("x <= -0.0", bounds("x", 0.0, 1.0, pa.float64()))


def test_nan_as_a_partition_value_is_exact() -> None:
    stats = FileStats(num_rows=3, partition={("q",): column([NAN, 1.0, None])})
    assert prune(parse_predicate("q > 5.0", SCHEMA), stats).to_pylist() == [T, F, F]
    assert prune(parse_predicate("q <= 5.0", SCHEMA), stats).to_pylist() == [F, T, F]


@pytest.mark.parametrize(("name", "zone"), [("t", "UTC"), ("n", None)])
def test_timestamps_reach_a_millisecond_beyond_their_maximum(name: str, zone: str | None) -> None:
    kind = pa.timestamp("us", zone)
    moment = dt.datetime(2024, 1, 1)
    stats = bounds(name, moment, moment, kind)
    assert seen(f"{name} = '2024-01-01 00:00:00.000999'", stats)
    assert seen(f"{name} > '2024-01-01 00:00:00.000500'", stats)
    assert seen(f"NOT ({name} = '2024-01-01')", stats)
    assert not seen(f"{name} > '2024-01-01 00:00:00.001'", stats)
    assert not seen(f"{name} < '2024-01-01'", stats)


def test_a_maximum_at_the_end_of_time_does_not_wrap() -> None:
    kind = pa.timestamp("us", "UTC")
    path = ("t",)
    high = pa.array([2**63 - 1], pa.int64()).cast(kind)
    stats = FileStats(num_rows=1, max={path: high})
    assert seen("t > '2024-01-01'", stats)


def test_strings() -> None:
    stats = bounds("s", "abc", "abd\x7f", pa.string())
    for text, expected in {
        "s = 'abd zzz'": T,
        "s = 'abe'": F,
        "s < 'abc'": F,
        "s LIKE 'ab%'": T,
        "s LIKE 'abcxyz%'": T,
        "s LIKE 'abe%'": F,
        "s LIKE 'abb%'": F,
        "s LIKE 'a_c%'": T,
        "s NOT LIKE 'ab%'": F,
        "s NOT LIKE 'abc%'": T,
        "s LIKE '%'": T,
        "s NOT LIKE '%'": F,
    }.items():
        assert seen(text, stats) is expected, text


def test_strings_beyond_the_basic_plane() -> None:
    # Old writers closed cut strings with U+FFFD, which sorts below an emoji in UTF-8.
    assert seen("s = 'ab😀'", bounds("s", "a", "ab\ufffd", pa.string()))
    assert not seen("s = 'ab😀'", bounds("s", "a", "abc", pa.string()))
    assert seen("s LIKE '😀%'", bounds("s", "a", "😀x", pa.string()))


def test_bounds_of_other_types() -> None:
    day = bounds("d", dt.date(2024, 1, 1), dt.date(2024, 1, 31), pa.date32())
    assert seen("d = '2024-01-31'", day)
    assert not seen("d > '2024-01-31'", day)
    money = bounds("dec", D("1.00"), D("2.00"), pa.decimal128(10, 2))
    assert not seen("dec > 2.001", money)
    assert seen("dec > 1.999", money)
    flags = bounds("flag", False, False, pa.bool_())
    assert not seen("flag", flags)
    assert seen("NOT flag", flags)
    # Nobody says how binary bounds are written.
    assert seen("bin = X'ff'", bounds("bin", b"a", b"b", pa.binary()))
    # Statistics of another type are not believed.
    assert seen("a = 5", bounds("a", "x", "y", pa.string()))
    assert seen("a = 5", bounds("a", None, None, pa.null()))


def test_wide_bounds_only_count_none_and_all() -> None:
    stats = FileStats(
        num_rows=3,
        null_count={("a",): column([0, 4, 10])},
        num_records=column([10, 10, 10]),
        tight_bounds=column([False, False, False]),
    )
    assert prune(parse_predicate("a IS NULL", SCHEMA), stats).to_pylist() == [F, T, T]
    assert prune(parse_predicate("a IS NOT NULL", SCHEMA), stats).to_pylist() == [T, T, F]


def test_no_files() -> None:
    assert (
        prune(parse_predicate("a = 1 OR p IN (1, 2)", SCHEMA), FileStats(num_rows=0)).to_pylist()
        == []
    )


def test_a_hundred_thousand_files_at_once() -> None:
    n = 100_000
    low = pa.array(range(n))
    stats = FileStats(num_rows=n, min={("a",): low}, max={("a",): low})
    assert prune(parse_predicate("a BETWEEN 5 AND 7 OR a = 99", SCHEMA), stats).true_count == 4
