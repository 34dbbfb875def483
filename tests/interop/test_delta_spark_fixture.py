"""The Delta Spark session and the builders of peer tables work on this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.engines.delta_tables import KINDS, expected, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.engines.delta_tables import PeerTables

pytestmark = pytest.mark.spark


def test_deletion_vector_table_has_vectors_and_fewer_rows(
    delta_spark: SparkSession, peer_tables: PeerTables
) -> None:
    path = peer_tables.path("deletion_vectors")
    theirs = peer_tables.expected("deletion_vectors")

    assert (theirs.min_reader_version, theirs.min_writer_version) == (3, 7)
    assert theirs.reader_features == frozenset({"deletionVectors"})
    vectors = [file.deletion_vector for file in theirs.files.values() if file.deletion_vector]
    recorded = sum((file.stats or {})["numRecords"] for file in theirs.files.values())
    assert len(rows(delta_spark, path)) == recorded - sum(v["cardinality"] for v in vectors)


def test_v2_checkpoint_stands_in_for_the_deleted_commits(
    delta_spark: SparkSession, peer_tables: PeerTables, tmp_path: Path
) -> None:
    path = peer_tables.copy("v2_checkpoint_json", tmp_path)
    before = peer_tables.expected("v2_checkpoint_json")
    log = path / "_delta_log"
    checkpoint = json.loads((log / "_last_checkpoint").read_text())["version"]
    # Delta Spark wants the commit file of the version it opens, so the last one stays.
    for version in range(checkpoint + 1):
        for suffix in ("json", "crc"):
            (log / f"{version:020}.{suffix}").unlink()

    after = expected(delta_spark, path)

    assert (checkpoint, after.version) == (2, 3)
    assert after.files == before.files
    assert len(rows(delta_spark, path)) == 60


def test_every_kind_is_listed_in_the_tables_readme() -> None:
    readme = Path(__file__).parents[1] / "tables" / "README.md"
    text = readme.read_text(encoding="utf-8")
    assert [kind for kind in KINDS if f"| `{kind}` |" not in text] == []
