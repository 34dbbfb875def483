"""Delta Spark reads the checkpoints and checksums twinlake writes, and goes on from them."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.engines.delta_tables import expected, rows
from twinlake.log import (
    CheckpointKind,
    load_snapshot,
    read_checksum,
    verify_checksum,
    write_checkpoint,
    write_checksum,
)
from twinlake.storage import LocalStore

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.engines.delta_tables import PeerTables

pytestmark = [pytest.mark.spark, pytest.mark.slow]

V2 = "v2_checkpoint_parquet"
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "classic": ("partitioned", {}),
    "classic-struct-stats": ("struct_stats_checkpoint", {}),
    "classic-vectors": ("deletion_vectors", {}),
    "classic-mapped": ("column_mapping_id", {}),
    "multipart": ("partitioned", {"parts": 3}),
    "v2-parquet": (V2, {}),
    "v2-parquet-sidecars": (V2, {"sidecars": 2}),
    "v2-json": (V2, {"kind": CheckpointKind.V2_JSON}),
    "v2-json-sidecars": (V2, {"kind": CheckpointKind.V2_JSON, "sidecars": 2}),
    "v2-classic": (V2, {"kind": CheckpointKind.V2_CLASSIC}),
    "v2-classic-sidecars": (V2, {"kind": CheckpointKind.V2_CLASSIC, "sidecars": 2}),
}


@pytest.mark.parametrize("name", CASES)
def test_delta_spark_reads_it(
    name: str, delta_spark: SparkSession, peer_tables: PeerTables, tmp_path: Path
) -> None:
    kind, options = CASES[name]
    path = peer_tables.copy(kind, tmp_path)
    before, data = peer_tables.expected(kind), rows(delta_spark, path)
    log = path / "_delta_log"
    # Nothing of Delta Spark's own checkpoints and checksums is left to lean on.
    snapshot = load_snapshot(LocalStore(path, durable=False))
    snapshot.add_files()
    for file in {*log.glob("*.checkpoint*"), *log.glob("0*.crc"), *log.glob(".0*.crc")}:
        file.unlink()
    shutil.rmtree(log / "_sidecars", ignore_errors=True)
    write_checkpoint(snapshot, **options)
    assert write_checksum(snapshot)
    # Delta Spark wants the commit file of the version it opens, so the last one stays.
    for version in range(snapshot.version):
        (log / f"{version:020}.json").unlink()

    after = expected(delta_spark, path)

    assert after.version == before.version
    assert after.files == before.files
    assert after.tombstones == before.tombstones
    assert (after.table_id, after.schema_string, after.partition_columns, after.properties) == (
        before.table_id,
        before.schema_string,
        before.partition_columns,
        before.properties,
    )
    assert (after.min_reader_version, after.min_writer_version) == (
        before.min_reader_version,
        before.min_writer_version,
    )
    assert (after.reader_features, after.writer_features) == (
        before.reader_features,
        before.writer_features,
    )
    assert rows(delta_spark, path) == data

    delta_spark.sql(f"INSERT INTO delta.`{path}` SELECT * FROM delta.`{path}`")
    assert len(rows(delta_spark, path)) == 2 * len(data)
    latest = load_snapshot(LocalStore(path, durable=False))
    checksum = read_checksum(latest.store, latest.version)
    assert checksum is not None
    assert verify_checksum(latest, checksum) == []
