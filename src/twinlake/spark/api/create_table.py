"""CREATE and REPLACE of a table from its definition, as the builders of ``DeltaTable`` ask for it.

A table that is created where one exists is not replaced, unless its name or an explicit REPLACE
asks for it: the existing table has to match the definition. ``createOrReplace`` by path alone does
the same in Delta Spark, rows and all.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from twinlake.commit import CommitOptions, Operation, OperationName, ReadSet, Transaction
from twinlake.commit.plans import TableRules
from twinlake.errors import Code, UserError, listed
from twinlake.files import FileTarget
from twinlake.log import CACHE
from twinlake.protocol import CLUSTERING_DOMAIN, keys, strip_protocol_keys
from twinlake.runtime import Runtime
from twinlake.schema import IDENTITY_HIGH_WATER_MARK_KEY, Struct, strip_mapping
from twinlake.spark.api.catalog import (
    CatalogTableReference,
    managed_location,
    session_catalog,
    table_exists_at,
    without_spark_catalog,
)
from twinlake.spark.api.column_definition import ColumnDefinition, table_schema
from twinlake.spark.delta_settings import user_metadata
from twinlake.spark.files.file_writer import write_files
from twinlake.spark.rows.constraints import enforce
from twinlake.spark.rows.projection import project_rows
from twinlake.spark.session import check_session, open_table, settings_of
from twinlake.storage import parse_location
from twinlake.table import clustering_columns, shared_store
from twinlake.table.catalog import TABLE_HOOKS
from twinlake.table.operations import clustering_domain, new_metadata
from twinlake.table.rows import UncommittedFiles, all_files, write_metrics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from twinlake.protocol import Metadata
    from twinlake.storage import Store
    from twinlake.table import Names, Table, TableName

__all__ = ["CreateMode", "TableDefinition"]

_KEPT_IN_REPLACE: Final[tuple[str, ...]] = (
    keys.ENABLE_DELETION_VECTORS,
    keys.ENABLE_ROW_TRACKING,
)
"""Properties that a replaced table keeps unless the definition sets them."""
_ROW_ID_COLUMNS: Final[tuple[str, ...]] = (
    keys.MATERIALIZED_ROW_ID,
    keys.MATERIALIZED_ROW_COMMIT_VERSION,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDefinition:
    """The definition of a table."""

    name: str | None = None
    location: str | None = None
    comment: str | None = None
    columns: tuple[ColumnDefinition, ...] = ()
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    rows: DataFrame | None = None
    """The rows to put into it at once, where it is created as the result of a query."""
    note: str | None = None
    """For the commit, instead of the session's."""
    noted: Mapping[str, Any] = field(default_factory=dict)
    """More parameters for the history."""

    def changed(self, **changes: Any) -> TableDefinition:
        """With other values."""
        return replace(self, **changes)


class CreateMode(Enum):
    """The four ways to create a table."""

    CREATE = "create"
    IF_NOT_EXISTS = "createIfNotExists"
    REPLACE = "replace"
    CREATE_OR_REPLACE = "createOrReplace"

    def run(self, spark: SparkSession, asked: TableDefinition) -> CatalogTableReference:
        """Create or replace the table; its name and location."""
        check_session(spark)
        target = _Target.of(spark, asked)
        if target.name is None:
            _at_path(self, spark, asked, target)
        else:
            _by_name(self, spark, asked, target)
        return CatalogTableReference(
            location=target.location, name=None if target.name is None else str(target.name)
        )

    def operation(self, *, from_rows: bool) -> OperationName:
        """Its name in the history."""
        return (_OPERATIONS_AS_SELECT if from_rows else _OPERATIONS)[self]

    @property
    def replaces(self) -> bool:
        """Whether a table that has the name is replaced."""
        return self in (CreateMode.REPLACE, CreateMode.CREATE_OR_REPLACE)


_OPERATIONS: Final = {
    CreateMode.CREATE: OperationName.CREATE_TABLE,
    CreateMode.IF_NOT_EXISTS: OperationName.CREATE_TABLE,
    CreateMode.REPLACE: OperationName.REPLACE_TABLE,
    CreateMode.CREATE_OR_REPLACE: OperationName.CREATE_OR_REPLACE_TABLE,
}
_OPERATIONS_AS_SELECT: Final = {
    CreateMode.CREATE: OperationName.CREATE_TABLE_AS_SELECT,
    CreateMode.IF_NOT_EXISTS: OperationName.CREATE_TABLE_AS_SELECT,
    CreateMode.REPLACE: OperationName.REPLACE_TABLE_AS_SELECT,
    CreateMode.CREATE_OR_REPLACE: OperationName.CREATE_OR_REPLACE_TABLE_AS_SELECT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """The name and location that a definition asks for."""

    names: Names
    location: str
    name: TableName | None
    registered: bool
    managed: bool

    @classmethod
    def of(cls, spark: SparkSession, asked: TableDefinition) -> _Target:
        names = session_catalog(spark)
        if asked.name is None and asked.location is None:
            raise UserError(
                Code.INVALID_ARGUMENT,
                "A table needs a name or a location.",
                fix="Call `tableName(NAME)`, `location(PATH)` or both of the builder.",
                delta_class="DELTA_CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION",
            )
        given = None if asked.location is None else parse_location(asked.location).url
        if asked.name is None:
            return cls(names=names, location=str(given), name=None, registered=False, managed=False)
        wanted = without_spark_catalog(asked.name)
        full = names.parse(wanted)
        if full.namespace == "delta" and "/" in full.table:
            return cls._of_path(names, wanted, given)
        registered = names.exists(wanted)
        if not registered and full.namespace not in names.namespaces():
            raise names.missing_namespace(full.namespace)
        location = names.locate(wanted) if registered else given
        if registered and given is not None and given != location:
            raise _misplaced(asked.name, str(location), given)
        return cls(
            names=names,
            location=location or managed_location(spark, full),
            name=full,
            registered=registered,
            managed=location is None or location == managed_location(spark, full),
        )

    @classmethod
    def _of_path(cls, names: Names, wanted: str, given: str | None) -> _Target:
        location = names.locate(wanted)
        if given is not None and given != location:
            raise _misplaced(wanted, location, given)
        return cls(names=names, location=location, name=None, registered=False, managed=False)


def _misplaced(name: str, location: str, given: str) -> UserError:
    return UserError(
        Code.INVALID_ARGUMENT,
        f"{name} is at {location}, not at {given}.",
        fix="Leave the location out, or use another name.",
        delta_class="DELTA_CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH",
        fields={"name": name, "location": location, "given": given},
    )


def _at_path(how: CreateMode, spark: SparkSession, asked: TableDefinition, target: _Target) -> None:
    shown = f"`delta`.`{target.location}`"
    if table_exists_at(spark, target.location):
        if how is CreateMode.CREATE:
            raise _already_there(shown)
        if how is CreateMode.REPLACE or (how.replaces and asked.rows is not None):
            _replace(how, spark, asked, target)
        elif how is CreateMode.CREATE_OR_REPLACE:
            _check_columns_given(asked)
            _check_same(spark, asked, target)
        return
    if how is CreateMode.REPLACE:
        raise _not_there(shown)
    _create(how, spark, asked, target)


def _by_name(how: CreateMode, spark: SparkSession, asked: TableDefinition, target: _Target) -> None:
    there = table_exists_at(spark, target.location)
    if target.registered:
        if how is CreateMode.CREATE:
            raise _already_there(str(target.name))
        if how.replaces:
            act = _replace if there else _create
            act(how, spark, asked, target)
        return
    if how is CreateMode.REPLACE:
        raise _not_there(str(target.name))
    if there and asked.rows is not None:
        raise _not_empty(how, target)
    if there:
        _check_same(spark, asked, target)
    else:
        _create(how, spark, asked, target)
    target.names.register(str(target.name), target.location)


# CREATE and REPLACE


def _create(how: CreateMode, spark: SparkSession, asked: TableDefinition, target: _Target) -> None:
    settings = settings_of(spark, target.location)
    store = shared_store(target.location, True, settings.options or None)
    if next(iter(store.list_from("")), None) is not None:
        raise _not_empty(how, target)
    runtime = Runtime()
    metadata = _metadata(spark, asked, settings.default_properties, runtime)
    transaction = Transaction.for_new_table(
        store,
        _operation(how, asked, metadata, managed=target.managed),
        runtime,
        TABLE_HOOKS,
        options=_options(spark, asked, settings.policy),
    )
    CACHE.forget(store.url)
    transaction.update_metadata(metadata)
    if asked.cluster_by:
        transaction.add(clustering_domain(metadata, asked.cluster_by))
    removed: dict[str, str] = {}
    if asked.rows is not None and how is CreateMode.CREATE_OR_REPLACE:
        # As in Delta it counts as having looked at what it replaces.
        transaction.record(ReadSet(whole_table=True))
        removed = {"numRemovedFiles": "0", "numRemovedBytes": "0"}
    _commit(transaction, store, asked, metadata, removed)


def _commit(
    transaction: Transaction,
    store: Store,
    asked: TableDefinition,
    metadata: Metadata,
    removed: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Commit the table with its first rows, if there are any."""
    if asked.rows is None:
        CACHE.offer(transaction.commit().snapshot)
        return
    with UncommittedFiles(store) as made:
        rows = enforce(project_rows(asked.rows, metadata), metadata)
        files = write_files(rows, FileTarget.of(store, metadata))
        made.add(*files)
        result = transaction.add(*files).commit(metrics={**write_metrics(files), **removed})
        made.keep()
    CACHE.offer(result.snapshot)


def _replace(how: CreateMode, spark: SparkSession, asked: TableDefinition, target: _Target) -> None:
    _check_columns_given(asked)
    table = open_table(spark, target.location)
    settings = settings_of(spark, target.location)
    old = table.metadata
    kept = {key: old.configuration[key] for key in _KEPT_IN_REPLACE if key in old.configuration}
    defaults = {**settings.default_properties, **kept}
    metadata = _metadata(spark, asked, defaults, table.runtime, replaces=old)
    if metadata.flag(keys.ENABLE_ROW_TRACKING):
        own = {k: old.configuration[k] for k in _ROW_ID_COLUMNS if k in old.configuration}
        metadata = metadata.with_configuration(own)
    removal = all_files(table.snapshot)
    if removal.files:
        TableRules.of(old).refuse_row_loss(str(how.operation(from_rows=asked.rows is not None)))
    transaction = Transaction(
        table.snapshot,
        _operation(how, asked, metadata, managed=target.managed),
        table.runtime,
        TABLE_HOOKS,
        options=_options(spark, asked, table.policy),
    )
    transaction.record(removal.reads)
    transaction.update_metadata(metadata)
    if asked.cluster_by or CLUSTERING_DOMAIN in table.snapshot.domains:
        transaction.add(clustering_domain(metadata, asked.cluster_by))
    transaction.add(*removal.removes(table.runtime.clock.now_ms()))
    removed = {"numRemovedFiles": str(len(removal.files)), "numRemovedBytes": str(removal.size)}
    _commit(transaction, table.snapshot.store, asked, metadata, removed)


def _metadata(
    spark: SparkSession,
    asked: TableDefinition,
    defaults: Mapping[str, str],
    runtime: Runtime,
    *,
    replaces: Metadata | None = None,
) -> Metadata:
    schema = table_schema(spark, asked.columns)
    names = {column.name.casefold() for column in asked.columns}
    if names and names <= {name.casefold() for name in asked.partition_by}:
        raise UserError(
            Code.SCHEMA_INVALID,
            "A table cannot be partitioned by all of its columns.",
            fix="Leave at least one column to be stored in the files.",
            delta_class="ALL_PARTITION_COLUMNS_NOT_ALLOWED",
        )
    return new_metadata(
        schema,
        partition_by=asked.partition_by,
        cluster_by=asked.cluster_by,
        properties={**defaults, **asked.properties},
        name=None,
        description=asked.comment,
        runtime=runtime,
        replaces=replaces,
    )


def _operation(
    how: CreateMode, asked: TableDefinition, metadata: Metadata, *, managed: bool
) -> Operation:
    return Operation(
        name=how.operation(from_rows=asked.rows is not None),
        parameters={
            "partitionBy": list(metadata.partition_columns),
            "clusterBy": list(asked.cluster_by),
            "description": asked.comment,
            "isManaged": "true" if managed else "false",
            "properties": strip_protocol_keys(metadata.configuration),
            **asked.noted,
        },
    )


def _options(spark: SparkSession, asked: TableDefinition, policy: str) -> CommitOptions:
    return CommitOptions(
        policy=policy,
        user_metadata=asked.note or user_metadata(spark),
        system_domains=frozenset({CLUSTERING_DOMAIN}),
        trusted_files=True,
    )


# Existing tables


def _check_columns_given(asked: TableDefinition) -> None:
    if not asked.columns:
        raise UserError(
            Code.INVALID_ARGUMENT,
            "A table that replaces another needs columns.",
            fix="Call `addColumn(NAME, TYPE)` or `addColumns(SCHEMA)` of the builder.",
            delta_class="DELTA_SCHEMA_NOT_PROVIDED",
        )


def _check_same(spark: SparkSession, asked: TableDefinition, target: _Target) -> None:
    """Refuse a definition that differs from the existing table."""
    table = open_table(spark, target.location)
    problems = list(_differences(spark, asked, table))
    if problems:
        classes, texts = zip(*problems, strict=True)
        raise UserError(
            Code.TABLE_EXISTS,
            f"The table at {target.location} differs from the definition.",
            why=listed(texts),
            fix="Leave out what the table has already, or replace it with "
            "`DeltaTable.replace(spark)`.",
            delta_class=classes[0],
            fields={"location": target.location, "problems": list(texts)},
        )


def _differences(
    spark: SparkSession, asked: TableDefinition, table: Table
) -> Iterator[tuple[str, str]]:
    if not asked.columns:
        return
    old = table.metadata
    if strip_mapping(table_schema(spark, asked.columns)) != strip_mapping(_declared(old.schema)):
        yield "DELTA_CREATE_TABLE_SCHEME_MISMATCH", "its columns differ"
    if asked.partition_by != old.partition_columns:
        has = ", ".join(old.partition_columns) or "nothing"
        yield "DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING", f"it is partitioned by {has}"
    clustered = clustering_columns(table.snapshot)
    if asked.cluster_by and asked.cluster_by != clustered:
        has = ", ".join(clustered) or "nothing"
        yield "DELTA_CREATE_TABLE_WITH_DIFFERENT_CLUSTERING", f"it is clustered by {has}"
    wanted = strip_protocol_keys(asked.properties)
    existing = {k: v for k, v in old.configuration.items() if k != keys.MAX_COLUMN_ID}
    if wanted and wanted != existing:
        yield "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY", f"its properties are {existing}"


def _declared(schema: Struct) -> Struct:
    """A schema as users declare it: without the high-water marks of identity columns."""
    return Struct(
        tuple(
            f.with_metadata(**{IDENTITY_HIGH_WATER_MARK_KEY: None})
            if IDENTITY_HIGH_WATER_MARK_KEY in f.metadata
            else f
            for f in schema
        )
    )


def _already_there(shown: str) -> UserError:
    return UserError(
        Code.TABLE_EXISTS,
        f"{shown} already exists.",
        fix="Use `DeltaTable.createIfNotExists(spark)`, `DeltaTable.replace(spark)` or "
        "`DeltaTable.createOrReplace(spark)`, or another name.",
        delta_class="TABLE_OR_VIEW_ALREADY_EXISTS",
        fields={"table": shown},
    )


def _not_there(shown: str) -> UserError:
    return UserError(
        Code.TABLE_NOT_FOUND,
        f"{shown} cannot be replaced: it does not exist.",
        fix="Use `DeltaTable.create(spark)` or `DeltaTable.createOrReplace(spark)`.",
        delta_class="TABLE_OR_VIEW_NOT_FOUND",
        fields={"table": shown},
    )


def _not_empty(how: CreateMode, target: _Target) -> UserError:
    by_path = target.name is None and how is CreateMode.CREATE
    return UserError(
        Code.TABLE_EXISTS,
        f"{target.location} is not empty and not a Delta table.",
        why="files that are there already would become part of the table's folder",
        fix="Choose an empty folder, or delete what is in this one.",
        delta_class="TABLE_OR_VIEW_ALREADY_EXISTS"
        if by_path
        else "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION",
        fields={"location": target.location},
    )
