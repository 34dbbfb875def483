"""Filters that Spark offers to a data source as predicates of ours."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

datasource: Any = pytest.importorskip("pyspark.sql.datasource")
if not hasattr(datasource, "EqualTo"):
    pytest.skip("this PySpark offers no filters", allow_module_level=True)

from twinlake.schema import parse_ddl  # noqa: E402
from twinlake.spark.data_source.filters import filter_expression  # noqa: E402

SCHEMA = parse_ddl(
    "id BIGINT, s STRING, f DOUBLE, d DECIMAL(5, 2), day DATE, at TIMESTAMP, wall TIMESTAMP_NTZ, "
    "n STRUCT<x: INT>, l ARRAY<INT>"
)
NOON = dt.datetime(2024, 5, 1, 12)
IST = dt.timezone(dt.timedelta(hours=5, minutes=30))


def _made(name: str, *path: str, **values: Any) -> Any:
    return getattr(datasource, name)(path, **values)


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (_made("EqualTo", "ID", value=3), "id = 3"),
        (_made("LessThanOrEqual", "d", value=Decimal("1.50")), "d <= 1.50BD"),
        (_made("In", "s", value=("a", "b")), "s IN ('a', 'b')"),
        (_made("StringStartsWith", "s", value="a"), "startswith(s, 'a')"),
        (_made("IsNotNull", "n", "x"), "n.x IS NOT NULL"),
        (datasource.Not(_made("EqualNullSafe", "n", "x", value=1)), "NOT (n.x <=> 1)"),
        (
            _made("GreaterThan", "at", value=NOON.replace(tzinfo=IST)),
            "at > TIMESTAMP '2024-05-01 06:30:00Z'",
        ),
        (_made("LessThan", "wall", value=NOON), "wall < TIMESTAMP_NTZ '2024-05-01 12:00:00'"),
        (_made("EqualTo", "day", value=NOON.date()), "day = DATE '2024-05-01'"),
    ],
    ids=str,
)
def test_filters_are_said_in_our_words(one: Any, text: str) -> None:
    assert str(filter_expression(one, SCHEMA)) == text


@pytest.mark.parametrize(
    "one",
    [
        _made("EqualTo", "nothing", value=3),
        _made("EqualTo", "id", value="3"),
        _made("EqualTo", "id", value=None),
        _made("EqualTo", "f", value=float("nan")),
        _made("EqualTo", "at", value=NOON),
        _made("EqualTo", "day", value=NOON),
        _made("In", "id", value=(1, None)),
        _made("StringStartsWith", "id", value="1"),
        _made("StringEndsWith", "s", value="a"),
        _made("EqualTo", "l", "element", value=1),
        datasource.Not(_made("StringContains", "s", value="a")),
    ],
    ids=str,
)
def test_what_could_mean_something_else_is_left_to_spark(one: Any) -> None:
    assert filter_expression(one, SCHEMA) is None
