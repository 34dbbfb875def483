"""Delta's statistics as Iceberg's metrics."""

from __future__ import annotations

import json
from decimal import Decimal as Number
from typing import Any

import pytest
from pyiceberg.conversions import from_bytes
from pyiceberg.types import DecimalType, LongType, StringType, TimestamptzType

from tests.unit.iceberg.format.test_schema import mapped
from twinlake.iceberg.format.metrics import FileMetrics, MetricsReader

TABLE = mapped(
    "id LONG, price DECIMAL(20, 4), at TIMESTAMP, s STRUCT<name: STRING>, l ARRAY<INT>, o BOOLEAN"
)


#: What it returns is not what it says it returns.
decoded: Any = from_bytes


def read(stats: dict[str, Any]) -> FileMetrics:
    return MetricsReader(TABLE).read(json.dumps(stats))


def test_counts_and_bounds_go_by_column_id() -> None:
    found = read(
        {
            "numRecords": 4,
            "minValues": {"col-1": 2**60 + 1, "col-4": {"col-5": "a"}},
            "maxValues": {"col-1": 2**62, "col-4": {"col-5": "b\x7f"}},
            "nullCount": {"col-1": 0, "col-4": {"col-5": 3}, "col-6": 1, "col-7": 4},
        }
    )

    assert found.record_count == 4
    assert found.null_value_counts == {1: 0, 5: 3, 7: 4}
    assert found.value_counts == {1: 4, 5: 4, 7: 4}
    assert decoded(LongType(), found.lower_bounds[1]) == 2**60 + 1
    assert decoded(StringType(), found.upper_bounds[5]) == "b\x7f"
    assert found.lower_bounds.keys() == found.upper_bounds.keys() == {1, 5}


def test_decimals_never_become_floats() -> None:
    text = '{"numRecords": 1, "minValues": {"col-2": 1234567890123456.7891}}'

    lower = MetricsReader(TABLE).read(text).lower_bounds[2]

    assert decoded(DecimalType(20, 4), lower) == Number("1234567890123456.7891")


def test_timestamps_reach_to_the_end_of_the_millisecond() -> None:
    moment = "2024-05-01T00:00:00.001Z"
    found = read({"numRecords": 1, "minValues": {"col-3": moment}, "maxValues": {"col-3": moment}})

    lower = decoded(TimestamptzType(), found.lower_bounds[3])
    assert decoded(TimestamptzType(), found.upper_bounds[3]) == lower + 999


def test_counts_that_may_be_off_are_left_out() -> None:
    nulls = {"col-1": 0, "col-2": 4, "col-3": 2}

    found = read({"numRecords": 4, "tightBounds": False, "nullCount": nulls})

    assert found.null_value_counts == {1: 0, 2: 4}


@pytest.mark.parametrize(
    "odd",
    [
        {"col-1": "seven"},
        {"col-1": [1]},
        {"col-2": "x"},
        {"col-3": "yesterday"},
        {"col-4": "not a struct"},
    ],
    ids=str,
)
def test_an_odd_value_costs_its_own_bound_and_no_other(odd: dict[str, Any]) -> None:
    good = {"col-1": 1, "col-2": 2, "col-3": "2024-05-01T00:00:00Z"}
    (name,) = odd

    found = read({"numRecords": 1, "minValues": {**good, **odd}, "maxValues": good})

    assert found.record_count == 1 or name == "col-4"
    assert int(name.removeprefix("col-")) not in found.lower_bounds


@pytest.mark.parametrize("text", [None, "", "{", "[]", '"x"', "[" * 10_000], ids=repr)
def test_damaged_statistics_say_nothing(text: str | None) -> None:
    assert MetricsReader(TABLE).read(text) == FileMetrics()
