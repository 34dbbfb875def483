"""Predicates: what text becomes, what is refused, and what values give."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal as D
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from sqlglot.dialects.spark import Spark

from twinlake.errors import Code, TwinlakeError, UserError
from twinlake.schema.predicates import (
    And,
    Column,
    Comparison,
    In,
    IsNull,
    Literal,
    Not,
    Op,
    Opaque,
    StartsWith,
    evaluate_on,
    is_exact,
    is_partition_only,
    parse_predicate,
    split_conjuncts,
)
from twinlake.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    Array,
    Decimal,
    Map,
    Struct,
    StructField,
)

if TYPE_CHECKING:
    from twinlake.schema.predicates import Expr
    from twinlake.schema.types import ColumnPath

CHAR = {"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}
VARCHAR = {"__CHAR_VARCHAR_TYPE_STRING": "varchar(5)"}
SCHEMA = Struct(
    (
        StructField("a", INTEGER),
        StructField("b", LONG),
        StructField("tiny", BYTE),
        StructField("f", FLOAT),
        StructField("x", DOUBLE),
        StructField("s", STRING),
        StructField("d", DATE),
        StructField("t", TIMESTAMP),
        StructField("n", TIMESTAMP_NTZ),
        StructField("flag", BOOLEAN),
        StructField("bin", BINARY),
        StructField("dec", Decimal(10, 2)),
        StructField("wide", Decimal(38, 2)),
        StructField("st", Struct((StructField("k", INTEGER), StructField("a.b", INTEGER)))),
        StructField("m", Map(STRING, INTEGER)),
        StructField("arr", Array(Struct((StructField("q", INTEGER),)))),
        StructField("v", VARIANT),
        StructField("c", STRING, metadata=CHAR),
        StructField("vc", STRING, metadata=VARCHAR),
        StructField("coll", STRING, metadata={"__COLLATIONS": {"coll": "spark.UTF8_LCASE"}}),
        StructField("Order", INTEGER),
    )
)


def parse(text: str, zone: dt.tzinfo = dt.UTC) -> Expr:
    return parse_predicate(text, SCHEMA, timezone=zone)


UNDERSTOOD = {
    "a = 1": "a = 1",
    "a == 1": "a = 1",
    "a <> 1": "a != 1",
    "1 < A": "a > 1",
    "5 >= a": "a <= 5",
    "a <=> NULL": "a IS NULL",
    "a = NULL": "NULL",
    "NULL < a": "NULL",
    "a = 1L and tiny = 2Y": "a = 1 AND tiny = 2",
    "a = -1": "a = -1",
    "a = -(-1)": "a = 1",
    "a > 1.5": "a >= 2",
    "a >= 1.5": "a >= 2",
    "a < -1.5": "a <= -2",
    "a <= 1.5D": "a <= 1",
    "a = 2.0": "a = 2",
    "a = 1.5": "a IS NULL AND NULL",
    "a != 1.5": "a IS NOT NULL OR NULL",
    "a <=> 1.5": "false",
    "a > 3000000000": "a > 3000000000",
    "b < 99999999999999999999": "b IS NOT NULL OR NULL",
    "b > 99999999999999999999": "b IS NULL AND NULL",
    "b >= -99999999999999999999": "b IS NOT NULL OR NULL",
    "a = ' 5 '": "a = 5",
    "a = cast('7' as int)": "a = 7",
    "a IN (1, 2, 1, NULL)": "a IN (1, 2, NULL)",
    "a IN (1)": "a = 1",
    "a IN (NULL)": "NULL",
    "a IN (1.5, 2)": "(a IS NULL AND NULL) OR a = 2",
    "a NOT IN (1, 2)": "NOT (a IN (1, 2))",
    "1 IN (a, b)": "a = 1 OR b = 1",
    "a BETWEEN 1 AND 2": "a >= 1 AND a <= 2",
    "a NOT BETWEEN 1 AND 2": "NOT (a >= 1 AND a <= 2)",
    "a IS DISTINCT FROM 1": "NOT (a <=> 1)",
    "a = b": "a = b",
    "s = 'it''s'": r"s = 'it\'s'",
    r"s = 'it\'s'": r"s = 'it\'s'",
    's = "it\'s"': r"s = 'it\'s'",
    r"s = 'a\\b'": r"s = 'a\\b'",
    r"s = r'a\b'": r"s = 'a\\b'",
    "s = 'a' 'b'": "s = 'ab'",
    "s LIKE 'ab%'": "startswith(s, 'ab')",
    "s LIKE '%'": "startswith(s, '')",
    "s NOT LIKE 'ab%'": "NOT (startswith(s, 'ab'))",
    "s LIKE 'ab'": "s = 'ab'",
    "startswith(s, 'ab')": "startswith(s, 'ab')",
    "startswith(s, NULL)": "NULL",
    "vc = 'x'": "vc = 'x'",
    "d = '2024-1-2'": "d = DATE '2024-01-02'",
    "d = '2024-01'": "d = DATE '2024-01-01'",
    "d > DATE '2024-01-02'": "d > DATE '2024-01-02'",
    "d > '2024-01-02T10:00:00'": "d > DATE '2024-01-02'",
    "t = '2024-01-02'": "t = TIMESTAMP '2024-01-02 00:00:00Z'",
    "t = DATE '2024-01-02'": "t = TIMESTAMP '2024-01-02 00:00:00Z'",
    "t = '2024-01-02 3:4'": "t = TIMESTAMP '2024-01-02 03:04:00Z'",
    "t = '2024-01-02T03:04:05.1234567+02:00'": "t = TIMESTAMP '2024-01-02 01:04:05.123456Z'",
    "t = '2024-01-02 03:04:05 UTC'": "t = TIMESTAMP '2024-01-02 03:04:05Z'",
    "t > TIMESTAMP '2024-01-02 03:04:05'": "t > TIMESTAMP '2024-01-02 03:04:05Z'",
    "n = '2024-01-02 03:04:05'": "n = TIMESTAMP_NTZ '2024-01-02 03:04:05'",
    "n = TIMESTAMP_NTZ '2024-01-02'": "n = TIMESTAMP_NTZ '2024-01-02 00:00:00'",
    "x = 1": "x = 1.0D",
    "x < 1.5e3": "x < 1500.0D",
    "x = CAST('NaN' AS DOUBLE)": "x = CAST('nan' AS DOUBLE)",
    "x = -CAST('inf' AS DOUBLE)": "x = CAST('-inf' AS DOUBLE)",
    "f = 0.1": "f = 0.1D",
    "f = '0.5'": "f = 0.5D",
    "dec = 1.005": "dec = 1.005BD",
    "dec = 7": "dec = 7BD",
    "dec = '1.10'": "dec = 1.10BD",
    "flag": "flag = true",
    "NOT flag": "NOT (flag = true)",
    "!flag": "NOT (flag = true)",
    "flag = 'yes'": "flag = true",
    "flag IS TRUE": "flag <=> true",
    "flag IS NOT FALSE": "NOT (flag <=> false)",
    "(a = 1) IS TRUE": "(a = 1) IS NOT NULL AND a = 1",
    "(a = 1) IS NULL": "(a = 1) IS NULL",
    "1 IS NULL": "false",
    "bin = X'0fF'": "bin = X'00ff'",
    "bin = 'a'": "bin = X'61'",
    "ST.`A.B` = 2": "st.`a.b` = 2",
    "st IS NULL": "st IS NULL",
    "m IS NOT NULL": "m IS NOT NULL",
    "c IS NULL": "c IS NULL",
    "`order` = 1": "`Order` = 1",
    "a = 1 OR b = 2 AND NOT s = 'x'": "a = 1 OR (b = 2 AND NOT (s = 'x'))",
    "(a = 1 OR b = 2) AND flag": "(a = 1 OR b = 2) AND flag = true",
    "a = 1 -- comment": "a = 1",
    "1 = 1": "true",
    "1.0 = 1": "true",
    "'a' > 'b'": "false",
    "NULL <=> NULL": "true",
    "true": "true",
    "NULL": "NULL",
}


@pytest.mark.parametrize(("text", "expected"), UNDERSTOOD.items(), ids=list(UNDERSTOOD))
def test_understood(text: str, expected: str) -> None:
    expr = parse(text)
    assert str(expr) == expected
    assert is_exact(expr)
    assert str(parse(str(expr))) == expected


OPAQUE = {
    "s = 5": "s",
    "s = DATE '2024-01-01'": "s",
    "flag = 1": "flag",
    "c = 'ab'": "c",
    "c LIKE 'a%'": "c",
    "coll = 'ab'": "coll",
    "s LIKE 'a_b'": "s",
    "s LIKE '%a'": "s",
    r"s LIKE 'a\\%b%'": "s",
    "s LIKE 'a/%%' ESCAPE '/'": "s",
    "s ILIKE 'a%'": "s",
    "s RLIKE 'a'": "s",
    "s LIKE ANY ('a%', 'b%')": "s",
    "upper(s) = 'A'": "s",
    "a + 1 = 2": "a",
    "-a = 1": "a",
    "t > d": "t d",
    "a = x": "a x",
    "d = 'today'": "d",
    "t = '10:00:00'": "t",
    "t = '2024-01-01 00:00:00 Europe/Rome'": "t",
    "n = '2024-01-01 00:00:00Z'": "n",
    "d = '12024-01-01'": "d",
    "b = 9007199254740993D": "b",
    "f = 16777217": "f",
    "f = '0.1'": "f",
    "wide = '1.1'": "wide",
    "wide = 0.123": "wide",
    "a = CAST(1.9 AS INT)": "a",
    "m['k'] = 1": "m",
    "m.k IS NULL": "m",
    "arr.q = 1": "arr",
    "v.a.b = 1": "v",
    "st = st": "st",
    "exists(arr, e -> e.q > a)": "arr a",
    "(a, b) IN ((1, 2))": "a b",
    "CASE WHEN a = 1 THEN true END": "a",
    "d > current_date()": "d",
}


@pytest.mark.parametrize(("text", "columns"), OPAQUE.items(), ids=list(OPAQUE))
def test_left_to_spark(text: str, columns: str) -> None:
    expr = parse(text)
    assert isinstance(expr, Opaque)
    assert expr.columns() == {(name,) for name in columns.split()}
    assert not is_partition_only(expr, [name for (name,) in expr.columns()])
    assert isinstance(parse(str(expr)), Opaque)
    with pytest.raises(UserError, match="Only Spark"):
        evaluate_on(expr, {}, 0)


REFUSED: dict[str, tuple[Code, dict[str, Any]]] = {
    "": (Code.PREDICATE_INVALID, {}),
    "a =": (Code.PREDICATE_INVALID, {"line": 1, "column": 3, "near": "="}),
    "(a = 1": (Code.PREDICATE_INVALID, {"line": 1, "column": 6}),
    "a = 1 and\n b c d": (Code.PREDICATE_INVALID, {"line": 2}),
    "a = 'x": (Code.PREDICATE_INVALID, {}),
    "a = 1; b = 2": (Code.PREDICATE_INVALID, {}),
    "SELECT 1": (Code.PREDICATE_INVALID, {}),
    "DROP TABLE t": (Code.PREDICATE_INVALID, {}),
    "a IN (SELECT 1)": (Code.PREDICATE_INVALID, {}),
    "a = :p": (Code.PREDICATE_INVALID, {}),
    "count(*) > 1": (Code.PREDICATE_INVALID, {}),
    "a": (Code.PREDICATE_INVALID, {}),
    "5": (Code.PREDICATE_INVALID, {}),
    "a = 'x'": (Code.PREDICATE_INVALID, {"value": "x", "path": "a", "type": "integer"}),
    "a = '1.5'": (Code.PREDICATE_INVALID, {"path": "a"}),
    "x = 'one'": (Code.PREDICATE_INVALID, {"path": "x"}),
    "d = 'x'": (Code.PREDICATE_INVALID, {"path": "d"}),
    "d = '2024-02-30'": (Code.PREDICATE_INVALID, {"path": "d"}),
    "t = '2024-01-01 25:00:00'": (Code.PREDICATE_INVALID, {"path": "t"}),
    "flag = 'maybe'": (Code.PREDICATE_INVALID, {"path": "flag"}),
    "d = DATE 'x'": (Code.PREDICATE_INVALID, {"value": "x"}),
    "nosuch = 1": (Code.COLUMN_NOT_FOUND, {"path": "nosuch"}),
    "st.z = 1": (Code.COLUMN_NOT_FOUND, {"path": "st.z"}),
    "a.b = 1": (Code.COLUMN_NOT_FOUND, {"path": "a.b"}),
    "length(nosuch) = 1": (Code.COLUMN_NOT_FOUND, {"path": "nosuch"}),
    "(" * 20_000 + "a = 1" + ")" * 20_000: (Code.PREDICATE_INVALID, {}),
    "NOT " * 20_000 + "a = 1": (Code.PREDICATE_INVALID, {}),
    "a" * 2_000_000: (Code.PREDICATE_INVALID, {}),
}


@pytest.mark.parametrize(
    ("text", "code", "fields"),
    [(text, *rest) for text, rest in REFUSED.items()],
    ids=[text[:24] for text in REFUSED],
)
def test_refused(text: str, code: Code, fields: dict[str, Any]) -> None:
    with pytest.raises(UserError) as caught:
        parse(text)
    assert caught.value.code == code
    assert fields.items() <= caught.value.fields.items()
    assert len(str(caught.value)) < 2000


def test_a_missing_column_suggests_a_close_one() -> None:
    with pytest.raises(UserError) as caught:
        parse("flg = true")
    assert "flag" in caught.value.fix


def test_nodes() -> None:
    a = Column(("a",), INTEGER)
    s = Column(("s",), STRING)
    expr = parse("a > 1 AND s LIKE 'x%' AND a IN (1, 2) AND NOT s IS NULL")
    assert split_conjuncts(expr) == (
        Comparison(Op.GT, a, Literal(1, LONG)),
        StartsWith(s, "x"),
        In(a, (Literal(1, LONG), Literal(2, LONG))),
        Not(IsNull(s)),
    )
    assert isinstance(expr, And)
    assert expr.columns() == {("a",), ("s",)}
    assert hash(expr) == hash(parse(str(expr)))
    assert is_partition_only(expr, ["s", "a", "b"])
    assert not is_partition_only(expr, ["a"])


def test_the_half_of_between_that_is_understood_is_kept() -> None:
    first, second = split_conjuncts(parse("a BETWEEN 1 AND year(d)"))
    assert str(first) == "a >= 1"
    assert isinstance(second, Opaque)


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("Europe/Rome", "t = TIMESTAMP '2024-06-30 22:00:00Z'"),
        ("America/New_York", "t = TIMESTAMP '2024-07-01 04:00:00Z'"),
    ],
)
def test_texts_without_zone_belong_to_the_session(zone: str, expected: str) -> None:
    assert str(parse("t = '2024-07-01'", ZoneInfo(zone))) == expected
    assert isinstance(parse("n = TIMESTAMP '2024-07-01'", ZoneInfo(zone)), Opaque)


def test_long_chains_are_read_without_recursion() -> None:
    text = " OR ".join(f"a = {i}" for i in range(3000))
    expr = parse(text)
    assert len(expr.children()) == 3000
    values: dict[ColumnPath, pa.Array] = {("a",): pa.array([7, 3000, None])}
    assert evaluate_on(expr, values, 3).to_pylist() == [True, False, None]


def test_every_keyword_can_name_a_column() -> None:
    words = sorted({word.lower() for word in Spark.Tokenizer.KEYWORDS if word.isidentifier()})
    schema = Struct(tuple(StructField(word, INTEGER) for word in words))
    for word in words:
        column = Column((word,), INTEGER)
        for expr in (Comparison(Op.EQ, column, Literal(1, LONG)), Not(IsNull(column))):
            assert parse_predicate(str(expr), schema) == expr, word


NAN = math.nan
NEXT = dt.datetime(2024, 1, 1, 0, 0, 0, 1)
VALUES: dict[str, tuple[list[Any], pa.DataType]] = {
    "a": ([None, -1, 2, 2**31 - 1], pa.int32()),
    "b": ([1, 2, None, 2**63 - 1], pa.int64()),
    "f": ([0.1, 0.5, NAN, None], pa.float32()),
    "x": ([NAN, -0.0, None, math.inf], pa.float64()),
    "s": (["", "ab", None, "é😀"], pa.string()),
    "d": ([dt.date(2024, 1, 1), None, dt.date(1, 1, 1), dt.date(9999, 12, 31)], pa.date32()),
    "t": (
        [
            None,
            dt.datetime(2024, 1, 1),
            dt.datetime(2024, 1, 1, 0, 0, 0, 1),
            dt.datetime(1950, 1, 1),
        ],
        pa.timestamp("us", "UTC"),
    ),
    "n": (
        [
            None,
            dt.datetime(2024, 1, 1),
            dt.datetime(2024, 1, 1, 0, 0, 0, 1),
            dt.datetime(1950, 1, 1),
        ],
        pa.timestamp("us"),
    ),
    "flag": ([True, False, None, True], pa.bool_()),
    "bin": ([b"", b"a", b"\xff", None], pa.binary()),
    "dec": ([D("1.00"), D("1.01"), None, D("-5.00")], pa.decimal128(10, 2)),
    "v": ([None] * 4, pa.null()),
}
T, F, N = True, False, None
EVALUATED: dict[str, list[bool | None]] = {
    "a > 1": [N, F, T, T],
    "a < 3000000000": [N, T, T, T],
    "a = 1.5": [N, F, F, F],
    "a != 1.5": [N, T, T, T],
    "a = b": [N, F, N, F],
    "a <=> b": [F, F, F, F],
    "a IS NULL": [T, F, F, F],
    "a IN (2, -1)": [N, T, T, F],
    "a IN (2, NULL)": [N, N, T, N],
    "NOT (a IN (2, NULL))": [N, N, F, N],
    "a > 1 OR b = 1": [T, F, T, T],
    "a > 1 AND b = 1": [N, F, N, F],
    "(a > 1) IS NULL": [T, F, F, F],
    "(a > 1) IS TRUE": [F, F, T, T],
    "(a > 1) IS FALSE": [F, T, F, F],
    "f = 0.1": [F, F, F, N],
    "f = 0.1f": [T, F, F, N],
    "f > 0.3": [F, T, T, N],
    "x = 0.0": [F, T, N, F],
    "x IN (0.0, 1.0)": [F, T, N, F],
    "x = double('NaN')": [T, F, N, F],
    "x != double('NaN')": [F, T, N, T],
    "x > 1e300": [T, F, N, T],
    "x <= double('NaN')": [T, T, N, T],
    "x < double('NaN')": [F, T, N, T],
    "x <=> double('NaN')": [T, F, F, F],
    "f < x": [T, F, N, N],
    "s >= 'ab'": [F, T, N, T],
    "s LIKE 'é%'": [F, F, N, T],
    "s LIKE '%'": [T, T, N, T],
    "s IN ('', 'é😀')": [T, F, N, T],
    "d >= '2024-01-01'": [T, N, F, T],
    "d IN ('2024-01-01', '0001-01-01')": [T, N, T, F],
    "t = '2024-01-01'": [N, T, F, F],
    "t > '2024-01-01'": [N, F, T, F],
    "n < '2024-01-01 00:00:00.000001'": [N, T, F, T],
    "flag": [T, F, N, T],
    "flag IS NOT TRUE": [F, T, T, F],
    "flag > false": [T, F, N, T],
    "bin > 'a'": [F, F, T, N],
    "dec > 1.005": [F, T, N, F],
    "dec IN (1, -5, 1.005)": [T, F, N, T],
    "dec <=> 1.0": [T, F, F, F],
    "v IS NULL": [T, T, T, T],
    "true": [T, T, T, T],
    "NULL": [N, N, N, N],
    "NULL IS NULL AND NOT false": [T, T, T, T],
}


@pytest.mark.parametrize(("text", "expected"), EVALUATED.items(), ids=list(EVALUATED))
def test_evaluation(text: str, expected: list[bool | None]) -> None:
    columns: dict[ColumnPath, pa.Array] = {
        (name,): pa.array(data, kind) for name, (data, kind) in VALUES.items()
    }
    result = evaluate_on(parse(text), columns, 4)
    assert result.type == pa.bool_()
    assert result.to_pylist() == expected


@pytest.mark.parametrize(
    "shape",
    [
        lambda array: pa.chunked_array([array[:2], array[2:]]),
        lambda array: array.dictionary_encode(),
        lambda array: array.cast(pa.large_string()),
    ],
    ids=["chunked", "dictionary", "large"],
)
def test_evaluation_takes_arrays_of_any_shape(shape: Any) -> None:
    values = shape(pa.array(["a", "b", None]))
    for text, expected in (("s = 'b'", [F, T, N]), ("s IN ('b', 'c')", [F, T, N])):
        assert evaluate_on(parse(text), {("s",): values}, 3).to_pylist() == expected


def test_evaluation_needs_the_columns_and_their_types() -> None:
    with pytest.raises(UserError) as missing:
        evaluate_on(parse("a = 1"), {}, 1)
    assert missing.value.code == Code.COLUMN_NOT_FOUND
    with pytest.raises(UserError) as wrong:
        evaluate_on(parse("a = 1"), {("a",): pa.array(["x"])}, 1)
    assert wrong.value.code == Code.INVALID_ARGUMENT


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "9" * 5000,
        "x = " + "9" * 5000,
        "dec = " + "9" * 5000,
        "dec = '1e9999'",
        "x = 1e999",
    ],
    ids=["int", "double", "decimal", "exponent", "infinite"],
)
def test_enormous_numbers_do_no_harm(text: str) -> None:
    try:
        parse(text)
    except TwinlakeError as error:
        assert error.code == Code.PREDICATE_INVALID
