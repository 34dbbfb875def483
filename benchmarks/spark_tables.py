"""The tables that the Spark benchmarks start from: made once by Delta Spark, copied by links."""

from __future__ import annotations

import os
import shutil
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from benchmarks.tables import TableRecipe, table

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

# Part of every folder's name: tables of an older recipe are not taken for new ones.
_RECIPE: Final = 1
SELECTIVE: Final = 100
"""One file in so many is read."""
PARTITIONS: Final = 20
COLUMNS: Final = (
    "id",
    "cast(id % 1000003 as int) as number",
    "cast(id as double) / 7 as amount",
    "concat('name-', id) as name",
    f"concat('kind-', id % {PARTITIONS}) as kind",
    "date_add(date'2024-01-01', cast(id % 365 as int)) as day",
    "timestamp_seconds(1704067200 + id % 31536000) as at",
)
"""A long, an int, a double, two strings (one of few values), a date and a timestamp."""
ONE_ROW: Final = (
    "select 1L as id, 2 as number, 0.5D as amount, 'name-1' as name, 'kind-1' as kind, "
    "date'2024-01-02' as day, timestamp'2024-01-02 03:04:05' as at"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkTable:
    """A table with the columns above, in so many files."""

    rows: int
    files: int
    partition_by: str | None = None
    """``kind``, or ``bucket``: one more column, a number of its own for every file."""
    vectors: bool = False

    @property
    def name(self) -> str:
        """The folder's name."""
        traits = f"{self.partition_by or 'flat'}{'-dv' if self.vectors else ''}"
        return f"spark{_RECIPE}-{self.rows}x{self.files}-{traits}"

    def request(self, folder: Path) -> dict[str, Any]:
        """The request to a worker to make it."""
        return {"do": "make", "folder": str(folder), "recipe": asdict(self)}


def rows(spark: SparkSession, count: int, files: int | None = None) -> DataFrame:
    """So many rows, made by Spark from nothing."""
    numbers = spark.range(0, count, 1, files) if files else spark.range(count)
    return numbers.selectExpr(*COLUMNS)


def make(spark: SparkSession, folder: Path, recipe: dict[str, Any]) -> None:
    """Write a table with Delta Spark."""
    wanted = SparkTable(**recipe)
    frame = rows(spark, wanted.rows, max(1, wanted.files))
    if wanted.partition_by == "bucket":
        frame = frame.selectExpr("*", f"cast(id div {wanted.rows // wanted.files} as int) bucket")
    writer = frame.write.format("delta")
    if wanted.partition_by:
        writer = writer.partitionBy(wanted.partition_by)
    if wanted.vectors:
        writer = writer.option("delta.enableDeletionVectors", "true")
    writer.save(str(folder))


def link_copy(source: Path, target: Path) -> None:
    """A copy whose data files are the same files; nobody writes into a file of a table."""
    shutil.copytree(source, target, copy_function=_link_or_copy)


def _link_or_copy(source: str, target: str) -> str:
    if source.endswith(".parquet"):
        os.link(source, target)
        return target
    return str(shutil.copy2(source, target))


def fabricated(data: Path, files: int) -> Path:
    """A table of so many files that exist in its log only, with the usual checkpoints to come."""
    from twinlake import Table

    commits = 100 if files >= 10_000 else 10
    recipe = TableRecipe(commits=commits, adds=files // commits, checkpoint="twinlake")
    folder = data / f"spark{_RECIPE}-fabricated-{files}"
    if not folder.exists():
        making = data / f"{folder.name}.making"
        shutil.rmtree(making, ignore_errors=True)
        shutil.copytree(table(data, recipe), making)
        opened = Table.open(making, durable=False, policy="minimal")
        opened.set_properties({"delta.checkpointInterval": "10"})
        making.rename(folder)
    return folder


FABRICATED_ROW: Final = (
    "select 1L as id, 'n' as name, 0.5D as amount, timestamp'2024-01-02 03:04:05' as ts, "
    "date'2024-01-02' as d, 'p1' as part"
)
"""A row of such a table."""


CHANGED_COLUMNS: Final = ("count(*) as n", "sum(id) as id", "max(name) as name", "sum(amount) as a")
_APPENDED: Final = "id BIGINT, name STRING, amount DOUBLE"


def appended(data: Path, appends: int, rows: int) -> Path:
    """A table with a change feed, made of so many appends of so many rows."""
    import pyarrow as pa

    from twinlake import Table

    folder = data / f"spark{_RECIPE}-appended-{appends}x{rows}"
    if folder.exists():
        return folder
    making = data / f"{folder.name}.making"
    shutil.rmtree(making, ignore_errors=True)
    table = Table.create(
        making,
        _APPENDED,
        properties={"delta.enableChangeDataFeed": "true"},
        policy="minimal",
        durable=False,
    )
    for number in range(appends):
        first = number * rows
        ids = range(first, first + rows)
        values = {
            "id": pa.array(ids, pa.int64()),
            "name": [f"name-{n}" for n in ids],
            "amount": [n / 2 for n in ids],
        }
        table = table.append(pa.table(values))
    making.rename(folder)
    return folder
