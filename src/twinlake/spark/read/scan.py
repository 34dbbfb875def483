"""``scan``: a table, or a version of it, as a DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from twinlake.errors import Code, UserError, how_to_set
from twinlake.protocol import keys
from twinlake.schema import Struct
from twinlake.spark.errors import raises_spark_errors
from twinlake.spark.read.columns import visible_field
from twinlake.spark.read.table_frame import matching_files
from twinlake.spark.read.table_scan import ROW_COMMIT_VERSION, ROW_ID, Scan
from twinlake.spark.session import open_table
from twinlake.spark.spark_types import from_spark, quoted, spark_type

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from twinlake.log import Snapshot

__all__ = ["scan", "shown_as", "without_field_ids"]

_SHOWN_AS: Final = {ROW_ID: "_row_id", ROW_COMMIT_VERSION: "_row_commit_version"}


@raises_spark_errors
def scan(
    spark: SparkSession,
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    where: str | Column | None = None,
    version: int | None = None,
    timestamp: Any = None,
    row_ids: bool = False,
) -> DataFrame:
    """The rows of a table; only files that may hold rows of ``where`` are read.

    ``row_ids`` adds the stable id of each row and the version that last changed it, as
    ``_row_id`` and ``_row_commit_version``, for tables with row tracking.
    """
    snapshot = open_table(spark, path, version, timestamp).snapshot
    if row_ids:
        _check_row_ids(snapshot)
    files = snapshot.files() if where is None else matching_files(spark, snapshot, where)
    frame = Scan(snapshot=snapshot, files=files, row_ids=row_ids).frame(spark)
    if row_ids:
        frame = frame.withColumnsRenamed(_SHOWN_AS)
    if where is not None:
        frame = frame.where(where)
    if columns is not None:
        extra = tuple(_SHOWN_AS.values()) if row_ids else ()
        frame = frame.select(*[quoted(name) for name in (*columns, *extra)])
    return without_field_ids(frame)


def _check_row_ids(snapshot: Snapshot) -> None:
    if not snapshot.metadata.flag(keys.ENABLE_ROW_TRACKING):
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"The rows of table {snapshot.metadata.label} have no ids.",
            why="row tracking is not on in this version",
            fix=f"Run {how_to_set(keys.ENABLE_ROW_TRACKING, 'true')}, or leave `row_ids=` out.",
            fields={"version": snapshot.version},
        )


def without_field_ids(frame: DataFrame) -> DataFrame:
    """The frame, showing a schema without the ids by which nested fields are found.

    They have to stay on the columns themselves: a cast that took them off would also keep Spark
    from reading only the fields that are used.
    """
    return shown_as(frame, spark_type(_shown(from_spark(frame.schema))))


def shown_as(frame: DataFrame, schema: StructType) -> DataFrame:
    """The frame, showing this schema, which differs in metadata and nullability only."""
    # Where PySpark keeps the schema it has read once: since 4.1 under its own name.
    vars(frame).update(schema=schema, _schema=schema)
    return frame


def _shown(schema: Struct) -> Struct:
    return Struct(tuple(visible_field(field) for field in schema))
