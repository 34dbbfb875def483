"""Transactions: read sets, conflict rules, retries, unknown outcomes, post-commit hooks."""

from twinlake.commit.change import Base, Body, Change, assemble
from twinlake.commit.checks.check import CheckFailure, CommitCheck, Draft
from twinlake.commit.checks.compat import compat_refusal
from twinlake.commit.checks.footers import file_footers
from twinlake.commit.checks.registry import CHECKS, run_checks
from twinlake.commit.commit_write import CommitWritten, Lost, write_commit
from twinlake.commit.conflict.rule import Clash, ClashKind, ConflictRule, Context, Rebase
from twinlake.commit.conflict.rules import (
    RULES,
    Conflicting,
    Rebased,
    check_all_conflicts,
    check_conflicts,
)
from twinlake.commit.hooks import (
    CHECKPOINT_HOOK,
    CHECKSUM_HOOK,
    CLEANUP_HOOK,
    DELTA_HOOKS,
    HookContext,
    HookWarning,
    PostCommitHook,
    run_hooks,
)
from twinlake.commit.isolation import IsolationLevel, effective_level, table_level
from twinlake.commit.operation import Operation, OperationName
from twinlake.commit.options import (
    AlreadyCommitted,
    CommitOptions,
    CommitResult,
    client_context,
)
from twinlake.commit.read_set import ReadSet
from twinlake.commit.row_tracking import ROW_TRACKING_DOMAIN
from twinlake.commit.summary import CommitSummary, Winner, summarize
from twinlake.commit.transaction import Transaction

__all__ = [
    "CHECKPOINT_HOOK",
    "CHECKS",
    "CHECKSUM_HOOK",
    "CLEANUP_HOOK",
    "DELTA_HOOKS",
    "ROW_TRACKING_DOMAIN",
    "RULES",
    "AlreadyCommitted",
    "Base",
    "Body",
    "Change",
    "CheckFailure",
    "Clash",
    "ClashKind",
    "CommitCheck",
    "CommitOptions",
    "CommitResult",
    "CommitSummary",
    "CommitWritten",
    "ConflictRule",
    "Conflicting",
    "Context",
    "Draft",
    "HookContext",
    "HookWarning",
    "IsolationLevel",
    "Lost",
    "Operation",
    "OperationName",
    "PostCommitHook",
    "ReadSet",
    "Rebase",
    "Rebased",
    "Transaction",
    "Winner",
    "assemble",
    "check_all_conflicts",
    "check_conflicts",
    "client_context",
    "compat_refusal",
    "effective_level",
    "file_footers",
    "run_checks",
    "run_hooks",
    "summarize",
    "table_level",
    "write_commit",
]
