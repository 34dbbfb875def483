"""Transactions: read sets, conflict rules, retries, unknown outcomes, post-commit hooks."""

from twinlake.commit.change import Base, Body, Change, assemble
from twinlake.commit.checks.registry import CHECKS, CommitCheck, Draft, Violation, run_checks
from twinlake.commit.conflict.rule import Clash, ClashKind, ConflictRule, Context, Rebase
from twinlake.commit.conflict.rules import RULES, Moved, Refused, follow, follow_all
from twinlake.commit.hooks import (
    CHECKPOINT_HOOK,
    CHECKSUM_HOOK,
    CLEANUP_HOOK,
    DEFAULT_HOOKS,
    HookContext,
    HookWarning,
    PostCommitHook,
    run_hooks,
)
from twinlake.commit.isolation import IsolationLevel, effective_level, table_level
from twinlake.commit.operation import Operation, OperationName
from twinlake.commit.publish import Lost, Published, publish
from twinlake.commit.readset import ReadSet
from twinlake.commit.row_tracking import ROW_TRACKING_DOMAIN
from twinlake.commit.settings import (
    AlreadyCommitted,
    CommitOptions,
    CommitResult,
    client_context,
)
from twinlake.commit.summary import CommitSummary, Winner, summarize
from twinlake.commit.transaction import Transaction

__all__ = [
    "CHECKPOINT_HOOK",
    "CHECKS",
    "CHECKSUM_HOOK",
    "CLEANUP_HOOK",
    "DEFAULT_HOOKS",
    "ROW_TRACKING_DOMAIN",
    "RULES",
    "AlreadyCommitted",
    "Base",
    "Body",
    "Change",
    "Clash",
    "ClashKind",
    "CommitCheck",
    "CommitOptions",
    "CommitResult",
    "CommitSummary",
    "ConflictRule",
    "Context",
    "Draft",
    "HookContext",
    "HookWarning",
    "IsolationLevel",
    "Lost",
    "Moved",
    "Operation",
    "OperationName",
    "PostCommitHook",
    "Published",
    "ReadSet",
    "Rebase",
    "Refused",
    "Transaction",
    "Violation",
    "Winner",
    "assemble",
    "client_context",
    "effective_level",
    "follow",
    "follow_all",
    "publish",
    "run_checks",
    "run_hooks",
    "summarize",
    "table_level",
]
