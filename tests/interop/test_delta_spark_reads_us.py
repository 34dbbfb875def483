"""Tables made here, opened by real Delta Spark, which then goes on writing to them."""

from __future__ import annotations

import contextlib
import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.data_files import append
from tests.support.engines.comparing import assert_same_state
from tests.support.engines.delta_tables import (
    arrow_rows,
    checksum_is_valid,
    delta_settings,
    expected,
)
from tests.support.engines.our_tables import OUR_TABLES, busy
from twinlake.log import (
    CheckpointKind,
    load_snapshot,
    read_checksum,
    verify_checksum,
    write_checkpoint,
)
from twinlake.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.engines.our_tables import OurTable

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@contextlib.contextmanager
def _checksums_enforced(spark: SparkSession) -> Iterator[None]:
    """Delta Spark checks the checksum file before every commit and refuses to go on past it."""
    with delta_settings(
        spark,
        versionChecksum__forcedValidationInterval="0",
        versionChecksum__forcedValidationMinTimeIntevalMinutes="0",
        checksum__mismatch__fatal="true",
    ):
        yield


@pytest.mark.parametrize("name", OUR_TABLES)
def test_delta_spark_sees_our_table_and_writes_to_it(
    name: str, delta_spark: SparkSession, tmp_path: Path
) -> None:
    ours = OUR_TABLES[name](tmp_path)
    path, table = ours.path, Table.open(ours.path)

    assert_same_state(table, expected(delta_spark, path))
    found = arrow_rows(delta_spark, path)
    assert found == sorted(ours.rows, key=str)
    assert checksum_is_valid(delta_spark, path)

    with _checksums_enforced(delta_spark):
        delta_spark.sql(f"INSERT INTO delta.`{path}` SELECT * FROM delta.`{path}`")

    after = table.refresh()
    assert after.version == table.version + 1
    assert_same_state(after, expected(delta_spark, path))
    assert sum(after.files()["num_records"].to_pylist()) - _deleted(after) == 2 * len(found)
    checksum = read_checksum(after.snapshot.store, after.version)
    assert checksum is not None
    assert verify_checksum(after.snapshot, checksum) == []


def _deleted(table: Table) -> int:
    return table.snapshot.counters.num_deleted_records


def test_delta_spark_changes_rows_and_columns_of_our_tables(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    vectors = OUR_TABLES["vectors"](tmp_path / "vectors")
    clustered = OUR_TABLES["clustered_and_tracked"](tmp_path / "clustered")
    mapped = OUR_TABLES["mapped_by_id"](tmp_path / "mapped")
    with _checksums_enforced(delta_spark):
        # A row of a file that has a vector of ours already: the two are merged.
        delta_spark.sql(f"DELETE FROM delta.`{vectors.path}` WHERE id IN (1, 1002)")
        delta_spark.sql(f"UPDATE delta.`{clustered.path}` SET name = 'z' WHERE id = 3")
        delta_spark.sql(f"OPTIMIZE delta.`{clustered.path}`")
        delta_spark.sql(f"DELETE FROM delta.`{mapped.path}` WHERE name = 33")
        delta_spark.sql(f"ALTER TABLE delta.`{mapped.path}` RENAME COLUMN name TO number")
        delta_spark.sql(f"ALTER TABLE delta.`{mapped.path}` ADD COLUMNS (s STRUCT<x: INT>)")
        delta_spark.sql(f"ALTER TABLE delta.`{mapped.path}` SET TBLPROPERTIES ('by' = 'spark')")
    for ours in (vectors, clustered, mapped):
        table = Table.open(ours.path)
        assert table.version > ours.table.version
        assert_same_state(table, expected(delta_spark, ours.path))
    assert arrow_rows(delta_spark, vectors.path) == sorted(
        (row for row in vectors.rows if row["id"] not in (1, 1002)), key=str
    )


def test_delta_spark_sees_the_row_ids_we_gave(delta_spark: SparkSession, tmp_path: Path) -> None:
    ours = OUR_TABLES["clustered_and_tracked"](tmp_path)
    frame = delta_spark.read.format("delta").load(str(tmp_path))
    found = frame.select("id", "_metadata.row_id", "_metadata.row_commit_version").collect()
    given = {
        file["stats"]["min_values"]["id"]: (file["base_row_id"], file["default_row_commit_version"])
        for file in ours.table.files().to_pylist()
    }
    firsts = {row["id"]: (row["row_id"], row["row_commit_version"]) for row in found}
    assert given.items() <= firsts.items()
    assert sorted(row["row_id"] for row in found) == list(range(len(ours.rows)))


def test_delta_spark_tells_our_history_and_changes(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    ours = OUR_TABLES["upgraded"](tmp_path)
    theirs = delta_spark.sql(f"DESCRIBE HISTORY delta.`{tmp_path}`").collect()
    history = ours.table.history()
    assert [(r["version"], r["operation"]) for r in theirs] == [
        (r.version, r.operation) for r in history
    ]
    since = ours.table.version - 1
    changes = delta_spark.read.format("delta").option("readChangeFeed", "true")
    frame = changes.option("startingVersion", since).load(str(tmp_path))
    rows = frame.select("id", "_change_type", "_commit_version").collect()
    assert [tuple(row) for row in rows] == [(2, "insert", ours.table.version)]


def test_delta_spark_refuses_a_wrong_checksum(delta_spark: SparkSession, tmp_path: Path) -> None:
    """So that the checks above mean something."""
    table = append(Table.create(tmp_path, "id BIGINT"), tmp_path, [{"id": 1}])
    key = tmp_path / "_delta_log" / f"{table.version:020}.crc"
    wrong = {**json.loads(key.read_text()), "numFiles": 5}
    key.write_text(json.dumps(wrong))
    assert not checksum_is_valid(delta_spark, tmp_path)


# --- checkpoints ----------------------------------------------------------------------------------

CHECKPOINTS: dict[str, tuple[str, dict[str, Any]]] = {
    "classic": ("classic", {}),
    "classic-struct-stats": ("struct", {}),
    "multi-part": ("classic", {"parts": 3}),
    "v2-parquet": ("v2", {"kind": CheckpointKind.V2_PARQUET}),
    "v2-parquet-sidecars": ("v2", {"kind": CheckpointKind.V2_PARQUET, "sidecars": 2}),
    "v2-json": ("v2", {"kind": CheckpointKind.V2_JSON}),
    "v2-json-sidecars": ("v2", {"kind": CheckpointKind.V2_JSON, "sidecars": 2}),
    "v2-classic": ("v2", {"kind": CheckpointKind.V2_CLASSIC}),
    "v2-classic-sidecars": ("v2", {"kind": CheckpointKind.V2_CLASSIC, "sidecars": 2}),
}
_PROPERTIES: dict[str, dict[str, str]] = {
    "classic": {},
    "struct": {
        "delta.checkpoint.writeStatsAsStruct": "true",
        "delta.checkpoint.writeStatsAsJson": "false",
    },
    "v2": {"delta.checkpointPolicy": "v2"},
}


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, OurTable]:
    """The tables to put checkpoints on, each a copy of its own."""
    return {
        name: busy(tmp_path_factory.mktemp(f"busy-{name}"), properties)
        for name, properties in _PROPERTIES.items()
    }


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_delta_spark_reads_our_checkpoint_and_nothing_before_it(
    name: str, bases: dict[str, OurTable], delta_spark: SparkSession, tmp_path: Path
) -> None:
    base, options = CHECKPOINTS[name]
    path = tmp_path / "table"
    shutil.copytree(bases[base].path, path)
    table = Table.open(path, durable=False)
    write_checkpoint(table.snapshot, **options)
    last: dict[str, Any] = {"id": 99, "part": "p 1", "at": None}
    table = append(table, path, [last])
    log = path / "_delta_log"
    # Checksum files hold metadata and protocol: without them only the checkpoint has these.
    for version in range(table.version):
        (log / f"{version:020}.json").unlink()
        (log / f"{version:020}.crc").unlink()
    (log / f"{table.version:020}.crc").unlink()

    theirs = expected(delta_spark, path)

    assert_same_state(table, theirs)
    assert_same_state(Table(load_snapshot(table.snapshot.store)), theirs)
    assert arrow_rows(delta_spark, path) == sorted([*bases[base].rows, last], key=str)
    # Statistics come through in a form that skipping understands.
    frame = delta_spark.read.format("delta").load(str(path)).where("id = 43")
    assert [f.rpartition("/")[2] for f in frame.inputFiles()] == [
        file["path"] for file in table.files("id = 43").to_pylist()
    ]
