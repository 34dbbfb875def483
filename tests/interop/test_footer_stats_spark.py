"""Statistics from footers against those Delta Spark computed from the rows of the same files."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from twinlake.log import BatchStats, StatsColumns, stats_json
from twinlake.protocol import Metadata, Protocol
from twinlake.schema import ColumnPath, physical_schema, to_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TOP = "\U0010ffff"

COLUMNS = {
    "b": "TINYINT",
    "s": "SMALLINT",
    "i": "INT",
    "l": "BIGINT",
    "f": "FLOAT",
    "fnan": "FLOAT",
    "d": "DOUBLE",
    "nan_first": "DOUBLE",
    "nan_last": "DOUBLE",
    "nan_only": "DOUBLE",
    "zeros": "DOUBLE",
    "inf": "DOUBLE",
    "d5": "DECIMAL(5,2)",
    "d18": "DECIMAL(18,9)",
    "d38": "DECIMAL(38,18)",
    "whole": "DECIMAL(38,0)",
    "str": "STRING",
    "cut": "STRING",
    "above": "STRING",
    "pairs": "STRING",
    "split": "STRING",
    "top": "STRING",
    "tops": "STRING",
    "long": "STRING",
    "odd": "STRING",
    "empty": "STRING",
    "bin": "BINARY",
    "bool": "BOOLEAN",
    "none": "INT",
    "none_text": "STRING",
    "old": "DATE",
    "far": "DATE",
    "ts": "TIMESTAMP",
    "ts_old": "TIMESTAMP",
    "ntz": "TIMESTAMP_NTZ",
    "a.b": "INT",
    "a": "STRUCT<b: INT, `c.d`: STRING, deep: STRUCT<x: DATE, y: ARRAY<INT>, z: DOUBLE>>",
    "none_struct": "STRUCT<x: INT, y: STRUCT<z: STRING>>",
    "flags": "STRUCT<x: BOOLEAN, y: BINARY>",
    "arr": "ARRAY<INT>",
    "arr_full": "ARRAY<STRING>",
    "arr_odd": "ARRAY<STRUCT<x: INT, y: ARRAY<INT>>>",
    "map": "MAP<STRING, INT>",
    "map_none": "MAP<STRING, ARRAY<INT>>",
}

NAN = "double('NaN')"
ROWS: list[dict[str, str]] = [
    {
        "b": "-128Y", "s": "-32768S", "i": "1", "l": "-9223372036854775808L",
        "f": "0.1F", "fnan": "1.5F", "d": "1e23D", "nan_first": NAN, "nan_last": "-1D",
        "nan_only": NAN, "zeros": "double('-0.0')", "inf": "double('-Infinity')",
        "d5": "1.10BD", "d18": "-0.000000001BD",
        "d38": "-12345678901234567890.123456789012345678BD",
        "whole": "-" + "9" * 38 + "BD",
        "str": "'abc'", "cut": f"'{'a' * 32}z'", "above": f"'{'a' * 32}é'",
        "pairs": f"'{'😀' * 40}'",
        "split": f"'{'a' * 31}😀b'", "top": f"'{'a' * 32}{TOP}b'", "tops": f"'{TOP * 40}'",
        "long": "repeat('x', 5000)", "odd": "'\"\\\\/\\n<\\u2028'", "empty": "''",
        "bin": "x'00ff'", "bool": "true", "old": "date'0001-01-01'", "far": "date'9999-12-31'",
        "ts": "timestamp'1969-12-31 23:59:59.999999'", "ts_old": "timestamp'0001-01-01 00:00:00'",
        "ntz": "timestamp_ntz'1969-12-31 23:59:59.000001'", "a.b": "5",
        "a": "named_struct('b', 1, 'c.d', 'q', 'deep', named_struct('x', date'1582-10-04', "
             "'y', array(null, 1), 'z', double('NaN')))",
        "flags": "named_struct('x', true, 'y', x'00')",
        "arr": "array()", "arr_full": "array('a', 'b')", "arr_odd": "array(null, null)",
        "map": "map('k', null)",
    },
    {
        "b": "127Y", "s": "32767S", "i": "-7", "l": "9223372036854775807L",
        "f": "float('3.4028235E38')", "fnan": "float('NaN')", "d": "4.9E-324D", "nan_first": "2D",
        "nan_last": NAN, "nan_only": NAN, "zeros": "0D", "inf": "double('Infinity')",
        "d5": "0.00BD", "d18": "1.5BD", "d38": "0.0000001BD", "whole": "0BD",
        "str": "'ABC'", "cut": f"'{'a' * 33}'", "above": f"'{'a' * 32}\x7f'", "pairs": "'é'",
        "split": f"'{'a' * 32}'", "top": "'a'", "tops": "'b'", "long": "'y'", "odd": "'z'",
        "empty": "''", "bin": "x''", "bool": "false", "old": "date'1582-10-15'",
        "far": "date'2024-02-29'", "ts": "timestamp'2024-01-02 03:04:05.123456'",
        "ts_old": "timestamp'9999-12-31 23:59:59.999999'",
        "ntz": "timestamp_ntz'9999-12-31 23:59:59.999999'",
        "a": "named_struct('b', null, 'c.d', null, 'deep', null)",
        "arr": "null", "arr_full": "array('c')", "arr_odd": "array()", "map": "map()",
    },
    {"arr": "array(1, null)", "arr_full": "array('d')", "fnan": "float('-Infinity')"},
]  # fmt: skip

BOUNDS = ("minValues", "maxValues")
#: What no footer says: bounds of values above the writer's size limit.
TOO_LONG = {(bound, ("long",)) for bound in BOUNDS}
#: Spark's own writer then leaves out the count of nulls as well.
NATIVE_ABSENT = TOO_LONG | {("nullCount", ("long",))}
#: Spark writes INT96 timestamps unless told otherwise, and those have no bounds.
INT96_ABSENT = NATIVE_ABSENT | {(bound, (name,)) for bound in BOUNDS for name in ("ts", "ts_old")}
#: What footers of pyarrow's writer do not say without the batches: whether there is a NaN.
#: Each row is a row group of its own here, and one of nothing but NaN has no bounds at all.
NO_LEAST: tuple[ColumnPath, ...] = (
    *((name,) for name in ("fnan", "nan_first", "nan_last", "nan_only")),
    ("a", "deep", "z"),
)
NO_GREATEST = (*((name,) for name in ("f", "d", "zeros", "inf")), *NO_LEAST)
ARROW_ABSENT = (
    TOO_LONG
    | {("minValues", path) for path in NO_LEAST}
    | {("maxValues", path) for path in NO_GREATEST}
)


def _select(row: dict[str, str]) -> str:
    cells = (
        f"CAST({row.get(name, 'null')} AS {kind}) AS `{name}`" for name, kind in COLUMNS.items()
    )
    return "SELECT " + ", ".join(cells)


def _logged(path: Path) -> Iterator[tuple[Metadata, Protocol, dict[str, Any]]]:
    metadata, protocol = Metadata(), Protocol()
    for commit in sorted((path / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in commit.read_bytes().splitlines()]
        for action in actions:
            if "metaData" in action:
                metadata = Metadata.from_dict(action["metaData"])
            if "protocol" in action:
                protocol = Protocol.from_dict(action["protocol"])
        for action in actions:
            if "add" in action:
                yield metadata, protocol, action["add"]


def _flat(stats: dict[str, Any]) -> dict[tuple[str, ColumnPath], Any]:
    found: dict[tuple[str, ColumnPath], Any] = {}

    def walk(which: str, path: ColumnPath, value: Any) -> None:
        if isinstance(value, dict):
            for name, inner in value.items():
                walk(which, (*path, name), inner)
        else:
            found[which, path] = value

    for which, value in stats.items():
        walk(which, (), value)
    return found


def _comparable(text: str) -> dict[tuple[str, ColumnPath], Any]:
    """Numbers with a point as text: decimals must agree in every digit and in scale."""
    found = _flat(json.loads(text, parse_float=str))
    for (which, path), value in list(found.items()):
        kind = COLUMNS.get(path[0]) if path else None
        if which == "nullCount" or not isinstance(value, str):
            continue
        if kind == "FLOAT":
            # Java's digits differ between releases; the 32-bit number they name does not.
            found[which, path] = struct.pack("<f", float(value))
        elif kind == "DOUBLE" and value not in ("NaN", "Infinity", "-Infinity"):
            found[which, path] = float(value)
    return found


@pytest.fixture
def every_type(delta_spark: SparkSession, tmp_path: Path) -> Iterator[tuple[SparkSession, Path]]:
    key = "spark.sql.parquet.outputTimestampType"
    before = delta_spark.conf.get(key)
    yield delta_spark, tmp_path / "table"
    delta_spark.conf.set(key, str(before))


def _write(spark: SparkSession, path: Path, stamps: str) -> None:
    spark.conf.set("spark.sql.parquet.outputTimestampType", stamps)
    frame = spark.sql(" UNION ALL ".join(_select(row) for row in ROWS)).coalesce(1)
    writer = frame.write.format("delta").option("delta.dataSkippingNumIndexedCols", "-1")
    writer.save(str(path))


@pytest.mark.parametrize(
    ("stamps", "absent"),
    [("TIMESTAMP_MICROS", NATIVE_ABSENT), ("INT96", INT96_ABSENT)],
    ids=["micros", "int96"],
)
def test_footers_of_spark_give_what_delta_computed(
    every_type: tuple[SparkSession, Path], stamps: str, absent: set[tuple[str, ColumnPath]]
) -> None:
    spark, path = every_type
    _write(spark, path, stamps)
    ((metadata, protocol, add),) = _logged(path)
    theirs = _comparable(add["stats"])
    footer = pq.read_metadata(path / unquote(add["path"]))
    ours = _comparable(stats_json(footer, StatsColumns.of(metadata, protocol)))
    assert theirs.keys() - ours.keys() == absent
    assert ours == {key: value for key, value in theirs.items() if key not in absent}


def test_footers_of_pyarrow_with_batches_give_what_delta_computed(
    every_type: tuple[SparkSession, Path], tmp_path: Path
) -> None:
    spark, path = every_type
    _write(spark, path, "TIMESTAMP_MICROS")
    ((metadata, protocol, add),) = _logged(path)
    theirs = _comparable(add["stats"])
    schema = to_arrow(physical_schema(metadata.schema, metadata.column_mapping_mode))
    table = pq.ParquetFile(path / unquote(add["path"])).read().cast(schema)
    columns = StatsColumns.of(metadata, protocol)
    extra = BatchStats(columns)
    written = tmp_path / "ours.parquet"
    with pq.ParquetWriter(written, schema) as writer:
        for batch in table.to_batches(max_chunksize=1):
            extra.update(batch)
            writer.write_table(pa.Table.from_batches([batch]))
    footer = pq.read_metadata(written)
    assert footer.num_row_groups == len(ROWS)
    assert _comparable(stats_json(footer, columns, extra)) == theirs
    alone = _comparable(stats_json(footer, columns))
    assert theirs.keys() - alone.keys() == ARROW_ABSENT
    assert alone.items() <= theirs.items()


LIMITS = [
    ("first", "a INT, r ARRAY<INT>, c INT", {"delta.dataSkippingNumIndexedCols": "2"}, ""),
    ("none", "a INT, b STRING", {"delta.dataSkippingNumIndexedCols": "0"}, ""),
    (
        "struct",
        "a INT, s STRUCT<x: INT, t: STRUCT<y: INT, z: INT>, u: INT>, c INT",
        {"delta.dataSkippingNumIndexedCols": "3"},
        "",
    ),
    ("partitioned", "p INT, a INT, b INT", {"delta.dataSkippingNumIndexedCols": "1"}, "p"),
    (
        "named",
        "a INT, s STRUCT<x: INT, t: STRUCT<y: INT, z: INT>>, `d.e` INT, B2 INT",
        {"delta.dataSkippingStatsColumns": "S.t, `d.e`,b2"},
        "",
    ),
    (
        "mapped",
        "a INT, `b.c` STRING, s STRUCT<`x.y`: INT>",
        {"delta.columnMapping.mode": "name", "delta.dataSkippingStatsColumns": "s.`x.y`,a"},
        "",
    ),
    ("vectors", "a INT, v VARIANT, n VOID", {"delta.enableDeletionVectors": "true"}, ""),
]


def test_the_same_columns_have_statistics(delta_spark: SparkSession, tmp_path: Path) -> None:
    for name, ddl, properties, partition in LIMITS:
        place = f"delta.`{tmp_path / name}`"
        shown = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
        by = f"PARTITIONED BY ({partition})" if partition else ""
        delta_spark.sql(f"CREATE TABLE {place} ({ddl}) USING delta {by} TBLPROPERTIES ({shown})")
        nulls = ", ".join("null" for _ in delta_spark.table(place).columns)
        delta_spark.sql(f"INSERT INTO {place} SELECT {nulls}")
        ((metadata, protocol, add),) = _logged(tmp_path / name)
        footer = pq.read_metadata(tmp_path / name / unquote(add["path"]))
        ours = json.loads(stats_json(footer, StatsColumns.of(metadata, protocol)))
        assert ours == json.loads(add["stats"]), name
