"""The rows of a table as Delta Spark and every reader of Iceberg return them, at any version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tests.support.iceberg.both_sides import as_text, iceberg_rows, opened
from tests.support.iceberg.duckdb import duck_rows
from twinlake.iceberg import sync_table
from twinlake.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Kept", "by_delta", "by_iceberg", "kept", "same", "texts"]

Row = dict[str, Any]


class Kept(NamedTuple):
    """A version of the table that Iceberg has, and its snapshot."""

    version: int
    snapshot_id: int


def kept(folder: Path) -> list[Kept]:
    """The versions that Iceberg has, from the oldest on."""
    found = []
    for snapshot in opened(folder).metadata.snapshots:
        assert snapshot.summary is not None
        version = int(snapshot.summary.additional_properties["delta-version"])
        found.append(Kept(version, snapshot.snapshot_id))
    return found


def by_delta(spark: SparkSession, folder: Path, version: int) -> DataFrame:
    """A version as Delta Spark reads it."""
    return spark.read.format("delta").option("versionAsOf", version).load(str(folder))


def by_iceberg(spark: SparkSession, folder: Path, snapshot: int | None = None) -> DataFrame:
    """A snapshot as Iceberg Spark reads it; the current one, if none is given."""
    reader = spark.read.format("iceberg")
    if snapshot is not None:
        reader = reader.option("versionAsOf", snapshot)
    return reader.load(f"{folder}/_iceberg")


def texts(frame: DataFrame) -> list[str]:
    """The rows of a frame in a form that compares."""
    return as_text(_collected(frame))


def _collected(frame: DataFrame) -> list[Row]:
    rows: list[Row] = frame.toArrow().to_pylist()
    return rows


def same(
    spark: SparkSession, folder: Path, duck: Any = None, *, faulty: Collection[str] = ()
) -> Table:
    """Every reader returns the rows of Delta Spark, now and at each version that Iceberg keeps.

    DuckDB is one of them where a connection is given. ``faulty`` are the columns that PyIceberg
    reads wrongly, on tables of its own as well.
    """
    table = Table.open(folder)
    sync_table(table.snapshot)
    readers: dict[str, Callable[[int | None], Sequence[Row]]] = {
        "Iceberg Spark": lambda at: _collected(by_iceberg(spark, folder, at)),
        "PyIceberg": lambda at: iceberg_rows(folder, at),
    }
    if duck is not None:
        readers["DuckDB"] = lambda at: duck_rows(duck, folder, at)
    places: list[tuple[int, int | None]] = [*kept(folder), (table.version, None)]
    versions = {version for version, _ in places}
    wanted = {version: _collected(by_delta(spark, folder, version)) for version in versions}
    for version, snapshot in places:
        for name, read in readers.items():
            left_out = faulty if name == "PyIceberg" else ()
            found = _without(read(snapshot), left_out)
            assert found == _without(wanted[version], left_out), (name, version)
    return table


def _without(rows: Sequence[Row], names: Collection[str]) -> list[str]:
    return as_text({key: row[key] for key in row if key not in names} for row in rows)
