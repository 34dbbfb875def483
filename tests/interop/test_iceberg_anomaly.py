"""Does a DELETE of Iceberg Spark miss an UPDATE that commits between its scan and its commit?

The published formal model of Iceberg v2 found such a history and left it to the project's people
to confirm. Here the schedule runs on the real release, and what came out is asserted: a release
that mends it makes the first test fail, and the page about it has to change. ``pytest -rP`` on this
file prints each story.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.iceberg.anomaly import (
    ROWS,
    DeltaSpark,
    IcebergSpark,
    Twinlake,
    one_by_one,
    replay,
)
from tests.support.iceberg.both_sides import V2, V3

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

BLUE = ("jack", "blue", "A")
SARAH = ("sarah", "red", "A")


def test_the_release_commits_a_delete_that_missed_an_update(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    engine = IcebergSpark(spark=delta_spark, folder=tmp_path)
    found = replay(engine, tmp_path)

    assert "1.11.0" in engine.about
    assert found.refused == ""
    assert found.made_by == ("append", "overwrite", "delete")
    assert [rows for _, rows in found.versions] == [ROWS, (BLUE, SARAH), (BLUE, SARAH)]
    # Both delete the row of version 1; the row that the UPDATE wrote is deleted by nobody.
    assert found.evidence == ("position 0 of data-1 is in 2 delete files",)


@pytest.mark.parametrize("order", [("UPDATE", "DELETE"), ("DELETE", "UPDATE")])
def test_in_either_serial_order_the_row_is_gone(
    delta_spark: SparkSession, tmp_path: Path, order: tuple[str, str]
) -> None:
    found = one_by_one(IcebergSpark(spark=delta_spark, folder=tmp_path), *order)

    assert found.rows == (SARAH,)


REFUSED = {
    "the UPDATE second": (2, "snapshot", "merge-on-read", "DELETE", "new conflicting delete files"),
    "serializable": (2, "serializable", "merge-on-read", "UPDATE", "Found conflicting files"),
    "format version 3": (3, "snapshot", "merge-on-read", "UPDATE", "concurrently added DV"),
    "copy-on-write": (2, "snapshot", "copy-on-write", "UPDATE", "Missing required files to delete"),
}


@pytest.mark.parametrize(
    ("version", "isolation", "mode", "first", "words"), REFUSED.values(), ids=REFUSED.keys()
)
def test_the_release_refuses_what_is_next_to_it(
    delta_spark: SparkSession,
    tmp_path: Path,
    version: int,
    isolation: str,
    mode: str,
    first: str,
    words: str,
) -> None:
    engine = IcebergSpark(
        spark=delta_spark,
        folder=tmp_path,
        format_version=version,
        isolation=isolation,
        mode=mode,
    )
    found = replay(engine, tmp_path, first=first)

    assert words in found.refused
    assert len(found.versions) == 2
    assert found.rows == ((BLUE, SARAH) if first == "UPDATE" else (SARAH,))


TWINS = {
    "twinlake V2": (Twinlake, V2),
    "twinlake V3": (Twinlake, V3),
    "Delta Spark V3": (DeltaSpark, V3),
}


@pytest.mark.parametrize(("kind", "properties"), TWINS.values(), ids=TWINS.keys())
def test_a_twin_refuses_it(
    delta_spark: SparkSession,
    tmp_path: Path,
    kind: type[Twinlake | DeltaSpark],
    properties: dict[str, str],
) -> None:
    engine = kind(spark=delta_spark, folder=tmp_path / "t", properties=properties)
    found = replay(engine, tmp_path)

    assert "DELTA_CONCURRENT_APPEND" in found.refused
    assert found.made_by == ("WRITE", "UPDATE")
    assert found.rows == (BLUE, SARAH)
