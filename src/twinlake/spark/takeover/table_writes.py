"""Writes to tables by name: what there is under the name decides what is done."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F
from pyspark.sql.types import NumericType

from twinlake.commit import Operation, OperationName
from twinlake.errors import Code, UserError
from twinlake.protocol import strip_protocol_keys
from twinlake.spark.api.catalog import managed_location, table_exists_at
from twinlake.spark.api.column_definition import columns_from_schema
from twinlake.spark.api.create_table import CreateMode, TableDefinition
from twinlake.spark.dml.write import write_table
from twinlake.spark.session import open_table
from twinlake.spark.spark_types import from_spark, spark_type
from twinlake.spark.takeover.names import path_in
from twinlake.spark.takeover.paths import missing_path
from twinlake.table.rows import first_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from twinlake.spark.takeover.names import NamedTable
    from twinlake.spark.takeover.write_request import WriteRequest

__all__ = ["create", "insert_by_position", "save_as_table", "write_named"]

_OVERWRITING: Final[Mapping[str, Any]] = {"isV1SaveAsTableOverwrite": True}


def save_as_table(
    frame: DataFrame, name: str, found: NamedTable | None, request: WriteRequest, mode: str
) -> None:
    """``saveAsTable``: make the table, or write to the one that has the name."""
    asked = mode.lower()
    exists = found is not None and (
        not found.by_path or table_exists_at(frame.sparkSession, found.location)
    )
    if not exists or found is None:
        how = CreateMode.CREATE_OR_REPLACE if asked == "overwrite" else CreateMode.CREATE
        create(frame, name, request, how, noted=_OVERWRITING if asked == "overwrite" else {})
    elif asked == "append" or (asked == "overwrite" and _replaces_some(frame, request)):
        write_named(frame, found, request, asked)
    elif asked == "overwrite" and request.values.truth("overwriteSchema"):
        noted = {**_OVERWRITING, "canOverwriteSchema": True}
        create(frame, name, request, CreateMode.CREATE_OR_REPLACE, noted=noted)
    elif asked == "overwrite":
        _overwrite(frame, found, request)
    elif asked != "ignore":
        create(frame, name, request, CreateMode.CREATE)


def _overwrite(frame: DataFrame, found: NamedTable, request: WriteRequest) -> None:
    """Other rows under the same schema, which Delta calls a replaced table all the same."""
    spark = frame.sparkSession
    table = open_table(spark, found.location)
    operation = Operation(
        name=OperationName.CREATE_OR_REPLACE_TABLE_AS_SELECT,
        parameters={
            "partitionBy": list(table.metadata.partition_columns),
            "clusterBy": [],
            "description": table.metadata.description,
            "isManaged": "true" if is_managed(spark, found) else "false",
            "properties": strip_protocol_keys(table.metadata.configuration),
            **_OVERWRITING,
        },
    )
    options = replace(request.options(spark, "overwrite"), operation=operation)
    write_table(frame, found.location, options)


def _replaces_some(frame: DataFrame, request: WriteRequest) -> bool:
    options = request.options(frame.sparkSession, "overwrite")
    return options.replace_where is not None or options.dynamic


def create(
    frame: DataFrame,
    name: str,
    request: WriteRequest,
    how: CreateMode,
    *,
    properties: Mapping[str, str] | None = None,
    noted: Mapping[str, Any] | None = None,
) -> None:
    """Make or replace the table with the rows of the frame."""
    path = path_in(name)
    request.check_partitions(frame)
    asked = TableDefinition(
        name=None if path is not None else name,
        location=path if path is not None else request.values.text("path"),
        partition_by=request.partition_by or (),
        cluster_by=request.cluster_by,
        columns=columns_from_schema(spark_type(first_schema(from_spark(frame.schema)))),
        properties={**request.properties, **(properties or {})},
        rows=frame,
        note=request.values.text("userMetadata"),
        noted=noted or {},
    )
    how.run(frame.sparkSession, asked)


def write_named(frame: DataFrame, found: NamedTable, request: WriteRequest, mode: str) -> None:
    """Write to a table that has to be there; columns are taken by name."""
    _check_there(frame.sparkSession, found)
    request.write(frame, found.location, mode)


def insert_by_position(
    frame: DataFrame, found: NamedTable, request: WriteRequest, mode: str
) -> None:
    """Write to a table that has to be there; columns are taken by their places."""
    spark = frame.sparkSession
    _check_there(spark, found)
    fields = spark_type(open_table(spark, found.location).schema).fields
    given = frame.schema.fields
    if len(given) != len(fields):
        few = "not enough" if len(given) < len(fields) else "too many"
        raise UserError(
            Code.SCHEMA_INVALID,
            f"Cannot write to the table at {found.location}: {few} data columns.",
            why=f"the table has {len(fields)} columns and the frame has {len(given)}",
            fix="Select the columns of the table in their order, or use `saveAsTable`, which "
            "goes by names.",
            delta_class="DELTA_INSERT_COLUMN_ARITY_MISMATCH",
            fields={"table": len(fields), "frame": len(given)},
        )
    if frame.columns != [field.name for field in fields] or any(
        one.dataType != other.dataType for one, other in zip(given, fields, strict=True)
    ):
        frame = frame.toDF(*(f"_{place}" for place in range(len(fields))))
        frame = frame.select(
            *(
                _stored(F.col(f"_{place}"), one.dataType, field.dataType).alias(field.name)
                for place, (one, field) in enumerate(zip(given, fields, strict=True))
            )
        )
    write_table(frame, found.location, request.options(spark, mode))


def _stored(column: Any, given: Any, wanted: Any) -> Any:
    """Numbers become the table's kind of number, as INSERT has it; they fail if they do not fit."""
    numbers = isinstance(given, NumericType) and isinstance(wanted, NumericType)
    return column.cast(wanted) if numbers and given != wanted else column


def is_managed(spark: SparkSession, found: NamedTable) -> bool:
    """Whether a table is where Spark puts tables that are created by name alone."""
    return found.name is not None and found.location == managed_location(spark, found.name)


def _check_there(spark: SparkSession, found: NamedTable) -> None:
    if not table_exists_at(spark, found.location):
        raise missing_path(spark, found.location)
