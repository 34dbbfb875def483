"""Reading tables that Delta Spark wrote: the same rows, whatever is done to the session."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.engines.delta_tables import KINDS, PeerTables
from twinlake import Table
from twinlake.errors import TwinlakeError
from twinlake.spark.read.file_list import file_keys, hadoop_root
from twinlake.spark.read.scan import scan
from twinlake.spark.read.table_frame import table_frame
from twinlake.spark.read.table_scan import Scan
from twinlake.spark.session import PINNED
from twinlake.storage import encode_path, open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

_MAPPED = """
    CREATE TABLE delta.`{path}` (id BIGINT, who STRUCT<given: STRING, age: INT>, day DATE)
    USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'id')
"""


def _rows(frame: DataFrame) -> list[str]:
    return sorted(str(row.asDict(True)) for row in frame.collect())


def _delta(spark: SparkSession, path: Path, version: int | None = None) -> DataFrame:
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    return reader.load(str(path))


def _to_df(spark: SparkSession, path: Path) -> DataFrame:
    return table_frame(spark, Table.open(path).snapshot)


@contextmanager
def _setting(spark: SparkSession, key: str, value: str) -> Iterator[None]:
    before = spark.conf.get(key, None)
    spark.conf.set(key, value)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, before)


def _mapped_table(spark: SparkSession, path: Path) -> Path:
    spark.sql(_MAPPED.format(path=path))
    spark.sql(
        f"INSERT INTO delta.`{path}` SELECT id, named_struct('given', concat('n', id), 'age', "
        "CAST(id AS INT)), DATE'2024-01-01' FROM range(0, 20, 1, 2)"
    )
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_reads_as_in_delta(
    kind: str, delta_spark: SparkSession, peer_tables: PeerTables
) -> None:
    path = peer_tables.path(kind)
    theirs = _delta(delta_spark, path)
    ours = _to_df(delta_spark, path)
    assert ours.schema == theirs.schema
    assert _rows(ours) == _rows(theirs)
    first = Table.open(path).history()[-1].version
    old = _delta(delta_spark, path, first)
    assert _rows(scan(delta_spark, path, version=first)) == _rows(old)


def test_a_plain_table_is_one_parquet_scan(
    delta_spark: SparkSession, peer_tables: PeerTables, tmp_path: Path
) -> None:
    def nodes(frame: DataFrame) -> list[str]:
        plan: Any = frame.where("id > 3").select("id")._jdf.queryExecution().executedPlan()
        found = []
        while True:
            found.append(plan.nodeName().strip())
            if not plan.children().size():
                return found
            plan = plan.children().apply(0)

    path = peer_tables.path("plain_25_commits")
    _delta(delta_spark, path).write.parquet(str(tmp_path / "plain"))
    plain = delta_spark.read.parquet(str(tmp_path / "plain"))
    assert nodes(scan(delta_spark, path)) == nodes(plain)
    assert nodes(_to_df(delta_spark, path)) == nodes(plain)


@pytest.mark.parametrize("form", ["scan", "to_df", "column", "selected"])
def test_filters_reach_the_list_of_files(
    form: str, delta_spark: SparkSession, peer_tables: PeerTables
) -> None:
    path = peer_tables.path("plain_25_commits")
    whole = _to_df(delta_spark, path)
    frames = {
        "scan": lambda: scan(delta_spark, path, where="id = 7"),
        "to_df": lambda: whole.where("id = 7"),
        "column": lambda: whole.filter(whole.id == 7),
        "selected": lambda: whole.select((whole["id"] + 0).alias("k"), "id").where("id = 7"),
    }
    frame = frames[form]()
    assert len(frame.inputFiles()) == 1
    assert len(_to_df(delta_spark, path).inputFiles()) > 1
    assert [row.id for row in frame.collect()] == [7]


@pytest.mark.parametrize("setting", [*PINNED, "spark.sql.parquet.fieldId.read.ignoreMissing"])
def test_settings_flipped_between_scan_and_action_change_nothing(
    setting: str, delta_spark: SparkSession, tmp_path: Path
) -> None:
    path = _mapped_table(delta_spark, tmp_path / "t")
    expected = _rows(_delta(delta_spark, path))
    frame = scan(delta_spark, path)
    lazy = _to_df(delta_spark, path).where("id >= 0")
    flipped = {"true": "false", "false": "true"}.get(PINNED.get(setting, "false"), "INT96")
    with _setting(delta_spark, setting, flipped):
        assert _rows(frame) == expected
        if "ignoreMissing" not in setting:
            assert _rows(lazy) == expected


def test_the_trap_behind_the_pinned_settings_is_real(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    path = _mapped_table(delta_spark, tmp_path / "t")
    snapshot = Table.open(path).snapshot
    from twinlake.schema import Struct, StructField
    from twinlake.spark.read.columns import ReadColumns
    from twinlake.spark.spark_types import spark_type

    fields = ReadColumns(snapshot.metadata).data_fields
    renamed = [StructField(f"x{n}", f.type, metadata=f.metadata) for n, f in enumerate(fields)]
    files = [str(path / name) for name in snapshot.files()["path"].to_pylist()]
    schema = spark_type(Struct(tuple(renamed)))
    with _setting(delta_spark, "spark.sql.parquet.fieldId.read.enabled", "true"):
        naive, later = (delta_spark.read.schema(schema).parquet(*files) for _ in range(2))
        assert all(row[0] is not None for row in naive.collect())
    with _setting(delta_spark, "spark.sql.parquet.fieldId.read.enabled", "false"):
        assert all(row[0] is None for row in later.collect())


def test_lenient_field_ids_are_refused(delta_spark: SparkSession, tmp_path: Path) -> None:
    path = _mapped_table(delta_spark, tmp_path / "t")
    with (
        _setting(delta_spark, "spark.sql.parquet.fieldId.read.ignoreMissing", "true"),
        pytest.raises(TwinlakeError, match="ignoreMissing"),
    ):
        scan(delta_spark, path)


def test_files_without_ids_in_an_id_mapped_table_are_an_error_not_nulls(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    import pyarrow.parquet as pq

    path = _mapped_table(delta_spark, tmp_path / "t")
    file = path / Table.open(path).files()["path"][0].as_py()
    table = pq.read_table(file)
    stripped = table.cast(_without_metadata(table.schema))
    pq.write_table(stripped, file)
    for crc in file.parent.glob(f".{file.name}.crc"):
        crc.unlink()
    with pytest.raises(Exception, match=r"(?i)field id"):
        scan(delta_spark, path).collect()


def _without_metadata(schema: Any) -> Any:
    import pyarrow as pa

    def plain(kind: Any) -> Any:
        if pa.types.is_struct(kind):
            return pa.struct([pa.field(f.name, plain(f.type), f.nullable) for f in kind])
        return kind

    return pa.schema([pa.field(f.name, plain(f.type), f.nullable) for f in schema])


def test_nested_fields_are_pruned_and_filters_pushed_in_mapped_tables(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    path = _mapped_table(delta_spark, tmp_path / "t")
    with _setting(delta_spark, "spark.sql.maxMetadataStringLength", "5000"):
        frame = scan(delta_spark, path).where("id > 3 and who.age > 4").select("who.given")
        plan: Any = frame._jdf.queryExecution().executedPlan()
        shown = plan.toString()
    assert "day" not in shown.partition("ReadSchema")[2]
    assert "GreaterThan(`" in shown or "GreaterThan(col-" in shown
    assert "parquet.field.id" not in scan(delta_spark, path).schema.json()


@pytest.mark.parametrize("hidden", ["_part.parquet", ".part.parquet"])
def test_data_files_with_hidden_names_are_read(
    hidden: str, delta_spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    delta_spark.range(0, 10, 1, 1).write.format("delta").save(str(path))
    delta_spark.range(10, 15, 1, 1).write.format("delta").mode("append").save(str(path))
    commit = path / "_delta_log" / f"{1:020}.json"
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            (path / line["add"]["path"]).rename(path / hidden)
            line["add"]["path"] = hidden
    commit.write_text("\n".join(json.dumps(line) for line in lines))
    for crc in (path / "_delta_log").glob("*.crc"):
        crc.unlink()
    assert sorted(row.id for row in scan(delta_spark, path).collect()) == list(range(15))
    where = Scan(snapshot=Table.open(path).snapshot, files=Table.open(path).files(), positions=True)
    assert where.frame(delta_spark).where("id >= 10").count() == 5


_ODD = ["a b", "100%", "a%20b", "#1", "q?", "x+y", "ü", "日本", "a=b", "a&b", "it's", "[x]", "{y}"]


@pytest.mark.parametrize("vectors", [False, True], ids=["plain", "vectors"])
def test_odd_characters_in_folders_and_partition_values(
    vectors: bool, delta_spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "ta ble ü#%20+?x"
    frame = delta_spark.createDataFrame(
        [(n, text, n % 2 == 0) for n, text in enumerate(_ODD * 2)], "id INT, p STRING, even BOOLEAN"
    )
    frame.coalesce(1).write.format("delta").partitionBy("p").option(
        "delta.enableDeletionVectors", str(vectors).lower()
    ).save(str(path))
    if vectors:
        delta_spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 3 OR id = 20")
    expected = _rows(_delta(delta_spark, path))
    assert _rows(scan(delta_spark, path)) == expected
    assert _rows(_to_df(delta_spark, path)) == expected
    snapshot = Table.open(path).snapshot
    located = Scan(snapshot=snapshot, files=snapshot.files(), positions=True).frame(delta_spark)
    assert located.count() == len(expected)


def test_folders_that_look_like_partitions_above_the_table(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "p=9" / "id=7" / "t"
    delta_spark.range(6).selectExpr("id", "CAST(id % 2 AS INT) p").write.format(
        "delta"
    ).partitionBy("p").save(str(path))
    assert _rows(scan(delta_spark, path)) == _rows(_delta(delta_spark, path))


def test_files_outside_the_table(delta_spark: SparkSession, tmp_path: Path) -> None:
    source, clone = tmp_path / "source x", tmp_path / "clone"
    delta_spark.range(10).write.format("delta").save(str(source))
    delta_spark.sql(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE delta.`{source}`")
    delta_spark.range(10, 12).write.format("delta").mode("append").save(str(clone))
    assert sorted(row.id for row in scan(delta_spark, clone).collect()) == list(range(12))


def test_metadata_of_files_is_reachable(delta_spark: SparkSession, peer_tables: PeerTables) -> None:
    for kind in ("plain_25_commits", "deletion_vectors"):
        frame = _to_df(delta_spark, peer_tables.path(kind))
        theirs = _delta(delta_spark, peer_tables.path(kind))
        chosen = ["id", "_metadata.file_path", "_metadata.file_name", "_metadata.file_size"]
        if kind != "deletion_vectors":
            chosen.append("_metadata.file_modification_time")
        assert _rows(frame.select(*chosen)) == _rows(theirs.select(*chosen))


def test_row_ids_are_those_of_delta(delta_spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    delta_spark.range(0, 20, 1, 2).write.format("delta").option(
        "delta.enableRowTracking", "true"
    ).save(str(path))
    delta_spark.sql(f"UPDATE delta.`{path}` SET id = id + 100 WHERE id % 5 = 0")
    theirs = _delta(delta_spark, path).selectExpr("id", "_metadata.row_id AS r")
    ours = scan(delta_spark, path, row_ids=True).selectExpr("id", "_row_id AS r")
    assert _rows(ours) == _rows(theirs)


def test_char_columns_are_padded_as_delta_pads_them(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    delta_spark.sql(f"CREATE TABLE delta.`{path}` (id INT, c CHAR(4), v VARCHAR(4)) USING delta")
    delta_spark.sql(f"INSERT INTO delta.`{path}` VALUES (1, 'a', 'a'), (2, 'abcd', 'abcd')")
    theirs, ours = _delta(delta_spark, path), _to_df(delta_spark, path)
    assert ours.schema == theirs.schema
    assert _rows(ours) == _rows(theirs)
    for condition in ("c = 'a'", "c = 'a   '", "v = 'a'", "c > 'a'"):
        assert _rows(ours.where(condition)) == _rows(theirs.where(condition)), condition


def test_name_mapped_files_without_ids_are_read_by_name(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    frame = delta_spark.range(4).selectExpr("id", "named_struct('a', id, 'b', id * 2) s", "'x y' p")
    frame.write.format("delta").partitionBy("p").save(str(path))
    for change in (
        "SET TBLPROPERTIES ('delta.columnMapping.mode'='name')",
        "RENAME COLUMN s.a TO z",
    ):
        delta_spark.sql(f"ALTER TABLE delta.`{path}` {change}")
    delta_spark.sql(f"INSERT INTO delta.`{path}` SELECT 9, named_struct('z', 1L, 'b', 2L), 'x:y'")
    expected = _rows(_delta(delta_spark, path))
    assert _rows(scan(delta_spark, path)) == expected
    assert _rows(_to_df(delta_spark, path).where("s.z >= 0")) == expected


_NAMES = st.text(
    st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="/\\"),
    min_size=1,
    max_size=8,
).filter(lambda name: name.strip(". ") != "")


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(folder=_NAMES, name=_NAMES)
def test_keys_are_spelt_as_hadoop_spells_paths(
    folder: str, name: str, delta_spark: SparkSession
) -> None:
    jvm: Any = delta_spark._jvm
    for root in ("file:///lake", "s3://bucket/lake"):
        url = f"{root}/{encode_path('x/' + folder)[2:]}"
        base = hadoop_root(url)
        (key,) = file_keys(base, [encode_path(f"{name}.parquet")])
        path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(key))
        assert path.toUri().toString() == key
        assert path.toUri().getPath().endswith(f"{folder}/{name}.parquet")


def test_empty_tables(delta_spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    Table.create(path, "id INT, p STRING", partition_by=["p"])
    frame = _to_df(delta_spark, path)
    assert frame.columns == ["id", "p"]
    assert frame.where("id > 1").collect() == []
    assert scan(delta_spark, path, where="p = 'x'", columns=["id"]).collect() == []
    shutil.rmtree(path)
    assert open_store(path) is not None
