"""Records of the control plane as the frames that Delta Spark's ``DeltaTable`` returns.

Columns, their order and their types are those of Delta Spark 4.4.0, so that code which picks
columns out of ``history()`` or ``detail()`` goes on working.
"""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any, Final

import msgspec
from pyspark.sql.types import StructType

from twinlake.spark.read.file_list import hadoop_root
from twinlake.table import describe

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from twinlake.log import CommitRecord
    from twinlake.table import Table

__all__ = [
    "DETAIL_SCHEMA",
    "HISTORY_SCHEMA",
    "RESTORE_SCHEMA",
    "detail_frame",
    "empty_result",
    "history_frame",
    "restore_frame",
]

HISTORY_SCHEMA: Final = (
    "version BIGINT, timestamp TIMESTAMP, userId STRING, userName STRING, operation STRING, "
    "operationParameters MAP<STRING, STRING>, "
    "job STRUCT<jobId: STRING, jobName: STRING, jobRunId: STRING, runId: STRING, "
    "jobOwnerId: STRING, triggerType: STRING>, "
    "notebook STRUCT<notebookId: STRING>, clusterId STRING, readVersion BIGINT, "
    "isolationLevel STRING, isBlindAppend BOOLEAN, operationMetrics MAP<STRING, STRING>, "
    "userMetadata STRING, engineInfo STRING"
)
DETAIL_SCHEMA: Final = (
    "format STRING, id STRING, name STRING, description STRING, location STRING, "
    "createdAt TIMESTAMP, lastModified TIMESTAMP, partitionColumns ARRAY<STRING>, "
    "clusteringColumns ARRAY<STRING>, numFiles BIGINT, sizeInBytes BIGINT, "
    "properties MAP<STRING, STRING>, minReaderVersion INT, minWriterVersion INT, "
    "tableFeatures ARRAY<STRING>"
)
RESTORE_SCHEMA: Final = (
    "table_size_after_restore BIGINT, num_of_files_after_restore BIGINT, "
    "num_removed_files BIGINT, num_restored_files BIGINT, removed_files_size BIGINT, "
    "restored_files_size BIGINT"
)
_RESTORE_METRICS: Final = (
    "tableSizeAfterRestore",
    "numOfFilesAfterRestore",
    "numRemovedFiles",
    "numRestoredFiles",
    "removedFilesSize",
    "restoredFilesSize",
)
_JOB: Final = ("jobId", "jobName", "jobRunId", "runId", "jobOwnerId", "triggerType")
_NOTEBOOK: Final = ("notebookId",)


def history_frame(spark: SparkSession, records: Iterable[CommitRecord]) -> DataFrame:
    """``DeltaTable.history()``: one row a version, newest first."""
    return _frame(spark, [_history_row(record) for record in records], HISTORY_SCHEMA)


def detail_frame(spark: SparkSession, table: Table, *, name: str | None) -> DataFrame:
    """``DeltaTable.detail()``: one row; ``name`` is the one the table was opened by."""
    detail = describe(table.snapshot)
    row = (
        "delta",
        detail.id,
        name if name is not None else detail.name,
        detail.description,
        hadoop_root(detail.location),
        None if detail.created_at is None else _moment(detail.created_at),
        _moment(detail.last_modified),
        list(detail.partition_columns),
        list(detail.clustering_columns),
        detail.num_files,
        detail.size_in_bytes,
        dict(detail.properties),
        detail.min_reader_version,
        detail.min_writer_version,
        list(detail.features),
    )
    return _frame(spark, [row], DETAIL_SCHEMA)


def restore_frame(spark: SparkSession, record: CommitRecord) -> DataFrame:
    """``DeltaTable.restoreTo...()``: one row with the metrics of the commit."""
    metrics = record.operation_metrics
    row = tuple(_number(metrics.get(name)) for name in _RESTORE_METRICS)
    return _frame(spark, [row], RESTORE_SCHEMA)


def empty_result(spark: SparkSession) -> DataFrame:
    """No rows and no columns, as Delta returns from calls without a result."""
    return spark.createDataFrame([], StructType([]))


def _frame(spark: SparkSession, rows: Sequence[tuple[Any, ...]], schema: str) -> DataFrame:
    return spark.createDataFrame(list(rows), schema)


def _history_row(record: CommitRecord) -> tuple[Any, ...]:
    return (
        record.version,
        _moment(record.timestamp),
        record.user_id,
        record.user_name,
        record.operation,
        None if record.operation is None else _texts(record.operation_parameters),
        _group(record.extra.get("job"), _JOB),
        _group(record.extra.get("notebook"), _NOTEBOOK),
        _text(record.extra.get("clusterId")),
        record.read_version,
        record.isolation_level,
        record.is_blind_append,
        None if record.operation is None else _texts(record.operation_metrics),
        record.user_metadata,
        record.engine_info,
    )


def _texts(values: Mapping[str, Any]) -> dict[str, str | None]:
    return {key: _text(value) for key, value in values.items()}


def _text(value: Any) -> str | None:
    """A value of ``commitInfo`` as Delta shows it: text as it is, anything else as JSON."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, msgspec.Raw):
        return _text(json.loads(bytes(value)))
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _group(value: Any, names: Sequence[str]) -> tuple[str | None, ...] | None:
    if isinstance(value, msgspec.Raw):
        value = json.loads(bytes(value))
    if not isinstance(value, dict):
        return None
    return tuple(_text(value.get(name)) for name in names)


def _number(value: Any) -> int | None:
    return None if value is None else int(value)


def _moment(epoch_ms: int) -> dt.datetime:
    """An instant, whatever the time zone of the session or of this process."""
    return dt.datetime.fromtimestamp(epoch_ms / 1000, tz=dt.UTC)
