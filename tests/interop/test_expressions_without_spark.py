"""Predicates and expressions evaluated without Spark give what Spark gives, or are refused."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import types as t

from tests.support.engines.agreement import arrow_keys, row_differences, row_keys
from tests.support.engines.row_values import PRIMITIVES, literal, random_rows
from tests.support.scale import scale
from twinlake import Table, UserError
from twinlake.schema import from_arrow, to_arrow
from twinlake.schema.predicates import parse_value

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

_PREDICATES = scale(120, 3000)
_COLUMNS = {f"c{number}": kind for number, kind in enumerate(PRIMITIVES)}
_OPERATORS = ("=", "<=>", "<>", "<", "<=", ">", ">=")


@pytest.fixture(scope="module")
def values(delta_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A table with a column of every type, written by Delta Spark in several files."""
    fields = [t.StructField(name, kind) for name, kind in _COLUMNS.items()]
    schema = t.StructType([*fields, t.StructField("st", t.StructType(fields))])
    path = tmp_path_factory.mktemp("values") / "t"
    for seed in range(3):
        rows = random_rows(Random(seed), schema, 40)
        frame = delta_spark.createDataFrame(rows, schema).coalesce(1)
        frame.write.format("delta").mode("append").save(str(path))
    return path, delta_spark.read.format("delta").load(str(path)).cache()


def _predicate(rng: Random, depth: int = 2) -> str:
    if depth and rng.random() < 0.4:
        joined = rng.choice((" AND ", " OR "))
        parts = joined.join(f"({_predicate(rng, depth - 1)})" for _ in range(2))
        return f"NOT ({parts})" if rng.random() < 0.3 else parts
    name, kind = rng.choice(list(_COLUMNS.items()))
    column = rng.choice((name, f"st.{name}"))
    shape = rng.randrange(6)
    if shape == 0:
        return f"{column} IS {rng.choice(('', 'NOT '))}NULL"
    if shape == 1:
        return f"{column} IN ({', '.join(literal(rng, kind) for _ in range(3))})"
    if shape == 2:
        return f"{column} BETWEEN {literal(rng, kind)} AND {literal(rng, kind)}"
    if shape == 3 and isinstance(kind, t.StringType):
        return f"{column} LIKE '{rng.choice(('a', '', 'x', 'na'))}%'"
    other = f"st.{name}" if shape == 4 else literal(rng, kind)
    return f"{column} {rng.choice(_OPERATORS)} {other}"


def test_rows_of_a_predicate_are_those_of_spark(values: tuple[Path, DataFrame]) -> None:
    path, frame = values
    table, rng = Table.open(path), Random(1)
    names = [f"c{number}" for number in range(len(PRIMITIVES))]
    refused = 0
    for _ in range(_PREDICATES):
        where = _predicate(rng)
        try:
            ours = table.to_arrow(columns=names, where=where)
        except UserError:
            refused += 1
            continue
        theirs = frame.where(where).select(*names)
        assert not row_differences(arrow_keys(ours), row_keys({"": theirs})[""]), where
        assert table.count(where) == ours.num_rows
    # Most have to be answered, or the comparison says little.
    assert refused < _PREDICATES / 2


_EXPRESSIONS = [
    *(f"{part}({column})" for part in ("year", "month", "day", "dayofmonth") for column in "dtn"),
    *(f"{part}({column})" for part in ("hour", "minute") for column in "tn"),
    *(
        f"date_trunc('{unit}', t)"
        for unit in ["YEAR", "yyyy", "QUARTER", "MONTH", "mm", "WEEK", "DAY", "HOUR", "SECOND"]
    ),
    *(f"trunc(d, '{unit}')" for unit in ("YEAR", "QUARTER", "MM", "WEEK")),
    "date_trunc('MONTH', d)",
    "CAST(t AS DATE)",
    "CAST(n AS DATE)",
    "date(t)",
    "to_date(t)",
    "i + 1",
    "i - l",
    "i * 2",
    "b + s",
    "l % 3",
    "i % -4",
    "-i",
    "i / 4",
    "l / 3.0D",
    "f + i",
    "f * f",
    "f - 1",
    "CAST(i AS BIGINT) * 3000000000",
    "CAST(i AS STRING)",
    "CAST(b AS INT) + 1",
    "CAST(i AS DOUBLE)",
    "substring(x, 1, 3)",
    "substring(x, 2)",
    "substring(x, 0, 2)",
    "left(x, 2)",
    "concat(x, '-', x)",
    "concat(CAST(i AS STRING), x)",
    "i > 3",
    "i > 3 AND x = 'a'",
    "x IS NULL",
    "(i + 1) * 2",
    "17",
    "'text'",
    "NULL",
    "DATE'2024-02-29'",
    "TIMESTAMP'2024-02-29 01:02:03Z'",
    "CAST(NULL AS INT)",
    "substring(x, -2, 1)",
    "upper(x)",
    "i + 1.5",
    "CAST(l AS INT)",
    "date_trunc('MONTH', n)",
    "i div 2",
]  # fmt: skip
_TYPES = {
    "i": t.IntegerType(), "l": t.LongType(), "b": t.ByteType(), "s": t.ShortType(),
    "f": t.DoubleType(), "x": t.StringType(), "d": t.DateType(), "t": t.TimestampType(),
    "n": t.TimestampNTZType(),
}  # fmt: skip
_REFUSED = 6


def test_values_of_an_expression_are_those_of_spark(delta_spark: SparkSession) -> None:
    schema = t.StructType([t.StructField(name, kind) for name, kind in _TYPES.items()])
    rows = [
        row
        for row in random_rows(Random(3), schema, 150)
        # The bounds of a type overflow: that is an error here as it is in Spark.
        if all(value is None or abs(value) < 100 for value in row[:4])
    ]
    frame = delta_spark.createDataFrame(rows, schema).coalesce(1)
    data = frame.toArrow().combine_chunks().to_batches()[0]
    ours = from_arrow(data.schema)
    data = data.cast(to_arrow(ours))
    columns: dict[tuple[str, ...], Any] = {(name,): data.column(name) for name in data.schema.names}
    refused = []
    for text in _EXPRESSIONS:
        value = parse_value(text, ours)
        if value is None:
            refused.append(text)
            continue
        theirs = frame.selectExpr(f"{text} AS v").toArrow()
        mine = pa.table({"v": value.evaluate(columns, data.num_rows)})
        kind = from_arrow(theirs.schema)
        assert str(value.type) == str(kind.fields[0].type), text
        assert repr(arrow_keys(mine)) == repr(arrow_keys(theirs)), text
    assert refused == _EXPRESSIONS[-_REFUSED:]


@pytest.mark.parametrize("text", ["i + 2147483647", "l * 9223372036854775807", "i / 0", "l % 0"])
def test_what_spark_raises_is_raised_here(delta_spark: SparkSession, text: str) -> None:
    frame = delta_spark.sql("SELECT 5 AS i, 5L AS l")
    with pytest.raises(Exception, match=r"OVERFLOW|ZERO|overflow"):
        frame.selectExpr(text).collect()
    data = frame.toArrow().combine_chunks().to_batches()[0]
    value = parse_value(text, from_arrow(data.schema))
    assert value is not None
    with pytest.raises(UserError):
        value.evaluate({(name,): data.column(name) for name in data.schema.names}, 1)
