"""What a caller may choose about a commit, and what it gets back."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as package_version
from typing import TYPE_CHECKING

from twinlake.commit.checks.registry import CHECKS
from twinlake.commit.conflict.rule import ConflictRule, Context
from twinlake.commit.conflict.rules import RULES
from twinlake.errors import UnsupportedFeature
from twinlake.protocol import CLIENT_FEATURES, FEATURES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from twinlake.actions import Action, Protocol
    from twinlake.commit.change import Change
    from twinlake.commit.checks.check import CommitCheck
    from twinlake.commit.hooks import HookWarning
    from twinlake.commit.isolation import IsolationLevel
    from twinlake.commit.summary import Winner
    from twinlake.log import Snapshot

__all__ = ["AlreadyCommitted", "CommitOptions", "CommitResult", "client_context", "engine_info"]


@cache
def engine_info() -> str:
    """Who wrote a commit, as ``commitInfo.engineInfo`` says it."""
    try:
        return f"twinlake/{package_version('twinlake')}"
    except PackageNotFoundError:
        return "twinlake/unknown"


def _unsupported(protocol: Protocol) -> str | None:
    try:
        protocol.check_read_write(CLIENT_FEATURES)
    except UnsupportedFeature as error:
        return error.what
    return None


def _is_concurrent(name: str) -> bool:
    feature = FEATURES.get(name)
    return feature is not None and feature.concurrent


def client_context(revalidate: Callable[[Change, Winner], str | None] | None = None) -> Context:
    """What the conflict rules need to know of this client.

    ``revalidate`` is for DROP FEATURE: it says why the table is not fit any more after a winner.
    """
    return Context(unsupported=_unsupported, is_concurrent=_is_concurrent, revalidate=revalidate)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOptions:
    """Everything about a commit that has a sensible default."""

    policy: str = "bundled"
    """How the protocol grows when metadata asks for features."""
    isolation: IsolationLevel | None = None
    """Instead of the level the table asks for."""
    user_metadata: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    """For ``commitInfo.tags``."""
    system_domains: frozenset[str] = frozenset()
    """The ``delta.*`` domains this commit may write."""
    checks: tuple[CommitCheck, ...] = CHECKS
    trusted_files: bool = False
    """Whether the added files were written by our own writers for this very commit.

    Otherwise their footers are read where the table has a compat feature.
    """
    waived_rules: frozenset[str] = frozenset()
    """Rules of schema changes and of compat features that the operation answers for."""
    rules: tuple[ConflictRule, ...] = RULES
    context: Context = field(default_factory=client_context)
    max_attempts: int = 10_000
    """How many versions are tried before giving up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitResult:
    """A commit that happened."""

    version: int
    snapshot: Snapshot
    attempts: int = 1
    warnings: tuple[HookWarning, ...] = ()
    """Hooks that failed afterwards; the commit stands."""
    actions: tuple[Action, ...] = ()
    """What was written, ``commitInfo`` first."""
    rebased: tuple[str, ...] = ()
    """What was adapted to commits that came first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyCommitted:
    """The application wrote this version, or a later one, before: there is nothing to do."""

    app_id: str
    version: int
    latest: int
    """The version the table has for the application."""
