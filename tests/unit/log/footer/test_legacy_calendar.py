"""Which columns of a file count by Spark's legacy calendar, and what their least values are."""

from __future__ import annotations

import datetime as dt
import io
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.scale import scale
from twinlake.log import read_nodes
from twinlake.log.footer.legacy_calendar import legacy_columns
from twinlake.log.footer.thrift import footer_bytes
from twinlake.runtime import InProcess
from twinlake.schema import LegacyColumn
from twinlake.storage import MemoryStore

NOW = {"org.apache.spark.version": "4.1.4"}
DATETIME = {**NOW, "org.apache.spark.legacyDateTime": "", "org.apache.spark.timeZone": "UTC"}
INT96 = {**NOW, "org.apache.spark.legacyINT96": ""}
OLD = dt.date(1500, 3, 1)
US = pa.timestamp("us", "UTC")


def micros(value: dt.date) -> int:
    return (value - dt.date(1970, 1, 1)).days * 86_400_000_000


def written(table: pa.Table, keys: dict[str, str], **options: Any) -> bytes:
    place = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(keys), place, **options)
    return place.getvalue()


def footer(data: bytes) -> bytes:
    return footer_bytes(len(data), lambda start, length: data[start : start + length])


def found(
    values: Any, kind: pa.DataType, keys: dict[str, str], **options: Any
) -> dict[str, int | None]:
    table = pa.table({"c": pa.array(values, kind)})
    columns = legacy_columns(footer(written(table, keys, **options)))
    return {".".join(column.path): column.minimum for column in columns}


@pytest.mark.parametrize(
    ("keys", "is_legacy"),
    [
        pytest.param({}, False, id="no keys"),
        pytest.param(NOW, False, id="spark of today"),
        pytest.param(DATETIME, True, id="legacy mode"),
        pytest.param({"org.apache.spark.legacyDateTime": ""}, True, id="without a version"),
        pytest.param(INT96, False, id="the key of int96"),
        pytest.param({"org.apache.spark.version": "2.4.8"}, True, id="spark 2.4"),
        pytest.param({"org.apache.spark.version": "3.0.0"}, False, id="spark 3.0"),
        pytest.param({"org.apache.spark.version": "3.0.0-SNAPSHOT"}, False, id="before 3.0"),
        pytest.param({"org.apache.spark.version": ""}, True, id="an empty version"),
        pytest.param(
            {**NOW, "note": "org.apache.spark.version is 2.4 in here"}, False, id="in a value"
        ),
        pytest.param(
            {"a": "x", "org.apache.spark.version": "2.4.0", "b": "y" * 300}, True, id="among others"
        ),
    ],
)
def test_who_wrote_dates_of_the_legacy_calendar(keys: dict[str, str], is_legacy: bool) -> None:
    minimum = found([OLD, dt.date(2000, 1, 1)], pa.date32(), keys)
    assert minimum == ({"c": micros(OLD)} if is_legacy else {})


@pytest.mark.parametrize(
    ("keys", "is_legacy"),
    [
        pytest.param(NOW, False, id="spark of today"),
        pytest.param(INT96, True, id="legacy mode"),
        pytest.param(DATETIME, False, id="the key of dates"),
        pytest.param({"org.apache.spark.version": "2.4.8"}, True, id="spark 2.4"),
        pytest.param({"org.apache.spark.version": "3.0.3"}, True, id="spark 3.0"),
        pytest.param({"org.apache.spark.version": "3.1.0"}, False, id="spark 3.1"),
    ],
)
def test_who_wrote_int96_of_the_legacy_calendar(keys: dict[str, str], is_legacy: bool) -> None:
    options = {"use_deprecated_int96_timestamps": True}
    minimum = found([dt.datetime(2000, 1, 1)], pa.timestamp("ns"), keys, **options)
    # Their order is not defined, so no bound of them counts.
    assert minimum == ({"c": None} if is_legacy else {})
    assert found([], pa.timestamp("ns"), keys, **options) == {}


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("zone", ["UTC", None])
@pytest.mark.parametrize("version", ["1.0", "2.6"])
def test_minimum_is_in_microseconds_whatever_the_unit(
    unit: str, zone: str | None, version: str
) -> None:
    moment = dt.datetime(1890, 5, 6, 7, 8, 9)
    values = [moment, None, dt.datetime(1950, 1, 1)]
    expected = (moment - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    assert found(values, pa.timestamp(unit, zone), DATETIME, version=version) == {"c": expected}


@pytest.mark.parametrize(
    ("least", "differs"), [(dt.date(1899, 12, 31), True), (dt.date(1900, 1, 1), False)]
)
def test_calendars_agree_from_1900_on(least: dt.date, differs: bool) -> None:
    for kind in (pa.date32(), US):
        table = pa.table({"c": pa.array([least, dt.date(2024, 1, 1)]).cast(kind)})
        (column,) = legacy_columns(footer(written(table, DATETIME)))
        assert (column.minimum, column.is_read_differently) == (micros(least), differs)


def test_least_of_all_row_groups_counts() -> None:
    days = [dt.date(2000, 1, 1), OLD, dt.date(1800, 1, 1)]
    assert found(days, pa.date32(), DATETIME, row_group_size=1) == {"c": micros(OLD)}


def test_a_row_group_without_a_minimum_leaves_it_unknown() -> None:
    assert found([OLD], pa.date32(), DATETIME, write_statistics=False) == {"c": None}
    assert LegacyColumn(("c",), None).is_read_differently


def test_what_holds_no_value_holds_none_of_the_calendar() -> None:
    assert found([None, None], pa.date32(), DATETIME) == {}
    assert found([], pa.date32(), DATETIME) == {}
    # Row groups of nothing but nulls do not hide the others.
    mixed = [None, OLD, None]
    assert found(mixed, pa.date32(), DATETIME, row_group_size=1) == {"c": micros(OLD)}
    # Without statistics the footer does not say that all are null.
    assert found([None], pa.date32(), DATETIME, write_statistics=False) == {"c": None}


def test_only_dates_and_timestamps_count() -> None:
    table = pa.table({"i": [1], "s": ["x"], "t": pa.array([dt.time(1)], pa.time64("us"))})
    assert legacy_columns(footer(written(table, DATETIME))) == ()


def test_columns_at_every_level_are_found() -> None:
    kind = pa.struct(
        {
            "d": pa.date32(),
            "l": pa.list_(US),
            "m": pa.map_(pa.date32(), pa.struct({"x": pa.int32(), "y": US})),
        }
    )
    moment = dt.datetime(1700, 1, 1, tzinfo=dt.UTC)
    value = {"d": OLD, "l": [moment], "m": [(OLD, {"x": 1, "y": moment})]}
    assert found([value, None], kind, DATETIME) == {
        "c.d": micros(OLD),
        "c.l.list.element": micros(dt.date(1700, 1, 1)),
        "c.m.key_value.key": micros(OLD),
        "c.m.key_value.value.y": micros(dt.date(1700, 1, 1)),
    }


def test_columns_come_with_the_footer() -> None:
    data = written(pa.table({"c": [OLD]}), DATETIME)
    plain = written(pa.table({"c": [OLD]}), NOW)
    store = MemoryStore()
    store.put("old", data)
    store.put("new", plain)
    files = [("old", len(data)), ("new", len(plain)), ("old", len(data))]
    one, two, three = read_nodes(store, files, InProcess())
    assert one.legacy == three.legacy == (LegacyColumn(("c",), micros(OLD)),)
    assert two.legacy == ()
    # Files of one schema share one tree, and each has its own calendar.
    assert one.root is two.root is three.root


def test_damage_is_a_value_error() -> None:
    whole = footer(written(pa.table({"c": [OLD], "d": [1]}), DATETIME))
    chance = random.Random(26)
    outcomes = set()
    for _ in range(scale(400, 20_000)):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(len(data) - 8)] = chance.randrange(256)
        try:
            legacy_columns(bytes(data))
            outcomes.add("read")
        except ValueError:
            outcomes.add("refused")
    assert outcomes == {"read", "refused"}
    for length in range(len(whole) // 2, len(whole) - 8, 7):
        cut = whole[:length] + whole[-8:]
        if b"org.apache.spark.legacy" in cut:
            with pytest.raises(ValueError, match="its footer"):
                legacy_columns(cut)
