"""Partition values in both faces: Iceberg Spark finds by them what Delta Spark finds."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.support.data_files import append, write_file
from tests.support.iceberg.both_sides import V2, V3, as_text, iceberg_rows, twin
from tests.support.iceberg.catalog import iceberg_session
from tests.support.local_engine import rows_of
from twinlake import Table
from twinlake.errors import Code, UserError
from twinlake.iceberg import sync_table
from twinlake.schema import physical_name
from twinlake.spark import DeltaTable, scan, write

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

PARTITIONS: dict[str, dict[str, Any]] = {
    "STRING": {"'a'": "a", "'ü/=?#%'": "ü/=?#%", "''": ""},
    "INT": {"-2147483648": -(2**31), "5": 5},
    "LONG": {"9007199254740993": 2**53 + 1, "9007199254740992": 2**53},
    "DOUBLE": {"0.1D": 0.1, "-1.5D": -1.5, "1e300D": 1e300},
    "FLOAT": {"FLOAT('0.1')": 0.1, "FLOAT('-1e30')": -1e30},
    "DECIMAL(38, 10)": {
        "1234567890123456789012345678.0123456789": Decimal(
            "1234567890123456789012345678.0123456789"
        ),
        "-0.0000000001": Decimal("-0.0000000001"),
    },
    "DECIMAL(5, 2)": {"-1.25": Decimal("-1.25"), "1.50": Decimal("1.5")},
    "BOOLEAN": {"true": True, "false": False},
    "BINARY": {"X'C3BC'": "ü".encode(), "X'6162'": b"ab", "X''": b""},
    "DATE": {
        "DATE'0001-01-01'": dt.date(1, 1, 1),
        "DATE'1582-10-04'": dt.date(1582, 10, 4),
        "DATE'1969-12-31'": dt.date(1969, 12, 31),
    },
    "TIMESTAMP": {
        "TIMESTAMP'1500-02-28 23:59:59.999999'": dt.datetime(
            1500, 2, 28, 23, 59, 59, 999_999, tzinfo=dt.UTC
        ),
        "TIMESTAMP'2024-02-29 01:02:03.456789'": dt.datetime(
            2024, 2, 29, 1, 2, 3, 456_789, tzinfo=dt.UTC
        ),
    },
    "TIMESTAMP_NTZ": {
        "TIMESTAMP_NTZ'1500-02-28 00:00:00'": dt.datetime(1500, 2, 28),
        "TIMESTAMP_NTZ'1969-12-31 23:59:59.999999'": dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    },
}
BYTES = {1: "ü", 2: "ab", 3: "€", 4: "😀", 5: "\0\x7f"}
# Delta Spark puts files of such tables into folders without names, which any locale can spell.
SHARED = {"delta.columnMapping.mode": "name", "delta.enableIcebergCompatV2": "true"}


def iceberg(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.read.format("iceberg").load(f"{folder}/_iceberg")


def delta(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.read.format("delta").load(str(folder))


def texts(frame: DataFrame) -> list[str]:
    return as_text(frame.toArrow().to_pylist())


def asked(frame: DataFrame, conditions: Sequence[str]) -> dict[str, list[int]]:
    """The ids of the rows that each condition lets through, each pushed into a scan of its own."""
    parts = [
        frame.where(condition).selectExpr("id", f"{at} AS condition")
        for at, condition in enumerate(conditions)
    ]
    found = reduce(lambda one, other: one.unionAll(other), parts).collect()
    return {
        condition: sorted(row.id for row in found if row.condition == at)
        for at, condition in enumerate(conditions)
    }


def judged(frame: DataFrame, conditions: Sequence[str]) -> dict[str, list[int]]:
    """The same by looking at every row: what a filter lets through, and no file left out."""
    known = frame.localCheckpoint()
    flags = [f"({condition}) AS c{at}" for at, condition in enumerate(conditions)]
    rows = known.selectExpr("id", *flags).collect()
    return {
        condition: sorted(row.id for row in rows if row[f"c{at}"])
        for at, condition in enumerate(conditions)
    }


def test_predicates_on_partitions_of_every_type(delta_spark: SparkSession, tmp_path: Path) -> None:
    names = [f"p{at}" for at in range(len(PARTITIONS))]
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(names, PARTITIONS, strict=True))
    table = twin(tmp_path, f"id INT, {columns}", *names)
    for at in range(4):
        kinds = zip(names, PARTITIONS.values(), strict=True)
        values = {name: [*given.values(), None, None][at] for name, given in kinds}
        table = append(table, tmp_path, [{"id": at, **values}])
    sync_table(table.snapshot)

    conditions = list(_conditions(names))
    ours, theirs = iceberg(delta_spark, tmp_path), delta(delta_spark, tmp_path)
    assert texts(ours) == texts(theirs)
    assert asked(ours, conditions) == judged(theirs, conditions)


def _conditions(names: Sequence[str]) -> Iterator[str]:
    for name, given in zip(names, PARTITIONS.values(), strict=True):
        first, second, *_ = given
        yield from (f"{name} = {literal}" for literal in given)
        yield from (f"{name} {op} {literal}" for literal in (first, second) for op in "<>")
        yield f"{name} IN ({first}, {second})"


NUMBERS = {
    0: "DOUBLE('NaN')",
    1: "-0.0D",
    2: "0.0D",
    3: "0.1D",
    4: "DOUBLE('-Infinity')",
    5: "CAST(NULL AS DOUBLE)",
}
#: To Iceberg the two zeros are two values, wherever it compares partitions; to Delta they are one.
ZEROS = ("p = 0.0D", "p = -0.0D", "p > -0.0D", "p < 0.0D", "p >= 0.0D", "p IN (0.0D, 7.0D)")
#: What is neither about zeros alone nor about what lies above infinity.
ORDERED = (
    "isnan(p)",
    "NOT isnan(p)",
    "p = DOUBLE('NaN')",
    "p > 0.05D",
    "p >= 0.1D",
    "p > 1e300D",
    "p < 0.05D",
    "p <> 0.1D",
    "p IN (0.1D, DOUBLE('NaN'))",
    "p IS NOT NULL AND p < DOUBLE('NaN')",
)


@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT"])
def test_not_a_number_and_both_zeros(delta_spark: SparkSession, tmp_path: Path, kind: str) -> None:
    spark, folder = iceberg_session(delta_spark, tmp_path / "lake"), tmp_path / "t"
    rows = ", ".join(f"({number}, {literal})" for number, literal in NUMBERS.items())
    made = f"SELECT id, CAST(p AS {kind}) AS p FROM VALUES ({rows[1:-1]}) AS v(id, p)"
    spark.sql("CREATE NAMESPACE lake.db")
    spark.sql(f"CREATE TABLE lake.db.n (id INT, p {kind}) USING iceberg PARTITIONED BY (p)")
    table = twin(folder, f"id INT, p {kind}", "p")
    for number in NUMBERS:
        # A manifest for each, so that they can be left out one by one.
        spark.sql(f"INSERT INTO lake.db.n {made} WHERE id = {number}")
        values = spark.sql(f"{made} WHERE id = {number}").collect()
        table = append(table, folder, [row.asDict() for row in values])
    sync_table(table.snapshot)

    ours, theirs = iceberg(delta_spark, folder), delta(delta_spark, folder)
    native = asked(spark.table("lake.db.n"), ZEROS)
    assert texts(ours) == texts(theirs)
    assert asked(ours, ORDERED) == judged(theirs, ORDERED)
    # What Iceberg itself makes of its own tables; NaN, which it forgets there, is found in ours.
    above = {"p > -0.0D", "p >= 0.0D"}
    expected = {c: sorted({*ids, 0}) if c in above else ids for c, ids in native.items()}
    assert asked(ours, ZEROS) == expected
    assert native["p = 0.0D"] == [2]
    assert judged(theirs, ["p = 0.0D"]) == {"p = 0.0D": [1, 2]}


def as_bytes(number: int) -> str:
    return f"({number}, X'{BYTES[number].encode().hex()}')"


def all_read_the_bytes(spark: SparkSession, folder: Path) -> None:
    table = Table.open(folder)
    sync_table(table.snapshot)
    expected = as_text({"id": n, "p": text.encode()} for n, text in BYTES.items())
    assert texts(delta(spark, folder)) == expected
    assert texts(iceberg(spark, folder)) == expected
    assert texts(scan(spark, str(folder))) == expected
    assert as_text(rows_of(table.snapshot)) == expected
    assert as_text(iceberg_rows(folder)) == expected
    conditions = ["p = X'C3BC'", "p > X'E282AB'", "p IN (X'F09F9880', X'007F')", "p < X'C3'"]
    answers = judged(delta(spark, folder), conditions)
    assert list(answers.values()) == [[1], [3, 4], [4, 5], [2, 5]]
    assert asked(iceberg(spark, folder), conditions) == answers
    assert asked(scan(spark, str(folder)), conditions) == answers


def test_bytes_are_the_texts_of_delta_spark(delta_spark: SparkSession, tmp_path: Path) -> None:
    spark = delta_spark
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    values = ", ".join(as_bytes(number) for number in BYTES)
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in SHARED.items())
    spark.sql(
        f"CREATE TABLE delta.`{theirs}` (id INT, p BINARY) USING delta PARTITIONED BY (p) "
        f"TBLPROPERTIES ({properties})"
    )
    spark.sql(f"INSERT INTO delta.`{theirs}` VALUES {values}")
    all_read_the_bytes(spark, theirs)

    rows = spark.sql(f"SELECT * FROM VALUES {values} AS v(id, p)")
    write(rows, ours, partition_by="p", properties=V2)
    all_read_the_bytes(spark, ours)

    # Delta Spark would write another value in place of this one.
    changed = DeltaTable.forPath(spark, str(ours))
    bad = spark.sql("SELECT 9 AS id, X'61FF' AS p")
    for attempt in (
        lambda: write(bad, ours, mode="append"),
        lambda: write(bad.repartition(2), ours, mode="append"),
        lambda: changed.update("id = 2", {"p": "X'61FF'"}),
    ):
        with pytest.raises(UserError) as caught:
            attempt()
        assert caught.value.code is Code.INVALID_ARGUMENT
        assert caught.value.fields == {"type": "binary"}
    all_read_the_bytes(spark, ours)


def test_a_widened_float_is_what_its_text_says(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Delta reads the text 0.1 as a double; the float 0.1, promoted, would be another one."""
    spark = delta_spark
    for name, promise in {"v2": SHARED, "v3": V3}.items():
        folder = tmp_path / name
        properties = {**promise, "delta.enableTypeWidening": "true"}
        rows = spark.sql("SELECT CAST(id AS INT) AS id, FLOAT('0.1') AS p FROM RANGE(3)")
        write(rows.coalesce(1), folder, partition_by="p", properties=properties)
        if promise is V3:
            DeltaTable.forPath(spark, str(folder)).delete("id = 1")
        sync_table(Table.open(folder).snapshot)
        spark.sql(f"ALTER TABLE delta.`{folder}` ALTER COLUMN p TYPE DOUBLE")
        sync_table(Table.open(folder).snapshot)

        conditions = ["p = 0.1D", "p <= 0.1D", "p > 0.1D", "p IN (0.1D, 0.5D)", "p <> 0.1D"]
        answers = judged(delta(spark, folder), conditions)
        assert answers["p = 0.1D"] == ([0, 2] if promise is V3 else [0, 1, 2])
        for frame in (iceberg(spark, folder), scan(spark, str(folder))):
            assert texts(frame) == texts(delta(spark, folder))
            assert asked(frame, conditions) == answers


def test_timestamps_without_a_zone(delta_spark: SparkSession, tmp_path: Path) -> None:
    """A table of a writer in Berlin, as a reader there sees it."""
    spark = delta_spark.newSession()
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    zone = {"twinlake.partitionTimeZone": "Europe/Berlin"}
    table = twin(tmp_path, "id INT, p TIMESTAMP", "p", properties={**V2, **zone})
    (column,) = (field for field in table.schema if field.name == "p")
    moments = {"2024-01-31 12:00:00": 11, "2024-07-31 12:00:00": 10, "2024-07-31T10:00:00Z": 10}
    files = []
    for number, (text, hour) in enumerate(moments.items()):
        moment = dt.datetime(2024, int(text[5:7]), 31, hour, tzinfo=dt.UTC)
        file = write_file(table, tmp_path, [{"id": number, "p": moment}])
        values = {physical_name(column): text}
        files.append(msgspec.structs.replace(file, partition_values=values))
    table = table.commit("WRITE", files)
    sync_table(table.snapshot)

    conditions = ["p = TIMESTAMP'2024-07-31 12:00:00'", "p < TIMESTAMP'2024-01-31 12:00:01'"]
    answers = judged(delta(spark, tmp_path), conditions)
    assert list(answers.values()) == [[1, 2], [0]]
    expected = texts(delta(spark, tmp_path))
    for frame in (iceberg(spark, tmp_path), scan(spark, str(tmp_path))):
        assert texts(frame) == expected
        assert asked(frame, conditions) == answers
