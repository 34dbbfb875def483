"""VACUUM: delete the files that no version within the retention can name.

Which file may go is decided by ``commit.plans``; here the folder is listed, the log is asked, and
what may go is deleted, between a commit that announces it and one that says how it went. Killed at
any point, the table is whole and the next run picks up the rest: nothing is remembered but the
hint for ``lite``, which is written last.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.actions import AddCDCFile, DeletionVectorDescriptor, RemoveFile
from twinlake.commit import HookWarning, Operation, OperationName
from twinlake.commit.plans import VacuumMode, VacuumPlan, VacuumRules, plan_vacuum
from twinlake.errors import Code, StorageError, UserError
from twinlake.log import CACHE, read_commit, removes_from, render_timestamp
from twinlake.protocol import CLIENT_FEATURES, keys, property_value
from twinlake.schema import physical_name
from twinlake.table.operations.context import CommitSequence
from twinlake.table.operations.file_inventory import (
    DeleteFiles,
    Inventory,
    delete_folders,
    list_table,
)
from twinlake.table.rendering import files_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from twinlake.actions import Action
    from twinlake.log import CommitTimes, Snapshot
    from twinlake.runtime import Executor
    from twinlake.storage import Store
    from twinlake.table.operations.context import OperationContext

__all__ = ["Vacuum", "VacuumResult"]

_HOUR_MS: Final = 3_600_000
_HINT_KEY: Final = "_delta_log/_last_vacuum_info"
_HINT_FIELD: Final = "latestCommitVersionOutsideOfRetentionWindow"
_BATCH: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class VacuumResult:
    """What a VACUUM deleted, or in a dry run would delete."""

    location: str
    dry_run: bool
    mode: VacuumMode
    retention_ms: int
    cutoff_ms: int
    """Files that left the table, or were written, before this time are not kept."""
    files: tuple[str, ...]
    """Relative to the table, decoded, sorted."""
    directories: tuple[str, ...]
    """Folders without a file that counts; those that are empty go too."""
    size_in_bytes: int
    num_directories: int
    """How many folders were looked at, the root among them."""
    num_deleted: int = 0
    """Files and folders that were there and are gone."""
    version: int | None = None
    """The version that says how it went; None in a dry run."""
    warnings: tuple[HookWarning, ...] = ()
    """Post-commit work that failed; the commits and the deletions stand."""

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data."""
        return {
            "location": self.location,
            "dry_run": self.dry_run,
            "mode": str(self.mode),
            "retention_ms": self.retention_ms,
            "cutoff": render_timestamp(self.cutoff_ms),
            "cutoff_ms": self.cutoff_ms,
            "num_files": len(self.files),
            "size_in_bytes": self.size_in_bytes,
            "num_directories": self.num_directories,
            "num_deleted": self.num_deleted,
            "version": self.version,
            "warnings": [str(warning) for warning in self.warnings],
            "files": list(self.files),
            "directories": list(self.directories),
        }

    def __repr__(self) -> str:
        return f"<VacuumResult of {self.location}: {self._summary}>"

    @property
    def _summary(self) -> str:
        found = files_text(len(self.files), self.size_in_bytes)
        if self.dry_run:
            return f"{found} would be deleted"
        return (
            f"{found} to delete, {self.num_deleted:,} deleted, recorded in version {self.version}"
        )

    def _repr_html_(self) -> str:
        from twinlake._html import fields, grid, page

        return page(
            f"VACUUM: {self._summary}",
            fields(
                [
                    ("location", self.location),
                    ("mode", str(self.mode)),
                    ("needed by versions since", render_timestamp(self.cutoff_ms)),
                    ("folders looked at", self.num_directories),
                    *(("warning", str(warning)) for warning in self.warnings),
                ]
            ),
            grid(["file"], ((name,) for name in self.files)),
            grid(["empty folder"], ((name,) for name in self.directories)),
        )


class Vacuum:
    """One VACUUM of the table a snapshot belongs to."""

    def __init__(
        self,
        context: OperationContext,
        snapshot: Snapshot,
        *,
        retention_hours: float | None = None,
        mode: str = VacuumMode.FULL,
        enforce_retention: bool = True,
    ) -> None:
        self._context = context
        self._commits = CommitSequence(context, snapshot)
        self._store: Store = snapshot.store
        self._mode = _mode(mode)
        self._enforce = enforce_retention
        self._given = None if retention_hours is None else round(retention_hours * _HOUR_MS)

    @property
    def snapshot(self) -> Snapshot:
        """The table as the last step left it."""
        return self._commits.snapshot

    def run(self, *, dry_run: bool = False) -> VacuumResult:
        """Find what may go and, unless it is a dry run, delete it."""
        self._check_protocol()
        rules = self._rules()
        rules.check()
        now = self._context.runtime.clock.now_ms()
        lite = self._mode is VacuumMode.LITE
        found = Inventory() if lite else list_table(self._store, self._context.executor)
        # The listing comes first: a file that is committed meanwhile is live in the later snapshot.
        self._commits.snapshot = CACHE.latest(self._store)
        self._check_protocol()
        history = _History(self.snapshot, now - rules.retention_ms, self._context.executor)
        plan = self._plan(rules, now, found, history)
        result = VacuumResult(
            location=self._store.url,
            dry_run=dry_run,
            mode=self._mode,
            retention_ms=rules.retention_ms,
            cutoff_ms=plan.cutoff_ms,
            files=plan.delete,
            directories=plan.folders,
            size_in_bytes=plan.delete_bytes,
            num_directories=plan.folders_seen + 1,
        )
        return result if dry_run else self._carry_out(plan, result, history)

    def _check_protocol(self) -> None:
        # Delta protocol, vacuumProtocolCheck: what deletes files must know all that writers must.
        protocol, metadata = self.snapshot.protocol, self.snapshot.metadata
        protocol.check_read_write(CLIENT_FEATURES, metadata=metadata)

    def _rules(self) -> VacuumRules:
        metadata = self.snapshot.metadata
        default = int(property_value(metadata, keys.DELETED_FILE_RETENTION_DURATION))
        logical = set(metadata.partition_columns)
        physical = {physical_name(f) for f in metadata.schema if f.name in logical}
        return VacuumRules(
            retention_ms=default if self._given is None else self._given,
            tombstone_retention_ms=default,
            mode=self._mode,
            partition_columns=tuple(sorted(logical | physical)),
            force=not self._enforce,
        )

    def _plan(
        self, rules: VacuumRules, now: int, found: Inventory, history: _History
    ) -> VacuumPlan:
        from twinlake.log import dv_path

        snapshot, cutoff = self.snapshot, now - rules.retention_ms
        tombstones = [
            stone
            for stone in removes_from(snapshot.tombstones())
            if (stone.deletion_timestamp or 0) >= cutoff
        ]
        if rules.retention_ms > rules.tombstone_retention_ms:
            # Checkpoints have forgotten removals that are younger than what was asked for.
            tombstones += history.removals_since_cutoff()
        if self._mode is VacuumMode.LITE:
            tombstones += history.expired_since_last_time()
        return plan_vacuum(
            live=_named_by(snapshot.add_files()),
            tombstones=tombstones,
            listing=found.files,
            folders=found.folders,
            vector_path=dv_path,
            rules=rules,
            now=now,
        )

    def _carry_out(self, plan: VacuumPlan, result: VacuumResult, history: _History) -> VacuumResult:
        default = int(property_value(self.snapshot.metadata, keys.DELETED_FILE_RETENTION_DURATION))
        given = {} if self._given is None else {"specifiedRetentionMillis": self._given}
        self._commit(
            OperationName.VACUUM_START,
            {"retentionCheckEnabled": self._enforce, "defaultRetentionMillis": default, **given},
            plan.metrics,
        )
        try:
            self._expire_iceberg_snapshots()
            deleted = self._delete(plan)
        except Exception:
            self._commit(OperationName.VACUUM_END, {"status": "FAILED"})
            raise
        self._commit(
            OperationName.VACUUM_END,
            {"status": "COMPLETED"},
            {"numDeletedFiles": deleted, "numVacuumedDirectories": result.num_directories},
        )
        history.remember()
        return replace(
            result,
            num_deleted=deleted,
            version=self.snapshot.version,
            warnings=self._commits.warnings,
        )

    def _expire_iceberg_snapshots(self) -> None:
        """Let go of Iceberg snapshots that may name what is deleted next; without it, nothing is.

        A table that gave its compat feature up has no Iceberg side to bring up to date any more.
        """
        from twinlake.compat import enabled_compats
        from twinlake.iceberg import sync_and_record, synced_version
        from twinlake.table.catalog.publish import follow

        synced = synced_version(self.snapshot)
        if synced is None:
            return
        if enabled_compats(self.snapshot.metadata):
            sync_and_record(self.snapshot, executor=self._context.executor)
            follow(self.snapshot)
            return
        text = f"Iceberg metadata of version {synced} stays and may name files that are gone"
        version = self.snapshot.version
        self._commits.warnings += (HookWarning(hook="iceberg", version=version, error=text),)

    def _delete(self, plan: VacuumPlan) -> int:
        batches = list(_batches(plan.delete))
        deleted = done = 0
        counts = self._context.executor.map(DeleteFiles(self._store), batches)
        for batch, count in zip(batches, counts, strict=True):
            deleted += count
            done += len(batch)
            self._context.progress("vacuum", done, len(plan.delete))
        return deleted + delete_folders(self._store, plan.folders)

    def _commit(self, name: OperationName, parameters: dict[str, Any], metrics: Any = None) -> None:
        self._commits.commit(Operation(name=name, parameters=parameters, metrics=metrics or {}))


class _History:
    """What the commits say of removals, on both sides of the cutoff."""

    def __init__(self, snapshot: Snapshot, cutoff_ms: int, executor: Executor) -> None:
        self._snapshot = snapshot
        self._store = snapshot.store
        self._cutoff_ms = cutoff_ms
        self._executor = executor
        self._times = _commit_times(snapshot)
        self._expired_up_to = self._times.newest_at(cutoff_ms)
        """The newest version that was made before the retention began; None if there is none."""

    def removals_since_cutoff(self) -> list[RemoveFile]:
        """Of the versions within the retention, as far as the log goes back."""
        versions = self._times.versions
        first = versions.start if self._expired_up_to is None else self._expired_up_to + 1
        # Commits without a removal time count as old; here every removal of a young commit counts.
        return [
            msgspec.structs.replace(stone, deletion_timestamp=self._cutoff_ms)
            for stone in self._removals(range(first, versions.stop))
        ]

    def expired_since_last_time(self) -> list[RemoveFile]:
        """Removals and change files of the versions before the retention, not yet dealt with."""
        versions, last = self._times.versions, self._last_time()
        if self._expired_up_to is None:
            return []
        if versions.start != 0 and (last is None or last < versions.start):
            raise UserError(
                Code.VERSION_NOT_FOUND,
                "VACUUM LITE cannot find all files that may go.",
                why=f"the log starts at version {versions.start}, and "
                + (
                    "no earlier VACUUM has recorded how far it got"
                    if last is None
                    else f"the last VACUUM got as far as version {last}"
                ),
                fix="Run a full VACUUM once: `Table.vacuum()` or `twinlake vacuum PATH --yes`; "
                "later ones can be lite again.",
                delta_class="DELTA_CANNOT_VACUUM_LITE",
                fields={"earliest_version": versions.start, "last_vacuumed_version": last},
            )
        first = versions.start if last is None else min(last + 1, self._snapshot.version)
        return self._removals(range(first, self._expired_up_to + 1))

    def remember(self) -> None:
        """Record how far this VACUUM got, so that a lite one can go on from there."""
        from twinlake.log.checkpoint import replace_object

        # An earlier one may have got further with less retention; what it deleted stays deleted.
        done = [v for v in (self._expired_up_to, self._last_time()) if v is not None]
        hint = {_HINT_FIELD: max(done)} if done else {}
        replace_object(self._store, _HINT_KEY, msgspec.json.encode(hint))

    def _last_time(self) -> int | None:
        try:
            hint = msgspec.json.decode(self._store.read(_HINT_KEY))
        except (StorageError, msgspec.DecodeError) as error:
            if isinstance(error, StorageError) and error.code != Code.STORAGE_NOT_FOUND:
                raise
            return None
        version = hint.get(_HINT_FIELD) if isinstance(hint, dict) else None
        return version if isinstance(version, int) else None

    def _removals(self, versions: Iterable[int]) -> list[RemoveFile]:
        read = self._executor.map(_ReadRemovals(self._store), list(versions))
        return [stone for stones in read for stone in stones]


@dataclass(frozen=True, slots=True)
class _Live:
    """What of a live file matters here; the whole action takes ten times as long to make."""

    path: str
    deletion_vector: DeletionVectorDescriptor | None


def _named_by(files: pa.Table) -> Iterator[_Live]:
    for batch in files.select(["path", "deletion_vector"]).to_batches(max_chunksize=4096):
        paths, vectors = (column.to_pylist() for column in batch.columns)
        for path, vector in zip(paths, vectors, strict=True):
            yield _Live(path, None if vector is None else DeletionVectorDescriptor(**vector))


@dataclass(frozen=True, slots=True)
class _ReadRemovals:
    """A value and no closure, so that an executor may send it to another process."""

    store: Store

    def __call__(self, version: int) -> list[RemoveFile]:
        return [
            stone for action in read_commit(self.store, version) for stone in _as_removal(action)
        ]


def _as_removal(action: Action) -> Iterator[RemoveFile]:
    if isinstance(action, RemoveFile):
        yield action
    elif isinstance(action, AddCDCFile):
        # Nothing but its own version refers to a change file: it is expired as soon as that is.
        yield RemoveFile(path=action.path, data_change=False, size=action.size)


def _commit_times(snapshot: Snapshot) -> CommitTimes:
    from twinlake.log import CommitTimes, contiguous_commits, list_log

    commits = contiguous_commits(list_log(snapshot.store), snapshot.version)
    return CommitTimes(snapshot.store, snapshot, commits)


def _batches(keys: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    return (keys[start : start + _BATCH] for start in range(0, len(keys), _BATCH))


def _mode(mode: str) -> VacuumMode:
    try:
        return VacuumMode(str(mode).lower())
    except ValueError as error:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{mode!r} is not a mode of VACUUM.",
            why="full looks at the whole folder, lite at the log alone",
            fix="Pass `full` or `lite`.",
            fields={"mode": str(mode)},
        ) from error
