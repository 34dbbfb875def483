"""Syncing Iceberg metadata after commits, and its lag behind the Delta log.

A conversion that fails never fails the commit it follows. What went wrong is stored beside the
metadata, where the lag is read from; the next conversion that succeeds deletes it.
"""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from twinlake.commit import DELTA_HOOKS, PostCommitHook
from twinlake.compat import enabled_compats
from twinlake.errors import CompatViolation, CorruptTable, TwinlakeError
from twinlake.iceberg.sync.integrity import IntegrityCheck
from twinlake.iceberg.sync.metadata_files import MetadataFiles
from twinlake.iceberg.sync.table_sync import sync_table
from twinlake.log import commit_key, load_snapshot
from twinlake.protocol import keys
from twinlake.runtime import silent

if TYPE_CHECKING:
    from twinlake.commit import HookContext
    from twinlake.iceberg.sync.table_sync import SyncResult
    from twinlake.log import Snapshot
    from twinlake.protocol import Metadata
    from twinlake.runtime import Executor, Progress

__all__ = [
    "ICEBERG_HOOKS",
    "SYNC_HOOK",
    "Lag",
    "lag_of",
    "sync_and_record",
    "syncs_with_commit",
]

_WITH_THE_COMMIT: Final = "commit"
_LOGGER: Final = logging.getLogger("twinlake.iceberg")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """How far the Iceberg side is behind the Delta log, and why."""

    delta_version: int
    iceberg_version: int | None
    """None where there is no metadata yet."""
    why: str = ""

    @property
    def versions(self) -> int:
        """How many versions are not converted yet."""
        behind = self.delta_version - (-1 if self.iceberg_version is None else self.iceberg_version)
        return max(0, behind)

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return {
            "delta_version": self.delta_version,
            "iceberg_version": self.iceberg_version,
            "versions": self.versions,
            "why": self.why,
        }


def lag_of(snapshot: Snapshot) -> Lag:
    """The lag of the Iceberg side of a table."""
    files = MetadataFiles(snapshot.store)
    newest = files.newest()
    behind = newest is None or newest < snapshot.version
    why = _why_behind(snapshot.metadata, files) if behind else ""
    return Lag(delta_version=snapshot.version, iceberg_version=newest, why=why)


def _why_behind(metadata: Metadata, files: MetadataFiles) -> str:
    if not enabled_compats(metadata):
        return "the table has no Iceberg compat feature"
    return files.failure() or "no sync has run for this version"


def sync_and_record(
    snapshot: Snapshot,
    *,
    executor: Executor | None = None,
    check: IntegrityCheck = IntegrityCheck.SIZES,
    progress: Progress = silent,
) -> SyncResult:
    """Convert what is missing; a failure is written down before it is raised."""
    files = MetadataFiles(snapshot.store)
    try:
        done = sync_table(snapshot, executor=executor, check=check, progress=progress)
    except Exception as error:
        why = _reason(error)
        # A store that fails must not hide why.
        with contextlib.suppress(TwinlakeError):
            files.note_failure(why)
            _log_outcome(snapshot, files.newest(), why)
        raise
    files.note_failure(None)
    _log_outcome(snapshot, done.version, "", converted=done.converted, rebuilt=done.rebuilt)
    return done


def _reason(error: Exception) -> str:
    if isinstance(error, CompatViolation | CorruptTable):
        # It stays until somebody does something about the table.
        return f"{error.what} {error.fix}"
    return error.what if isinstance(error, TwinlakeError) else repr(error)


def _log_outcome(snapshot: Snapshot, version: int | None, why: str, **more: Any) -> None:
    """Put the lag in the log, with its parts as fields of the record."""
    lag = Lag(delta_version=snapshot.version, iceberg_version=version, why=why)
    fields = {"table": snapshot.store.url, **lag.to_dict(), **more}
    _LOGGER.log(
        logging.WARNING if why else logging.INFO,
        "Iceberg metadata of %s is at version %s of %d%s",
        snapshot.store.url,
        version,
        snapshot.version,
        f": {why}" if why else "",
        extra={f"twinlake_{key}": value for key, value in fields.items()},
    )


def syncs_with_commit(metadata: Metadata) -> bool:
    """Whether Iceberg metadata is to be made with every commit."""
    wanted = metadata.get(keys.ICEBERG_SYNC).strip().lower() == _WITH_THE_COMMIT
    # Another writer may set the property on a table without a compat feature.
    return wanted and bool(enabled_compats(metadata))


def _after_commit(context: HookContext) -> None:
    if syncs_with_commit(context.snapshot.metadata):
        # What follows each commit looks at what changed, not at what there is.
        sync_and_record(
            context.snapshot, executor=context.runtime.executor, check=IntegrityCheck.NOTHING
        )
        _overtake(context)


def _overtake(context: HookContext) -> None:
    """Go on to a commit that came meanwhile.

    Whoever made it may have pointed to its version already, just before we pointed to ours.
    """
    store, version = context.snapshot.store, context.version
    if store.head(commit_key(version + 1)) is None:
        return
    newest = MetadataFiles(store).newest()
    if newest is None or newest <= version:
        executor = context.runtime.executor
        sync_and_record(load_snapshot(store), executor=executor, check=IntegrityCheck.NOTHING)


SYNC_HOOK: Final = PostCommitHook(name="iceberg", run=_after_commit)
ICEBERG_HOOKS: Final[tuple[PostCommitHook, ...]] = (*DELTA_HOOKS, SYNC_HOOK)
"""Delta's, then the conversion; tables run ``TABLE_HOOKS``, which begin with them."""
