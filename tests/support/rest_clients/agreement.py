"""After every step all readers of a table hold the same rows, and both of its sides agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.iceberg.both_sides import as_text
from twinlake.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.rest_clients.clients import RestClient

__all__ = ["all_agree"]

Row = dict[str, Any]


def all_agree(
    folder: Path,
    wanted: Iterable[Mapping[str, Any]],
    readers: Sequence[RestClient],
    *,
    spark: SparkSession | None = None,
    step: str = "",
) -> Table:
    """Hold every reader of a table against the rows that it must have."""
    expected = as_text(map(dict, wanted))
    table = Table.open(folder)
    found: dict[str, list[Row]] = {"twinlake": table.to_arrow().to_pylist()}
    if spark is not None:
        theirs = spark.read.format("delta").load(str(folder))
        found["Delta Spark"] = theirs.toArrow().to_pylist()
    for reader in readers:
        found[reader.name] = reader.rows()
    for name, rows in found.items():
        assert as_text(rows) == expected, f"{name} after {step}"
    report = table.verify_twin()
    assert report.agrees, f"after {step}: {report.findings[:3]}"
    return table
