"""Statistics are read exactly: a bound that moves hides rows."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from twinlake.log.stats.parsed import StatsShape, conform_stats, render_stats, with_json_stats
from twinlake.schema import parse_ddl

EXACT = Decimal("12345678901234567890.1234567891")


def parsed_max(column: str, text: str) -> Any:
    """The largest value of column x, when another column keeps the fast way from being taken."""
    shape = StatsShape(parse_ddl(f"x {column}, y DOUBLE"))
    line = f'{{"maxValues":{{"x":{text},"y":"NaN"}}}}'
    found = shape.parse(pa.array([line]), None, 1).to_pylist()[0]["maxValues"]
    assert found["y"] != found["y"]
    return found["x"]


@pytest.mark.parametrize(
    ("column", "text", "expected"),
    [
        ("DECIMAL(38,10)", str(EXACT), EXACT),
        ("DECIMAL(38,0)", "9" * 38, Decimal("9" * 38)),
        ("DECIMAL(38,0)", "9" * 39, None),
        ("DECIMAL(10,2)", "1.005", None),
        ("DECIMAL(10,2)", "1.50", Decimal("1.50")),
        ("DECIMAL(10,2)", "true", None),
        ("DECIMAL(10,2)", "1e99999999999999999999", None),
        ("BIGINT", "9007199254740993", 9007199254740993),
        ("BIGINT", "1.0", None),
        ("BIGINT", "9223372036854775808", None),
        ("DOUBLE", "0.1", 0.1),
        ("DOUBLE", "1e400", None),
        ("DOUBLE", "true", None),
        ("DOUBLE", '"-Infinity"', float("-inf")),
        ("TIMESTAMP_NTZ", '"2024-05-01T12:00:00.000007"', dt.datetime(2024, 5, 1, 12, 0, 0, 7)),
        ("TIMESTAMP_NTZ", '"2024-05-01T12:00:00.123456001"', None),
        ("TIMESTAMP_NTZ", '"2024-05-01T12:00:00+02:00"', dt.datetime(2024, 5, 1, 10)),
        ("DATE", '"2024-05-01"', dt.date(2024, 5, 1)),
        ("DATE", "5", None),
    ],
)  # fmt: skip
def test_row_by_row_a_bound_is_exact_or_missing(column: str, text: str, expected: Any) -> None:
    assert parsed_max(column, text) == expected


def test_a_number_with_too_many_digits_is_no_bound() -> None:
    # Arrow's reader lets it pass; a checkpoint would store some other number.
    shape = StatsShape(parse_ddl("x DECIMAL(3,2)"))
    line = '{"maxValues":{"x":999}}'
    assert shape.parse(pa.array([line]), None, 1).to_pylist()[0]["maxValues"] == {"x": None}


def test_floating_point_columns_are_no_bounds_of_decimals() -> None:
    shape = StatsShape(parse_ddl("x DECIMAL(20,2)"))
    kind = pa.struct([("maxValues", pa.struct([("x", pa.float64())]))])
    given = pa.array([{"maxValues": {"x": 1.005}}], kind)
    assert conform_stats(given, shape).to_pylist()[0]["maxValues"] == {"x": None}


def test_text_made_of_columns_keeps_every_digit() -> None:
    moment = dt.datetime(2024, 5, 1, 12, 0, 0, 1999, tzinfo=dt.UTC)
    text = render_stats({"maxValues": {"t": moment, "x": EXACT, "none": None}})
    assert text == f'{{"maxValues":{{"t":"2024-05-01T12:00:00.001999Z","x":{EXACT}}}}}'
    assert (
        render_stats({"t": moment.replace(microsecond=5000)}) == '{"t":"2024-05-01T12:00:00.005Z"}'
    )
    assert render_stats(None) is None


def test_only_missing_text_is_made() -> None:
    kind = pa.struct([("numRecords", pa.int64())])
    raw = pa.table(
        {
            "stats": pa.array(["{}", None, None], pa.string()),
            "stats_parsed": pa.array([{"numRecords": 1}, {"numRecords": 2}, None], kind),
        }
    )
    found = with_json_stats(raw)
    assert found.schema.names == ["stats"]
    first, second, third = found["stats"].to_pylist()
    assert (first, json.loads(second), third) == ("{}", {"numRecords": 2}, None)
    assert with_json_stats(raw.slice(0, 0)).num_rows == 0


@pytest.mark.parametrize("odd", ["null", "[]", "", "{}{}", '{"numRecords":1'])
def test_text_that_is_not_one_object_is_no_statistics_and_moves_none(odd: str) -> None:
    shape = StatsShape(parse_ddl("x INT"))
    sound = '{"numRecords":5,"maxValues":{"x":3}}'
    found = shape.parse(pa.array([odd, sound, ""]), None, 3)
    assert found.field("numRecords").to_pylist() == [None, 5, None]
