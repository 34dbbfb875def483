"""What is raised for a data file that Arrow does not read: damaged, or for Spark's reader only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.errors import Code, CorruptTable, UnsupportedFeature, how_to_restore

if TYPE_CHECKING:
    from twinlake.actions import AddFile

__all__ = ["NeedsSpark", "damaged_file", "refusal"]


class NeedsSpark(Exception):
    """Why a file can only be read by Spark's own reader."""


def damaged_file(add: AddFile, why: str) -> CorruptTable:
    """The error for a file that nobody can read."""
    return CorruptTable(
        Code.STORAGE,
        f"The data file {add.path} cannot be read.",
        why=why or "it is not a Parquet file",
        fix=f"Restore the file from a backup, or run {how_to_restore()} with an earlier version.",
        fields={"path": add.path},
    )


def refusal(add: AddFile, reason: NeedsSpark) -> UnsupportedFeature:
    """The error for a file that Spark reads, where there is no Spark."""
    return UnsupportedFeature(
        Code.SPARK_REQUIRED,
        f"The data file {add.path} can only be read on Spark.",
        why=str(reason),
        fix="Read the table by `twinlake.spark.scan(spark, path)`.",
        fields={"path": add.path},
    )
