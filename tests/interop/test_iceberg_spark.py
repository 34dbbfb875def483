"""The readers of Iceberg on tables of ours: the rows of Delta Spark, at every version."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.data_files import append
from tests.support.iceberg.both_sides import (
    V2,
    V3,
    hide,
    remove_files,
    replace_table,
    twin,
)
from tests.support.iceberg.duckdb import connect
from tests.support.iceberg.readers import by_delta, by_iceberg, same, texts
from tests.support.log_tables import commit
from twinlake import Table
from twinlake.iceberg import sync_table
from twinlake.spark import write

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

STRICT = {**V2, "delta.enableIcebergWriterCompatV1": "true"}
FLAT = (
    "id BIGINT, i INT, f FLOAT, d DOUBLE, t BOOLEAN, n DECIMAL(18,3), big DECIMAL(38,10), "
    "s STRING, b BINARY, day DATE, ts TIMESTAMP, ntz TIMESTAMP_NTZ, "
    "st STRUCT<x: INT, q: STRUCT<y: STRING, z: ARRAY<INT>>>, "
    "l ARRAY<ARRAY<STRUCT<k: STRING, v: DECIMAL(5,2)>>>, "
    "m MAP<STRING, MAP<INT, STRUCT<n: TIMESTAMP>>>, k MAP<STRUCT<k: INT>, ARRAY<STRING>>"
)
ROWS = (
    "1, 3, 1.5, 0.1, true, 1.125, 12345678901234567890.5, 'ü☃ 𝄞', X'00ff', DATE'2024-02-29', "
    "TIMESTAMP'2024-02-29 12:34:56.789999', TIMESTAMP_NTZ'2024-02-29 01:02:03.000001', "
    "named_struct('x', 1, 'q', named_struct('y', 'a', 'z', array(1, NULL))), "
    "array(array(named_struct('k', 'b', 'v', 1.5), NULL), array()), "
    "map('u', map(1, named_struct('n', TIMESTAMP'2024-01-01 00:00:00')), 'w', NULL), "
    "map(named_struct('k', 1), array('x', NULL))",
    "9007199254740993, -2147483648, double('NaN'), double('-Infinity'), false, -0.001, -1, "
    "repeat('long ', 30), X'', DATE'0001-01-01', TIMESTAMP'1890-01-01 00:00:00', "
    "TIMESTAMP_NTZ'1890-01-01 00:00:00', NULL, NULL, NULL, NULL",
    "3" + ", NULL" * 15,
    "-9223372036854775808, 7, -0.0, 0.0, true, 0, 0, '', X'01', DATE'9999-12-31', "
    "TIMESTAMP'9999-12-31 00:00:00', TIMESTAMP_NTZ'9999-12-31 23:59:59.999999', "
    "named_struct('x', NULL, 'q', NULL), array(), map(), map()",
)
CONDITIONS = (
    "id = 9007199254740993",
    "id > 9007199254740992",
    "id <= -9223372036854775808",
    "d = 0.0",
    "d >= -0.0",
    "f > 1e30",
    "isnan(f)",
    "d = 0.1",
    "n < 0",
    "big >= 12345678901234567890.5",
    "s = ''",
    "s > 'long long long long long long lo'",
    "s LIKE 'long long%'",
    "b = X'00ff'",
    "day = DATE'9999-12-31'",
    "ts = TIMESTAMP'2024-02-29 12:34:56.789999'",
    "ts > TIMESTAMP'2024-02-29 12:34:56.789'",
    "ntz >= TIMESTAMP_NTZ'9999-12-31 23:59:59.999'",
    "st.x = 1",
    "st.q.y IS NULL",
    "i IS NULL OR NOT t",
)


#: PyIceberg 0.12 takes structs in these by the names in the files, which are not those of columns.
NAMED = ("l", "m", "k")
#: It takes a list of structs that is null for an empty one.
NULL_LISTS = ("l",)


def asked(frame: DataFrame, conditions: Sequence[str]) -> DataFrame:
    """The ids of the rows that each condition lets through, each pushed into a scan of its own."""
    parts = [
        frame.where(condition).selectExpr("id", f"{at} AS condition")
        for at, condition in enumerate(conditions)
    ]
    return reduce(lambda one, other: one.unionAll(other), parts)


@pytest.fixture(scope="module")
def duck() -> Iterator[Any]:
    """None where there is no DuckDB; its own tests say so, or fail where it has to be."""
    found = connect()
    if isinstance(found, str):
        yield None
    else:
        yield found
        found.close()


def same_answers(spark: SparkSession, folder: Path, conditions: Sequence[str]) -> None:
    """Where conditions are pushed into the scans."""
    theirs = by_delta(spark, folder, Table.open(folder).version)
    ours = by_iceberg(spark, folder)
    assert texts(asked(ours, conditions)) == texts(asked(theirs, conditions))


@pytest.fixture(scope="module")
def written(delta_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of every type, one file a row."""
    folder = tmp_path_factory.mktemp("types")
    columns = [part.split()[0] for part in _top_level(FLAT)]
    Table.create(folder, FLAT, properties=STRICT)
    for row in ROWS:
        casts = [
            f"CAST(c{at} AS {part.split(maxsplit=1)[1]}) AS {name}"
            for at, (name, part) in enumerate(zip(columns, _top_level(FLAT), strict=True))
        ]
        named = ", ".join(f"c{at}" for at in range(len(columns)))
        frame = delta_spark.sql(f"SELECT {', '.join(casts)} FROM VALUES ({row}) AS v({named})")
        write(frame.coalesce(1), folder, mode="append")
    return folder


def _top_level(ddl: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for at, character in enumerate(ddl):
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth == 0:
            parts.append(ddl[start:at].strip())
            start = at + 1
    return [*parts, ddl[start:].strip()]


def test_every_type_at_every_version(delta_spark: SparkSession, duck: Any, written: Path) -> None:
    assert same(delta_spark, written, duck, faulty=NAMED).version == len(ROWS)


def test_predicates_on_bounds(delta_spark: SparkSession, written: Path) -> None:
    sync_table(Table.open(written).snapshot)

    same_answers(delta_spark, written, CONDITIONS)


def test_every_type_as_delta_spark_writes_it(
    delta_spark: SparkSession, duck: Any, tmp_path: Path
) -> None:
    """In a table that Delta Spark made, too."""
    table = f"delta.`{tmp_path}`"
    promises = ", ".join(f"'{key}' = '{value}'" for key, value in V2.items())
    delta_spark.sql(
        f"CREATE TABLE {table} ({FLAT}, tiny TINYINT, small SMALLINT) USING delta "
        f"TBLPROPERTIES ({promises})"
    )
    rows = [f"({row}, {at - 128}, {32767 - at})" for at, row in enumerate(ROWS)]
    delta_spark.sql(f"INSERT INTO {table} VALUES {', '.join(rows)}")
    delta_spark.sql(f"UPDATE {table} SET i = 1, st.x = 2, tiny = NULL WHERE id > 0")

    assert same(delta_spark, tmp_path, duck, faulty=NAMED).version == 2


PARTITIONS: dict[str, list[Any]] = {
    "STRING": ["a", "ü/=?#%", None],
    "INT": [-(2**31), 5, None],
    "LONG": [2**53 + 1, None],
    "DOUBLE": [0.1, -0.0, float("nan"), None],
    "FLOAT": [0.1, None],
    "DECIMAL(38, 10)": [Decimal("1234567890123456789012345678.0123456789"), None],
    "DECIMAL(5, 2)": [Decimal("-1.25"), None],
    "BOOLEAN": [True, None],
    "BINARY": [b"ab", None],
    "DATE": [dt.date(1969, 12, 31), None],
    "TIMESTAMP": [dt.datetime(2024, 2, 29, 1, 2, 3, 456_789, tzinfo=dt.UTC), None],
    "TIMESTAMP_NTZ": [dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), None],
}


def test_partitions_of_every_type(delta_spark: SparkSession, duck: Any, tmp_path: Path) -> None:
    names = [f"p.{at}" if at % 2 else f"{at}ü" for at in range(len(PARTITIONS))]
    columns = ", ".join(f"`{n}` {kind}" for n, kind in zip(names, PARTITIONS, strict=True))
    table = twin(tmp_path, f"id INT, {columns}", *names)
    for at in range(4):
        values = [kinds[min(at, len(kinds) - 1)] for kinds in PARTITIONS.values()]
        table = append(table, tmp_path, [{"id": at, **dict(zip(names, values, strict=True))}])

    same(delta_spark, tmp_path, duck)

    conditions = [f"`{name}` IS {how}NULL" for name in names for how in ("", "NOT ")]
    same_answers(delta_spark, tmp_path, conditions)


def test_partitions_as_delta_spark_writes_them(
    delta_spark: SparkSession, duck: Any, tmp_path: Path
) -> None:
    # Decimals it refuses here.
    kinds = {kind: some for kind, some in PARTITIONS.items() if "DECIMAL" not in kind}
    names = [f"p{at}" for at in range(len(kinds))]
    columns = ", ".join(f"{n} {kind}" for n, kind in zip(names, kinds, strict=True))
    values = [[some[min(at, len(some) - 1)] for some in kinds.values()] for at in range(4)]
    frame = delta_spark.createDataFrame(
        [(at, *own) for at, own in enumerate(values)],
        f"id INT, {columns}".replace("LONG", "BIGINT"),
    )
    twin(tmp_path, f"id INT, {columns}", *names)
    frame.coalesce(1).write.format("delta").mode("append").save(str(tmp_path))

    same(delta_spark, tmp_path, duck)


def test_schemas_and_specs_that_changed(
    delta_spark: SparkSession, duck: Any, tmp_path: Path
) -> None:
    widening = {**V2, "delta.enableTypeWidening": "true"}
    table = twin(tmp_path, "id INT, p INT, v FLOAT", "p", properties=widening)
    table = append(table, tmp_path, [{"id": 1, "p": 1, "v": 0.5}])
    table = table.widen_column("p", "LONG").widen_column("v", "DOUBLE").widen_column("id", "LONG")
    for at in range(9):
        table = append(table, tmp_path, [{"id": 2**40 + at, "p": 2**40 + at, "v": 0.1}])
    # The promise forbids to rename a partition column; not every engine keeps to that.
    text = table.metadata.schema_string.replace('"name":"p"', '"name":"q"')
    renamed = replace(table.metadata, schema_string=text, partition_columns=("q",))
    commit(table.snapshot.store, table.version + 1, renamed)
    table = append(table.refresh().add_column("p STRING"), tmp_path, [{"id": 3, "q": 4, "p": "x"}])
    same(delta_spark, tmp_path, duck)
    conditions = ("q = 1", "q > 1099511627776", "v = 0.5", "id >= 1099511627776")
    same_answers(delta_spark, tmp_path, conditions)


def test_columns_that_came_and_went(delta_spark: SparkSession, duck: Any, tmp_path: Path) -> None:
    """In structs, too, and under names that were there before; wider types; nulls let in."""
    columns = (
        "id INT NOT NULL, t TINYINT, b SMALLINT, f FLOAT, n DECIMAL(5,2), name STRING, "
        "s STRUCT<a: INT, x: STRUCT<y: SMALLINT, z: FLOAT>>, l ARRAY<STRUCT<e: INT, g: STRING>>"
    )
    table = twin(tmp_path, columns, properties={**V2, "delta.enableTypeWidening": "true"})
    first = {
        "id": 1, "t": -128, "b": 32767, "f": 0.1, "n": Decimal("-999.99"), "name": "a",
        "s": {"a": 1, "x": {"y": 2, "z": 0.5}}, "l": [{"e": 1, "g": "g"}, None],
    }  # fmt: skip
    table = append(table, tmp_path, [first], [{"id": 2}])
    table = table.drop_column("name").add_column("name INT", first=True)
    table = table.drop_column("s.a").rename_column("s.x.y", "yy").add_column("s.a STRING")
    table = table.add_column("s.x.y DATE").drop_column("l.element.g")
    table = table.add_column("l.element.g INT").rename_column("l.element.e", "ee")
    day = dt.date(2024, 2, 29)
    second = {
        "id": 3, "t": 127, "b": -5, "f": 0.25, "n": Decimal("0.01"), "name": 7,
        "s": {"a": "new", "x": {"y": day, "yy": 3, "z": 1.5}}, "l": [{"ee": 2, "g": 4}],
    }  # fmt: skip
    table = append(table, tmp_path, [second]).alter_column("id", nullable=True)
    wider = {"id": "LONG", "t": "SMALLINT", "b": "INT", "f": "DOUBLE", "n": "DECIMAL(20,2)"}
    wider |= {"s.x.yy": "INT", "s.x.z": "DOUBLE", "l.element.ee": "LONG"}
    for name, kind in wider.items():
        table = table.widen_column(name, kind)
    third = {
        "id": None, "t": 32767, "b": 2**31 - 1, "f": 0.1, "n": Decimal("123456789012345678.25"),
        "name": None, "s": {"a": None, "x": {"y": None, "yy": -(2**31), "z": 0.1}},
        "l": [{"ee": 2**40, "g": None}],
    }  # fmt: skip
    append(table, tmp_path, [third])

    same(delta_spark, tmp_path, duck, faulty=NULL_LISTS)

    conditions = (
        "id IS NULL", "id = 1", "t = 32767", "t < 0", "b > 32767", "f = 0.1D", "f > 0.1D",
        "n > 999", "n = -999.99", "name = 7", "name IS NULL", "s.a = 'new'", "s.x.z = 0.5D",
        "s.x.yy < 3", "s.x.y IS NULL",
    )  # fmt: skip
    same_answers(delta_spark, tmp_path, conditions)


def test_a_table_replaced_by_one_with_partitions(
    delta_spark: SparkSession, duck: Any, tmp_path: Path
) -> None:
    table = append(twin(tmp_path, "id INT, p INT"), tmp_path, [{"id": 1, "p": 1}])
    table = replace_table(table, "id INT, q STRING", "q")
    table = append(table, tmp_path, [{"id": 2, "q": "x"}])
    append(remove_files(table), tmp_path, [{"id": 3, "q": None}])

    same(delta_spark, tmp_path, duck)


def test_hidden_rows_and_row_lineage(delta_spark: SparkSession, duck: Any, tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT, p INT", "p", properties=V3)
    table = append(table, tmp_path, [{"id": at, "p": 0} for at in range(5)], [{"id": 9, "p": 1}])
    table = append(table, tmp_path, [{"id": 20, "p": 1}, {"id": 21, "p": 1}])
    first, *_, last = sorted(table.snapshot.adds(), key=lambda add: add.base_row_id or 0)
    table = hide(table, tmp_path, {first.path: [0, 4], last.path: [1]})
    table = hide(table, tmp_path, {first.path: [0, 1, 4]}, inline=True)
    table = table.restore(3)

    same(delta_spark, tmp_path, duck)

    ours = by_iceberg(delta_spark, tmp_path).select(
        "id", "_row_id", "_last_updated_sequence_number"
    )
    theirs = by_delta(delta_spark, tmp_path, table.version).selectExpr(
        "id",
        "_metadata.row_id AS _row_id",
        "_metadata.row_commit_version AS _last_updated_sequence_number",
    )
    assert texts(ours) == texts(theirs)


def test_variants(delta_spark: SparkSession, tmp_path: Path) -> None:
    """In format version 3; of the readers of Iceberg, only Spark has them."""
    twin(tmp_path, "id INT, v VARIANT, s STRUCT<w: ARRAY<VARIANT>>", properties=V3)
    documents = ('{"a": [1, null, "ü"]}', '"text"', "null", "1.5")
    for at, document in enumerate(documents):
        parsed = f"parse_json('{document}')"
        row = f"SELECT {at} id, {parsed} v, named_struct('w', array({parsed}, NULL)) s"
        write(delta_spark.sql(row), tmp_path, mode="append")
    write(delta_spark.sql("SELECT 9 id, CAST(NULL AS VARIANT) v, NULL s"), tmp_path, mode="append")
    table = Table.open(tmp_path)
    sync_table(table.snapshot)

    shown = ("id", "to_json(v) v", "v IS NULL n", "to_json(s) s", "try_variant_get(v, '$.a[2]') a")
    ours = by_iceberg(delta_spark, tmp_path).selectExpr(*shown)
    theirs = by_delta(delta_spark, tmp_path, table.version).selectExpr(*shown)
    found = sorted(map(str, ours.withColumn("a", ours["a"].cast("string")).collect()))

    assert found == sorted(map(str, theirs.withColumn("a", theirs["a"].cast("string")).collect()))
    assert len(found) == len(documents) + 1
