"""Rows read without Spark are those that Delta Spark reads, at every version of every table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.engines.agreement import arrow_keys, row_differences, row_keys
from tests.support.engines.delta_tables import KINDS
from tests.support.engines.our_tables import OUR_TABLES
from tests.support.scale import is_full_scale
from twinlake import Table

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.engines.delta_tables import PeerTables

pytestmark = pytest.mark.spark


def _same_at_every_version(spark: SparkSession, path: Path) -> None:
    versions = sorted(record.version for record in Table.open(path).history())
    for version in versions if is_full_scale() else {versions[len(versions) // 2], versions[-1]}:
        frame = spark.read.format("delta").option("versionAsOf", version).load(str(path))
        table = Table.open(path, version=version)
        theirs = row_keys({"": frame})[""]
        ours = table.to_arrow()
        assert ours.column_names == frame.columns
        assert not row_differences(arrow_keys(ours), theirs), f"version {version}"
        assert table.count() == len(theirs)


@pytest.mark.parametrize("kind", KINDS)
def test_tables_of_delta_spark(
    kind: str, peer_tables: PeerTables, delta_spark: SparkSession
) -> None:
    _same_at_every_version(delta_spark, peer_tables.path(kind))


@pytest.mark.parametrize("name", OUR_TABLES)
def test_tables_of_ours(name: str, tmp_path: Path, delta_spark: SparkSession) -> None:
    OUR_TABLES[name](tmp_path / "t")
    _same_at_every_version(delta_spark, tmp_path / "t")
