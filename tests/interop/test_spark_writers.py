"""The same frames through every writer: Delta Spark reads the rows, pyarrow sees the same files."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pyarrow.parquet as pq
import pytest

import twinlake
from twinlake.errors import UserError
from twinlake.files.file_target import FileTarget
from twinlake.schema import assign_mapping, nested_ids, parse_ddl, walk_fields
from twinlake.spark.files.file_writer import (
    WRITER_SETTING,
    WRITERS,
    delete_uncommitted,
    write_files,
)
from twinlake.storage import decode_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from twinlake.actions import AddFile
    from twinlake.spark.files.file_writer import WriterName

pytestmark = pytest.mark.spark

MAPPED = {"delta.columnMapping.mode": "name"}
BY_ID = {"delta.columnMapping.mode": "id"}
IN_FILES = {"delta.enableMaterializePartitionColumnsFeature": "true"}
WAYS: tuple[WriterName | None, ...] = ("native", "arrow", None)


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A table and rows for it; ``native`` is whether Spark's own writer can write it."""

    ddl: str
    rows: tuple[str, ...]
    partition_by: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    native: bool = True
    element_ids: bool = False


_FLAT = (
    "id BIGINT, b TINYINT, s SMALLINT, i INT, f FLOAT, d DOUBLE, t BOOLEAN, n9 DECIMAL(9,2), "
    "n18 DECIMAL(18,3), n38 DECIMAL(38,10), str STRING, bin BINARY, day DATE, ts TIMESTAMP, "
    "ntz TIMESTAMP_NTZ"
)
_FLAT_ROWS = (
    "1, 1, 2, 3, 1.5, 2.5, true, 1.25, 1.125, 12345678901234567890.5, 'ü☃ 𝄞', X'00ff', "
    "DATE'2024-02-29', TIMESTAMP'2024-02-29 12:34:56.789012', TIMESTAMP_NTZ'2024-02-29 01:02:03'",
    "2, -128, -32768, -2147483648, double('NaN'), double('-Infinity'), false, -9999999.99, -0.001, "
    "-1, repeat('long ', 30), X'', DATE'0001-01-01', TIMESTAMP'1890-01-01 00:00:00', "
    "TIMESTAMP_NTZ'1890-01-01 00:00:00'",
    "3" + ", NULL" * 14,
    "4, 127, 32767, 7, -0.0, 0.0, true, 0, 0, 0, '', X'01', DATE'9999-12-31', "
    "TIMESTAMP'9999-12-31 00:00:00', TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'",
)
_DEEP = (
    "id BIGINT, p STRUCT<x: INT, q: STRUCT<y: STRING, z: ARRAY<INT>>>, "
    "l ARRAY<STRUCT<k: STRING, v: DECIMAL(5,2)>>, m MAP<STRING, STRUCT<n: TIMESTAMP>>, "
    "ll ARRAY<ARRAY<INT>>"
)
_DEEP_ROWS = (
    "1, named_struct('x', 1, 'q', named_struct('y', 'a', 'z', array(1, NULL))), "
    "array(named_struct('k', 'b', 'v', 1.5), NULL), "
    "map('u', named_struct('n', TIMESTAMP'2024-01-01 00:00:00'), 'w', NULL), "
    "array(array(1), NULL, array())",
    "2, NULL, NULL, NULL, NULL",
    "3, named_struct('x', NULL, 'q', NULL), array(), map(), array()",
)
_PARTITIONED = (
    "id BIGINT, s STRING, i INT, l BIGINT, h SMALLINT, y TINYINT, t BOOLEAN, d DATE, "
    "ts TIMESTAMP, ntz TIMESTAMP_NTZ, n DECIMAL(12,8)"
)
_KEYS = ("s", "i", "l", "h", "y", "t", "d", "ts", "ntz", "n")
_TYPED = (
    "1, 2, 3, 4, true, DATE'2024-02-29', TIMESTAMP'2024-02-29 12:34:56.789', "
    "TIMESTAMP_NTZ'2024-02-29 12:34:56', 0.00000001"
)
_ODD = ("plain", "a b", "a/b", "a=b", "100%", "ü☃", "c:d#e?f+g", "\\'quoted\\'", "tab\\tnl\\n", ".")

SHAPES: dict[str, Shape] = {
    "flat": Shape(ddl=_FLAT, rows=_FLAT_ROWS),
    "flat-by-name": Shape(ddl=_FLAT, rows=_FLAT_ROWS, properties=MAPPED),
    "nested": Shape(ddl=_DEEP, rows=_DEEP_ROWS),
    "nested-by-name": Shape(ddl=_DEEP, rows=_DEEP_ROWS, properties=MAPPED),
    "nested-by-id": Shape(ddl=_DEEP, rows=_DEEP_ROWS, properties=BY_ID),
    "ids-on-elements": Shape(
        ddl=_DEEP, rows=_DEEP_ROWS, properties=MAPPED, native=False, element_ids=True
    ),
    "materialised": Shape(
        ddl="p INT, id BIGINT",
        rows=("1, 1", "NULL, 2"),
        partition_by=("p",),
        properties=IN_FILES,
        native=False,
    ),
    "partitions": Shape(
        ddl=_PARTITIONED,
        rows=(
            *(f"{n}, '{text}', {_TYPED}" for n, text in enumerate(_ODD)),
            "90" + ", NULL" * 10,
            "91, '', -1, -2, -3, -4, false, DATE'0001-01-01', TIMESTAMP'1900-01-01 00:00:00', "
            "TIMESTAMP_NTZ'1900-01-01 00:00:00.000001', -1.5",
        ),
        partition_by=_KEYS,
    ),
    "partitions-by-id": Shape(
        ddl="id BIGINT, `a b` STRING, s STRUCT<`x.y`: INT>",
        rows=("1, 'x/y', named_struct('x', 1)", "2, NULL, NULL"),
        partition_by=("a b",),
        properties=BY_ID,
    ),
    "partitions-not-spelt": Shape(
        ddl="id BIGINT, f FLOAT, d DOUBLE, b BINARY",
        rows=("1, 1.5, 0.1, X'41'", "2, double('NaN'), 1e300, X'4200'", "3, NULL, NULL, NULL"),
        partition_by=("f", "d", "b"),
        native=False,
    ),
    "odd-names": Shape(
        ddl="id BIGINT, `a.b` INT, `ü` STRING, `x``y` STRUCT<`c.d`: INT>, `_u` INT",
        rows=("1, 2, 'z', named_struct('q', 3), 4",),
    ),
    "variant": Shape(
        ddl="id BIGINT, v VARIANT",
        rows=('1, parse_json(\'{"a": [1, "x"]}\')', "2, NULL"),
        native=False,
    ),
}


def frame_for(spark: SparkSession, table: twinlake.Table, rows: tuple[str, ...]) -> DataFrame:
    """The rows with exactly the table's names and types, in two partitions."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    values = spark.sql("VALUES " + ", ".join(f"({row})" for row in rows))
    wanted = StructType.fromJson(json.loads(table.metadata.schema_string))
    return values.select(
        *(
            f.col(name).cast(column.dataType).alias(column.name)
            for name, column in zip(values.columns, wanted.fields, strict=True)
        )
    )


def target_of(path: Path, table: twinlake.Table, **changes: Any) -> FileTarget:
    return FileTarget(
        url=str(path), metadata=table.metadata, protocol=table.protocol, durable=False, **changes
    )


def create(path: Path, shape: Shape) -> twinlake.Table:
    schema = parse_ddl(shape.ddl)
    if shape.properties.get("delta.columnMapping.mode"):
        # Given, so that all tables of a shape have the same physical names.
        schema, _ = assign_mapping(
            schema, name_for=lambda n: f"col-{n}", nested_ids=shape.element_ids
        )
    return twinlake.Table.create(
        path, schema, shape.partition_by, shape.properties, policy="minimal", durable=False
    )


def shown(rows: list[Any]) -> Counter[str]:
    """Rows as text, since NaN is not equal to itself; empty texts in partitions are nulls."""
    return Counter(str(row) for row in rows)


def field_ids(path: Path) -> list[tuple[str, str]]:
    """Name and id of every node of a file, in order."""
    lines = str(pq.ParquetFile(path).schema).splitlines()[2:]
    words = [line.replace(";", " ").split() for line in lines if "field_id=" in line]
    return [(row[3], row[2]) for row in words]


def described(path: Path, adds: tuple[AddFile, ...]) -> dict[str, Any]:
    """What the log and the files say, whoever wrote them: values, statistics, ids and rows."""
    stats: dict[str, Any] = {}
    for add in adds:
        key = json.dumps(add.partition_values)
        file = path / decode_path(add.path)
        data = pq.read_table(file, partitioning=None)
        assert add.size == file.stat().st_size
        stats[key] = {
            "stats": json.loads(add.stats or "{}"),
            "ids": field_ids(file),
            "types": [(f.name, str(f.type)) for f in data.schema],
            "rows": shown(data.to_pylist()),
            "folder": decode_path(add.path).rpartition("/")[0],
        }
    return stats


@pytest.mark.parametrize("name", SHAPES)
def test_every_writer_makes_the_same_table(
    name: str, delta_spark: SparkSession, tmp_path: Path
) -> None:
    shape = SHAPES[name]
    found: dict[str, Any] = {}
    # Another zone than the test's, so that a folder spelt in it would be noticed.
    delta_spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        for way in WAYS:
            path = tmp_path / str(way)
            table = create(path, shape)
            frame = frame_for(delta_spark, table, shape.rows).coalesce(1)
            if way is None:
                frame = frame_for(delta_spark, table, shape.rows)
            target = target_of(path, table)
            if way == "native" and not shape.native:
                with pytest.raises(UserError, match="cannot write this table"):
                    write_files(frame, target, writer=way)
                continue
            adds = write_files(frame, target, writer=way)
            table.commit("WRITE", adds, parameters={"mode": "Append"})
            if way is not None:
                # What the driver writes is compared with the others' files, which were read.
                read = delta_spark.read.format("delta").load(str(path))
                assert shown(read.collect()) == shown(_empty_as_null(frame, shape).collect())
            found[str(way)] = described(path, adds)
            assert not [p for p in path.iterdir() if p.name.startswith("_twinlake")]
    finally:
        delta_spark.conf.set("spark.sql.session.timeZone", "UTC")
    others = [value for key, value in found.items() if key != "arrow"]
    for other in others:
        assert other == found["arrow"]


def _empty_as_null(frame: DataFrame, shape: Shape) -> DataFrame:
    from pyspark.sql import functions as f

    for name in shape.partition_by:
        if dict(frame.dtypes)[name] == "string":
            quoted = f"`{name}`"
            frame = frame.withColumn(name, f.nullif(f.col(quoted), f.lit("")))
    return frame


def test_ids_are_those_of_the_schema(delta_spark: SparkSession, tmp_path: Path) -> None:
    table = create(tmp_path, SHAPES["ids-on-elements"])
    frame = frame_for(delta_spark, table, _DEEP_ROWS)
    (add,) = write_files(frame, target_of(tmp_path, table))
    found = [int(number.partition("=")[2]) for _, number in field_ids(tmp_path / add.path)]
    ids = [n for _, f in walk_fields(table.schema) for n in nested_ids(f).values()]
    ids += [f.metadata["delta.columnMapping.id"] for _, f in walk_fields(table.schema)]
    assert sorted(n for n in found if n >= 0) == sorted(ids)


@pytest.mark.parametrize("way", WAYS)
def test_an_empty_frame_makes_no_file(
    way: WriterName | None, delta_spark: SparkSession, tmp_path: Path
) -> None:
    table = twinlake.Table.create(tmp_path, "id BIGINT", durable=False)
    frame = delta_spark.range(10).where("id > 100 and id = rand()")
    assert write_files(frame, target_of(tmp_path, table), writer=way) == ()
    assert [p.name for p in tmp_path.iterdir()] == ["_delta_log"]


@pytest.mark.parametrize("way", WAYS)
def test_a_failing_frame_leaves_no_file(
    way: WriterName | None, delta_spark: SparkSession, tmp_path: Path
) -> None:
    table = twinlake.Table.create(tmp_path, "id BIGINT, p INT", ["p"], durable=False)
    broken = "if(id = 77, raise_error('no'), id) AS id"
    frame = delta_spark.range(0, 100, 1, 4).selectExpr(broken, "CAST(id % 3 AS INT) AS p")
    with pytest.raises(Exception, match="USER_RAISED_EXCEPTION"):
        write_files(frame, target_of(tmp_path, table), writer=way)
    assert [p for p in tmp_path.rglob("*.parquet*") if p.is_file()] == []
    assert not [p for p in tmp_path.iterdir() if p.name.startswith("_twinlake")]


def test_columns_that_cannot_be_null_are_optional_in_files(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    table = twinlake.Table.create(tmp_path, "id BIGINT", durable=False)
    for way in WAYS:
        adds = write_files(delta_spark.range(3), target_of(tmp_path, table), writer=way)
        for add in adds:
            assert pq.read_schema(tmp_path / add.path).field("id").nullable


def test_two_writers_at_once(delta_spark: SparkSession, tmp_path: Path) -> None:
    table = twinlake.Table.create(tmp_path, "id BIGINT, p INT", ["p"], durable=False)
    frame = delta_spark.range(0, 100, 1, 2).selectExpr("id", "CAST(id % 3 AS INT) AS p")
    target = target_of(tmp_path, table)

    def write(way: WriterName) -> tuple[AddFile, ...]:
        return write_files(frame, target, writer=way)

    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(write, ("native", "arrow")))
    table = table.commit("WRITE", both[0]).commit("WRITE", both[1])
    read = delta_spark.read.format("delta").load(str(tmp_path))
    assert read.groupBy("id").count().where("count <> 2").count() == 0
    assert read.count() == 200
    delete_uncommitted(target, both[1])
    assert not [add for add in both[1] if (tmp_path / decode_path(add.path)).exists()]


def test_files_of_a_size_and_small_frames(delta_spark: SparkSession, tmp_path: Path) -> None:
    table = twinlake.Table.create(tmp_path, "id BIGINT", durable=False)
    frame = delta_spark.range(0, 200_000, 1, 1)
    adds = write_files(frame, target_of(tmp_path, table, target_file_size=200_000))
    assert len(adds) > 2
    assert all(100_000 < add.size < 400_000 for add in adds[:-1])
    for text in ("SELECT 1L AS id", "VALUES 1L, 2L AS t(id)"):
        small = delta_spark.sql(text)
        assert _jobs(delta_spark, partial(write_files, small, target_of(tmp_path, table))) == 0


def _jobs(spark: SparkSession, run: Callable[[], object]) -> int:
    """How many Spark jobs a call runs in this thread."""
    context = spark.sparkContext
    context.setJobGroup("counted", "counted")
    try:
        run()
        return len(context.statusTracker().getJobIdsForGroup("counted"))
    finally:
        cast("Any", context)._jsc.clearJobGroup()


def test_the_setting_forces_a_writer(delta_spark: SparkSession, tmp_path: Path) -> None:
    table = twinlake.Table.create(tmp_path, "id BIGINT", durable=False)
    frame = delta_spark.range(3)
    try:
        for way, mark in (("native", "-c000"), ("arrow", "-000.")):
            delta_spark.conf.set(WRITER_SETTING, way)
            adds = write_files(frame, target_of(tmp_path, table))
            assert all(mark in add.path for add in adds)
        delta_spark.conf.set(WRITER_SETTING, "quick")
        with pytest.raises(UserError, match="no writer 'quick'"):
            write_files(frame, target_of(tmp_path, table))
        delta_spark.conf.set(WRITER_SETTING, "native")
        with pytest.raises(UserError, match="cannot write this table") as caught:
            write_files(frame, target_of(tmp_path, table, target_file_size=10))
        assert caught.value.fields["reason"] == "a file size is asked for"
    finally:
        delta_spark.conf.unset(WRITER_SETTING)
    assert set(WRITERS) == {"native", "arrow"}


def test_frames_of_other_types_are_refused(delta_spark: SparkSession, tmp_path: Path) -> None:
    table = twinlake.Table.create(tmp_path, "id INT, s STRING", durable=False)
    frame = delta_spark.range(3).selectExpr("id", "'x' AS t")
    with pytest.raises(UserError) as caught:
        write_files(frame, target_of(tmp_path, table))
    assert len(caught.value.fields["problems"]) == 2


@pytest.mark.parametrize("way", ["native", "arrow"])
def test_observed_metrics_arrive(
    way: WriterName, delta_spark: SparkSession, tmp_path: Path
) -> None:
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    table = twinlake.Table.create(tmp_path, "id BIGINT, s STRUCT<x: INT>", properties=MAPPED)
    seen = Observation()
    frame = delta_spark.range(5).selectExpr("id", "named_struct('x', CAST(id AS INT)) AS s")
    frame = frame.observe(seen, f.count(f.lit(1)).alias("rows"))
    write_files(frame, target_of(tmp_path, table), writer=way)
    assert seen.get == {"rows": 5}
