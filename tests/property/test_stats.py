"""The two ways of reading statistics agree."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pyarrow as pa
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from twinlake.log.stats.parsed import StatsShape
from twinlake.schema import parse_ddl

SHAPE = StatsShape(
    parse_ddl(
        "l BIGINT, b TINYINT, f FLOAT, d DOUBLE, w DECIMAL(38,10), n DECIMAL(9,2), t STRING, "
        "flag BOOLEAN, day DATE, at TIMESTAMP, local TIMESTAMP_NTZ, s STRUCT<x: DECIMAL(20,5)>"
    )
)


def fixed(precision: int, scale: int) -> st.SearchStrategy[str]:
    """Numbers that just fit a decimal column, as text."""
    return st.builds(
        lambda sign, whole, rest: f"{sign}{whole}.{rest:0{scale}d}",
        st.sampled_from(["", "-"]),
        st.integers(0, 10 ** (precision - scale) - 1),
        st.integers(0, 10**scale - 1),
    )


def quoted(values: st.SearchStrategy[Any]) -> st.SearchStrategy[str]:
    return values.map(json.dumps)


def moments(zones: list[str]) -> st.SearchStrategy[str]:
    low, high = dt.datetime(1900, 1, 1), dt.datetime(2200, 1, 1)
    return quoted(
        st.builds(
            lambda moment, unit, zone: moment.isoformat(timespec=unit) + zone,
            st.datetimes(low, high),
            st.sampled_from(["seconds", "milliseconds", "microseconds"]),
            st.sampled_from(zones),
        )
    )


LEAVES: dict[str, st.SearchStrategy[str]] = {
    "l": st.integers(-(2**63), 2**63 - 1).map(str),
    "b": st.integers(-128, 127).map(str),
    "f": st.floats(width=32, allow_nan=False, allow_infinity=False).map(json.dumps),
    "d": st.floats(allow_nan=False, allow_infinity=False).map(json.dumps),
    "w": fixed(38, 10),
    "n": fixed(9, 2) | st.integers(-(10**7) + 1, 10**7 - 1).map(str),
    "t": quoted(st.text(st.characters(codec="utf-8"), max_size=5)),
    "flag": st.sampled_from(["true", "false"]),
    "day": quoted(st.dates(dt.date(1900, 1, 1), dt.date(2200, 1, 1)).map(dt.date.isoformat)),
    "at": moments(["", "Z", "+02:00", "-05:30"]),
    "local": moments(["", "Z", "+02:00"]),
    "s": fixed(20, 5).map('{{"x":{}}}'.format),
}


@st.composite
def lines(draw: st.DrawFn) -> str:
    bounds = []
    for _ in range(2):
        names = draw(st.lists(st.sampled_from(sorted(LEAVES)), unique=True, max_size=4))
        bounds.append(",".join(f'"{name}":{draw(LEAVES[name])}' for name in names))
    low, high = bounds
    rows = draw(st.integers(0, 2**40))
    return f'{{"numRecords":{rows},"minValues":{{{low}}},"maxValues":{{{high}}}}}'


@settings(max_examples=100, deadline=None)
@given(st.lists(lines(), min_size=1, max_size=3))
def test_row_by_row_says_what_arrow_says(texts: list[str]) -> None:
    array = pa.array(texts, pa.string())
    try:
        fast = SHAPE._by_arrow(array)
    except (pa.ArrowException, ValueError):
        assume(False)
    assert [flat(row) for row in SHAPE._row_by_row(array).to_pylist()] == [
        flat(row) for row in fast.to_pylist()
    ]


def flat(value: Any) -> Any:
    """Without what is null: a struct that is missing and one full of nulls mean the same."""
    if not isinstance(value, dict):
        return value
    return {k: flat(v) for k, v in value.items() if v is not None and flat(v) != {}}
