"""Files that are not as our writer makes them: calendars, INT96, missing columns, other types."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.data_files import add_of
from twinlake import Table, TwinlakeError, UnsupportedFeature, UserError
from twinlake.errors import Code
from twinlake.files import DataFileReader
from twinlake.files.julian_calendar import rebase_days, rebase_micros
from twinlake.schema import to_arrow
from twinlake.table.rows import row_scan
from twinlake.table.rows.row_scan import exact_predicate

if TYPE_CHECKING:
    from pathlib import Path


LEGACY = {b"org.apache.spark.version": b"3.5.0", b"org.apache.spark.legacyDateTime": b""}


def committed(table: Table, data: pa.Table, path: Path, **how: Any) -> Table:
    """The table with a file that is written as it is given."""
    # Without Arrow's own schema, as other writers do; notes of the footer come with it only.
    stores = bool(data.schema.metadata)
    pq.write_table(data, path / "part.parquet", store_schema=stores, **how)
    return table.commit("WRITE", [add_of(path, "part.parquet")], parameters={"mode": "Append"})


# Calendars


@pytest.mark.parametrize(
    ("julian", "gregorian"),
    [
        # The same date in both calendars, as days since 1970-01-01.
        (-719164, dt.date(1, 1, 1)),
        (-141428, dt.date(1582, 10, 4)),
        (-141427, dt.date(1582, 10, 15)),
        (-171597, dt.date(1500, 2, 28)),
        # 1500-02-29 is in the Julian calendar alone; Spark takes the day after the 28th.
        (-171596, dt.date(1500, 3, 1)),
        (0, dt.date(1970, 1, 1)),
    ],
)
def test_days_of_the_legacy_calendar(julian: int, gregorian: dt.date) -> None:
    expected = (gregorian - dt.date(1970, 1, 1)).days
    assert rebase_days(np.array([julian]))[0] == expected
    day = 86_400_000_000
    assert rebase_micros(np.array([julian * day + 5]))[0] == expected * day + 5


def test_files_of_the_legacy_calendar_are_read_by_their_dates(tmp_path: Path) -> None:
    t = Table.create(tmp_path, "d DATE, at TIMESTAMP, n TIMESTAMP_NTZ, l ARRAY<DATE>")
    day = pa.array([-719164, None, 19000], pa.int32()).cast(pa.date32())
    micros = pa.array([-719164 * 86_400_000_000, None, 5], pa.int64())
    data = pa.table(
        {
            "d": day,
            "at": micros.cast(pa.timestamp("us", "UTC")),
            "n": micros.cast(pa.timestamp("us")),
            "l": pa.ListArray.from_arrays([0, 1, 2, 3], day),
        }
    ).replace_schema_metadata(LEGACY)
    t = committed(t, data, tmp_path)
    first = t.to_arrow(columns=["d", "at", "l"]).slice(0, 1).to_pylist()[0]
    assert first["d"] == dt.date(1, 1, 1)
    assert first["at"] == dt.datetime(1, 1, 1, tzinfo=dt.UTC)
    assert first["l"] == [dt.date(1, 1, 1)]
    # Local times are never moved.
    assert t.to_arrow()["n"].cast(pa.int64())[0].as_py() == -719164 * 86_400_000_000
    assert t.to_arrow().num_rows == 3


def _of_zone(zone: str) -> dict[bytes, bytes]:
    return {**LEGACY, b"org.apache.spark.timeZone": zone.encode()}


def test_legacy_timestamps_keep_the_clocks_of_their_zone(tmp_path: Path) -> None:
    t = Table.create(tmp_path, "at TIMESTAMP")
    # 1500-03-01T00:00 by the Julian calendar, by an offset of one hour.
    micros = -171_595 * 86_400_000_000 - 3_600_000_000
    data = pa.table({"at": pa.array([micros, None, 0], pa.timestamp("us", "UTC"))})
    t = committed(t, data.replace_schema_metadata(_of_zone("Europe/Berlin")), tmp_path)
    # Local mean time of Berlin is 392 seconds before the hour.
    moment = dt.datetime(1500, 3, 1, tzinfo=dt.UTC) - dt.timedelta(seconds=3600 - 392)
    assert t.to_arrow()["at"].to_pylist() == [moment, None, dt.datetime(1970, 1, 1, tzinfo=dt.UTC)]


def test_legacy_timestamps_of_unknown_zones_take_spark_where_it_matters(tmp_path: Path) -> None:
    zoned = _of_zone("+01:30")
    t = Table.create(tmp_path, "at TIMESTAMP")
    data = pa.table({"at": pa.array([0], pa.timestamp("us", "UTC"))})
    t = committed(t, data.replace_schema_metadata(zoned), tmp_path)
    assert t.to_arrow().num_rows == 1
    old = pa.table({"at": pa.array([-(10**17)], pa.timestamp("us", "UTC"))})
    pq.write_table(old.replace_schema_metadata(zoned), tmp_path / "old.parquet")
    t = t.commit("WRITE", [add_of(tmp_path, "old.parquet")], parameters={"mode": "Append"})
    with pytest.raises(UnsupportedFeature, match=r"\+01:30") as caught:
        t.to_arrow()
    assert caught.value.code is Code.SPARK_REQUIRED
    assert "twinlake.spark.scan" in caught.value.fix


@pytest.mark.parametrize("year", [1, 1700, 2024, 9999])
def test_int96_timestamps_of_any_year(tmp_path: Path, year: int) -> None:
    t = Table.create(tmp_path, "at TIMESTAMP")
    moment = dt.datetime(year, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC)
    if 1678 < year < 2262:
        data = pa.table({"at": pa.array([moment], pa.timestamp("us", "UTC"))})
        t = committed(t, data, tmp_path, use_deprecated_int96_timestamps=True)
        assert t.to_arrow()["at"].to_pylist() == [moment]
    else:
        data = pa.table({"at": pa.array([moment], pa.timestamp("us", "UTC"))})
        assert committed(t, data, tmp_path).to_arrow()["at"].to_pylist() == [moment]


# Columns


def test_what_a_file_lacks_is_null_or_what_it_was_when_it_was_added(tmp_path: Path) -> None:
    t = Table.create(tmp_path, "id INT, s STRUCT<a: INT>")
    data = pa.table({"id": pa.array([1, 2], pa.int32())})
    t = committed(t, data, tmp_path).add_column("late STRING").add_column("s.b INT")
    rows = t.to_arrow().to_pylist()
    assert rows == [{"id": n, "s": None, "late": None} for n in (1, 2)]


def test_types_of_other_writers(tmp_path: Path) -> None:
    t = Table.create(tmp_path, "i BIGINT, s STRING, b BINARY, d DECIMAL(10,2), m MAP<STRING, INT>")
    data = pa.table(
        {
            "M": pa.array([[("k", 1)]], pa.map_(pa.large_string(), pa.int16())),
            "i": pa.array([1], pa.int8()),
            "s": pa.array([b"text"], pa.binary()),
            "b": pa.array([b"ab"], pa.binary(2)),
            "d": pa.array([Decimal("1.5")], pa.decimal128(5, 1)),
        }
    )
    row = committed(t, data, tmp_path).to_arrow()
    assert row.schema.equals(to_arrow(t.schema))
    assert row.to_pylist()[0]["m"] == [("k", 1)]
    assert row.to_pylist()[0]["s"] == "text"


def test_a_file_of_another_type_is_refused_and_never_guessed(tmp_path: Path) -> None:
    t = Table.create(tmp_path, "id INT")
    t = committed(t, pa.table({"id": ["1"]}), tmp_path)
    with pytest.raises(UnsupportedFeature, match="string where the table has int32"):
        t.to_arrow()


def test_char_values_are_padded_as_spark_pads_them(tmp_path: Path) -> None:
    t = Table.create(tmp_path, "c CHAR(3), s STRUCT<c: CHAR(2)>, v VARCHAR(3)")
    t = t.append({"c": ["a", None], "s": [{"c": "ü"}, None], "v": ["a", "b"]})
    assert t.to_arrow().to_pylist() == [
        {"c": "a  ", "s": {"c": "ü "}, "v": "a"},
        {"c": None, "s": None, "v": "b"},
    ]


def test_char_partitions_are_padded_too(tmp_path: Path) -> None:
    t = Table.create(tmp_path, "id INT, c CHAR(3)", partition_by=["c"])
    t = t.append({"id": [1, 2], "c": ["a", None]})
    assert sorted(map(str, t.to_arrow()["c"].to_pylist())) == ["None", "a  "]


def test_row_groups_are_skipped_and_positions_stay_right(tmp_path: Path) -> None:
    t = Table.create(tmp_path, "id BIGINT", properties={"delta.enableDeletionVectors": "true"})
    t = committed(t, pa.table({"id": list(range(100))}), tmp_path, row_group_size=10)
    t = t.delete("id IN (15, 55)")
    assert t.to_arrow(where="id > 50 AND id < 60")["id"].to_pylist() == [
        51,
        52,
        53,
        54,
        56,
        57,
        58,
        59,
    ]
    t = t.delete("id = 99")
    assert t.count() == 97
    assert t.count("id > 90") == 8


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"no parquet at all, whatever it is called"])
def test_damage_is_an_error_of_ours(tmp_path: Path, damage: bytes) -> None:
    t = committed(
        Table.create(tmp_path, "id INT"), pa.table({"id": pa.array([1], pa.int32())}), tmp_path
    )
    (tmp_path / "part.parquet").write_bytes(damage)
    with pytest.raises(TwinlakeError) as caught:
        t.to_arrow()
    assert "part.parquet" in str(caught.value)


# Fields of structs

NESTED = (
    "id INT, s STRUCT<x: INT, y: STRING, in: STRUCT<a: INT, b: ARRAY<STRUCT<c: INT, d: INT>>>>, "
    "l ARRAY<STRUCT<p: INT, q: INT>>"
)
ROWS = [
    {
        "id": 1,
        "s": {"x": 1, "y": "one", "in": {"a": 10, "b": [{"c": 1, "d": 2}, None]}},
        "l": [{"p": 1, "q": 2}],
    },
    {"id": 2, "s": None, "l": None},
    {"id": 3, "s": {"x": None, "y": None, "in": None}, "l": []},
    {"id": 4, "s": {"x": 4, "y": "four", "in": {"a": None, "b": None}}, "l": [None]},
]


def chosen(value: Any, paths: list[tuple[str, ...]]) -> Any:
    """The fields of a value that paths name, by Python alone."""
    if () in paths or value is None:
        return value
    heads = [name for name in value if any(path[0] == name for path in paths)]
    return {n: chosen(value[n], [path[1:] for path in paths if path[0] == n]) for n in heads}


def leaves(
    table: Table, columns: tuple[tuple[str, ...], ...], where: str | None = None
) -> set[str]:
    """What is read of the first file."""
    expr = None if where is None else exact_predicate(where, table.snapshot)
    reader = DataFileReader(
        store=table.snapshot.store, metadata=table.metadata, columns=columns, where=expr
    )
    (part,) = reader.parts(next(iter(table.snapshot.adds())))
    return set(part.names)


@pytest.mark.parametrize("mode", ["none", "name", "id"])
@pytest.mark.parametrize(
    "names",
    [
        ["s.x"],
        ["s.in.a", "id"],
        ["s.in", "s.y"],
        ["s.in.b"],
        ["l", "s.in.b", "s.x"],
        ["S.IN.A"],
    ],
)
def test_fields_of_structs(tmp_path: Path, mode: str, names: list[str]) -> None:
    t = Table.create(tmp_path, NESTED, properties={"delta.columnMapping.mode": mode})
    t = t.append(pa.Table.from_pylist(ROWS, to_arrow(t.schema)))
    paths = [tuple(name.lower().split(".")) for name in names]
    expected = [chosen(row, paths) for row in ROWS]
    found = t.to_arrow(columns=names)
    assert found.to_pylist() == expected
    for where, kept in {"s.y = 'four'": [3], "s.in.a = 10": [0], "s.x IS NULL": [1, 2]}.items():
        wanted = [expected[number] for number in kept]
        some = t.to_arrow(columns=names, where=where)
        assert some.schema == found.schema
        assert some.to_pylist() == wanted
        assert t.count(where) == len(kept)


def test_only_the_fields_wanted_are_read(tmp_path: Path) -> None:
    t = Table.create(tmp_path, NESTED)
    t = t.append(pa.Table.from_pylist(ROWS, to_arrow(t.schema)))
    assert leaves(t, (("s", "x"),)) == {"s.x"}
    assert leaves(t, (("s", "in", "b"), ("id",))) == {"s.in.b", "id"}
    assert leaves(t, (), "s.in.a > 1") == {"s.in.a"}
    assert leaves(t, (("s", "y"),), "s.x = 1") == {"s.x", "s.y"}
    assert leaves(t, (("s", "x"), ("s", "y"), ("s", "in"))) == {"s"}
    assert leaves(t, (("s",),), "s.x = 1") == {"s"}


def test_a_field_that_files_lack_is_null_where_the_struct_is_not(tmp_path: Path) -> None:
    t = Table.create(tmp_path, "id INT, s STRUCT<x: STRING, y: INT>")
    t = t.append({"id": [1, 2], "s": [{"x": "a", "y": 1}, None]})
    t = t.add_column("s.z INT").append({"id": [3], "s": [{"x": "b", "y": 2, "z": 3}]})
    found = t.to_arrow(columns=["s.z", "id"]).sort_by("id")["s"].to_pylist()
    assert found == [{"z": None}, None, {"z": 3}]
    assert t.count("s.z IS NULL") == 2


def test_dots_in_names_are_no_paths(tmp_path: Path) -> None:
    properties = {"delta.columnMapping.mode": "name"}
    t = Table.create(tmp_path, "`s.x` INT, s STRUCT<x: INT, `y.z`: INT>", properties=properties)
    t = t.append({"s.x": [1], "s": [{"x": 2, "y.z": 3}]})
    assert t.to_arrow(columns=["s.x"]).to_pylist() == [{"s.x": 1}]
    assert t.to_arrow(columns=["s.`y.z`"]).to_pylist() == [{"s": {"y.z": 3}}]
    assert t.to_arrow(columns=["`s`.`x`"]).to_pylist() == [{"s": {"x": 2}}]


def test_dots_in_names_of_files_are_no_paths(tmp_path: Path) -> None:
    """Without column mapping files have the names of the table, and other writers allow dots."""
    t = Table.create(tmp_path, "`s.x` INT, s STRUCT<x: INT, y: INT>")
    data = pa.table({"s.x": pa.array([1], pa.int32()), "s": [{"x": 2, "y": 3}]})
    data = data.cast(to_arrow(t.schema))
    t = committed(t, data, tmp_path)
    assert t.to_arrow(columns=["s.y"]).to_pylist() == [{"s": {"y": 3}}]
    assert t.to_arrow(columns=["s.x", "s.y"]).to_pylist() == [{"s.x": 1, "s": {"y": 3}}]


@pytest.mark.parametrize(
    "columns", [["s.nope"], ["l.element"], ["l.element.p"], ["s.x.y"], ["s."], ["s", "s.x"]]
)
def test_fields_that_cannot_be_named(tmp_path: Path, columns: list[str]) -> None:
    t = Table.create(tmp_path, NESTED)
    with pytest.raises(UserError) as caught:
        t.to_arrow(columns=columns)
    assert caught.value.code in (Code.COLUMN_NOT_FOUND, Code.INVALID_ARGUMENT)


# Row groups


@pytest.mark.parametrize("mask", [False, True], ids=["whole", "with a vector"])
def test_row_groups_are_read_at_once_and_come_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mask: bool
) -> None:
    properties = {"delta.enableDeletionVectors": str(mask).lower()}
    t = Table.create(tmp_path, "id INT, s STRING", properties=properties)
    ids = pa.array(range(10_000), pa.int32())
    data = pa.table({"id": ids, "s": pa.array([f"name {n}" for n in range(10_000)])})
    t = committed(t, data, tmp_path, row_group_size=700)
    expected = list(range(10_000))
    if mask:
        t = t.delete("id < 5 OR id = 700 OR id > 9990")
        expected = [n for n in expected if n >= 5 and n != 700 and n <= 9990]
    monkeypatch.setattr(row_scan, "_SMALL_FILE", 1)
    monkeypatch.setattr(row_scan, "_AHEAD_BYTES", 50_000)
    assert t.to_arrow()["id"].to_pylist() == expected
    assert (
        t.to_arrow(where="id >= 1400 AND id < 2100")["id"].to_pylist()
        == expected[expected.index(1400) : expected.index(2100)]
    )
    assert t.to_arrow(limit=3)["id"].to_pylist() == expected[:3]
    reader = DataFileReader(store=t.snapshot.store, metadata=t.metadata)
    (add,) = t.snapshot.adds()
    parts = reader.parts(add)
    assert len(parts) == 15
    # In any order, by any number of threads.
    last = [row for part in parts[::-1] for batch in part.batches() for row in batch[0].to_pylist()]
    assert sorted(last) == expected
    assert last != expected


# Dictionaries


@pytest.mark.parametrize("how", [{}, {"row_group_size": 300}, {"dictionary_pagesize_limit": 64}])
def test_texts_of_dictionaries(tmp_path: Path, how: dict[str, Any]) -> None:
    t = Table.create(
        tmp_path,
        "id INT, few STRING, many STRING, b BINARY, c CHAR(3), f STRUCT<s: STRING>, n STRING",
        properties={"delta.enableDeletionVectors": "true"},
    )
    rows = range(1000)
    data = pa.table(
        {
            "id": pa.array(rows, pa.int32()),
            "few": [None if n % 5 == 0 else "" if n % 5 == 1 else f"é{n % 7}" for n in rows],
            "many": [f"text number {n}" for n in rows],
            "b": [None if n % 3 == 0 else bytes([n % 3]) * 9 for n in rows],
            "c": ["a" if n % 2 else "bc" for n in rows],
            "f": [{"s": "x"} if n % 2 else None for n in rows],
            "n": pa.array([None] * len(rows), pa.string()),
        }
    )
    t = committed(t, data, tmp_path, **how)
    padded = data.set_column(4, "c", pa.array([v.ljust(3) for v in data["c"].to_pylist()]))
    assert t.to_arrow().to_pylist() == padded.to_pylist()
    kept = [row for row in padded.to_pylist() if row["few"] == "é3" and row["b"] is not None]
    assert t.to_arrow(where="few = 'é3' AND b IS NOT NULL").to_pylist() == kept
    assert t.count("c IS NOT NULL") == 1000
    less = t.delete("id >= 100 AND id < 203")
    assert less.to_arrow().to_pylist() == padded.to_pylist()[:100] + padded.to_pylist()[203:]
    reader = DataFileReader(store=t.snapshot.store, metadata=t.metadata)
    part = reader.parts(next(iter(t.snapshot.adds())))[0]
    # What fell back to plain texts would be hashed, each of them.
    assert "few" in part.dictionaries or "dictionary_pagesize_limit" in how
    assert "many" not in part.dictionaries
    assert "f" not in part.dictionaries
