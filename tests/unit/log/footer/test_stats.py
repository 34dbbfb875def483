"""Statistics from footers: right, or not there."""

from __future__ import annotations

import io
import json
import pickle
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from twinlake.errors import Code, CorruptTable, StorageError, UserError
from twinlake.log import BatchStats, StatsColumns, read_footer, stats_json
from twinlake.log.footer.stats import footer_stats
from twinlake.log.stats.bound import kind_of
from twinlake.protocol import Metadata, Protocol
from twinlake.schema import DATE, FLOAT, STRING, parse_ddl
from twinlake.schema import Decimal as DecimalType
from twinlake.storage import MemoryStore, open_store

if TYPE_CHECKING:
    from pathlib import Path

NAN = float("nan")


def columns(ddl: str, *, partition: tuple[str, ...] = (), **properties: str) -> StatsColumns:
    configuration = {f"delta.{key}": value for key, value in properties.items()}
    metadata = Metadata(partition_columns=partition, configuration=configuration)
    return StatsColumns.of(metadata.with_schema(parse_ddl(ddl)))


def written(table: pa.Table, **options: Any) -> pq.FileMetaData:
    place = io.BytesIO()
    pq.write_table(table, place, **options)
    return pq.read_metadata(place)


def names(found: StatsColumns) -> list[str]:
    return ["/".join(column.path) for column in found.columns]


WIDE = ", ".join(f"c{i} INT" for i in range(40))


@pytest.mark.parametrize(
    ("ddl", "properties", "expected"),
    [
        ("p INT, a INT, b INT", {"dataSkippingNumIndexedCols": "1"}, ["a"]),
        ("a INT, r ARRAY<INT>, b INT", {"dataSkippingNumIndexedCols": "2"}, ["a", "r"]),
        (
            "s STRUCT<x: INT, y: STRUCT<z: INT, w: INT>>, b INT",
            {"dataSkippingNumIndexedCols": "2"},
            ["s/x", "s/y/z"],
        ),
        ("a INT", {"dataSkippingNumIndexedCols": "0"}, []),
        ("A INT, s STRUCT<x: INT, y: INT>, `d.e` INT", {"dataSkippingStatsColumns": "a,`d.e`, S.y"},
         ["A", "s/y", "d.e"]),
        ("a INT, p INT", {"dataSkippingStatsColumns": ""}, []),
        ("a INT, p INT", {"dataSkippingStatsColumns": "p,a"}, ["a"]),
        (WIDE, {}, [f"c{i}" for i in range(32)]),
        (WIDE, {"dataSkippingNumIndexedCols": "-1"}, [f"c{i}" for i in range(40)]),
    ],
    ids=["partition", "array", "struct", "none", "named", "no-names", "partitions", "32", "all"],
)  # fmt: skip
def test_which_columns(ddl: str, properties: dict[str, str], expected: list[str]) -> None:
    found = columns(ddl, partition=("p",), **properties)
    assert names(found) == expected
    assert pickle.loads(pickle.dumps(found)) == found


def test_clustering_columns_are_added_in_schema_order() -> None:
    metadata = Metadata(configuration={"delta.dataSkippingNumIndexedCols": "1"})
    metadata = metadata.with_schema(parse_ddl("a INT, b INT, s STRUCT<x: INT, y: INT>"))
    assert names(StatsColumns.of(metadata, clustering=(("s", "y"),))) == ["a", "s/y"]


def test_row_groups_are_taken_together() -> None:
    ddl = "i INT, s STRING, d DECIMAL(5,2), e DECIMAL(38,2), t TIMESTAMP, st STRUCT<x: INT>"
    table = pa.table(
        {
            "i": pa.array([3, None, -1, 7], pa.int32()),
            "s": ["b", "a", None, "\U0001f600" * 20],
            "d": pa.array(["1.50", "-2.00", None, None]).cast(pa.decimal128(5, 2)),
            "e": pa.array(["-0.01", "256.00", None, "3"]).cast(pa.decimal128(38, 2)),
            "t": pa.array([-1, 0, 1, 1_500_000], pa.timestamp("us", tz="UTC")),
            "st": pa.array([{"x": 1}, None, {"x": None}, {"x": 4}], pa.struct([("x", pa.int32())])),
        }
    )
    assert footer_stats(written(table, row_group_size=1), columns(ddl)) == {
        "numRecords": 4,
        "minValues": {
            "i": -1,
            "s": "a",
            "d": Decimal("-2.00"),
            "e": Decimal("-0.01"),
            "t": "1969-12-31T23:59:59.999Z",
            "st": {"x": 1},
        },
        "maxValues": {
            "i": 7,
            "s": "\U0001f600" * 16 + "\U0010ffff",
            "d": Decimal("1.50"),
            "e": Decimal("256.00"),
            "t": "1970-01-01T00:00:01.500Z",
            "st": {"x": 4},
        },
        "nullCount": {"i": 1, "s": 1, "d": 2, "e": 1, "t": 0, "st": {"x": 2}},
    }


@pytest.mark.parametrize(
    ("ddl", "array"),
    [
        ("x INT", pa.array([1, 2**31], pa.uint32())),
        ("x BIGINT", pa.array([1, 2**63], pa.uint64())),
        ("x STRING", pa.array([b"a", b"b"], pa.binary())),
        ("x STRING", pa.array(["x" * 5000, "y"])),
        ("x DOUBLE", pa.array([1, 2], pa.float32())),
        ("x DECIMAL(5,2)", pa.array(["1.500"]).cast(pa.decimal128(6, 3))),
        ("x TIMESTAMP", pa.array([1, 2], pa.timestamp("us"))),
        ("x TIMESTAMP_NTZ", pa.array([1, 2], pa.timestamp("us", tz="UTC"))),
        ("x DOUBLE", pa.array([NAN, NAN])),
        ("x BINARY", pa.array([b"a"], pa.binary())),
        ("x BOOLEAN", pa.array([True])),
        ("x INT", pa.array([None, None], pa.int32())),
    ],
    ids=str,
)
def test_no_bounds_where_the_footer_is_not_sure(ddl: str, array: pa.Array) -> None:
    found = footer_stats(written(pa.table({"x": array})), columns(ddl))
    assert not found.get("minValues")
    assert not found.get("maxValues")
    assert found["nullCount"] == {"x": array.null_count}


def test_a_row_group_without_statistics_takes_them_all() -> None:
    table = pa.table({"x": pa.array([1, 2], pa.int32())})
    assert footer_stats(written(table, write_statistics=False), columns("x INT")) == {
        "numRecords": 2,
        "minValues": {},
        "maxValues": {},
    }


def test_a_greatest_float_needs_the_batches() -> None:
    table = pa.table({"x": pa.array([1.0, NAN, None, -0.0])})
    which = columns("x DOUBLE")
    footer = written(table)
    assert footer_stats(footer, which)["maxValues"] == {}
    assert footer_stats(footer, which)["minValues"] == {"x": 0.0}
    extra = BatchStats(which)
    extra.update(table)
    assert json.loads(stats_json(footer, which, extra)) == {
        "numRecords": 4,
        "minValues": {"x": -0.0},
        "maxValues": {"x": "NaN"},
        "nullCount": {"x": 1},
    }


def test_batches_of_another_file_are_refused() -> None:
    which = columns("x INT")
    with pytest.raises(UserError, match="not those of the file"):
        footer_stats(written(pa.table({"x": [1]})), which, BatchStats(which))


NESTED: list[Any] = [None, [], [None], [[1, None]], [[]], None]
MAPS: list[Any] = [None, [], [("k", None)], None, [("k", 1)], []]


def test_nulls_of_arrays_and_maps_by_definition_level() -> None:
    kind = pa.list_(pa.list_(pa.int32()))
    inner = pa.array(NESTED, kind)
    table = pa.table(
        {
            "a": inner,
            "m": pa.array(MAPS, pa.map_("string", "int32")),
            "s": pa.StructArray.from_arrays(
                [inner], ["r"], mask=pa.array([False, True, True, False, False, False])
            ),
            "full": pa.array([[1]] * 6, pa.list_(pa.int32())),
        }
    )
    which = columns(
        "a ARRAY<ARRAY<INT>>, m MAP<STRING, INT>, s STRUCT<r: ARRAY<ARRAY<INT>>>, full ARRAY<INT>"
    )
    expected = {"a": 2, "m": 2, "s": {"r": 4}, "full": 0}
    for size in (1, 4, 6):
        assert footer_stats(written(table, row_group_size=size), which)["nullCount"] == expected
    extra = BatchStats(which)
    extra.update(table)
    assert footer_stats(written(table), which, extra)["nullCount"] == expected


def test_names_with_dots_are_not_confused_with_members() -> None:
    table = pa.table(
        {
            "s.x": pa.array([1], pa.int32()),
            "s": pa.array([{"x": 2, "y.z": 3}], pa.struct([("x", "int32"), ("y.z", "int32")])),
            "s.y": pa.array([{"z": 4}], pa.struct([("z", "int32")])),
        }
    )
    which = columns("`s.y` STRUCT<z: INT>, s STRUCT<x: INT, `y.z`: INT>, `s.x` INT")
    assert footer_stats(written(table), which)["minValues"] == {
        "s.y": {"z": 4},
        "s": {"x": 2, "y.z": 3},
        "s.x": 1,
    }


def test_a_column_the_file_lacks_is_all_null() -> None:
    footer = written(pa.table({"a": pa.array([1, 2], pa.int32()), "B": [1, 2]}))
    # The file may hold b after all, for readers that ignore case.
    which = columns("a INT, n STRING, s STRUCT<x: INT>, v VOID, b BIGINT")
    found = footer_stats(footer, which)
    assert found["nullCount"] == {"a": 0, "n": 2, "s": {"x": 2}, "v": 2}
    assert found["minValues"] == {"a": 1}


@pytest.mark.parametrize(
    ("kind", "raw", "upper", "expected"),
    [
        (STRING, b"a" * 33, True, "a" * 32 + "\x7f"),
        (STRING, b"a" * 33, False, "a" * 32),
        (STRING, b"a" * 32 + b"\x7f", True, "a" * 32 + "\U0010ffff"),
        (STRING, ("\U0010ffff" * 40).encode(), True, None),
        (STRING, ("\U0010ffff" * 32).encode(), True, "\U0010ffff" * 32),
        (STRING, b"\xff", True, None),
        (DATE, -719_163, False, "0000-12-31"),
        (DATE, -721_354, False, "-0005-01-01"),
        (DATE, 3_789_391, True, "+12345-01-01"),
        (FLOAT, 0.10000000149011612, True, 0.1),
        (FLOAT, float("-inf"), False, "-Infinity"),
        (DecimalType(38, 18), 0, False, Decimal("0E-18")),
        (DecimalType(3, 1), 1000, False, None),
    ],
    ids=str,
)
def test_values_as_delta_renders_them(kind: Any, raw: Any, upper: bool, expected: Any) -> None:
    found = kind_of(kind)
    assert found is not None
    assert repr(found.render(raw, upper, 32, '{"Type":"None"}')) == repr(expected)


def test_decimals_are_numbers_of_their_scale() -> None:
    table = pa.table({"x": pa.array(["0.00"]).cast(pa.decimal128(5, 2))})
    assert '"minValues":{"x":0.00}' in stats_json(written(table), columns("x DECIMAL(5,2)"))


@pytest.mark.parametrize(
    ("features", "tight", "expected"),
    [((), True, None), (("deletionVectors",), True, True), ((), False, False)],
    ids=["no-vectors", "vectors", "wide"],
)
def test_tight_bounds(features: tuple[str, ...], tight: bool, expected: bool | None) -> None:
    protocol = Protocol(3, 7, reader_features=features, writer_features=features)
    which = StatsColumns.of(Metadata().with_schema(parse_ddl("x BIGINT")), protocol)
    found = footer_stats(written(pa.table({"x": [1]})), which, tight=tight)
    assert found.get("tightBounds") is expected


def test_footer_through_a_store(tmp_path: Path) -> None:
    table = pa.table({f"column_{i}": list(range(50)) for i in range(200)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=5)
    data = (tmp_path / "a.parquet").read_bytes()
    memory = MemoryStore()
    memory.put("a.parquet", data)
    memory.put("bad.parquet", b"nothing of the kind")
    for store in (open_store(str(tmp_path)), memory):
        footer = read_footer(store, "a.parquet")
        assert (footer.metadata.num_rows, footer.size) == (50, len(data))
        with pytest.raises(StorageError) as missing:
            read_footer(store, "none.parquet")
        assert missing.value.code == Code.STORAGE_NOT_FOUND
    with pytest.raises(CorruptTable):
        read_footer(memory, "bad.parquet")
