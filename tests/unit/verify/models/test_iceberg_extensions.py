"""What the extensions of the Iceberg model show beyond the rows of the catalogue."""

from __future__ import annotations

from typing import Any

import pytest

from twinlake.verify import Result, check
from twinlake.verify.checker import ModelError, Transition
from twinlake.verify.models.iceberg import (
    DeletionVectors,
    IcebergV2,
    MultiTableTransaction,
    OrphanCleanup,
    PartitionedTable,
    RetryBudget,
    SnapshotExpiry,
    SnapshotRetention,
    safe_expiry,
    safe_grace,
)
from twinlake.verify.models.iceberg.retention import COMMITTED_AGE, SUPERSEDED_AGE
from twinlake.verify.models.iceberg.transactions import ONE_BY_ONE
from twinlake.verify.models.iceberg.values import ADDED

TWO = ("jack", "sarah")
SER = "SERIALIZABLE"
DANGLING = ("NoDanglingDeleteFiles",)


def run(model: IcebergV2, **options: Any) -> Result:
    return check(model, symmetry=True, reduction=True, without=DANGLING, **options)


# --- partitions -------------------------------------------------------------------------------


def test_history_by_key_flags_a_delete_that_an_update_moved_out_of_sight() -> None:
    # DELETE WHERE col2 = red saw jack; meanwhile an update made him blue, in another partition,
    # where a serializable DELETE does not look. Update first, delete second is a serial order
    # that ends like this: the history, which believes what the DELETE saw, is stricter.
    result = run(PartitionedTable(isolation=SER))
    assert result.violated == "ConsistentRead"
    assert result.trace is not None
    starts = [step for step in result.trace.steps if step.action.startswith("Start")]
    assert starts[1].action == "StartDeleteOperation"
    assert starts[1].arguments["predicate"] == (None, "red", None)
    assert starts[2].arguments["set"] == (None, "blue", None)
    assert run(PartitionedTable(isolation=SER, partition_by=0)).ok


def test_disjoint_partitions_never_abort_each_other() -> None:
    aborted: list[tuple[str | None, set[str]]] = []

    def note(outcome: Transition) -> bool:
        step = outcome.steps[0]
        if step.next.actor.state == "ABORTED" and step.actor.predicate[0] is not None:
            table: Any = step.shared["table"]
            since = table[step.actor.scan_version + 1 :]
            entries = [
                entry
                for version in since
                for entry in (
                    *version.data.entries,
                    *(version.deletes.entries if version.deletes else ()),
                )
                if entry.status == ADDED
            ]
            found = {entry.file.partition.value for entry in entries}
            aborted.append((step.actor.predicate[0], found))
        return False

    run(PartitionedTable(fix="A", isolation=SER, col1_values=TWO, partition_by=0), tally=note)
    assert aborted
    assert all(wanted in touched for wanted, touched in aborted)


# --- vectors ----------------------------------------------------------------------------------


def test_vectors_of_rewritten_files_do_not_dangle() -> None:
    model = DeletionVectors(writers=1, max_write_ops=3, max_compaction_ops=2, col1_values=TWO)
    result = check(model, reduction=True)
    assert result.ok
    assert result.verdicts["NoDanglingDeleteFiles"] == "holds"


def test_vector_without_union_brings_a_row_back_and_shrinks() -> None:
    model = DeletionVectors(
        writers=1, max_write_ops=4, max_compaction_ops=1, col1_values=TWO, mutant="no-union"
    )
    verdicts = run(model, stop_at_first=True).verdicts
    assert verdicts["VectorsOnlyGrow"] == "violated"
    assert verdicts["ConsistentRead"] == "violated"


# --- files that go away -----------------------------------------------------------------------


@pytest.mark.parametrize("longest", [0, 1, 2, 3])
def test_grace_age_must_be_longer_than_the_longest_write(longest: int) -> None:
    assert safe_grace(longest=longest) == longest + 1
    # However slow the cleaner is between its two looks, if it lists first.
    assert safe_grace(longest=longest, pause=3) == longest + 1


@pytest.mark.parametrize("pause", [0, 1, 2])
def test_grace_age_must_cover_the_pause_too_if_metadata_is_read_first(pause: int) -> None:
    assert safe_grace(longest=2, pause=pause, mutant="metadata-first") == 2 + pause + 1


def test_cleaner_takes_a_file_that_is_about_to_be_committed() -> None:
    result = check(OrphanCleanup(grace=2, longest=2))
    assert result.violated == "CommittedFilesExist"
    assert result.trace is not None
    taken = [step.action for step in result.trace.steps]
    assert taken.index("WriteFile") < taken.index("ListStore") < taken.index("DeleteFile")
    assert taken.count("Tick") == 2


def test_files_of_crashed_writers_go_away() -> None:
    result = check(OrphanCleanup())
    assert result.verdicts["OldOrphansGoAway"] == "holds"
    assert result.actions["Crash"]


@pytest.mark.parametrize("longest", [0, 1, 2])
def test_readers_finish_if_snapshots_are_kept_longer_than_they_read(longest: int) -> None:
    assert safe_expiry(longest=longest, age_from=SUPERSEDED_AGE) == longest + 1


def test_no_retention_is_long_enough_where_age_counts_from_the_commit() -> None:
    assert safe_expiry(longest=1, age_from=COMMITTED_AGE) is None
    result = check(SnapshotRetention(age_from=COMMITTED_AGE, retention=4, max_ticks=6))
    assert result.violated == "ReadersFinish"
    assert result.trace is not None
    names = [step.action for step in result.trace.steps]
    # The snapshot grew old while it was current, and was expired soon after it was replaced.
    assert names.count("Tick") == 4
    assert names[names.index("Commit") :].count("Tick") == 1


@pytest.mark.parametrize("kind", [SnapshotExpiry, RetryBudget])
def test_faithful_identity_is_refused_where_it_is_not_modelled(kind: type[IcebergV2]) -> None:
    with pytest.raises(ModelError, match="canonical identity only"):
        kind(identity="faithful")


def test_unknown_age_is_refused() -> None:
    with pytest.raises(ModelError, match="age_from"):
        SnapshotRetention(age_from="typo")


# --- two tables -------------------------------------------------------------------------------


def test_half_a_transaction_is_seen_between_two_looks() -> None:
    result = check(MultiTableTransaction(reading=ONE_BY_ONE, writers=1, max_ops=1))
    assert result.violations[0].message == "a reader sees 'both 1' in one table only"
    assert result.trace is not None
    names = [step.action for step in result.trace.steps]
    assert names.index("OpenTables") < names.index("Commit") < names.index("OpenSecond")


@pytest.mark.parametrize("symmetry", [False, True])
def test_reader_that_has_seen_half_is_told_from_one_that_has_not(symmetry: bool) -> None:
    # Both places of a reader lead on alike; symmetry may take them for one only if both are fine.
    result = check(MultiTableTransaction(mutant="swaps-one-by-one"), symmetry=symmetry)
    assert result.violated == "NobodySeesHalfATransaction"
    assert result.trace is not None
    assert len(result.trace) == 4


def test_unknown_reading_is_refused() -> None:
    with pytest.raises(ModelError, match="reading"):
        MultiTableTransaction(reading="typo")
