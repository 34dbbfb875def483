"""Bugs put into the commit path: the explorer finds each, tells it, and can repeat it."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from twinlake.commit import Winner
from twinlake.commit.commit_write import CommitWritten, Lost
from twinlake.commit.commit_write import write_commit as real_write_commit
from twinlake.commit.conflict import rules as conflicts
from twinlake.errors import Code, StorageError
from twinlake.iceberg.derive import operation as operations
from twinlake.iceberg.format.table_metadata import encode_metadata
from twinlake.iceberg.sync.metadata_files import FOLDER, MetadataFiles
from twinlake.log import cleanup
from twinlake.log.names import LogFileKind
from twinlake.storage import Committed, Unknown
from twinlake.verify.code import WORKLOADS, Workload, explore, parse_schedule, replay, shrink, sweep
from twinlake.verify.code.maintenance import RestartOnFailure, VacuumTable
from twinlake.verify.code.statements import Append

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from twinlake.iceberg.format.table_metadata import TableMetadata
    from twinlake.storage import Store


def skip_the_conflict_check(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        "twinlake.commit.transaction.check_conflicts",
        lambda ours, winner, ctx, _rules: conflicts.check_conflicts(ours, winner, ctx, ()),
    )


def create_in_two_steps(patch: pytest.MonkeyPatch) -> None:
    """A look, and then a write: what stores without conditional create tempt one to do."""

    def write_commit(store: Store, key: str, body: bytes, **_ports: Any) -> CommitWritten | Lost:
        if store.head(key) is not None:
            return Lost(winner=store.read(key))
        store.put(key, body)
        return CommitWritten()

    patch.setattr("twinlake.commit.transaction.write_commit", write_commit)


def retry_without_reading(patch: pytest.MonkeyPatch) -> None:
    """The next version is tried without a look at what the winner did."""

    def winners(_store: Store, change: Any, _data: bytes) -> Iterator[Winner]:
        yield Winner(version=change.version, actions=())

    patch.setattr("twinlake.commit.transaction.read_winners", winners)


def give_up_on_unknown(patch: pytest.MonkeyPatch) -> None:
    """A lost reply is told as a failure."""

    def write_commit(store: Store, key: str, body: bytes, **ports: Any) -> CommitWritten | Lost:
        outcome = store.create(key, body)
        if isinstance(outcome, Unknown):
            raise StorageError(Code.STORAGE, "The store did not answer.")
        if isinstance(outcome, Committed):
            return CommitWritten()
        return real_write_commit(store, key, body, **ports)

    patch.setattr("twinlake.commit.transaction.write_commit", write_commit)


def believe_every_conflict(patch: pytest.MonkeyPatch) -> None:
    """After a lost reply the same key is tried again, and what is found is taken for a rival's."""

    def write_commit(store: Store, key: str, body: bytes, **_ports: Any) -> CommitWritten | Lost:
        while True:
            outcome = store.create(key, body)
            if isinstance(outcome, Committed):
                return CommitWritten()
            if not isinstance(outcome, Unknown):
                return Lost(winner=store.read(key))

    patch.setattr("twinlake.commit.transaction.write_commit", write_commit)


def clean_up_commits_of_today(patch: pytest.MonkeyPatch) -> None:
    """Commits after the checkpoint go, too."""
    real = cleanup.plan_cleanup

    def plan(files: Any, **rules: Any) -> cleanup.CleanupPlan:
        found = real(files, **rules)
        commits = tuple(f.key for f in files if f.kind is LogFileKind.COMMIT)
        return replace(found, commits=commits) if found.files else found

    patch.setattr("twinlake.log.cleanup.plan_cleanup", plan)


def clean_up_without_a_checkpoint(patch: pytest.MonkeyPatch) -> None:
    """Old commits go although nothing stands for them."""

    def plan(files: Any, **_rules: Any) -> cleanup.CleanupPlan:
        commits = [f.key for f in files if f.kind is LogFileKind.COMMIT]
        return cleanup.CleanupPlan(kept_checkpoint=0, commits=tuple(commits[:-1]))

    patch.setattr("twinlake.log.cleanup.plan_cleanup", plan)


def point_before_writing(patch: pytest.MonkeyPatch) -> None:
    """The pointer moves before the metadata it names is there."""

    def publish(
        self: MetadataFiles, metadata: TableMetadata, *, instead_of: int | None = None
    ) -> None:
        version = metadata.delta_version
        self.point_to(version, instead_of=instead_of)
        self.store.put(f"{FOLDER}/v{version}.metadata.json", *encode_metadata(metadata))

    patch.setattr(MetadataFiles, "publish", publish)


def leave_removed_files_listed(patch: pytest.MonkeyPatch) -> None:
    """Iceberg keeps listing a file that the commit removed."""
    real = operations.file_changes

    def changes(*args: Any, **more: Any) -> Any:
        found = real(*args, **more)
        return replace(found, removed=())

    patch.setattr("twinlake.iceberg.sync.log_reader.file_changes", changes)


def look_at_no_later_commit(patch: pytest.MonkeyPatch) -> None:
    """Whoever moves the pointer last leaves it, though a later commit came in meanwhile."""
    patch.setattr("twinlake.iceberg.sync.hook._overtake", lambda _context: None)


def keep_row_ids(patch: pytest.MonkeyPatch) -> None:
    """A retry keeps the row ids that were handed out before the winner's."""
    without = tuple(rule for rule in conflicts.RULES if rule.id != "OCC-05")
    patch.setattr(
        "twinlake.commit.transaction.check_conflicts",
        lambda ours, winner, ctx, _rules: conflicts.check_conflicts(ours, winner, ctx, without),
    )


@dataclass(frozen=True)
class Bug:
    seed: Callable[[pytest.MonkeyPatch], None]
    workload: str
    properties: tuple[str, ...]
    fault: str | None = None


LOST = "lost-reply"
BUGS = (
    Bug(skip_the_conflict_check, "update-update.shared.copy", ("FilesComeAndGoOnce",)),
    Bug(create_in_two_steps, "append-append.disjoint.copy", ("VersionsAreImmutable",)),
    Bug(retry_without_reading, "delete-update.shared.vectors", ("FilesComeAndGoOnce",)),
    Bug(
        give_up_on_unknown,
        "append-append.shared.copy",
        ("FailedMeansNotAtAll", "FilesAreKept"),
        LOST,
    ),
    Bug(believe_every_conflict, "append-append.shared.copy", ("CommittedAtMostOnce",), LOST),
    Bug(clean_up_commits_of_today, "clean-log-append", ("NewestIsSeen",)),
    Bug(clean_up_without_a_checkpoint, "clean-log-bare", ("VersionsCanBeRebuilt",)),
    Bug(point_before_writing, "sync-append", ("PointerIsWhole",)),
    Bug(leave_removed_files_listed, "sync-update", ("IcebergEqualsLog",)),
    Bug(look_at_no_later_commit, "twin-append-append", ("IcebergIsInSync",)),
    Bug(keep_row_ids, "model-row-ids", ("RowIdsAreUnique",)),
)


@pytest.mark.parametrize(
    "bug", BUGS, ids=[f"{bug.seed.__name__}-{bug.workload.split('.')[0]}" for bug in BUGS]
)
def test_seeded_bug_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.seed(monkeypatch)
    if bug.fault is None:
        found = explore(bug.workload)
    else:
        assert explore(bug.workload).ok
        found = sweep(bug.workload, kinds=(bug.fault,))
    assert found.violations, found.outcomes
    violation = found.violations[0]
    sys.stdout.write(f"{violation}\n")
    assert violation.property in bug.properties
    assert not found.ok
    # It can be had again by its id, and in fewer switches.
    again = replay(violation.schedule_id)
    assert [one.property for one in again.violations] == [violation.property]
    assert again.trace == violation.trace
    small = shrink(violation.schedule_id)
    smaller = replay(small)
    assert [one.property for one in smaller.violations] == [violation.property]
    assert len(smaller.trace) <= len(again.trace)
    sys.stdout.write(f"{smaller}\n")


def test_a_messy_schedule_shrinks_to_the_two_switches_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    create_in_two_steps(monkeypatch)
    messy = f"append-append.disjoint.copy~b2:stale-list~{'a1b1' * 12}"
    failure = replay(messy).violations[0]
    small = parse_schedule(shrink(messy))
    assert (small.faults, small.switches) == ((), 2)
    assert replay(small).violations[0].property == failure.property
    # Fewer switches may take a call more; the schedule does not grow.
    assert len(small.choices) < len(parse_schedule(messy).choices)


def test_without_the_conflict_check_no_vector_replaces_another() -> None:
    """A second line of defence: a path may not be live under two vectors."""
    with pytest.MonkeyPatch.context() as patch:
        skip_the_conflict_check(patch)
        found = explore("delete-update.shared.vectors")
    assert found.ok
    assert any("failed" in outcome for outcome in found.outcomes)


def test_a_restart_without_an_application_id_commits_twice() -> None:
    real = WORKLOADS["restarts"]
    workload = replace(
        real,
        name="restarts-blindly",
        actors=(("w0", RestartOnFailure(Append((("a", 7, "P"),)))), real.actors[1]),
    )
    found = sweep(workload, kinds=("crash",))
    assert [one.property for one in found.violations] == ["CommittedAtMostOnce"]


def test_vacuum_without_a_grace_time_deletes_what_is_being_written() -> None:
    real = WORKLOADS["vacuum-append"]
    writer, (cleaner, _) = real.actors
    workload = replace(real, name="vacuum-now", actors=(writer, (cleaner, VacuumTable(0.0))))
    assert isinstance(workload, Workload)
    found = explore(workload)
    assert [one.property for one in found.violations] == ["FilesAreKept"]
    sys.stdout.write(f"{found.violations[0]}\n")
