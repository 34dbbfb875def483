"""DROP FEATURE, in both of its modes.

Fast (the default): stop the feature, put a barrier of checkpoints before what it left in the
history, lower the protocol, and ask cleanup to keep the barrier (``checkpointProtection``).
With truncation: stop the feature, wait until history is old enough to be deleted, delete it, prove
that nothing is left, lower the protocol.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.actions import DomainMetadata, RemoveFile
from twinlake.commit import Operation, OperationName, client_context
from twinlake.errors import Code, ConflictError, CorruptTable, StorageError, UserError
from twinlake.log import (
    cleanup_log,
    is_v2_checkpoint,
    load_snapshot,
    read_commit,
    removes_from,
    write_checkpoint,
)
from twinlake.protocol import FeatureTrace, PreDowngrade, keys, plan_drop, property_value
from twinlake.schema import check_schema
from twinlake.table.operations.context import CommitSequence
from twinlake.table.operations.feature_trace import (
    files_with_trace,
    holds_state,
    leaves_trace,
    v2_checkpoints,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from twinlake.actions import Action, Metadata
    from twinlake.commit import Change, Winner
    from twinlake.log import Snapshot
    from twinlake.protocol import DropPlan
    from twinlake.runtime import Rewriter
    from twinlake.table.operations.context import OperationContext

__all__ = ["FeatureDrop"]

_MINUTE_MS: Final = 60_000
_CHECKPOINT_TRIES: Final = 3
_REWRITE_ROUNDS: Final = 3
_REMOVE_MAPPING: Final = "REMOVE COLUMN MAPPING"
_REWRITTEN: Final = frozenset({"SCH-10"})
"""No file needs the history of types any more: those of older types were rewritten."""


class FeatureDrop:
    """One DROP FEATURE, step by step; every step is a commit that leaves a valid table."""

    def __init__(
        self,
        context: OperationContext,
        snapshot: Snapshot,
        feature: str,
        *,
        truncate_history: bool = False,
    ) -> None:
        self._commits = CommitSequence(context, snapshot)
        self._seen = snapshot
        self._context = context
        self._rewriter = context.rewriter
        self._fresh: frozenset[str] | None = None
        """Files known to have the types of the schema; None before anybody has looked."""
        self._plan: DropPlan = plan_drop(
            snapshot.protocol, snapshot.metadata, feature, truncate_history=truncate_history
        )
        self._pre_downgrade: dict[PreDowngrade, Callable[[], bool]] = {
            PreDowngrade.RECOMMIT_WITHOUT_ROW_IDS: self._forget_row_ids,
            PreDowngrade.CLASSIC_CHECKPOINT: self._leave_v2_checkpoint,
            PreDowngrade.PURGE_DELETION_VECTORS: self._keep_vector_files,
        }

    def run(self) -> CommitSequence:
        """Do it; the last commit leaves the table without the feature."""
        if self._rewriter is None:
            self._refuse_rewrite()
        changed = self._prepare()
        changed = self._rewrite() or changed
        changed = self._strip() or changed
        changed = self._pre_downgrade.get(self._plan.pre_downgrade, lambda: False)() or changed
        for _ in range(self._plan.barriers):
            self._checkpointed_commit()
        if self._plan.truncate_history:
            self._truncate(changed=changed)
        self._downgrade()
        return self._commits

    @property
    def _current(self) -> Snapshot:
        return self._commits.snapshot

    def _checkpointed_commit(self) -> None:
        """An empty commit with a checkpoint that was read back: older versions can do without."""
        failure: Exception | None = None
        for _ in range(_CHECKPOINT_TRIES):
            # A name of its own for every try: what is there under the old one may be damaged.
            self._commits.commit(Operation(name=OperationName.EMPTY_COMMIT))
            try:
                checkpoint = write_checkpoint(self._current, runtime=self._context.runtime)
                if holds_state(checkpoint, self._current):
                    return
            except (CorruptTable, StorageError) as error:
                failure = error
        raise UserError(
            Code.FEATURE_DROP,
            f"{self._plan.feature} cannot be dropped: no checkpoint could be written.",
            why=f"{_CHECKPOINT_TRIES} tries failed, the last one with: {failure}"
            if failure is not None
            else f"{_CHECKPOINT_TRIES} checkpoints did not hold the state of the table",
            fix="Make sure that the log can be written and read, then drop the feature again.",
            delta_class="DELTA_FEATURE_DROP_CHECKPOINT_FAILED",
            fields={"feature": self._plan.feature},
        ) from failure

    def _refuse_rewrite(self) -> None:
        files = self._in_the_way(self._current)
        if not files:
            return
        if self._rewriter is not None:
            raise UserError(
                Code.FEATURE_DROP,
                f"{self._plan.feature} cannot be dropped: {files} file(s) still need it.",
                why="other writers brought them in while files were rewritten",
                fix="Stop the writers that use the feature, then drop it again.",
                fields={"feature": self._plan.feature, "files": files},
            )
        raise UserError(
            Code.SPARK_REQUIRED,
            f"Dropping {self._plan.feature} has to rewrite {files} file(s) first.",
            why=f"it must {self._plan.pre_downgrade.value}, which takes a data engine",
            fix=f"Run `Table.drop_feature({self._plan.feature!r}, spark=spark)` with a "
            "SparkSession: it rewrites the files and drops the feature.",
            fields={"feature": self._plan.feature, "files": files},
        )

    def _in_the_way(self, snapshot: Snapshot) -> int:
        """How many files have to be rewritten, as far as is known without looking into them."""
        files = files_with_trace(self._plan.trace, snapshot) if self._plan.needs_rewrite else 0
        if not files or self._fresh is None:
            return files
        return sum(path not in self._fresh for path in snapshot.add_files()["path"].to_pylist())

    def _rewrite(self) -> bool:
        """Rewrite files until none is in the way; says whether anything was rewritten."""
        rewritten = False
        if self._rewriter is not None:
            for _ in range(_REWRITE_ROUNDS):
                if not self._in_the_way(self._current):
                    break
                rewritten = self._rewrite_once(self._rewriter) or rewritten
        return rewritten

    def _rewrite_once(self, rewriter: Rewriter) -> bool:
        from twinlake.table.operations.rewrite_files import narrow_files

        snapshot, widened = self._current, self._plan.trace is FeatureTrace.TYPE_CHANGES
        stale = narrow_files(snapshot, self._context.runtime) if widened else frozenset()
        done = self._swap_files(
            rewriter,
            Operation(name=OperationName.REORG, parameters={"predicate": [], "applyPurge": True}),
            stale=stale,
        )
        if widened:
            seen = set(snapshot.add_files()["path"].to_pylist()) - stale
            self._fresh = frozenset(seen | done)
        return bool(done)

    def _swap_files(
        self,
        rewriter: Rewriter,
        operation: Operation,
        *,
        stale: Collection[str],
        metadata: Metadata | None = None,
    ) -> set[str]:
        """Rewrite files and commit that, with the metadata if it changes; returns the new paths."""
        from twinlake.table.operations.rewrite_files import discard, rewrite

        outcome = rewrite(
            self._current,
            rewriter,
            self._context.runtime,
            metadata=metadata or self._current.metadata,
            stale=stale,
        )
        if outcome is None:
            return set()
        # Delta tells only the bytes where the mapping goes; the rest is that of REORG.
        size = {"numOutputBytes": outcome.metrics["numAddedBytes"]}
        described = replace(operation, metrics=outcome.metrics if metadata is None else size)
        try:
            self._commits.commit(
                described,
                *([metadata] if metadata is not None else []),
                *outcome.actions,
                tags=outcome.tags,
                reads=outcome.reads.files,
                reads_table=metadata is not None,
            )
        except ConflictError:
            discard(self._current.store, outcome.adds)
            raise
        return {add.path for add in outcome.adds}

    def _prepare(self) -> bool:
        """Stop new traces from coming in; says whether anything had to be changed."""
        metadata = self._plan.prepare(self._current.metadata)
        if metadata == self._current.metadata:
            return False
        if self._rewriter is not None and self._plan.atomic and self._in_the_way(self._current):
            # Physical names were free; from now on the names of the schema must do.
            check_schema(
                metadata.schema,
                mode=metadata.column_mapping_mode,
                partition_columns=metadata.partition_columns,
            )
            paths = self._current.add_files()["path"].to_pylist()
            operation = Operation(name=_REMOVE_MAPPING)
            self._swap_files(self._rewriter, operation, stale=paths, metadata=metadata)
            return True
        operation = (
            Operation(
                name=OperationName.SET_TBLPROPERTIES,
                parameters={
                    "properties": {**self._plan.first_set, **dict.fromkeys(self._plan.first_unset)}
                },
            )
            if self._plan.first_set
            else Operation(
                name=OperationName.UNSET_TBLPROPERTIES,
                parameters={"properties": list(self._plan.first_unset), "ifExists": True},
            )
        )
        # Where files and metadata must fit each other, a file that comes in now must not pass.
        self._commits.commit(operation, metadata, reads_table=self._plan.atomic)
        return True

    def _strip(self) -> bool:
        """Take the feature out of the columns before history is truncated, which shows them."""
        metadata = self._current.metadata
        stripped = self._plan.stripped(metadata) if self._plan.truncate_history else metadata
        if stripped == metadata:
            return False
        self._refuse_rewrite()
        operation = Operation(name=OperationName.CHANGE_COLUMNS)
        self._commits.commit(operation, stripped, waived_rules=_REWRITTEN, reads_table=True)
        return True

    def _forget_row_ids(self) -> bool:
        adds = [
            msgspec.structs.replace(
                add, base_row_id=None, default_row_commit_version=None, data_change=False
            )
            for add in self._current.adds()
            if add.base_row_id is not None or add.default_row_commit_version is not None
        ]
        if adds:
            self._commits.commit(Operation(name=OperationName.ROW_TRACKING_UNBACKFILL), *adds)
        return bool(adds)

    def _keep_vector_files(self) -> bool:
        """Put tombstones on the vector files that history still needs.

        Clients that know nothing of deletion vectors may write to the table afterwards, and their
        VACUUM would take files that no action names for orphans.
        """
        from twinlake.log import dv_path

        if self._plan.truncate_history:
            return False
        removes = list(removes_from(self._current.tombstones()))
        paths = {dv_path(r.deletion_vector) for r in removes if r.deletion_vector is not None}
        missing = sorted(path for path in paths - {r.path for r in removes} if path is not None)
        now = self._context.runtime.clock.now_ms()
        tombstones = [
            RemoveFile(path=path, data_change=False, deletion_timestamp=now) for path in missing
        ]
        if tombstones:
            self._commits.commit(
                Operation(name=OperationName.DELETION_VECTOR_TOMBSTONES), *tombstones
            )
        return bool(tombstones)

    def _leave_v2_checkpoint(self) -> bool:
        """Make sure that the current state is not read from a V2 checkpoint any more."""
        found = load_snapshot(self._current.store, self._current.version).checkpoint
        if found is None or not is_v2_checkpoint(self._current.store, found):
            return False
        self._checkpointed_commit()
        return True

    def _truncate(self, *, changed: bool) -> None:
        plan, metadata = self._plan, self._current.metadata
        retention = property_value(metadata, keys.TRUNCATE_HISTORY_RETENTION_DURATION)
        if changed and retention:
            self._wait(
                "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD",
                "the feature was in use until now, and the history that shows it is younger than "
                f"{keys.TRUNCATE_HISTORY_RETENTION_DURATION}",
            )
        cleanup_log(
            self._current,
            runtime=self._context.runtime,
            retention_ms=retention,
            granularity_ms=_MINUTE_MS if retention else 1,
        )
        left = (
            self._unprotected_history()
            if plan.trace is FeatureTrace.PROTECTED_HISTORY
            else self._traces()
        )
        if left:
            self._wait(
                "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST",
                f"versions {', '.join(map(str, left[:5]))} of the history still show it",
            )

    def _wait(self, delta_class: str, why: str) -> None:
        raise UserError(
            Code.FEATURE_DROP,
            f"{self._plan.feature} cannot be dropped yet.",
            why=why,
            fix="Run the same call again when that history may be deleted, or drop the "
            "feature without truncating history.",
            delta_class=delta_class,
            fields={"feature": self._plan.feature},
        )

    def _remaining(self) -> list[int]:
        from twinlake.log import LogFileKind, list_log

        files = list_log(self._current.store)
        return [file.version for file in files if file.kind is LogFileKind.COMMIT]

    def _unprotected_history(self) -> list[int]:
        before = property_value(self._current.metadata, keys.REQUIRE_CHECKPOINT_PROTECTION) or 0
        return [version for version in self._remaining() if version < before]

    def _traces(self) -> list[int]:
        store, trace = self._current.store, self._plan.trace
        if self._plan.trace is FeatureTrace.V2_CHECKPOINTS:
            # Its traces are the checkpoints themselves: no commit says how they were written.
            return v2_checkpoints(store)
        versions = self._remaining()
        found = [
            version
            for version in versions
            if any(leaves_trace(trace, action) for action in read_commit(store, version))
        ]
        if versions and not found:
            # The earliest state may come from a checkpoint whose own commits are gone.
            earliest = load_snapshot(store, versions[0])
            state: list[Action] = [earliest.metadata, *earliest.adds()]
            if any(leaves_trace(trace, action) for action in state):
                found.append(versions[0])
        return found

    def _downgrade(self) -> None:
        self._refuse_rewrite()
        plan, snapshot = self._plan, self._current
        self._seen = snapshot
        metadata = plan.downgrade(snapshot.metadata, version=snapshot.version + 1)
        names = set(snapshot.domains) if "*" in plan.domains else set(plan.domains)
        tombstones = [
            DomainMetadata(domain=name, configuration=domain.configuration, removed=True)
            for name, domain in sorted(snapshot.domains.items())
            if name in names
        ]
        # The plan was made before the commits above, which may have changed the protocol.
        lowered = plan_drop(
            snapshot.protocol,
            snapshot.metadata,
            plan.feature,
            truncate_history=plan.truncate_history,
        ).protocol
        changed: list[Any] = [metadata] if metadata != snapshot.metadata else []
        operation = Operation(
            name=OperationName.DROP_FEATURE,
            parameters={"featureName": plan.feature, "truncateHistory": plan.truncate_history},
        )
        self._commits.commit(
            operation,
            lowered,
            *changed,
            *tombstones,
            system_domains=frozenset(names),
            context=client_context(revalidate=self._revalidate),
        )

    def _revalidate(self, _: Change, winner: Winner) -> str | None:
        """Why the table is not fit for the downgrade any more after a concurrent commit."""
        if any(leaves_trace(self._plan.trace, action) for action in winner.actions):
            return f"version {winner.version} used {self._plan.feature} again"
        self._seen = self._seen.advance(winner.version, winner.actions)
        if self._in_the_way(self._seen):
            return f"version {winner.version} added files that need {self._plan.feature}"
        return None
