"""What happens after a commit: checksum, checkpoint, cleanup, and whatever a caller adds.

The commit has happened when hooks run, so a hook that fails must never look like a commit that
failed: its error is logged, reported as a warning, and that is all. A simulated crash is no
``Exception`` and passes through.
"""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from twinlake.errors import TwinlakeError
from twinlake.protocol import keys, property_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from twinlake.actions import Action
    from twinlake.log import Snapshot
    from twinlake.runtime import Runtime

__all__ = [
    "CHECKPOINT_HOOK",
    "CHECKSUM_HOOK",
    "CLEANUP_HOOK",
    "DELTA_HOOKS",
    "HookContext",
    "HookWarning",
    "PostCommitHook",
    "run_hooks",
]

_LOGGER: Final = logging.getLogger("twinlake.commit")


@dataclass(frozen=True, slots=True, kw_only=True)
class HookContext:
    """What a hook may look at."""

    snapshot: Snapshot
    """The table after the commit."""
    previous: Snapshot | None
    """The table just before the commit; None for a new table."""
    actions: tuple[Action, ...]
    runtime: Runtime

    @property
    def version(self) -> int:
        """The version that was committed."""
        return self.snapshot.version


@dataclass(frozen=True, slots=True, kw_only=True)
class PostCommitHook:
    """One row of the ordered registry: a name and what to run."""

    name: str
    run: Callable[[HookContext], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class HookWarning:
    """A hook that failed after a commit that succeeded."""

    hook: str
    version: int
    error: str

    def __str__(self) -> str:
        return f"Version {self.version} is committed, but {self.hook} failed: {self.error}"


def run_hooks(hooks: Iterable[PostCommitHook], context: HookContext) -> tuple[HookWarning, ...]:
    """Run every hook in order; failures become warnings."""
    warnings = []
    for hook in hooks:
        try:
            hook.run(context)
        except Exception as error:
            text = error.what if isinstance(error, TwinlakeError) else _shown(error)
            warnings.append(HookWarning(hook=hook.name, version=context.version, error=text))
            # Handlers of the caller's logging may raise as well.
            with contextlib.suppress(Exception):
                _log(hook, context, error, text)
    return tuple(warnings)


def _shown(error: Exception) -> str:
    try:
        return f"{error!r}"
    except Exception:
        return type(error).__name__


def _log(hook: PostCommitHook, context: HookContext, error: Exception, text: str) -> None:
    _LOGGER.warning(
        "post-commit hook %s failed after version %d: %s",
        hook.name,
        context.version,
        f"{text} {error.why}".rstrip() if isinstance(error, TwinlakeError) else text,
        # A full disk is no bug: where our error says all, a trace hides it.
        exc_info=None if isinstance(error, TwinlakeError) else error,
        extra={
            "twinlake_hook": hook.name,
            "twinlake_version": context.version,
            "twinlake_table": context.snapshot.store.url,
        },
    )


def _is_checkpoint_due(context: HookContext) -> bool:
    interval = property_value(context.snapshot.metadata, keys.CHECKPOINT_INTERVAL)
    return bool(context.version and interval and context.version % interval == 0)


def _checkpoint(context: HookContext) -> None:
    if not _is_checkpoint_due(context):
        return
    from twinlake.log import write_checkpoint

    write_checkpoint(context.snapshot, runtime=context.runtime)


def _checksum(context: HookContext) -> None:
    from twinlake.log import write_checksum

    write_checksum(context.snapshot)


def _cleanup(context: HookContext) -> None:
    """Delete expired history, as Delta does: whenever a checkpoint was written, never else."""
    if not (_is_checkpoint_due(context) and _may_be_expired(context)):
        return
    from twinlake.log import cleanup_log, read_last_checkpoint

    hint = read_last_checkpoint(context.snapshot.store)
    if hint is not None and hint["version"] == context.version:
        cleanup_log(context.snapshot, runtime=context.runtime)


def _may_be_expired(context: HookContext) -> bool:
    """Whether a listing could find anything; for a young table its metadata is enough."""
    metadata = context.snapshot.metadata
    if not property_value(metadata, keys.ENABLE_EXPIRED_LOG_CLEANUP):
        return False
    now, made = context.runtime.clock.now_ms(), metadata.created_time
    retention = property_value(metadata, keys.LOG_RETENTION_DURATION)
    # A time in the future says nothing.
    return made is None or made > now or made <= now - retention


CHECKSUM_HOOK: Final = PostCommitHook(name="checksum", run=_checksum)
CHECKPOINT_HOOK: Final = PostCommitHook(name="checkpoint", run=_checkpoint)
CLEANUP_HOOK: Final = PostCommitHook(name="cleanup", run=_cleanup)
DELTA_HOOKS: Final[tuple[PostCommitHook, ...]] = (CHECKSUM_HOOK, CHECKPOINT_HOOK, CLEANUP_HOOK)
"""In this order; tables run those of ``TABLE_HOOKS``, which begin with them."""
