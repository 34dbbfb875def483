"""RESTORE: an earlier version's files and metadata, as a new version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.commit import CommitOptions, Operation, OperationName, Transaction
from twinlake.commit.plans import plan_restore
from twinlake.log import adds_from
from twinlake.storage import resolve

if TYPE_CHECKING:
    from collections.abc import Iterable

    from twinlake.commit import CommitResult, PostCommitHook
    from twinlake.commit.plans import RestorePlan
    from twinlake.log import Snapshot
    from twinlake.runtime import Runtime

__all__ = ["restore_snapshot"]


def restore_snapshot(
    current: Snapshot,
    target: Snapshot,
    *,
    policy: str,
    runtime: Runtime,
    hooks: Iterable[PostCommitHook],
) -> CommitResult:
    """Commit the state of ``target`` on top of ``current``; the protocol never comes down."""
    # Files that must not be followed can still be removed: restoring is how to be rid of them.
    plan = plan_restore(adds_from(current.add_files()), target.adds())
    outcome = plan.finish(now=runtime.clock.now_ms(), missing=_missing(current, plan, runtime))
    operation = Operation(
        name=OperationName.RESTORE,
        parameters={"version": target.version, "timestamp": None},
        metrics=outcome.metrics,
    )
    transaction = Transaction(
        current, operation, runtime, hooks, options=CommitOptions(policy=policy)
    )
    transaction.record_whole_table()
    if target.metadata != current.metadata:
        transaction.update_metadata(target.metadata)
    return transaction.add(*outcome.removes, *outcome.adds).commit()


def _missing(current: Snapshot, plan: RestorePlan, runtime: Runtime) -> list[str]:
    """The needed files that VACUUM has deleted meanwhile."""
    from twinlake.log.deletion_vectors import dv_path

    store = current.store

    def is_gone(path: str) -> bool:
        home, key = resolve(store, path)
        return home.head(key) is None

    vectors = (dv_path(vector) for vector in plan.needed_vectors)
    paths = [*plan.needed_paths, *(path for path in vectors if path is not None)]
    checked = zip(paths, runtime.executor.map(is_gone, paths), strict=True)
    return [path for path, gone in checked if gone]
