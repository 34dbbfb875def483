"""What the options of a write ask for, by the names of Delta's options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import ParseException

from twinlake.errors import Code, UserError
from twinlake.spark.delta_options import (
    OptionUse,
    OptionValues,
    illegal_option,
    table_properties,
)
from twinlake.spark.delta_settings import user_metadata
from twinlake.spark.dml.write import WriteOptions, write_table
from twinlake.spark.session import session_conf

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["WriteRequest"]

_PARTITION_MODES: Final = ("static", "dynamic")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest:
    """A write by DataFrameWriter or DataFrameWriterV2."""

    values: OptionValues
    properties: Mapping[str, str]
    partition_by: tuple[str, ...] | None = None
    cluster_by: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        options: Mapping[str, str | None],
        *,
        partition_by: tuple[str, ...] | None = None,
        cluster_by: tuple[str, ...] = (),
    ) -> WriteRequest:
        """From options as they were given."""
        values = OptionValues.of(options)
        values.warn_of_unknown(OptionUse.WRITE)
        return cls(
            values=values,
            properties=table_properties(options),
            partition_by=partition_by,
            cluster_by=cluster_by,
        )

    def options(self, spark: SparkSession, mode: str) -> WriteOptions:
        """The arguments of ``write``; what cannot be meant has Delta's class."""
        values = self.values
        where, dynamic = values.text("replaceWhere"), self._dynamic(spark)
        overwrites = mode.lower() == "overwrite"
        if where is not None and self._asks_dynamic():
            raise UserError(
                Code.INVALID_ARGUMENT,
                "A 'replaceWhere' expression and 'partitionOverwriteMode'='dynamic' "
                "cannot both be set.",
                why="each of them says which rows are replaced",
                fix="Leave the option `partitionOverwriteMode` or `replaceWhere` out.",
                delta_class="DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE",
            )
        overwrite_schema = values.truth("overwriteSchema") or False
        merging = values.truth("mergeSchema")
        if merging is None:
            setting = "spark.databricks.delta.schema.autoMerge.enabled"
            merging = session_conf(spark, setting, "false").lower() == "true"
        noted: dict[str, Any] = {}
        if overwrite_schema and (where is not None or not overwrites):
            # Delta puts these into the history, and they change nothing.
            noted["canOverwriteSchema"] = True
        if where is not None and not overwrites:
            noted["predicate"] = where
        return WriteOptions(
            mode=mode,
            partition_by=self.partition_by,
            cluster_by=self.cluster_by,
            replace_where=where if overwrites else None,
            merge_schema=merging,
            overwrite_schema=overwrite_schema and overwrites and where is None,
            dynamic=dynamic and where is None and not overwrite_schema,
            properties=self.properties,
            user_metadata=values.text("userMetadata") or user_metadata(spark),
            txn=values.txn(),
            data_change=values.truth("dataChange") is not False,
            noted=noted,
        )

    def check_partitions(self, frame: DataFrame) -> None:
        """Refuse to make a table partitioned by a column that the frame lacks."""
        given = {name.lower() for name in frame.columns}
        for name in self.partition_by or ():
            if name.lower() not in given:
                raise UserError(
                    Code.SCHEMA_INVALID,
                    f"Partition column `{name}` not found in schema {frame.columns}.",
                    why="a table is partitioned by columns of its own",
                    fix="Name columns of the frame in `partitionBy(...)`.",
                    delta_class="DELTA_PARTITION_COLUMN_NOT_FOUND",
                    fields={"column": name},
                )

    def write(self, frame: DataFrame, path: str, mode: str) -> None:
        """Write to a path, as ``write`` does."""
        self.check_partitions(frame)
        options = self.options(frame.sparkSession, mode)
        try:
            write_table(frame, path, options)
        except ParseException as error:
            if options.replace_where is None:
                raise
            raise UserError(
                Code.PREDICATE_INVALID,
                f"Cannot recognize the predicate '{options.replace_where}'.",
                why=str(error).strip().splitlines()[0],
                fix="Correct the option `replaceWhere`.",
                delta_class="DELTA_FAILED_RECOGNIZE_PREDICATE",
                fields={"predicate": options.replace_where},
            ) from error

    def _asks_dynamic(self) -> bool:
        text = self.values.text("partitionOverwriteMode")
        if text is not None and text.lower() not in _PARTITION_MODES:
            raise illegal_option("partitionOverwriteMode", text, "it is neither static nor dynamic")
        return text is not None and text.lower() == "dynamic"

    def _dynamic(self, spark: SparkSession) -> bool:
        if self.values.has("partitionOverwriteMode"):
            return self._asks_dynamic()
        if self.values.has("replaceWhere"):
            return False
        setting = "spark.sql.sources.partitionOverwriteMode"
        return session_conf(spark, setting, "static").lower() == "dynamic"
