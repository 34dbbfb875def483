"""Tables that Iceberg Spark made, imported: Delta Spark returns the rows that Iceberg Spark did."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.iceberg.both_sides import as_text
from tests.support.iceberg.catalog import iceberg_session
from twinlake import ImportResult, Table, import_iceberg
from twinlake.errors import Code, UserError
from twinlake.iceberg import sync_table
from twinlake.spark import DeltaTable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MERGE_ON_READ = {f"write.{what}.mode": "merge-on-read" for what in ("delete", "update", "merge")}


class Source:
    """A table of Iceberg Spark, and its image as Delta Spark reads it."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = iceberg_session(spark, folder)
        self.delta_spark = spark
        self.folder = folder / "db" / "t"

    def create(self, columns: str, partitions: str = "", *, version: int = 2) -> None:
        by = f"PARTITIONED BY ({partitions})" if partitions else ""
        self.run(
            f"CREATE TABLE t ({columns}) USING iceberg {by} "
            f"TBLPROPERTIES ('format-version' = '{version}')"
        )

    def run(self, *statements: str) -> None:
        """Statements about a table ``t``."""
        self.spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.db")
        self.spark.sql("USE lake.db")
        for statement in statements:
            self.spark.sql(statement).collect()

    def rows(self, snapshot: int | None = None) -> DataFrame:
        at = "" if snapshot is None else f" VERSION AS OF {snapshot}"
        return self.spark.sql(f"SELECT * FROM lake.db.t{at}")

    def snapshots(self) -> list[int]:
        """The line that led to the current one, oldest first."""
        found = self.spark.sql(
            "SELECT snapshot_id, min(made_current_at) AS made FROM lake.db.t.history "
            "WHERE is_current_ancestor GROUP BY snapshot_id ORDER BY made"
        )
        return [one.snapshot_id for one in found.collect()]

    def delta(self, version: int | None = None) -> DataFrame:
        at = "" if version is None else f" VERSION AS OF {version}"
        return self.delta_spark.sql(f"SELECT * FROM delta.`{self.folder}`{at}")

    def same_questions(self, *conditions: str) -> None:
        """Both answer with the same rows where conditions are pushed into the scans."""
        assert texts(asked(self.delta(), conditions)) == texts(asked(self.rows(), conditions))

    def imported(self, mode: str = "strict") -> ImportResult:
        """Import, and hold the rows of every snapshot against those of its version."""
        before = {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}
        result = import_iceberg(str(self.folder), mode=mode, durable=False)
        snapshots = self.snapshots()
        assert (result.snapshots, result.left_out) == (len(snapshots), 0)
        for version, snapshot in enumerate(snapshots):
            assert texts(self.delta(version)) == texts(self.rows(snapshot)), version
        assert texts(self.delta()) == texts(self.rows())
        assert self.delta().columns == self.rows().columns
        assert all(path.read_bytes() == data for path, data in before.items())
        return result


def texts(frame: DataFrame) -> list[str]:
    return as_text(frame.toArrow().to_pylist())


def asked(frame: DataFrame, conditions: Sequence[str]) -> DataFrame:
    """The ids of the rows that each condition lets through, each pushed into a scan of its own."""
    parts = [
        frame.where(condition).selectExpr("id", f"{at} AS condition")
        for at, condition in enumerate(conditions)
    ]
    return reduce(lambda one, other: one.unionAll(other), parts)


@pytest.fixture
def source(delta_spark: SparkSession, tmp_path: Path) -> Source:
    return Source(delta_spark, tmp_path)


NESTED = (
    "id INT NOT NULL, name STRING COMMENT 'what it is called', price DECIMAL(9,2), f FLOAT, "
    "n INT, t BOOLEAN, raw BINARY, d DATE, ts TIMESTAMP, ntz TIMESTAMP_NTZ, big DECIMAL(38,10), "
    "s STRUCT<a: INT, b: STRUCT<c: STRING, l: ARRAY<INT>>>, l ARRAY<STRUCT<x: INT, y: STRING>>, "
    "m MAP<STRING, STRUCT<v: FLOAT>>, k MAP<STRUCT<p: INT>, ARRAY<STRING>>"
)
FIRST = (
    "(1, 'one', 1.25, 0.5, 7, true, X'00ff', DATE'2024-02-29', "
    "TIMESTAMP'2024-02-29 12:34:56.789999', TIMESTAMP_NTZ'1969-12-31 23:59:59.999999', 12345.5, "
    "named_struct('a', 1, 'b', named_struct('c', 'ü☃ 𝄞', 'l', array(1, NULL))), "
    "array(named_struct('x', 1, 'y', 'a'), NULL), map('u', named_struct('v', 1.5F), 'w', NULL), "
    "map(named_struct('p', 1), array('x', NULL)))",
    "(2" + ", NULL" * 14 + ")",
    "(3, repeat('long ', 30), -9999999.99, FLOAT('NaN'), -2147483648, false, X'', "
    "DATE'0001-01-01', TIMESTAMP'1890-01-01 00:00:00', TIMESTAMP_NTZ'1890-01-01 00:00:00', -1, "
    "named_struct('a', NULL, 'b', NULL), array(), map(), map())",
)
EVOLUTION = (
    "ALTER TABLE t ADD COLUMNS (added STRING AFTER id, s.z DATE FIRST, l.element.z INT, "
    "m.value.w STRING)",
    "ALTER TABLE t RENAME COLUMN name TO label",
    "ALTER TABLE t RENAME COLUMN s.a TO aa",
    "ALTER TABLE t RENAME COLUMN l.element.x TO xx",
    "ALTER TABLE t ALTER COLUMN id DROP NOT NULL",
)
SECOND = (
    "INSERT INTO t SELECT 4, 'new', 'four', 2.5, 1.5, 8, true, X'01', DATE'9999-12-31', "
    "TIMESTAMP'9999-12-31 00:00:00', TIMESTAMP_NTZ'9999-12-31 23:59:59.999999', 0, "
    "named_struct('z', DATE'2020-01-01', 'aa', 5, 'b', NULL), "
    "array(named_struct('xx', 2, 'y', 'b', 'z', 3)), "
    "map('n', named_struct('v', 2.5F, 'w', 'w')), map()"
)
WIDENING = (
    "ALTER TABLE t ALTER COLUMN id TYPE BIGINT",
    "ALTER TABLE t ALTER COLUMN price TYPE DECIMAL(20,2)",
    "ALTER TABLE t ALTER COLUMN f TYPE DOUBLE",
    "ALTER TABLE t ALTER COLUMN s.aa TYPE BIGINT",
    "ALTER TABLE t ALTER COLUMN l.element.xx TYPE BIGINT",
    "ALTER TABLE t ALTER COLUMN m.value.v TYPE DOUBLE",
    "ALTER TABLE t DROP COLUMNS (n, s.b.c, k)",
    # Another column under a name that was there before.
    "ALTER TABLE t ADD COLUMN (n STRING FIRST)",
)
THIRD = (
    "INSERT INTO t SELECT 'n', 9007199254740993, NULL, 'five', 123456789012345678.25, 0.1D, "
    "true, X'02', DATE'2024-01-01', TIMESTAMP'2024-01-01 00:00:00', NULL, 1, "
    "named_struct('z', NULL, 'aa', 1099511627776, 'b', named_struct('l', array(3))), "
    "array(named_struct('xx', 1099511627776, 'y', NULL, 'z', NULL)), "
    "map('d', named_struct('v', 0.1D, 'w', NULL))"
)


def test_evolved_and_nested(source: Source) -> None:
    source.create(NESTED)
    source.run(
        f"INSERT INTO t VALUES {', '.join(FIRST)}",
        *EVOLUTION,
        SECOND,
        "UPDATE t SET label = 'changed', s.aa = 6 WHERE id = 1",
        *WIDENING,
        THIRD,
        "DELETE FROM t WHERE id = 2",
        "MERGE INTO t USING (SELECT 4 AS id) u ON t.id = u.id "
        "WHEN MATCHED THEN UPDATE SET n = 'merged'",
        "ALTER TABLE t ALTER COLUMN label AFTER n",
    )
    result = source.imported()

    assert result.is_twin, result.notes
    source.same_questions(
        "id = 9007199254740993",
        "id < 4",
        "price >= 123456789012345678.25",
        "f = 0.1",
        "isnan(f)",
        "f < 1",
        "label > 'long long long long'",
        "n IS NULL",
        "ts > TIMESTAMP'2024-02-29 12:34:56.789'",
        "ntz >= TIMESTAMP_NTZ'9999-12-31 23:59:59.999'",
        "d <= DATE'0001-01-01'",
        "s.aa > 5",
        "s.z IS NOT NULL",
    )


def test_it_goes_on_as_a_twin_that_delta_spark_writes(source: Source) -> None:
    source.create("id INT, p STRING, s STRUCT<a: INT>", "p")
    source.run("INSERT INTO t VALUES (1, 'x', NULL), (2, 'y', named_struct('a', 1))")
    result = source.imported(mode="shared")
    assert result.is_twin
    spark, table = source.delta_spark, f"delta.`{source.folder}`"
    spark.sql(f"INSERT INTO {table} VALUES (3, 'ü/=', named_struct('a', 2))")
    spark.sql(f"UPDATE {table} SET s = named_struct('a', 9) WHERE id = 1")
    DeltaTable.forPath(spark, str(source.folder)).delete("id = 2")
    sync_table(Table.open(source.folder).snapshot)

    face = spark.read.format("iceberg").load(f"{source.folder}/_iceberg")
    expected = [{"id": 1, "p": "x", "s": {"a": 9}}, {"id": 3, "p": "ü/=", "s": {"a": 2}}]
    assert texts(face) == texts(source.delta()) == as_text(expected)


PARTITIONS = {
    "STRING": ["'a'", "'ü/=?#% ☃'", "'__HIVE_DEFAULT_PARTITION__'"],
    "INT": ["-2147483648", "5", "0"],
    "BIGINT": ["9007199254740993", "-1", "0"],
    "DOUBLE": ["0.1D", "-0.0D", "DOUBLE('NaN')"],
    "FLOAT": ["0.1F", "FLOAT('Infinity')", "0.0F"],
    "DECIMAL(38,10)": ["1234567890123456789012345678.0123456789", "-1", "0"],
    "DECIMAL(5,2)": ["-1.25", "0", "999.99"],
    "BOOLEAN": ["true", "false", "true"],
    "BINARY": ["X'6162'", "X'63'", "X'7a'"],
    "DATE": ["DATE'1969-12-31'", "DATE'0001-01-01'", "DATE'9999-12-31'"],
    "TIMESTAMP": [
        "TIMESTAMP'2024-02-29 01:02:03.456789'",
        "TIMESTAMP'1890-01-01 00:00:00'",
        "TIMESTAMP'1969-12-31 23:59:59.999999'",
    ],
    "TIMESTAMP_NTZ": [
        "TIMESTAMP_NTZ'1969-12-31 23:59:59.999999'",
        "TIMESTAMP_NTZ'2024-01-01 00:00:00'",
        "TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'",
    ],
}


def test_partitions_of_every_type(source: Source) -> None:
    """In format version 1, and evolved."""
    names = [f"`p.{at}`" if at % 2 else f"`{at} ü`" for at in range(len(PARTITIONS))]
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(names, PARTITIONS, strict=True))
    source.create(f"id INT, {columns}", ", ".join(names), version=1)
    rows = [", ".join(given[at] for given in PARTITIONS.values()) for at in range(3)]
    first, second, third = (f"INSERT INTO t VALUES ({at}, {row})" for at, row in enumerate(rows))
    source.run(
        first,
        second,
        "ALTER TABLE t ALTER COLUMN id TYPE BIGINT",
        f"ALTER TABLE t ALTER COLUMN {names[1]} TYPE BIGINT",
        f"ALTER TABLE t RENAME COLUMN {names[0]} TO text",
        "ALTER TABLE t ADD COLUMN (more ARRAY<INT> FIRST)",
        third.replace("(2,", "(array(1), 9007199254740993,"),
        f"INSERT INTO t VALUES (NULL, 3{', NULL' * len(names)})",
        "DELETE FROM t WHERE text = 'a'",
    )
    source.imported()

    names[0] = "text"
    kinds = zip(names, PARTITIONS.values(), strict=True)
    source.same_questions(
        " AND ".join(f"{name} IS NULL" for name in names),
        *(f"{name} = {given[1]}" for name, given in kinds),
    )


def test_rows_deleted_by_position(source: Source) -> None:
    """Begun in format version 1, partitioned, evolved, changed by every statement."""
    source.create("id INT, p INT, v STRING", "p", version=1)
    source.run(
        "INSERT INTO t SELECT id, id % 2, concat('v', id) FROM RANGE(0, 12, 1, 1)",
        "ALTER TABLE t SET TBLPROPERTIES ('format-version' = '2', "
        + ", ".join(f"'{key}' = '{value}'" for key, value in MERGE_ON_READ.items())
        + ", 'write.delete.granularity' = 'partition')",
        "DELETE FROM t WHERE id IN (0, 1, 4)",
        "UPDATE t SET v = 'updated' WHERE id IN (2, 5)",
        "ALTER TABLE t SET TBLPROPERTIES ('write.delete.granularity' = 'file')",
        "ALTER TABLE t ALTER COLUMN p TYPE BIGINT",
        "ALTER TABLE t RENAME COLUMN v TO w",
        "DELETE FROM t WHERE w = 'updated' AND id = 2",
        "MERGE INTO t USING (SELECT id FROM RANGE(6, 14)) u ON t.id = u.id "
        "WHEN MATCHED AND t.id = 7 THEN DELETE WHEN MATCHED THEN UPDATE SET w = 'merged' "
        "WHEN NOT MATCHED THEN INSERT (id, p, w) VALUES (u.id, NULL, 'inserted')",
        "CALL lake.system.rewrite_data_files(table => 'db.t', where => 'p = 1', "
        "options => map('rewrite-all', 'true'))",
        "DELETE FROM t WHERE id IN (9, 12)",
        "INSERT OVERWRITE t SELECT 100, 7, 'last'",
    )
    # What came last is undone: it is in the table's past, and not in the line of its snapshots.
    source.run(
        f"CALL lake.system.rollback_to_snapshot('db.t', {source.snapshots()[-2]})",
        "DELETE FROM t WHERE id = 8",
    )
    result = source.imported()

    assert not result.is_twin
    assert any("deletion vectors" in note for note in result.notes)
    source.same_questions("p = 1", "p IS NULL", "w = 'merged'", "id < 6", "w IS NULL")


def test_what_delta_cannot_say_is_told_in_one_list(source: Source) -> None:
    source.create("id INT, ts TIMESTAMP, name STRING", "bucket(4, id), days(ts)")
    source.run("INSERT INTO t VALUES (1, TIMESTAMP'2024-01-01 00:00:00', 'a')")
    delete_by_equality(source, "name")
    with pytest.raises(UserError) as caught:
        import_iceberg(str(source.folder), durable=False)

    assert caught.value.code is Code.COMPAT
    problems = caught.value.fields["problems"]
    assert isinstance(problems, list)
    told = "\n".join(str(problem) for problem in problems)
    assert "partition field id_bucket has transform bucket[4]" in told
    assert "partition field ts_day has transform day" in told
    assert "deletes rows by equality" in told
    assert not (source.folder / "_delta_log").exists()


def delete_by_equality(source: Source, column: str) -> None:
    """Commit a file of equality deletes, which Spark's SQL never writes, by Iceberg's own API."""
    jvm: Any = source.spark._jvm
    gateway: Any = source.spark.sparkContext._gateway
    loader = jvm.org.apache.iceberg.hadoop.HadoopTables(source.spark._jsc.hadoopConfiguration())
    table = loader.load(str(source.folder))
    ids = gateway.new_array(gateway.jvm.int, 1)
    ids[0] = table.schema().findField(column).fieldId()
    entry = table.currentSnapshot().addedDataFiles(table.io()).iterator().next()
    built = (
        jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(table.spec())
        .ofEqualityDeletes(ids)
        .withPath(f"{source.folder}/data/equality.parquet")
        .withFormat("parquet")
        .withPartition(entry.partition())
        .withFileSizeInBytes(10)
        .withRecordCount(1)
        .build()
    )
    table.newRowDelta().addDeletes(built).commit()
