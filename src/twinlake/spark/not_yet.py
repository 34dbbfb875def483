"""What Delta Spark has and this release does not: listed once, refused in one way.

The names exist so that code which only changes an import fails where it uses them, with a clear
message, and not at the import.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

from twinlake.errors import Code, UnsupportedFeature
from twinlake.spark.errors import speaks_spark

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["LATER", "Later", "changes", "not_yet", "sql"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """One call that comes later."""

    name: str
    what: str
    """What it will do."""
    meanwhile: str
    """What serves until then."""


LATER: Final[tuple[Later, ...]] = (
    Later(
        name="DeltaTable.clone",
        what="copy a table, shallow or deep",
        meanwhile="Write `DeltaTable.toDF()` to the new path with "
        "`twinlake.spark.write(frame, PATH)`.",
    ),
    Later(
        name="DeltaTable.cloneAtVersion",
        what="copy a table as it was at a version",
        meanwhile="Write `twinlake.spark.scan(spark, PATH, version=N)` to the new path.",
    ),
    Later(
        name="DeltaTable.cloneAtTimestamp",
        what="copy a table as it was at a time",
        meanwhile="Write `twinlake.spark.scan(spark, PATH, timestamp=TIME)` to the new path.",
    ),
    Later(
        name="DeltaTable.convertToDelta",
        what="make a table of a folder of Parquet files in place",
        meanwhile="Read the folder with `spark.read.parquet(FOLDER)` and write it with "
        "`twinlake.spark.write(frame, PATH)`.",
    ),
    Later(
        name="DeltaTable.generate",
        what="write manifests of the table's files for readers without Delta",
        meanwhile="List the files with `twinlake.Table.open(PATH).files()`.",
    ),
    Later(
        name="DeltaOptimizeBuilder.executeZOrderBy",
        what="compact files and order rows across them",
        meanwhile="Use `executeCompaction()`, which packs files and keeps their order.",
    ),
    Later(
        name="changes",
        what="read the change data feed",
        meanwhile="Compare two versions with `twinlake.spark.scan(spark, PATH, version=N)`.",
    ),
    Later(
        name="sql",
        what="run SQL with Delta's statements on tables by name or path",
        meanwhile="Use `DeltaTable`, `twinlake.spark.scan` and `twinlake.spark.write`; a scan "
        "can be made a temporary view with `createOrReplaceTempView(NAME)`.",
    ),
)
"""Everything that comes later; the reference page is made from it."""

_BY_NAME: Final = {later.name: later for later in LATER}


def not_yet(name: str) -> UnsupportedFeature:
    """The error of a call that comes later.

    >>> not_yet("DeltaTable.generate").what
    'DeltaTable.generate is not there yet.'
    """
    later = _BY_NAME[name]
    return UnsupportedFeature(
        Code.NOT_YET,
        f"{name} is not there yet.",
        why=f"a later release of twinlake will {later.what}",
        fix=later.meanwhile,
        fields={"name": name},
    )


@speaks_spark
def changes(
    spark: SparkSession,  # noqa: ARG001
    path: str | os.PathLike[str],  # noqa: ARG001
    *_: object,
    **__: object,
) -> DataFrame:
    """Not there yet: the change data feed of a table."""
    raise not_yet("changes")


@speaks_spark
def sql(
    spark: SparkSession,  # noqa: ARG001
    text: str,  # noqa: ARG001
    args: Sequence[object] | dict[str, object] | None = None,  # noqa: ARG001
) -> NoReturn:
    """Not there yet: SQL with Delta's statements."""
    raise not_yet("sql")
