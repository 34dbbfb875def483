"""Settings of a Spark session count while they are set: files that twinlake writes show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from tests.support.matrix.writers import session_settings
from twinlake.spark import write
from twinlake.storage import decode_path

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from twinlake.table import Table

pytestmark = pytest.mark.spark

_DELTA_ENCODED = {"DELTA_BINARY_PACKED", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"}


def encodings(table: Table, folder: Path, known: set[str]) -> set[str]:
    """The encodings of the files that are not known yet."""
    found: set[str] = set()
    for add in table.snapshot.adds():
        if add.path not in known:
            known.add(add.path)
            footer = pq.ParquetFile(folder / decode_path(add.path)).metadata
            groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
            columns = [group.column(i) for group in groups for i in range(group.num_columns)]
            found = found.union(*(column.encodings for column in columns))
    return found


def test_setting_that_was_unset_is_not_kept(delta_spark: SparkSession, tmp_path: Path) -> None:
    frame = delta_spark.range(0, 40, numPartitions=1).selectExpr("id", "id * 7919 AS n")
    known: set[str] = set()
    with session_settings(delta_spark, {"spark.twinlake.writer": "native"}):
        with session_settings(
            delta_spark, {"parquet.writer.version": "v2", "parquet.enable.dictionary": "false"}
        ):
            table = write(frame, tmp_path / "t")
        assert encodings(table, tmp_path / "t", known) & _DELTA_ENCODED
        table = write(frame, tmp_path / "t", "append")
    assert not encodings(table, tmp_path / "t", known) & _DELTA_ENCODED
