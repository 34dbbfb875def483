"""CREATE and REPLACE of a table with the rows of a frame, in one commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from twinlake.commit import CommitOptions, Operation, OperationName, ReadSet, Transaction
from twinlake.commit.plans import TableRules
from twinlake.files import FileTarget
from twinlake.log import CACHE
from twinlake.protocol import CLUSTERING_DOMAIN, keys, strip_protocol_keys
from twinlake.runtime import Runtime
from twinlake.spark.api.catalog import table_exists_at
from twinlake.spark.api.create_table import (
    CreateMode,
    CreateTarget,
    already_there,
    kept_properties,
    not_empty,
    not_there,
    row_id_columns,
)
from twinlake.spark.delta_settings import user_metadata
from twinlake.spark.files.file_writer import write_files
from twinlake.spark.rows.constraints import enforce
from twinlake.spark.rows.projection import project_rows
from twinlake.spark.session import check_session, open_table, settings_of
from twinlake.spark.spark_types import from_spark
from twinlake.table import shared_store
from twinlake.table.catalog import TABLE_HOOKS
from twinlake.table.operations import clustering_domain, new_metadata
from twinlake.table.rows import (
    UncommittedFiles,
    all_files,
    first_schema,
    refuse_duplicates,
    write_metrics,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from twinlake.protocol import Metadata
    from twinlake.spark.api.create_table import TableDefinition
    from twinlake.table import Table
    from twinlake.table.rows import RemovedFiles

__all__ = ["create_as_select"]

_OPERATIONS: Final = {
    CreateMode.CREATE: OperationName.CREATE_TABLE_AS_SELECT,
    CreateMode.IF_NOT_EXISTS: OperationName.CREATE_TABLE_AS_SELECT,
    CreateMode.REPLACE: OperationName.REPLACE_TABLE_AS_SELECT,
    CreateMode.CREATE_OR_REPLACE: OperationName.CREATE_OR_REPLACE_TABLE_AS_SELECT,
}


def create_as_select(
    spark: SparkSession,
    how: CreateMode,
    asked: TableDefinition,
    rows: DataFrame,
    *,
    note: str | None = None,
    noted: Mapping[str, Any] | None = None,
) -> None:
    """Create or replace a table with the columns and rows of a frame.

    ``asked`` names no columns. ``note`` goes into the commit, ``noted`` to the parameters of the
    history.
    """
    check_session(spark)
    target = CreateTarget.of(spark, asked)
    there = table_exists_at(spark, target.location)
    exists = there if target.name is None else target.registered
    if exists and how is CreateMode.IF_NOT_EXISTS:
        return
    if exists and how is CreateMode.CREATE:
        raise already_there(target.shown)
    if not exists and how is CreateMode.REPLACE:
        raise not_there(target.shown)
    creation = _Creation(
        spark=spark,
        how=how,
        asked=asked,
        rows=rows,
        target=target,
        note=note or user_metadata(spark),
        noted=noted or {},
    )
    if exists and there:
        creation.replace()
    else:
        creation.create()
    if target.name is not None and not target.registered:
        target.names.register(str(target.name), target.location)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Creation:
    """One new table, or one in the place of another."""

    spark: SparkSession
    how: CreateMode
    asked: TableDefinition
    rows: DataFrame
    target: CreateTarget
    note: str | None
    noted: Mapping[str, Any]

    def create(self) -> None:
        """Make a table where nothing is."""
        settings = settings_of(self.spark, self.target.location)
        store = shared_store(self.target.location, True, settings.options or None)
        if next(iter(store.list_from("")), None) is not None:
            raise not_empty(self.how, self.target)
        runtime = Runtime()
        metadata = self._metadata(settings.default_properties, runtime)
        transaction = Transaction.for_new_table(
            store,
            self._operation(metadata),
            runtime,
            TABLE_HOOKS,
            options=self._options(settings.policy),
        )
        CACHE.forget(store.url)
        with UncommittedFiles(store) as made:
            self._commit(transaction, FileTarget.of(store, metadata), metadata, made, None)

    def replace(self) -> None:
        """Give a table other columns and rows."""
        table = open_table(self.spark, self.target.location)
        settings = settings_of(self.spark, self.target.location)
        defaults = {**settings.default_properties, **kept_properties(table.metadata)}
        metadata = self._metadata(defaults, table.runtime, replaces=table.metadata)
        removal = all_files(table.snapshot)
        if removal.files:
            TableRules.of(table.metadata).refuse_row_loss(str(_OPERATIONS[self.how]))
        transaction = Transaction(
            table.snapshot,
            self._operation(metadata),
            table.runtime,
            TABLE_HOOKS,
            options=self._options(table.policy),
        )
        transaction.record(removal.reads)
        store = table.snapshot.store
        with UncommittedFiles(store) as made:
            target = FileTarget.of(store, metadata, protocol=table.protocol)
            self._commit(transaction, target, metadata, made, (table, removal))

    def _commit(
        self,
        transaction: Transaction,
        target: FileTarget,
        metadata: Metadata,
        made: UncommittedFiles,
        before: tuple[Table, RemovedFiles] | None,
    ) -> None:
        files = write_files(enforce(project_rows(self.rows, metadata), metadata), target)
        made.add(*files)
        transaction.update_metadata(metadata)
        had_clustering = before is not None and CLUSTERING_DOMAIN in before[0].snapshot.domains
        if self.asked.cluster_by or had_clustering:
            transaction.add(clustering_domain(metadata, self.asked.cluster_by))
        metrics = write_metrics(files)
        if before is not None:
            table, removal = before
            transaction.add(*removal.removes(table.runtime.clock.now_ms()))
            metrics["numRemovedFiles"] = str(len(removal.files))
            metrics["numRemovedBytes"] = str(removal.size)
        elif self.how is CreateMode.CREATE_OR_REPLACE:
            transaction.record(ReadSet(whole_table=True))
            metrics |= {"numRemovedFiles": "0", "numRemovedBytes": "0"}
        result = transaction.add(*files).commit(metrics=metrics)
        made.keep()
        CACHE.offer(result.snapshot)

    def _metadata(
        self,
        defaults: Mapping[str, str],
        runtime: Runtime,
        *,
        replaces: Metadata | None = None,
    ) -> Metadata:
        schema = from_spark(self.rows.schema)
        refuse_duplicates(schema)
        metadata = new_metadata(
            first_schema(schema),
            partition_by=self.asked.partition_by,
            cluster_by=self.asked.cluster_by,
            properties={**defaults, **self.asked.properties},
            name=None,
            description=self.asked.comment,
            runtime=runtime,
            replaces=replaces,
        )
        if replaces is None or not metadata.flag(keys.ENABLE_ROW_TRACKING):
            return metadata
        return metadata.with_configuration(row_id_columns(replaces))

    def _operation(self, metadata: Metadata) -> Operation:
        return Operation(
            name=_OPERATIONS[self.how],
            parameters={
                "partitionBy": list(metadata.partition_columns),
                "clusterBy": list(self.asked.cluster_by),
                "description": self.asked.comment,
                "isManaged": "true" if self.target.managed else "false",
                "properties": strip_protocol_keys(metadata.configuration),
                **self.noted,
            },
        )

    def _options(self, policy: str) -> CommitOptions:
        return CommitOptions(
            policy=policy,
            user_metadata=self.note,
            system_domains=frozenset({CLUSTERING_DOMAIN}),
            trusted_files=True,
        )
