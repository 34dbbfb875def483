"""What every operation takes from outside the table, as one value, and the commits it makes.

An operation is one function, or one class with ``run()``. Its first argument is the context, its
second the snapshot it starts from (for a table that is to be created, the store).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from twinlake.commit import CommitOptions, Transaction
from twinlake.log import CACHE
from twinlake.runtime import Runtime
from twinlake.table.catalog.publish import TABLE_HOOKS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from twinlake.actions import Action
    from twinlake.commit import HookWarning, Operation, PostCommitHook
    from twinlake.log import Snapshot
    from twinlake.runtime import Engine, Executor, Progress, Rewriter

__all__ = ["CommitSequence", "OperationContext"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationContext:
    """Ports, upgrade policy, post-commit hooks, and the engine where there is one."""

    runtime: Runtime = field(default_factory=Runtime)
    policy: str = "bundled"
    hooks: tuple[PostCommitHook, ...] = TABLE_HOOKS
    engine: Engine | None = None

    @property
    def executor(self) -> Executor:
        """Runs work over many files: the engine's, else the one of this process."""
        return self.runtime.executor if self.engine is None else self.engine.executor

    @property
    def rewriter(self) -> Rewriter | None:
        """Rewrites data files; only an engine has one."""
        return self.runtime.rewriter if self.engine is None else self.engine.rewriter

    @property
    def progress(self) -> Progress:
        """Hears how far an operation is."""
        return self.runtime.progress

    def transaction(self, snapshot: Snapshot, operation: Operation, **options: Any) -> Transaction:
        """A transaction on top of the snapshot; ``options`` are those of ``CommitOptions``."""
        return Transaction(
            snapshot,
            operation,
            self.runtime,
            self.hooks,
            options=CommitOptions(policy=self.policy, **options),
        )


class CommitSequence:
    """The commits of one operation, each on top of the one before."""

    def __init__(self, context: OperationContext, snapshot: Snapshot) -> None:
        self._context = context
        self.snapshot = snapshot
        """The newest version that was seen."""
        self.warnings: tuple[HookWarning, ...] = ()
        """Post-commit hooks that failed after one of the commits; the commits stand."""
        self._start = snapshot.version
        self._commits = 0

    @property
    def foreign_commits(self) -> int:
        """How many of the versions that were seen since the start somebody else committed."""
        return self.snapshot.version - self._start - self._commits

    def commit(
        self,
        operation: Operation,
        *actions: Action,
        reads: Iterable[str] = (),
        reads_table: bool = False,
        **options: Any,
    ) -> None:
        """Commit the actions; ``reads`` are paths of files that must not change meanwhile."""
        transaction = self._context.transaction(self.snapshot, operation, **options)
        transaction.read_paths(reads)
        if reads_table:
            transaction.record_whole_table()
        result = transaction.add(*actions).commit()
        self.snapshot = result.snapshot
        self.warnings += result.warnings
        self._commits += 1

    def follow(self, other: CommitSequence) -> None:
        """Go on from where another operation ended."""
        self.snapshot = other.snapshot
        self.warnings += other.warnings
        self._commits += other._commits

    def refresh(self) -> None:
        """Move on to the latest version, whoever committed it."""
        CACHE.offer(self.snapshot)
        self.snapshot = CACHE.latest(self.snapshot.store)
