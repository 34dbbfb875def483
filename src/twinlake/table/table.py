"""``Table``: what a person does to a table without moving rows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

from twinlake.commit import Operation, OperationName
from twinlake.compat import with_column_mapping
from twinlake.errors import Code, UserError
from twinlake.log import CACHE, load_snapshot
from twinlake.protocol import find_policy, keys
from twinlake.runtime import Runtime
from twinlake.table.arguments import checked_arguments
from twinlake.table.operations import alter as alterations
from twinlake.table.operations.context import OperationContext
from twinlake.table.operations.create import create_table
from twinlake.table.rows.writable_table import WritableTable
from twinlake.table.schema_argument import table_schema
from twinlake.table.stores import shared_store, table_exists

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Mapping, Sequence

    from twinlake.actions import Action
    from twinlake.commit import CommitResult, HookWarning
    from twinlake.compat import Plan
    from twinlake.log import Snapshot
    from twinlake.table.diff import Diff
    from twinlake.table.iceberg_view import IcebergView
    from twinlake.table.importing.import_iceberg import ImportResult
    from twinlake.table.operations.alter import Alteration, NewColumn
    from twinlake.table.operations.context import CommitSequence
    from twinlake.table.operations.vacuum import VacuumResult
    from twinlake.table.twin.report import TwinReport

__all__ = ["Table"]


@checked_arguments
class Table(WritableTable):
    """A Delta table at one version. Every change returns the table at the new version.

    >>> import tempfile
    >>> t = Table.create(tempfile.mkdtemp(), "id INT, name STRING")
    >>> t = t.set_properties({"delta.appendOnly": "true"})
    >>> t.version, str(t.protocol)
    (1, '1,2')
    """

    # Opening and creating

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        version: int | None = None,
        timestamp: str | int | dt.datetime | dt.date | None = None,
        *,
        policy: str = "bundled",
        durable: bool = True,
        options: Mapping[str, Any] | None = None,
        runtime: Runtime | None = None,
    ) -> Table:
        """Open a table at its latest version, at ``version``, or as it was at ``timestamp``.

        ``durable=False`` does not sync local commits to disk; ``options`` go to the object store.
        """
        find_policy(policy)
        store = shared_store(os.fspath(path), durable, options)
        if version is not None and timestamp is not None:
            raise UserError(
                Code.INVALID_ARGUMENT,
                "A version and a timestamp cannot be given together.",
                fix="Give `version=` or `timestamp=`, not both.",
            )
        snapshot = CACHE.latest(store) if version is None else load_snapshot(store, version)
        table = cls(snapshot, policy=policy, runtime=runtime)
        table._check_readable()
        if timestamp is not None:
            from twinlake.log import version_at

            return table.at(version_at(store, snapshot, timestamp))
        return table

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        schema: Any,
        partition_by: Sequence[str] = (),
        properties: Mapping[str, object] | None = None,
        *,
        cluster_by: Sequence[str] = (),
        name: str | None = None,
        description: str | None = None,
        if_not_exists: bool = False,
        policy: str = "bundled",
        durable: bool = True,
        options: Mapping[str, Any] | None = None,
        runtime: Runtime | None = None,
    ) -> Table:
        """Create a table from DDL text or a schema: twinlake's, Arrow's, PySpark's, a frame's."""
        store = shared_store(os.fspath(path), durable, options)
        runtime = runtime or Runtime()
        if if_not_exists and table_exists(store):
            return cls.open(path, policy=policy, durable=durable, options=options, runtime=runtime)
        CACHE.forget(store.url)
        result = create_table(
            OperationContext(runtime=runtime, policy=policy),
            store,
            table_schema(schema),
            partition_by=tuple(partition_by),
            cluster_by=tuple(cluster_by),
            properties=properties,
            name=name,
            description=description,
        )
        return cls(result.snapshot, policy=policy, runtime=runtime)._became(result)

    @classmethod
    def import_iceberg(
        cls,
        source: str,
        *,
        mode: str = "strict",
        spark: Any = None,
        durable: bool = True,
        options: Mapping[str, Any] | None = None,
        runtime: Runtime | None = None,
    ) -> ImportResult:
        """Make a twinlake table of an Iceberg table (format version 1 or 2), in its own place.

        ``source`` is a metadata file, the folder of the table, or ``catalog.namespace.table`` of a
        catalog that PyIceberg knows. Data files stay where they are. Nobody may write the Iceberg
        table meanwhile or afterwards: what its old catalog points to is not kept up. ``mode`` is as
        for an upgrade: with ``strict`` the table has icebergWriterCompatV1 where it can, and Delta
        Spark reads it only; with ``shared`` it has icebergCompatV2, and Delta Spark writes as well.

        Raises:
            UserError: with everything that Delta cannot say, as a whole.
        """
        from twinlake.table.importing.import_iceberg import import_table

        return import_table(
            source,
            cls.open,
            mode=mode,
            spark=spark,
            durable=durable,
            options=options,
            runtime=runtime,
        )

    @staticmethod
    def exists(path: str | os.PathLike[str], *, options: Mapping[str, Any] | None = None) -> bool:
        """Whether there is a Delta table at the path."""
        return table_exists(shared_store(os.fspath(path), True, options))

    def refresh(self) -> Table:
        """The table at its latest version."""
        return self._readable(CACHE.latest(self._snapshot.store))

    def at(self, version: int) -> Table:
        """The table at another version."""
        if version == self.version:
            return self
        return self._readable(load_snapshot(self._snapshot.store, version))

    def _readable(self, snapshot: Snapshot) -> Table:
        table = self._with(snapshot)
        table._check_readable()
        return table

    def _with(self, snapshot: Snapshot, warnings: tuple[HookWarning, ...] = ()) -> Table:
        return Table(snapshot, policy=self._policy, runtime=self._runtime, warnings=warnings)

    def _became(self, result: CommitResult | CommitSequence) -> Table:
        CACHE.offer(result.snapshot)
        return self._with(result.snapshot, result.warnings)

    @property
    def iceberg(self) -> IcebergView:
        """The Iceberg side: its metadata, its lag, ``sync()`` and ``publish()``."""
        from twinlake.table.iceberg_view import IcebergView

        def named(name: str) -> IcebergView:
            return self.refresh().set_properties({keys.ICEBERG_PUBLISH: name}).iceberg

        return IcebergView(self._snapshot, self._runtime, named)

    def verify_twin(
        self,
        rows: bool = False,
        spark: Any = None,
        *,
        properties: Mapping[str, str] | None = None,
    ) -> TwinReport:
        """Compare both sides of the table; see ``twinlake.verify_twin``."""
        from twinlake.table.twin.verify_twin import verify_twin

        return verify_twin(self, rows, spark, properties=properties)

    def diff(self, v1: int, v2: int | None = None) -> Diff:
        """What changed from version ``v1`` to ``v2`` (by default this one)."""
        from twinlake.table.diff import compare

        old, new = self.at(v1), self.at(self.version if v2 is None else v2)
        low, high = sorted((old.version, new.version))
        upper = new if new.version == high else old
        commits = tuple(r for r in upper.history(high - low) if r.version > low)
        return compare(old._snapshot, new._snapshot, commits)

    # Changing metadata

    def set_properties(self, properties: Mapping[str, object]) -> Table:
        """Set table properties; the protocol grows as far as they need.

        Row tracking on a table with files hands out row ids to them first, in commits of their own.
        """
        from twinlake.table.operations.backfill import (
            ENABLEMENT_TAGS,
            backfill_row_ids,
            is_enablement,
            wants_backfill,
        )

        change = alterations.set_properties(self.metadata, properties)
        if not wants_backfill(self._snapshot, change.metadata):
            return self._alter(change)
        self._check_compat(change)
        filled = self._with(backfill_row_ids(self.operation_context(), self._snapshot))
        again = alterations.set_properties(filled.metadata, properties)
        # With the tags other writers go on as if nothing had happened to the table.
        tags = ENABLEMENT_TAGS if is_enablement(filled.metadata, again.metadata) else None
        return filled._alter(again, tags=tags)

    def _check_compat(self, change: Alteration) -> None:
        """Refuse what compat features forbid before the first of several commits."""
        metadata = with_column_mapping(self.metadata, change.metadata, self._runtime.ids)
        transaction = self.operation_context().transaction(self._snapshot, change.operation)
        transaction.update_metadata(metadata).check_compat()

    def unset_properties(self, keys: Iterable[str], *, if_exists: bool = False) -> Table:
        """Unset table properties."""
        return self._alter(alterations.unset_properties(self.metadata, keys, if_exists=if_exists))

    def add_column(self, column: str, *, first: bool = False, after: str | None = None) -> Table:
        """Add a column by DDL with a dotted path: ``t.add_column("m.value.w INT")``."""
        return self._alter(
            alterations.add_columns(self.metadata, [column], first=first, after=after)
        )

    def add_columns(self, columns: Sequence[NewColumn]) -> Table:
        """Add several columns in one commit."""
        return self._alter(alterations.add_new_columns(self.metadata, columns))

    def rename_column(self, column: str, name: str) -> Table:
        """Rename a column; needs column mapping."""
        return self._alter(alterations.rename(self.metadata, column, name))

    def drop_column(self, *columns: str) -> Table:
        """Drop columns; needs column mapping."""
        from twinlake.table.detail import clustering_paths

        clustered_by = clustering_paths(self._snapshot)
        return self._alter(alterations.drop(self.metadata, columns, clustered_by=clustered_by))

    def widen_column(self, column: str, kind: str) -> Table:
        """Give a column a wider type: ``t.widen_column("a", "BIGINT")``."""
        return self._alter(alterations.widen(self.metadata, column, kind))

    def alter_column(
        self,
        column: str,
        *,
        kind: str | None = None,
        nullable: bool | None = None,
        comment: str | None = None,
        default: str | None = None,
        first: bool = False,
        after: str | None = None,
    ) -> Table:
        """Change a column's type, nullability, comment, default or place.

        ``default`` is the SQL text of the value that new rows get; rows that are there keep what
        they have. An empty text takes a comment or a default away.
        """
        return self._alter(
            alterations.alter(
                self.metadata,
                column,
                kind=kind,
                nullable=nullable,
                comment=comment,
                default=default,
                first=first,
                after=after,
            )
        )

    def add_constraint(self, name: str, expression: str, spark: Any = None) -> Table:
        """Record a CHECK constraint; rows that are already there need an engine to check them."""
        change = alterations.add_constraint(self.metadata, name, expression)
        if self._snapshot.num_files:
            from twinlake.table.operations.add_constraint import check_rows

            check_rows(self.operation_context(spark), self._snapshot, name, expression)
        return self._alter(change, reads_table=True)

    def drop_constraint(self, name: str, *, if_exists: bool = False) -> Table:
        """Drop a CHECK constraint."""
        return self._alter(alterations.drop_constraint(self.metadata, name, if_exists=if_exists))

    def _alter(
        self,
        change: Alteration,
        *,
        reads_table: bool = False,
        tags: Mapping[str, str] | None = None,
    ) -> Table:
        from twinlake.schema import check_schema

        metadata = change.metadata
        if metadata.schema_string != self.metadata.schema_string:
            check_schema(
                metadata.schema,
                mode=metadata.column_mapping_mode,
                partition_columns=metadata.partition_columns,
            )
        metadata = with_column_mapping(self.metadata, metadata, self._runtime.ids)
        return self._commit(change.operation, metadata, reads_table=reads_table, tags=tags)

    # Changing the protocol

    def upgrade_protocol(self, min_reader_version: int, min_writer_version: int) -> Table:
        """Raise the protocol versions; they never come down this way."""
        wanted = alterations.raise_versions(
            self.metadata, self.protocol, min_reader_version, min_writer_version
        )
        protocol = self.protocol.upgraded_for(wanted, policy=self._policy)
        if protocol == self.protocol:
            return self
        operation = Operation(
            name=OperationName.UPGRADE_PROTOCOL, parameters={"newProtocol": protocol.to_dict()}
        )
        return self._commit(operation, protocol)

    def add_feature(self, name: str) -> Table:
        """Add a table feature and all it requires, without switching it on."""
        change = alterations.set_properties(self.metadata, keys.support(name))
        operation = Operation(name=OperationName.ADD_FEATURE, parameters={"featureName": name})
        protocol = self.protocol.upgraded_for(change.metadata, policy=self._policy)
        return self if protocol == self.protocol else self._commit(operation, protocol)

    def drop_feature(
        self,
        name: str,
        truncate_history: bool = False,
        spark: Any = None,
    ) -> Table:
        """Drop a table feature, keeping history readable or (``truncate_history``) deleting it.

        Features that show in the data files take ``spark=``, which writes those files again first.
        """
        from twinlake.table.operations.drop_feature import FeatureDrop

        drop = FeatureDrop(
            self.operation_context(spark),
            # Files that came after this version may need the feature as well.
            self.refresh()._snapshot,
            name,
            truncate_history=truncate_history,
        )
        return self._became(drop.run())

    def upgrade(
        self,
        target: str,
        mode: str = "strict",
        dry_run: bool = False,
        in_place: bool = False,
        profile: str = "spec",
        spark: Any = None,
        *,
        give_up: Iterable[str] = (),
    ) -> Plan:
        """Bring the table to a compat feature, such as ``icebergWriterCompatV1``.

        ``dry_run`` only returns the plan. In mode ``shared`` the table is laid out for Iceberg
        writers without the writer feature, so that Delta Spark can go on writing it. Files are
        rewritten by ``spark`` where they have to be; ``in_place`` leaves them as they are, which
        takes field ids on every node of every footer; only files with deletion vectors, INT96 or
        values of the legacy calendar are rewritten. ``give_up`` names what writers need not keep
        any more: ``constraints``, ``invariants``, ``generatedColumns``, ``identityColumns``,
        ``defaults``, ``char``. A plan that waits until history may be deleted is finished by
        running the same upgrade again.
        """
        from twinlake.table.operations.upgrade import upgrade_goal, upgrade_table

        goal = upgrade_goal(
            target,
            mode=mode,
            in_place=in_place,
            profile=profile,
            give_up=give_up,
            policy=self._policy,
        )
        context = self.operation_context(spark)
        return upgrade_table(context, self.refresh()._snapshot, goal, dry_run=dry_run)

    def upgrade_uniform(self, version: int, spark: Any = None, *, dry_run: bool = False) -> Plan:
        """``REORG TABLE t APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = version))``.

        Enables icebergCompatV1 or V2 and UniForm, as Delta's command does.
        """
        from twinlake.table.operations.upgrade import upgrade_uniform

        context = self.operation_context(spark)
        return upgrade_uniform(context, self.refresh()._snapshot, version, dry_run=dry_run)

    # Other changes

    def restore(self, version: int) -> Table:
        """Make files and metadata those of an earlier version again, as a new version."""
        from twinlake.table.operations.restore import restore_snapshot

        target = load_snapshot(self._snapshot.store, version)
        # All files that are there now have to go, also those that this value does not show.
        current = self.refresh()._snapshot
        return self._became(restore_snapshot(self.operation_context(), current, target))

    def vacuum(
        self,
        retention_hours: float | None = None,
        *,
        dry_run: bool = False,
        mode: Literal["full", "lite"] = "full",
        enforce_retention: bool = True,
        spark: Any = None,
    ) -> VacuumResult:
        """Delete files that no version within the retention needs; ``dry_run`` only tells which.

        The table's ``delta.deletedFileRetentionDuration`` counts unless ``retention_hours`` is
        given; a shorter one is refused unless ``enforce_retention`` is false. ``full`` looks at the
        whole folder, ``lite`` at the files the log says were removed. With ``spark`` the listing
        and the deletion run on its workers.
        """
        from twinlake.table.operations.vacuum import Vacuum

        vacuum = Vacuum(
            self.operation_context(spark),
            self.refresh()._snapshot,
            retention_hours=retention_hours,
            mode=mode,
            enforce_retention=enforce_retention,
        )
        result = vacuum.run(dry_run=dry_run)
        CACHE.offer(vacuum.snapshot)
        return result

    def commit(
        self,
        operation: str,
        actions: Iterable[Action],
        *,
        parameters: Mapping[str, Any] | None = None,
        metrics: Mapping[str, Any] | None = None,
        user_metadata: str | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> Table:
        """Commit actions as they are, for engines that wrote the files themselves."""
        described = Operation(name=operation, parameters=parameters or {}, metrics=metrics or {})
        return self._commit(described, *actions, user_metadata=user_metadata, tags=tags)

    def checkpoint(self) -> Table:
        """Write a checkpoint of this version.

        It deletes nothing: expired history goes after checkpoints that commits write.
        """
        from twinlake.log import write_checkpoint

        write_checkpoint(self._snapshot, runtime=self._runtime)
        return self

    def _commit(
        self,
        operation: Operation,
        *actions: Action,
        reads_table: bool = False,
        user_metadata: str | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> Table:
        transaction = self.operation_context().transaction(
            self._snapshot, operation, user_metadata=user_metadata, tags=tags or {}
        )
        if reads_table:
            transaction.record_whole_table()
        return self._became(transaction.add(*actions).commit())
