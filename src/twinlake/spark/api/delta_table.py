"""``DeltaTable``: the names, arguments and results of ``delta.tables.DeltaTable``.

A handle holds no version: every call works on the table as it is then.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import SparkSession

from twinlake.commit import CommitOptions
from twinlake.errors import Code, TwinlakeError, UserError
from twinlake.log import CACHE, load_snapshot, version_at
from twinlake.protocol import keys
from twinlake.spark.api.argument_checks import (
    check_clone,
    check_hadoop_conf,
    check_integer,
    check_source,
    check_text,
    check_truth,
    check_versions,
)
from twinlake.spark.api.catalog import (
    CatalogTableReference,
    find_table,
    missing_table,
    table_exists_at,
)
from twinlake.spark.api.create_table import CreateMode
from twinlake.spark.api.reorg import DeltaReorgBuilder
from twinlake.spark.api.result_frames import (
    detail_frame,
    empty_result,
    history_frame,
    restore_frame,
)
from twinlake.spark.api.table_builders import DeltaTableBuilder
from twinlake.spark.delta_settings import RETENTION_CHECK, retention_check, user_metadata
from twinlake.spark.dml.assignments import check_assignments
from twinlake.spark.dml.delete import delete
from twinlake.spark.dml.merge.builder import DeltaMergeBuilder
from twinlake.spark.dml.merge.execution import MergeRequest
from twinlake.spark.dml.update import update
from twinlake.spark.errors import raises_spark_errors
from twinlake.spark.maintenance.optimize import DeltaOptimizeBuilder
from twinlake.spark.read.conditions import check_condition
from twinlake.spark.read.table_frame import table_frame
from twinlake.spark.session import check_session, open_table
from twinlake.spark.timestamps import parsed_text
from twinlake.spark.unsupported import unsupported_call
from twinlake.storage import parse_location
from twinlake.table.operations import restore_snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from twinlake.table import Table

__all__ = ["DeltaTable"]

_NO_CONF: Final[Mapping[str, str]] = MappingProxyType({})
_UNRESOLVED: Final = "UNRESOLVED_COLUMN.WITH_SUGGESTION"
"""What Spark calls a column that is not there; Delta leaves the columns of UPDATE to it."""
_TOO_SHORT: Final = "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"
_CANNOT_RESTORE: Final = {
    "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION": "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER",
    "DELTA_TIMESTAMP_GREATER_THAN_COMMIT": "DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER",
}
"""What Delta calls a missing time when it is to be restored."""


class DeltaTable:
    """A table in PySpark; get one with ``forPath``, ``forName`` or a builder."""

    def __init__(
        self, spark: SparkSession, reference: CatalogTableReference, alias: str | None = None
    ) -> None:
        self._spark = spark
        self._reference = reference
        self._alias = alias
        self._frame: DataFrame | None = None

    def __repr__(self) -> str:
        return f"DeltaTable({self._reference.name or self._reference.location!r})"

    def _current(self) -> Table:
        """The table as it is now, under the session's present settings."""
        return open_table(self._spark, self._reference.location)

    def _options(self, table: Table) -> CommitOptions:
        return CommitOptions(policy=table.policy, user_metadata=user_metadata(self._spark))

    # Opening

    @classmethod
    @raises_spark_errors
    def forPath(
        cls, sparkSession: SparkSession, path: str, hadoopConf: Mapping[str, str] = _NO_CONF
    ) -> DeltaTable:
        """The table in a folder."""
        check_session(sparkSession)
        location = parse_location(path)
        check_hadoop_conf(sparkSession, location, hadoopConf)
        if not table_exists_at(sparkSession, location.url):
            raise missing_table(path, f"there is no Delta log at {location.url}")
        return cls(sparkSession, CatalogTableReference(location=location.url))

    @classmethod
    @raises_spark_errors
    def forName(cls, sparkSession: SparkSession, tableOrViewName: str) -> DeltaTable:
        """The table with a name of the session's catalog of names, or ``delta.`/path```."""
        check_session(sparkSession)
        return cls(sparkSession, find_table(sparkSession, tableOrViewName))

    @classmethod
    @raises_spark_errors
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:
        """Whether a folder is a table, or lies inside one."""
        check_session(sparkSession)
        url = parse_location(identifier).url
        while not table_exists_at(sparkSession, url):
            scheme, _, rest = url.partition("://")
            parent = rest.rpartition("/")[0]
            if "/" not in parent:
                return False
            url = f"{scheme}://{parent}"
        return True

    @classmethod
    @raises_spark_errors
    def convertToDelta(
        cls,
        sparkSession: SparkSession,  # noqa: ARG003
        identifier: str,  # noqa: ARG003
        partitionSchema: str | StructType | None = None,  # noqa: ARG003
    ) -> DeltaTable:
        """Not supported yet."""
        raise unsupported_call("DeltaTable.convertToDelta")

    # Making

    @classmethod
    @raises_spark_errors
    def create(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """Create a table; an error if there is one."""
        return cls._builder(sparkSession, CreateMode.CREATE)

    @classmethod
    @raises_spark_errors
    def createIfNotExists(
        cls, sparkSession: SparkSession | None = None
    ) -> DeltaTableBuilder[DeltaTable]:
        """Create a table unless there is one."""
        return cls._builder(sparkSession, CreateMode.IF_NOT_EXISTS)

    @classmethod
    @raises_spark_errors
    def replace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """Replace a table; an error if there is none."""
        return cls._builder(sparkSession, CreateMode.REPLACE)

    @classmethod
    @raises_spark_errors
    def createOrReplace(
        cls, sparkSession: SparkSession | None = None
    ) -> DeltaTableBuilder[DeltaTable]:
        """Create a table, or replace the one that has the name.

        By path alone nothing is replaced, as in Delta Spark: an existing table has to match the
        definition. Use ``replace`` to replace it.
        """
        return cls._builder(sparkSession, CreateMode.CREATE_OR_REPLACE)

    @classmethod
    def _builder(
        cls, spark: SparkSession | None, creation: CreateMode
    ) -> DeltaTableBuilder[DeltaTable]:
        if spark is None:
            spark = SparkSession.getActiveSession()
        if spark is None:
            raise UserError(
                Code.INVALID_ARGUMENT,
                "There is no active Spark session.",
                fix="Pass one: `DeltaTable.create(spark)`.",
            )
        check_session(spark)
        session = spark
        return DeltaTableBuilder(session, creation, lambda reference: cls(session, reference))

    # Reading

    @raises_spark_errors
    def toDF(self) -> DataFrame:
        """The rows as they are now."""
        frame = table_frame(self._spark, self._current().snapshot)
        self._frame = frame
        return frame if self._alias is None else frame.alias(self._alias)

    @raises_spark_errors
    def alias(self, aliasName: str) -> DeltaTable:
        """The same table under a name for use in expressions."""
        check_text(aliasName, "aliasName")
        renamed = type(self)(self._spark, self._reference, aliasName)
        renamed._frame = self._frame
        return renamed

    @raises_spark_errors
    def history(self, limit: int | None = None) -> DataFrame:
        """The commits, newest first."""
        table = self._current()
        return history_frame(self._spark, table.history(None if limit is None else max(limit, 0)))

    @raises_spark_errors
    def detail(self) -> DataFrame:
        """One row about the table."""
        return detail_frame(self._spark, self._current(), name=self._reference.name)

    # Changing rows

    @raises_spark_errors
    def delete(self, condition: str | Column | None = None) -> None:
        """Delete the rows for which the condition is true; all rows without one."""
        check_condition(condition)
        table = self._current()
        delete(
            self._spark,
            table,
            condition,
            alias=self._alias,
            target=self._frame,
            options=self._options(table),
        )

    @raises_spark_errors
    def update(
        self, condition: str | Column | None = None, set: Mapping[str, str | Column] | None = None
    ) -> None:
        """Give columns new values in the rows for which the condition is true."""
        values = check_assignments(set, "'set'")
        check_condition(condition)
        self._updated(condition, values)

    def _updated(
        self,
        condition: str | Column | None,
        values: dict[str, str | Column],
        *,
        shown: list[str] | None = None,
    ) -> int:
        """Run an UPDATE; returns how many rows it changed.

        ``shown``: the predicate of the history where there is no condition.
        """
        table = self._current()
        try:
            return update(
                self._spark,
                table,
                self._without_alias(values, table),
                condition,
                alias=self._alias,
                target=self._frame,
                options=self._options(table),
                shown=shown,
            )
        except UserError as error:
            if error.code is Code.COLUMN_NOT_FOUND:
                error.delta_class = _UNRESOLVED
            raise

    def _without_alias(self, values: dict[str, Any], table: Table) -> dict[str, Any]:
        """Columns by their own names, also where they are written with the table's alias."""
        if self._alias is None or table.schema.get(self._alias) is not None:
            return values
        prefix = f"{self._alias}.".lower()
        return {
            key[len(prefix) :] if key.lower().startswith(prefix) else key: value
            for key, value in values.items()
        }

    @raises_spark_errors
    def merge(self, source: DataFrame, condition: str | Column) -> DeltaMergeBuilder:
        """Combine with another frame; add clauses to the builder and execute it."""
        check_source(source)
        if condition is None:
            raise ValueError("'condition' in merge cannot be None")
        check_condition(condition)
        request = MergeRequest(
            source=source,
            condition=condition,
            clauses=(),
            alias=self._alias,
            target=self._frame,
            options=self._options(self._current()),
        )
        return DeltaMergeBuilder(self._spark, self._current, request)

    # Files

    @raises_spark_errors
    def optimize(self) -> DeltaOptimizeBuilder:
        """Pack small files; choose partitions with the builder and execute it."""
        return DeltaOptimizeBuilder(self._spark, self._current)

    @raises_spark_errors
    def reorg(self) -> DeltaReorgBuilder:
        """Rewrite files that hold deleted rows or dropped columns; execute with the builder."""
        return DeltaReorgBuilder(self._spark, self._current)

    @raises_spark_errors
    def vacuum(self, retentionHours: float | None = None) -> DataFrame:
        """Delete files that no version within the retention needs; returns an empty frame.

        A negative number stands for the table's own retention, as in Delta Spark.
        """
        given = None if retentionHours is None else float(retentionHours)
        try:
            self._current().vacuum(
                given if given is None or given >= 0 else None,
                enforce_retention=retention_check(self._spark),
                spark=self._spark,
            )
        except UserError as error:
            if error.delta_class == _TOO_SHORT:
                # The argument that the control plane names is a setting of the session here.
                error.fix = (
                    "Keep the files for longer. Only if nobody reads or writes the table, switch "
                    f"the check off: `spark.conf.set({RETENTION_CHECK!r}, 'false')`."
                )
            raise
        return empty_result(self._spark)

    @raises_spark_errors
    def generate(self, mode: str) -> None:  # noqa: ARG002
        """Not supported yet."""
        raise unsupported_call("DeltaTable.generate")

    # Going back

    @raises_spark_errors
    def restoreToVersion(self, version: int) -> DataFrame:
        """Restore the table to a version; returns one row of metrics."""
        check_integer(version, "version")
        table = self._current()
        first = min((record.version for record in table.history()), default=table.version)
        if not first <= version <= table.version:
            raise UserError(
                Code.VERSION_NOT_FOUND,
                f"The table cannot be restored to version {version}.",
                why=f"versions {first} to {table.version} are available",
                fix="Restore one of those versions.",
                delta_class="DELTA_CANNOT_RESTORE_TABLE_VERSION",
                fields={"version": version, "first": first, "last": table.version},
            )
        return self._restore(table, version, None)

    @raises_spark_errors
    def restoreToTimestamp(self, timestamp: str) -> DataFrame:
        """Restore the table to a timestamp; returns one row of metrics."""
        check_text(timestamp, "timestamp")
        table = self._current()
        moment, shown = parsed_text(self._spark, timestamp)
        try:
            version = version_at(table.snapshot.store, table.snapshot, moment)
        except TwinlakeError as error:
            error.delta_class = _CANNOT_RESTORE.get(error.delta_class or "", error.delta_class)
            raise
        return self._restore(table, version, shown)

    def _restore(self, table: Table, version: int, timestamp: str | None) -> DataFrame:
        if version == table.version:
            return empty_result(self._spark)
        target = load_snapshot(table.snapshot.store, version)
        result = restore_snapshot(
            table.operation_context(),
            table.snapshot,
            target,
            timestamp=timestamp,
            user_metadata=user_metadata(self._spark),
        )
        CACHE.offer(result.snapshot)
        return restore_frame(self._spark, self._current().at(result.version).history(1)[0])

    # Protocol

    @raises_spark_errors
    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:
        """Raise the protocol to at least these versions; it is never lowered."""
        check_versions(readerVersion, writerVersion)
        self._current().set_properties(
            {
                keys.MIN_READER_VERSION: str(readerVersion),
                keys.MIN_WRITER_VERSION: str(writerVersion),
            }
        )

    @raises_spark_errors
    def addFeatureSupport(self, featureName: str) -> None:
        """Add a table feature to the protocol without switching it on."""
        check_text(featureName, "featureName")
        self._current().set_properties(keys.support(featureName))

    @raises_spark_errors
    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None:
        """Drop a table feature; files that need it are rewritten first."""
        check_text(featureName, "featureName")
        if truncateHistory is not None:
            check_truth(truncateHistory, "truncateHistory")
        self._current().drop_feature(
            featureName, truncate_history=bool(truncateHistory), spark=self._spark
        )

    # Copies

    @raises_spark_errors
    def clone(
        self,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """Not supported yet."""
        check_clone(target, isShallow, replace, properties)
        raise unsupported_call("DeltaTable.clone")

    @raises_spark_errors
    def cloneAtVersion(
        self,
        version: int,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """Not supported yet."""
        check_integer(version, "version")
        check_clone(target, isShallow, replace, properties)
        raise unsupported_call("DeltaTable.cloneAtVersion")

    @raises_spark_errors
    def cloneAtTimestamp(
        self,
        timestamp: str,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """Not supported yet."""
        check_text(timestamp, "timestamp")
        check_clone(target, isShallow, replace, properties)
        raise unsupported_call("DeltaTable.cloneAtTimestamp")
