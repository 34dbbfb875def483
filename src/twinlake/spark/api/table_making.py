"""Making and replacing tables from a definition, with Delta's answers to what is there already.

A table that is made at a place where one is already is not replaced, unless its name or an
explicit REPLACE says so: it has to be the table that was asked for. ``createOrReplace`` by path
alone does the same in Delta Spark, rows and all, and so it does here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from twinlake.commit import CommitOptions, Operation, OperationName, Transaction
from twinlake.commit.plans import TableRules
from twinlake.errors import Code, UserError, listed
from twinlake.log import CACHE
from twinlake.protocol import CLUSTERING_DOMAIN, strip_steering
from twinlake.runtime import Runtime
from twinlake.schema import MAX_COLUMN_ID_KEY, Struct, strip_mapping
from twinlake.spark.api.named_tables import Place, exists_at, managed_location, names_of, plain
from twinlake.spark.api.new_columns import NewColumn, table_schema
from twinlake.spark.delta_settings import user_metadata
from twinlake.spark.dml.overwrite import all_files
from twinlake.spark.session import check_session, open_table, settings_of
from twinlake.storage import parse_location
from twinlake.table.catalog.publish import HOOKS
from twinlake.table.detail import clustering_columns
from twinlake.table.operations.create import clustering_domain, new_metadata
from twinlake.table.stores import shared_store

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from twinlake.protocol import Metadata
    from twinlake.table import Names, Table, TableName

__all__ = ["Creation", "Definition"]

_KEPT_IN_REPLACE: Final[tuple[str, ...]] = (
    "delta.enableDeletionVectors",
    "delta.enableRowTracking",
)
"""What a replaced table goes on with unless it is said otherwise."""
_ROW_ID_COLUMNS: Final[tuple[str, ...]] = (
    "delta.rowTracking.materializedRowIdColumnName",
    "delta.rowTracking.materializedRowCommitVersionColumnName",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What a table shall be."""

    name: str | None = None
    location: str | None = None
    comment: str | None = None
    columns: tuple[NewColumn, ...] = ()
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)

    def changed(self, **changes: Any) -> Definition:
        """With other values."""
        return replace(self, **changes)


class Creation(Enum):
    """The four ways to ask for a table; the value is the operation in its history."""

    CREATE = "create"
    IF_NOT_EXISTS = "createIfNotExists"
    REPLACE = "replace"
    CREATE_OR_REPLACE = "createOrReplace"

    def run(self, spark: SparkSession, asked: Definition) -> Place:
        """Do it; where the table is then."""
        check_session(spark)
        target = _Target.of(spark, asked)
        if target.name is None:
            _at_path(self, spark, asked, target)
        else:
            _by_name(self, spark, asked, target)
        return Place(
            location=target.location, name=None if target.name is None else str(target.name)
        )

    @property
    def operation(self) -> OperationName:
        """What the history calls it."""
        return _OPERATIONS[self]

    @property
    def replaces(self) -> bool:
        """Whether a table that has the name is replaced."""
        return self in (Creation.REPLACE, Creation.CREATE_OR_REPLACE)


_OPERATIONS: Final = {
    Creation.CREATE: OperationName.CREATE_TABLE,
    Creation.IF_NOT_EXISTS: OperationName.CREATE_TABLE,
    Creation.REPLACE: OperationName.REPLACE_TABLE,
    Creation.CREATE_OR_REPLACE: OperationName.CREATE_OR_REPLACE_TABLE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """Where a definition wants its table."""

    names: Names
    location: str
    name: TableName | None
    registered: bool
    managed: bool

    @classmethod
    def of(cls, spark: SparkSession, asked: Definition) -> _Target:
        names = names_of(spark)
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
        wanted = plain(asked.name)
        full = names.parse(wanted)
        if full.namespace == "delta" and "/" in full.table:
            return cls._of_path(names, wanted, given)
        registered = names.exists(wanted)
        if not registered and full.namespace not in names.namespaces():
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"There is no namespace {full.namespace}.",
                why=f"{names.file.path} does not have it",
                fix=f"Run `twinlake.table.Names({str(names.file.path)!r})"
                f".create_namespace({full.namespace!r})` first.",
                delta_class="SCHEMA_NOT_FOUND",
                fields={"namespace": full.namespace},
            )
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


def _at_path(how: Creation, spark: SparkSession, asked: Definition, target: _Target) -> None:
    shown = f"`delta`.`{target.location}`"
    if exists_at(spark, target.location):
        if how is Creation.CREATE:
            raise _already_there(shown)
        if how is Creation.REPLACE:
            _replace(how, spark, asked, target)
        elif how is Creation.CREATE_OR_REPLACE:
            _check_columns_given(asked)
            _check_same(spark, asked, target)
        return
    if how is Creation.REPLACE:
        raise _not_there(shown)
    _create(how, spark, asked, target)


def _by_name(how: Creation, spark: SparkSession, asked: Definition, target: _Target) -> None:
    there = exists_at(spark, target.location)
    if target.registered:
        if how is Creation.CREATE:
            raise _already_there(str(target.name))
        if how.replaces:
            act = _replace if there else _create
            act(how, spark, asked, target)
        return
    if how is Creation.REPLACE:
        raise _not_there(str(target.name))
    if there:
        _check_same(spark, asked, target)
    else:
        _create(how, spark, asked, target)
    target.names.register(str(target.name), target.location)


# Making


def _create(how: Creation, spark: SparkSession, asked: Definition, target: _Target) -> None:
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
        HOOKS,
        options=_options(spark, settings.policy),
    )
    CACHE.forget(store.url)
    transaction.update_metadata(metadata)
    if asked.cluster_by:
        transaction.add(clustering_domain(metadata, asked.cluster_by))
    CACHE.offer(transaction.commit().snapshot)


def _replace(how: Creation, spark: SparkSession, asked: Definition, target: _Target) -> None:
    _check_columns_given(asked)
    table = open_table(spark, target.location)
    settings = settings_of(spark, target.location)
    old = table.metadata
    kept = {key: old.configuration[key] for key in _KEPT_IN_REPLACE if key in old.configuration}
    defaults = {**settings.default_properties, **kept}
    metadata = _metadata(spark, asked, defaults, table.runtime, replaces=old)
    if metadata.flag("delta.enableRowTracking"):
        own = {k: old.configuration[k] for k in _ROW_ID_COLUMNS if k in old.configuration}
        metadata = metadata.with_configuration(own)
    removal = all_files(table.snapshot)
    if removal.files:
        TableRules.of(old).refuse_row_loss(str(how.operation))
    transaction = Transaction(
        table.snapshot,
        _operation(how, asked, metadata, managed=target.managed),
        table.runtime,
        HOOKS,
        options=_options(spark, table.policy),
    )
    transaction.record(removal.reads)
    transaction.update_metadata(metadata)
    if asked.cluster_by or CLUSTERING_DOMAIN in table.snapshot.domains:
        transaction.add(clustering_domain(metadata, asked.cluster_by))
    now = table.runtime.clock.now_ms()
    CACHE.offer(transaction.add(*removal.removes(now)).commit().snapshot)


def _metadata(
    spark: SparkSession,
    asked: Definition,
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


def _operation(how: Creation, asked: Definition, metadata: Metadata, *, managed: bool) -> Operation:
    return Operation(
        name=how.operation,
        parameters={
            "partitionBy": list(metadata.partition_columns),
            "clusterBy": list(asked.cluster_by),
            "description": asked.comment,
            "isManaged": "true" if managed else "false",
            "properties": strip_steering(metadata.configuration),
        },
    )


def _options(spark: SparkSession, policy: str) -> CommitOptions:
    return CommitOptions(
        policy=policy,
        user_metadata=user_metadata(spark),
        system_domains=frozenset({CLUSTERING_DOMAIN}),
    )


# What is there already


def _check_columns_given(asked: Definition) -> None:
    if not asked.columns:
        raise UserError(
            Code.INVALID_ARGUMENT,
            "A table that replaces another needs columns.",
            fix="Call `addColumn(NAME, TYPE)` or `addColumns(SCHEMA)` of the builder.",
            delta_class="DELTA_SCHEMA_NOT_PROVIDED",
        )


def _check_same(spark: SparkSession, asked: Definition, target: _Target) -> None:
    """The table that is there is the one that was asked for, as far as anything was said."""
    table = open_table(spark, target.location)
    problems = list(_differences(spark, asked, table))
    if problems:
        classes, texts = zip(*problems, strict=True)
        raise UserError(
            Code.TABLE_EXISTS,
            f"The table at {target.location} is not the one that was asked for.",
            why=listed(texts),
            fix="Leave out what the table has already, or replace it with "
            "`DeltaTable.replace(spark)`.",
            delta_class=classes[0],
            fields={"location": target.location, "problems": list(texts)},
        )


def _differences(spark: SparkSession, asked: Definition, table: Table) -> Iterator[tuple[str, str]]:
    if not asked.columns:
        return
    old = table.metadata
    if strip_mapping(table_schema(spark, asked.columns)) != strip_mapping(_declared(old.schema)):
        yield "DELTA_CREATE_TABLE_SCHEME_MISMATCH", "its columns are others"
    if asked.partition_by != old.partition_columns:
        has = ", ".join(old.partition_columns) or "nothing"
        yield "DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING", f"it is partitioned by {has}"
    clustered = clustering_columns(table.snapshot)
    if asked.cluster_by and asked.cluster_by != clustered:
        has = ", ".join(clustered) or "nothing"
        yield "DELTA_CREATE_TABLE_WITH_DIFFERENT_CLUSTERING", f"it is clustered by {has}"
    wanted = strip_steering(asked.properties)
    existing = {k: v for k, v in old.configuration.items() if k != MAX_COLUMN_ID_KEY}
    if wanted and wanted != existing:
        yield "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY", f"its properties are {existing}"


def _declared(schema: Struct) -> Struct:
    """A schema as people declare it: without the marks of identity columns."""
    from twinlake.schema import IDENTITY_HIGH_WATER_MARK_KEY

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
        f"{shown} cannot be replaced, because it is not there.",
        fix="Use `DeltaTable.create(spark)` or `DeltaTable.createOrReplace(spark)`.",
        delta_class="TABLE_OR_VIEW_NOT_FOUND",
        fields={"table": shown},
    )


def _not_empty(how: Creation, target: _Target) -> UserError:
    by_path = target.name is None and how is Creation.CREATE
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
