"""``write``: the rows of a frame into a table, new or not."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from twinlake.commit import CommitOptions, Operation, OperationName, ReadSet, Transaction
from twinlake.commit.plans import TableRules
from twinlake.errors import Code, UserError, listed
from twinlake.files import FileTarget, clustering_columns
from twinlake.log import CACHE
from twinlake.protocol import CLUSTERING_DOMAIN, Clustering
from twinlake.runtime import Runtime
from twinlake.spark.dml.replace_where import replace_rows
from twinlake.spark.errors import raises_spark_errors
from twinlake.spark.executor import SparkExecutor
from twinlake.spark.files.file_writer import write_files
from twinlake.spark.rows.constraints import enforce
from twinlake.spark.rows.identity import with_high_water_marks
from twinlake.spark.rows.projection import project_rows
from twinlake.spark.session import open_table, session_conf, settings_of
from twinlake.spark.spark_types import from_spark
from twinlake.table import Table, shared_store, table_exists
from twinlake.table.catalog import TABLE_HOOKS
from twinlake.table.operations import clustering_domain, new_metadata
from twinlake.table.rows import (
    RemovedFiles,
    UncommittedFiles,
    all_files,
    columns_with_values,
    commit_change,
    computed_columns,
    evolve,
    first_schema,
    refuse_missing_partitions,
    refuse_partitions_alone,
    same_partitions,
    table_after,
    table_target,
    write_metrics,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from twinlake.actions import AddFile
    from twinlake.protocol import Metadata

__all__ = ["WriteOptions", "write", "write_table"]

_MODES: Final = {
    "append": "Append",
    "overwrite": "Overwrite",
    "error": "ErrorIfExists",
    "errorifexists": "ErrorIfExists",
    "default": "ErrorIfExists",
    "ignore": "Ignore",
}
"""The modes as users spell them, and as the history does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Everything about a write that has a sensible default."""

    mode: str = "error"
    partition_by: tuple[str, ...] | None = None
    cluster_by: tuple[str, ...] = ()
    replace_where: str | None = None
    replace_where_shown: str | None = None
    """As the history shows it, where that is not as it is given."""
    merge_schema: bool = False
    overwrite_schema: bool = False
    implicit_casts: bool = False
    """Values are cast to the types of the table, as INSERT does it."""
    dynamic: bool = False
    properties: Mapping[str, object] | None = None
    user_metadata: str | None = None
    txn: tuple[str, int] | None = None
    target_file_size: int | None = None
    data_change: bool = True
    """False where the rows are those that are there, arranged in another way."""
    noted: Mapping[str, Any] = field(default_factory=dict)
    """More parameters for the history, of options without an effect."""
    operation: Operation | None = None
    """What the history says was done, where it is not a WRITE."""

    @property
    def shown_mode(self) -> str:
        """The mode as the history names it."""
        return _MODES[self.mode.lower()]

    @property
    def is_stream(self) -> bool:
        """Whether a batch of a stream is written."""
        operation = self.operation
        return operation is not None and operation.name == OperationName.STREAMING_UPDATE

    def check(self) -> None:
        """Refuse what cannot be meant, all of it at once."""
        problems = []
        if self.mode.lower() not in _MODES:
            problems.append(f"mode is {self.mode!r}, not one of append, overwrite, error, ignore")
        elif self.shown_mode != "Overwrite":
            given = {
                "replace_where": self.replace_where is not None,
                "overwrite_schema": self.overwrite_schema,
            }
            problems += [
                f"{name} goes with mode overwrite only" for name, on in given.items() if on
            ]
        if self.replace_where is not None and self.overwrite_schema:
            problems.append("overwrite_schema replaces all rows, replace_where some of them")
        if self.dynamic and self.replace_where is not None:
            problems.append("replace_where and dynamic partition overwrite exclude each other")
        if self.target_file_size is not None and self.target_file_size <= 0:
            problems.append("target_file_size must be positive")
        if problems:
            raise UserError(
                Code.INVALID_ARGUMENT,
                "The write cannot be done like that.",
                why=listed(problems),
                fix="Correct the arguments that are named.",
                fields={"problems": problems},
            )


@raises_spark_errors
def write(
    df: DataFrame,
    path: str | os.PathLike[str],
    mode: str = "error",
    *,
    partition_by: str | Sequence[str] | None = None,
    cluster_by: str | Sequence[str] = (),
    replace_where: str | None = None,
    merge_schema: bool | None = None,
    overwrite_schema: bool = False,
    partition_overwrite: str | None = None,
    properties: Mapping[str, object] | None = None,
    user_metadata: str | None = None,
    txn: tuple[str, int] | None = None,
    target_file_size: int | None = None,
) -> Table:
    """Write a frame to the table at ``path``; returns the table at its new version.

    ``mode`` is append, overwrite, error (if there is a table) or ignore. ``properties`` and
    ``cluster_by`` are those of a table that this write makes. An overwrite replaces all rows, or
    with ``replace_where`` those that match, or with ``partition_overwrite="dynamic"`` those of the
    partitions the frame has rows for. ``txn=(application, version)`` makes the write happen once
    however often it is tried.
    """
    spark = df.sparkSession
    merging = session_conf(spark, "spark.databricks.delta.schema.autoMerge.enabled", "false")
    partitions = session_conf(spark, "spark.sql.sources.partitionOverwriteMode", "static")
    options = WriteOptions(
        mode=mode,
        partition_by=None if partition_by is None else _names(partition_by),
        cluster_by=_names(cluster_by),
        replace_where=replace_where,
        merge_schema=merging.lower() == "true" if merge_schema is None else merge_schema,
        overwrite_schema=overwrite_schema,
        dynamic=_is_dynamic(partition_overwrite, partitions, replace_where, overwrite_schema),
        properties=properties,
        user_metadata=user_metadata
        or session_conf(spark, "spark.databricks.delta.commitInfo.userMetadata", "")
        or None,
        txn=txn,
        target_file_size=target_file_size,
    )
    return write_table(df, os.fspath(path), options)


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _is_dynamic(
    asked: str | None, session: str, replace_where: str | None, overwrite_schema: bool
) -> bool:
    if asked is not None and asked.lower() not in ("static", "dynamic"):
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"partition_overwrite is {asked!r}.",
            fix="Pass `static` or `dynamic`.",
            delta_class="DELTA_ILLEGAL_OPTION",
        )
    if asked is None and (replace_where is not None or overwrite_schema):
        # The session's default gives way to what the call itself says.
        return False
    return (asked or session).lower() == "dynamic"


def write_table(df: DataFrame, path: str, options: WriteOptions) -> Table:
    """Write under options that are already collected."""
    options.check()
    spark = df.sparkSession
    settings = settings_of(spark, path)
    store = shared_store(path, True, settings.options or None)
    if not table_exists(store):
        return _Creation(df, path, options).run()
    table = open_table(spark, path)
    if options.shown_mode == "Ignore":
        return table
    if options.shown_mode == "ErrorIfExists":
        raise UserError(
            Code.TABLE_EXISTS,
            f"There is already a table at {table.location}.",
            why="mode is error, which is the default",
            fix='Pass `mode="append"` or `mode="overwrite"`.',
            delta_class="DELTA_PATH_EXISTS",
            fields={"path": table.location},
        )
    return _Rows(df, table, options).run()


def _metrics(files: tuple[AddFile, ...], options: WriteOptions) -> dict[str, str]:
    """How much was written, as Delta names it for a write and for a batch of a stream."""
    found = write_metrics(files)
    if not options.is_stream:
        return found
    return {"numAddedFiles": found.pop("numFiles"), "numRemovedFiles": "0", **found}


@dataclass(frozen=True, slots=True)
class _Creation:
    """The write that makes the table."""

    df: DataFrame
    path: str
    options: WriteOptions

    def run(self) -> Table:
        spark, options = self.df.sparkSession, self.options
        settings = settings_of(spark, self.path)
        store = shared_store(self.path, True, settings.options or None)
        runtime = Runtime()
        metadata = new_metadata(
            first_schema(from_spark(self.df.schema)),
            partition_by=options.partition_by or (),
            cluster_by=options.cluster_by,
            properties={**settings.default_properties, **(options.properties or {})},
            name=None,
            description=None,
            runtime=runtime,
        )
        operation = options.operation or Operation(
            name=OperationName.WRITE,
            parameters={
                "mode": options.shown_mode,
                "partitionBy": list(metadata.partition_columns),
            },
        )
        commit = CommitOptions(
            policy=settings.policy,
            user_metadata=options.user_metadata,
            system_domains=frozenset({CLUSTERING_DOMAIN}),
            trusted_files=True,
        )
        transaction = Transaction.for_new_table(
            store, operation, runtime, TABLE_HOOKS, options=commit
        )
        CACHE.forget(store.url)
        with UncommittedFiles(store) as made:
            domain = clustering_domain(metadata, options.cluster_by) if options.cluster_by else None
            target = FileTarget.of(store, metadata, target_file_size=options.target_file_size)
            files = write_files(enforce(project_rows(self.df, metadata), metadata), target)
            made.add(*files)
            if options.txn is not None:
                transaction.set_transaction(*options.txn)
            metrics = _metrics(files, options)
            if options.shown_mode == "Overwrite":
                transaction.record(ReadSet(whole_table=True))
                metrics |= {"numRemovedFiles": "0", "numRemovedBytes": "0"}
            transaction.update_metadata(metadata).add(*([domain] if domain else []), *files)
            result = transaction.commit(metrics=metrics)
            made.keep()
        CACHE.offer(result.snapshot)
        return Table(
            result.snapshot,
            policy=settings.policy,
            runtime=Runtime(executor=SparkExecutor(spark)),
            warnings=result.warnings,
        )


@dataclass(frozen=True, slots=True)
class _Rows:
    """A write to a table that is there."""

    df: DataFrame
    table: Table
    options: WriteOptions

    def run(self) -> Table:
        options, table = self.options, self.table
        if options.txn is not None:
            app, version = options.txn
            known = table.snapshot.set_transactions.get(app)
            if known is not None and known.version >= version:
                return table
        if options.shown_mode == "Overwrite":
            TableRules.of(table.metadata).refuse_row_loss("WRITE")
        if options.cluster_by:
            self._check_clustering()
        metadata = self._metadata()
        given = self.df.columns
        computed = computed_columns(metadata, given)
        valued = columns_with_values(from_spark(self.df.schema), metadata)
        refuse_missing_partitions(metadata, [*given, *valued])
        refuse_partitions_alone(metadata, valued)
        frame = project_rows(self.df, metadata)
        frame = enforce(frame, metadata, computed=computed)
        if options.replace_where is not None:
            return self._replace(frame, metadata)
        with UncommittedFiles(table.snapshot.store) as made:
            target = table_target(table, metadata, target_file_size=options.target_file_size)
            files = write_files(frame, target)
            made.add(*files)
            marked = with_high_water_marks(metadata, files, columns=computed) or metadata
            removal = self._removal(files)
            return self._commit(files, removal, marked, made)

    def _check_clustering(self) -> None:
        """A write may repeat the clustering columns of the table; it does not change them."""
        snapshot = self.table.snapshot
        asked = Clustering.parse(
            clustering_domain(snapshot.metadata, self.options.cluster_by).configuration
        )
        if asked.columns != clustering_columns(snapshot):
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"The table is not clustered by {', '.join(self.options.cluster_by)}.",
                why="cluster_by goes with the write that makes a table; it does not change one",
                fix="Leave `cluster_by=` out.",
                delta_class="DELTA_CLUSTERING_COLUMNS_MISMATCH",
                fields={"cluster_by": list(self.options.cluster_by)},
            )

    def _metadata(self) -> Metadata:
        options = self.options
        return evolve(
            from_spark(self.df.schema),
            self.table.metadata,
            merge_schema=options.merge_schema,
            overwrite_schema=options.overwrite_schema,
            partition_by=options.partition_by,
            implicit_casts=options.implicit_casts,
        )

    def _commit_options(self) -> CommitOptions:
        return CommitOptions(policy=self.table.policy, user_metadata=self.options.user_metadata)

    def _removal(self, files: tuple[AddFile, ...]) -> RemovedFiles | None:
        if self.options.shown_mode != "Overwrite":
            return None
        if self.options.dynamic:
            return same_partitions(self.table.snapshot, files)
        return all_files(self.table.snapshot)

    def _operation(self) -> Operation:
        options = self.options
        if options.operation is not None:
            return options.operation
        parameters: dict[str, Any] = {
            "mode": options.shown_mode,
            # The argument of the call, not the columns of the table: as in Delta.
            "partitionBy": list(options.partition_by or ()),
        }
        if options.replace_where is not None:
            parameters["predicate"] = options.replace_where_shown or options.replace_where
        flags = {
            "canMergeSchema": options.merge_schema,
            "canOverwriteSchema": options.overwrite_schema,
            "isDynamicPartitionOverwrite": options.dynamic,
        }
        parameters |= {name: True for name, on in flags.items() if on}
        parameters |= options.noted
        return Operation(name=OperationName.WRITE, parameters=parameters)

    def _commit(
        self,
        files: tuple[AddFile, ...],
        removal: RemovedFiles | None,
        metadata: Metadata,
        made: UncommittedFiles,
    ) -> Table:
        table = self.table
        metrics = _metrics(files, self.options)
        actions: list[Any] = []
        if removal is not None:
            actions += removal.removes(table.runtime.clock.now_ms())
            metrics["numRemovedFiles"] = str(len(removal.files))
            if not self.options.is_stream:
                metrics["numRemovedBytes"] = str(removal.size)
        if not self.options.data_change:
            actions = [replace(one, data_change=False) for one in actions]
            files = tuple(replace(file, data_change=False) for file in files)
        result = commit_change(
            table,
            self._operation(),
            [*actions, *files],
            metadata=metadata,
            reads=None if removal is None else removal.reads,
            metrics=metrics,
            options=self._commit_options(),
            txn=self.options.txn,
            made=made,
        )
        return table.refresh() if result is None else table_after(table, result)

    def _replace(self, frame: DataFrame, metadata: Metadata) -> Table:
        return replace_rows(
            frame,
            self.table,
            self.options.replace_where or "true",
            self._operation(),
            metadata,
            options=self._commit_options(),
            txn=self.options.txn,
        )
