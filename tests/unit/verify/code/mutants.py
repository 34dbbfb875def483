"""Mistakes that could be made in the commit path, each with the workload that finds it.

A mistake is put into the shipped code by a patch of one function, as a wrong edit of it would be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.unit.verify.code import test_seeded_bugs as seeded
from twinlake.commit import hooks, isolation
from twinlake.commit.commit_write import CommitWritten
from twinlake.commit.conflict import rules
from twinlake.commit.plans import vacuum as vacuum_plans
from twinlake.iceberg.derive import operation as iceberg_operation
from twinlake.iceberg.sync import hook as sync_hook
from twinlake.iceberg.sync import log_reader
from twinlake.iceberg.sync.metadata_files import MetadataFiles
from twinlake.log import cleanup, snapshot_loader
from twinlake.log.checkpoint import columns, writer
from twinlake.log.names import LogFileKind
from twinlake.log.snapshot import Snapshot

__all__ = ["MUTANTS", "Mutant"]

Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A mistake: where it is, what it is, and which workload shows which broken property."""

    layer: str
    name: str
    put: Patch
    workload: str
    breaks: tuple[str, ...]
    fault: str | None = None
    sampled: bool = False
    """Whether it takes two faults at once, which are sampled."""


# --- conflict rules -----------------------------------------------------------------------------


def without_rule(*names: str) -> Patch:
    left = tuple(rule for rule in rules.RULES if rule.id not in names)

    def put(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(
            "twinlake.commit.transaction.check_conflicts",
            lambda ours, winner, ctx, _rules: rules.check_conflicts(ours, winner, ctx, left),
        )

    return put


def every_append_is_blind(patch: pytest.MonkeyPatch) -> None:
    """The isolation level of the table is not asked: it is always the weaker one."""
    weak = isolation.IsolationLevel.WRITE_SERIALIZABLE
    patch.setattr("twinlake.commit.change.Change.level", property(lambda _self: weak))


def first_winner_only(patch: pytest.MonkeyPatch) -> None:
    """Of the domains that a winner wrote, none is compared with those that were read."""
    real = rules._domains

    def domains(ours: Any, winner: Any, ctx: Any) -> Any:
        return real(replace(ours, actions=()), winner, ctx)

    replaced = tuple(
        replace(rule, check=domains) if rule.id == "OCC-03" else rule for rule in rules.RULES
    )
    patch.setattr(
        "twinlake.commit.transaction.check_conflicts",
        lambda ours, winner, ctx, _rules: rules.check_conflicts(ours, winner, ctx, replaced),
    )


# --- commits ------------------------------------------------------------------------------------


def no_last_look(patch: pytest.MonkeyPatch) -> None:
    """A free version is taken for the next one."""
    patch.setattr("twinlake.commit.transaction.missed_winner", lambda _held, _name: None)


def overwrite_the_entry(patch: pytest.MonkeyPatch) -> None:
    """The entry is written whether it is there or not."""

    def write_commit(store: Any, key: str, body: bytes, **_ports: Any) -> CommitWritten:
        store.put(key, body)
        return CommitWritten()

    patch.setattr("twinlake.commit.transaction.write_commit", write_commit)


def conflict_is_success(patch: pytest.MonkeyPatch) -> None:
    """What is found under the key is taken for our own."""

    def write_commit(store: Any, key: str, body: bytes, **_ports: Any) -> CommitWritten:
        store.create(key, body)
        return CommitWritten()

    patch.setattr("twinlake.commit.transaction.write_commit", write_commit)


def forget_applications(patch: pytest.MonkeyPatch) -> None:
    """What an application wrote before is not asked."""
    patch.setattr("twinlake.commit.transaction.Transaction.read_application", lambda *_: None)


def stale_reads(patch: pytest.MonkeyPatch) -> None:
    """A transaction records no file as read."""
    patch.setattr("twinlake.commit.transaction.Transaction.record", lambda self, _reads: self)


# --- the snapshot and its cache -----------------------------------------------------------------


def advance_without(*kinds: str) -> Patch:
    """A version held in memory moves on without some actions of the commits."""

    def put(patch: pytest.MonkeyPatch) -> None:
        real = Snapshot.advance

        def advance(self: Any, version: int, actions: Sequence[Any], **more: Any) -> Any:
            left = [one for one in actions if type(one).__name__ not in kinds]
            return real(self, version, left, **more)

        patch.setattr(Snapshot, "advance", advance)

    return put


def cache_never_moves_on(patch: pytest.MonkeyPatch) -> None:
    """The cache answers with what it holds, nobody looks for later commits, and none conflicts."""
    patch.setattr(snapshot_loader, "update_snapshot", lambda snapshot: snapshot)
    without_rule("OCC-07", "OCC-08", "OCC-09")(patch)


# --- checkpoints --------------------------------------------------------------------------------


def checkpoint_state(change: Callable[[str, dict[str, Any]], dict[str, Any] | None]) -> Patch:
    def put(patch: pytest.MonkeyPatch) -> None:
        real = writer._content

        def content(snapshot: Any, now_ms: int) -> Any:
            found = real(snapshot, now_ms)
            state = tuple(
                (kind, changed)
                for kind, value in found.state
                if (changed := change(kind, value)) is not None
            )
            return replace(found, state=state)

        patch.setattr(writer, "_content", content)

    return put


def without_kind(wanted: str) -> Patch:
    return checkpoint_state(lambda kind, value: None if kind == wanted else value)


def with_value(wanted: str, **changes: Any) -> Patch:
    return checkpoint_state(lambda kind, value: {**value, **changes} if kind == wanted else value)


def checkpoint_files(change: Callable[[Any], Any]) -> Patch:
    def put(patch: pytest.MonkeyPatch) -> None:
        real = writer._content
        patch.setattr(writer, "_content", lambda snapshot, now: change(real(snapshot, now)))

    return put


def without_removals(found: Any) -> Any:
    return replace(found, removes=found.removes.slice(0, 0))


def without_the_last_file(found: Any) -> Any:
    return replace(found, adds=found.adds.slice(0, max(len(found.adds) - 1, 0)))


def without_column(name: str) -> Patch:
    def change(found: Any) -> Any:
        adds = found.adds
        at = adds.schema.get_field_index(name)
        empty = pa.nulls(len(adds), adds.schema.field(at).type)
        return replace(found, adds=adds.set_column(at, adds.schema.field(at), empty))

    return checkpoint_files(change)


def young_removals_expire(patch: pytest.MonkeyPatch) -> None:
    """Removals older than a day are left out, whatever the table says."""
    real = writer._unexpired

    def unexpired(snapshot: Any, now_ms: int) -> Any:
        found = real(snapshot, now_ms)
        return found.filter(pc.greater(found["deletion_timestamp"], now_ms - 86_400_000))

    patch.setattr(writer, "_unexpired", unexpired)


def parts_without_the_last(patch: pytest.MonkeyPatch) -> None:
    """The last part of a checkpoint is written empty."""
    real = columns.distribute

    def distribute(rows: Any, parts: int) -> Any:
        found = real(rows, parts)
        none = pa.array([], pa.int64())
        return [*found[:-1], found[-1].pick(none, none)]

    patch.setattr(writer, "distribute", distribute)


# --- hooks --------------------------------------------------------------------------------------


def checkpoint_of_the_version_before(patch: pytest.MonkeyPatch) -> None:
    """The checkpoint of a version holds the files of the one before."""
    real = writer._content
    last: dict[str, Any] = {}

    def content(snapshot: Any, now_ms: int) -> Any:
        found = real(snapshot, now_ms)
        before = snapshot_loader.load_snapshot(snapshot.store, max(snapshot.version - 1, 0))
        last["adds"] = before.add_files()
        return replace(found, adds=last["adds"])

    patch.setattr(writer, "_content", content)


def wrong_checksum(patch: pytest.MonkeyPatch) -> None:
    """The checksum counts a file less than there is."""
    real = hooks._checksum

    def checksum(context: Any) -> None:
        real(replace(context, snapshot=context.snapshot))
        key = f"_delta_log/{context.version:020}.crc"
        body = msgspec.json.decode(context.snapshot.store.read(key))
        body["numFiles"] = body["numFiles"] - 1
        context.snapshot.store.put(key, msgspec.json.encode(body))

    patch.setattr(
        "twinlake.commit.transaction.run_hooks",
        lambda registered, context: hooks.run_hooks(
            [replace(h, run=checksum) if h.name == "checksum" else h for h in registered], context
        ),
    )


def hooks_raise(patch: pytest.MonkeyPatch) -> None:
    """A hook that fails makes the commit look failed."""

    def run_hooks(registered: Any, context: Any) -> Any:
        for hook in registered:
            hook.run(context)
        return ()

    patch.setattr("twinlake.commit.transaction.run_hooks", run_hooks)


# --- cleanup and VACUUM -------------------------------------------------------------------------


def planned_cleanup(change: Callable[[Any, Any], Any]) -> Patch:
    def put(patch: pytest.MonkeyPatch) -> None:
        real = cleanup.plan_cleanup

        def plan(files: Any, **given: Any) -> Any:
            found = real(files, **given)
            return change(found, files) if found.files else found

        patch.setattr(cleanup, "plan_cleanup", plan)

    return put


def with_the_kept_checkpoint(found: Any, files: Any) -> Any:
    doomed = tuple(
        file.key
        for file in files
        if file.version == found.kept_checkpoint
        and file.kind in (LogFileKind.CLASSIC, LogFileKind.MULTIPART, LogFileKind.UUID)
    )
    return replace(found, checkpoints=(*found.checkpoints, *doomed))


def with_one_commit_more(found: Any, files: Any) -> Any:
    doomed = tuple(
        file.key
        for file in files
        if file.kind is LogFileKind.COMMIT and file.version == found.kept_checkpoint + 1
    )
    return replace(found, commits=(*found.commits, *doomed))


def vacuum_plan(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Patch:
    def put(patch: pytest.MonkeyPatch) -> None:
        def plan(**given: Any) -> Any:
            return vacuum_plans.plan_vacuum(**change(given))

        patch.setattr("twinlake.table.operations.vacuum.plan_vacuum", plan)

    return put


def vacuum_before_listing(patch: pytest.MonkeyPatch) -> None:
    """Files are young for ever: the time of a file is not asked, only who names it."""
    real = vacuum_plans.plan_vacuum

    def plan(*, listing: Any, **given: Any) -> Any:
        aged = [
            replace(entry, modified_ms=0)
            if hasattr(entry, "__dataclass_fields__")
            else entry._replace(modified_ms=0)
            for entry in listing
        ]
        return real(listing=aged, **given)

    patch.setattr("twinlake.table.operations.vacuum.plan_vacuum", plan)


def expiry_after_deletion(patch: pytest.MonkeyPatch) -> None:
    """Iceberg snapshots that name what is deleted are kept."""
    patch.setattr(
        "twinlake.table.operations.vacuum.Vacuum._expire_iceberg_snapshots", lambda _self: None
    )


# --- conversion ---------------------------------------------------------------------------------


def file_changes(change: Callable[[Any], Any]) -> Patch:
    def put(patch: pytest.MonkeyPatch) -> None:
        real = iceberg_operation.file_changes
        patch.setattr(log_reader, "file_changes", lambda *a, **k: change(real(*a, **k)))

    return put


def hint_before_metadata(patch: pytest.MonkeyPatch) -> None:
    seeded.point_before_writing(patch)


def no_hint(patch: pytest.MonkeyPatch) -> None:
    """The metadata is written and nobody is told."""
    patch.setattr(MetadataFiles, "point_to", lambda *_args, **_more: None)


def no_sync(patch: pytest.MonkeyPatch) -> None:
    """The hook takes every table for one that does not sync with its commits."""
    patch.setattr(sync_hook, "syncs_with_commit", lambda _metadata: False)


def vectors_are_left_out(patch: pytest.MonkeyPatch) -> None:
    """A file with a new vector is listed without it."""
    from twinlake.iceberg.derive.snapshot_delta import SnapshotDelta

    patch.setattr(SnapshotDelta, "vectors", lambda _self, *_args, **_more: [])


def _mutant(
    layer: str,
    name: str,
    put: Patch,
    workload: str,
    *breaks: str,
    fault: str | None = None,
    sampled: bool = False,
) -> Mutant:
    return Mutant(
        layer=layer,
        name=name,
        put=put,
        workload=workload,
        breaks=breaks,
        fault=fault,
        sampled=sampled,
    )


MUTANTS = (
    _mutant("conflict", "OCC-01 protocol", without_rule("OCC-01"), "feature-feature",
            "ChangesAreKept"),
    _mutant("conflict", "OCC-01b feature drop", without_rule("OCC-01b"), "drop-note",
            "FeaturesCoverTheTable"),
    _mutant("conflict", "OCC-02 metadata", without_rule("OCC-02"), "alter-alter",
            "ChangesAreKept"),
    _mutant("conflict", "OCC-03 domains", without_rule("OCC-03"), "note-note", "ChangesAreKept"),
    _mutant("conflict", "OCC-03 written domains only in winner", first_winner_only, "note-note",
            "ChangesAreKept"),
    _mutant("conflict", "OCC-04 applications", without_rule("OCC-04"), "job-job",
            "ApplicationsCommitOnce"),
    _mutant("conflict", "OCC-05 row ids", without_rule("OCC-05"), "model-row-ids",
            "RowIdsAreUnique"),
    _mutant("conflict", "OCC-06 type changes", without_rule("OCC-06"), "widen-append",
            "TypeChangesAreDated"),
    _mutant("conflict", "OCC-07 added files", without_rule("OCC-07"),
            "append-delete.shared.serializable", "Serializable"),
    _mutant("conflict", "OCC-08 removed files that were read", without_rule("OCC-08"),
            "copy-delete", "Serializable"),
    _mutant("conflict", "OCC-09 removed on both sides", without_rule("OCC-09"),
            "truncate-truncate", "FilesComeAndGoOnce"),
    _mutant("conflict", "OCC-10 timestamps", without_rule("OCC-10"), "stamps",
            "TimestampsIncrease"),
    _mutant("conflict", "all rules", seeded.skip_the_conflict_check, "update-update.shared.copy",
            "FilesComeAndGoOnce"),
    _mutant("conflict", "the level of the table is not asked", every_append_is_blind,
            "append-delete.shared.serializable", "Serializable"),
    _mutant("commit", "nothing is recorded as read", stale_reads, "copy-delete", "Serializable"),
    _mutant("commit", "no last look before the create", no_last_look, "left-far-behind",
            "VersionsAreContiguous", "NewestIsSeen", "VersionsAreImmutable"),
    _mutant("commit", "the entry is overwritten", overwrite_the_entry,
            "append-append.disjoint.copy", "VersionsAreImmutable"),
    _mutant("commit", "create in two steps", seeded.create_in_two_steps,
            "append-append.disjoint.copy", "VersionsAreImmutable"),
    _mutant("commit", "a conflict is taken for success", conflict_is_success,
            "append-append.disjoint.copy", "CommittedMeansOnce", "ConsistentRead"),
    _mutant("commit", "retry without reading the winner", seeded.retry_without_reading,
            "delete-update.shared.vectors", "FilesComeAndGoOnce"),
    _mutant("commit", "a lost reply is a failure", seeded.give_up_on_unknown,
            "append-append.shared.copy", "FailedMeansNotAtAll", "FilesAreKept",
            fault="lost-reply"),
    _mutant("commit", "a lost reply is a rival", seeded.believe_every_conflict,
            "append-append.shared.copy", "CommittedAtMostOnce", fault="lost-reply"),
    _mutant("commit", "applications are not asked", forget_applications, "checkpoint-job",
            "ApplicationsCommitOnce", "CommittedAtMostOnce"),
    _mutant("snapshot", "added files are not carried on", advance_without("AddFile"),
            "cached-delete", "WriteSerializable", "ConsistentRead", "ChecksumsAreTrue"),
    _mutant("snapshot", "removed files are not carried on", advance_without("RemoveFile"),
            "checkpoints", "ReplayEqualsLog", "ChecksumsAreTrue"),
    _mutant("snapshot", "domains are not carried on", advance_without("DomainMetadata"),
            "checkpoint-row-ids", "RowIdsAreUnique", "ChecksumsAreTrue"),
    _mutant("snapshot", "the cache stands still", cache_never_moves_on, "cached-delete",
            "WriteSerializable", "ConsistentRead", "FilesComeAndGoOnce"),
    _mutant("checkpoint", "without applications", without_kind("txn"), "checkpoint-now",
            "ReplayEqualsLog"),
    _mutant("checkpoint", "without domains", without_kind("domainMetadata"), "checkpoint-note",
            "ReplayEqualsLog"),
    _mutant("checkpoint", "an application's version", with_value("txn", version=0),
            "checkpoint-now", "ReplayEqualsLog"),
    _mutant("checkpoint", "without properties", with_value("metaData", configuration={}),
            "checkpoint-now", "ReplayEqualsLog"),
    _mutant("checkpoint", "without writer features", with_value("protocol", writerFeatures=[]),
            "checkpoint-now", "ReplayEqualsLog", "VersionsCanBeRebuilt"),
    _mutant("checkpoint", "without removals", checkpoint_files(without_removals),
            "checkpoint-now", "ReplayEqualsLog"),
    _mutant("checkpoint", "young removals expire", young_removals_expire, "checkpoint-now",
            "ReplayEqualsLog"),
    _mutant("checkpoint", "without the last file", checkpoint_files(without_the_last_file),
            "checkpoint-now", "ReplayEqualsLog", "ChecksumsAreTrue"),
    _mutant("checkpoint", "without vectors", without_column("deletion_vector"), "checkpoint-now",
            "ReplayEqualsLog"),
    _mutant("checkpoint", "without partition values", without_column("partition_values"),
            "checkpoint-now", "ReplayEqualsLog", "VersionsCanBeRebuilt"),
    _mutant("checkpoint", "the last part is empty", parts_without_the_last, "checkpoint-parts",
            "ReplayEqualsLog"),
    _mutant("hook", "the checkpoint is of the version before", checkpoint_of_the_version_before,
            "checkpoints", "ReplayEqualsLog"),
    _mutant("hook", "a wrong checksum", wrong_checksum, "checkpoints", "ChecksumsAreTrue"),
    _mutant("hook", "a hook that fails is a commit that fails", hooks_raise,
            "twin-append-append", "FailedMeansNotAtAll", "FilesAreKept", sampled=True),
    _mutant("cleanup", "commits of today go", seeded.clean_up_commits_of_today,
            "clean-log-append", "NewestIsSeen"),
    _mutant("cleanup", "without a checkpoint", seeded.clean_up_without_a_checkpoint,
            "clean-log-bare", "VersionsCanBeRebuilt"),
    _mutant("cleanup", "the kept checkpoint goes", planned_cleanup(with_the_kept_checkpoint),
            "clean-log-append", "VersionsCanBeRebuilt"),
    _mutant("cleanup", "a commit after the checkpoint goes",
            planned_cleanup(with_one_commit_more), "clean-log-append", "VersionsCanBeRebuilt",
            "NewestIsSeen", "VersionsAreContiguous"),
    _mutant("vacuum", "vectors are not counted",
            vacuum_plan(lambda given: {**given, "vector_path": lambda _dv: None}),
            "vacuum-vectors", "FilesAreKept"),
    _mutant("vacuum", "live files are not counted",
            vacuum_plan(lambda given: {**given, "live": ()}), "vacuum-append", "FilesAreKept"),
    _mutant("vacuum", "removals within the retention are not counted",
            vacuum_plan(lambda given: {**given, "tombstones": ()}), "checkpoint-vacuum",
            "FilesAreKept"),
    _mutant("vacuum", "young files are not spared", vacuum_before_listing, "vacuum-append",
            "FilesAreKept"),
    _mutant("vacuum", "Iceberg snapshots are not expired", expiry_after_deletion,
            "vacuum-sync", "IcebergFilesAreKept"),
    _mutant("conversion", "removed files stay listed", seeded.leave_removed_files_listed,
            "sync-update", "IcebergEqualsLog"),
    _mutant("conversion", "added files are left out",
            file_changes(lambda found: replace(found, added=())), "sync-update",
            "IcebergEqualsLog"),
    _mutant("conversion", "vectors are left out", vectors_are_left_out, "sync-delete",
            "IcebergEqualsLog"),
    _mutant("conversion", "the pointer comes first", hint_before_metadata, "sync-append",
            "PointerIsWhole"),
    _mutant("conversion", "no pointer", no_hint, "twin-append-append", "IcebergIsInSync"),
    _mutant("conversion", "no look at a later commit", seeded.look_at_no_later_commit,
            "twin-append-append", "IcebergIsInSync"),
    _mutant("conversion", "no sync after a commit", no_sync, "twin-append-append",
            "IcebergIsInSync"),
)  # fmt: skip
