"""What the base model leaves out: each switch safe as designed, each mutant caught."""

from __future__ import annotations

from typing import Any

import pytest

from twinlake.verify import Result, check
from twinlake.verify.checker import ModelError, Outcome
from twinlake.verify.models.iceberg import (
    BOUNDS_ARE_EXACT,
    CLEANS_ON_UNKNOWN,
    DELETES_SHARED,
    DROPS_AT_SCAN,
    EQUAL_SEQUENCE,
    EXCLUSIVE_PROJECTION,
    FILTER_OF_NEW_VALUE,
    FILTERS_THE_SCAN,
    LOSES_DELETES,
    NEW_SEQUENCE,
    NEW_SPEC_ON_OLD_FILES,
    NO_UNION,
    RESENDS,
    RETRIES_PUT,
    SKIPS_VALIDATION,
    TWO_VECTORS,
    UNCHECKED_REWRITE,
    UNCHECKED_VECTOR,
    DeleteFileCompaction,
    DeletionVectors,
    EqualityDeletes,
    FilterDeletes,
    IcebergV2,
    Partitions,
    SnapshotExpiry,
    ThroughServer,
)
from twinlake.verify.models.iceberg.values import ADDED

TWO = ("jack", "sarah")
COW = "COPY_ON_WRITE"
SER = "SERIALIZABLE"
DANGLING = ("NoDanglingDeleteFiles",)


def run(model: IcebergV2, **options: Any) -> Result:
    return check(model, symmetry=True, reduction=True, without=DANGLING, **options)


def partitioned(**parameters: Any) -> IcebergV2:
    return Partitions(**parameters)


def equality(**parameters: Any) -> IcebergV2:
    return EqualityDeletes(max_compaction_ops=1, **parameters)


def vectors(**parameters: Any) -> IcebergV2:
    return DeletionVectors(**parameters)


def rewriting(**parameters: Any) -> IcebergV2:
    return DeleteFileCompaction(fix="A", **parameters)


def filtering(**parameters: Any) -> IcebergV2:
    return FilterDeletes(fix="A", **parameters)


def expiring(**parameters: Any) -> IcebergV2:
    return SnapshotExpiry(fix="A", **parameters)


def served(**parameters: Any) -> IcebergV2:
    return ThroughServer(**parameters)


SAFE: dict[str, IcebergV2] = {
    "partitions": partitioned(fix="A"),
    "partitions, 4 writes": partitioned(fix="A", col1_values=TWO, max_write_ops=4),
    "partitions by id": partitioned(fix="A", col1_values=TWO, partition_by=0),
    "partitions, copy-on-write": partitioned(
        update_mode=COW, delete_mode=COW, col1_values=TWO, max_write_ops=4
    ),
    "partitions, compaction": partitioned(fix="A", col1_values=TWO, max_compaction_ops=1),
    "partitions, serializable": partitioned(isolation=SER, fix="A", col1_values=TWO),
    "partitions, new spec": partitioned(fix="A", evolve_to=2),
    "equality deletes": equality(max_write_ops=3),
    "equality deletes, 2 ids": equality(max_write_ops=3, col1_values=TWO),
    "equality deletes, serializable": equality(max_write_ops=3, isolation=SER),
    "equality deletes, new sequence number": equality(max_write_ops=3, starting_sequence=False),
    "filter deletes": filtering(),
    "filter deletes, 2 ids": filtering(col1_values=TWO, max_compaction_ops=1),
    "vectors, no fix needed": vectors(),
    "vectors, 2 ids, 4 writes": vectors(col1_values=TWO, max_write_ops=4),
    "vectors, update COW": vectors(update_mode=COW, max_write_ops=4),
    "delete files compacted": rewriting(),
    "delete files compacted, 2 ids": rewriting(max_compaction_ops=1, col1_values=TWO),
    "delete files compacted, new sequence number": rewriting(mutant=NEW_SEQUENCE),
    "delete files compacted, dangling judged at the scan": rewriting(
        mutant=DROPS_AT_SCAN, max_compaction_ops=1, col1_values=TWO
    ),
    "expiry": expiring(),
    "expiry, compaction": expiring(max_compaction_ops=1),
    "expiry, lost replies": expiring(max_compaction_ops=1, max_unknowns=1),
    "server": served(fix="A"),
    "server, 2 ids": served(fix="A", col1_values=TWO),
}

#: Actions that a configuration cannot reach for another reason than its budgets.
OUT_OF_REACH = {
    # Writers that do not read have nothing to validate under snapshot isolation.
    "equality deletes": {"WriteMetadataFiles (abort)"},
    "equality deletes, 2 ids": {"WriteMetadataFiles (abort)"},
    # Without compaction every old file is still in use.
    "expiry": {"DeleteFile", "ReadDataFiles (file is gone)"},
}


@pytest.mark.parametrize("name", SAFE)
def test_safe_configuration_is_clean(name: str) -> None:
    result = run(SAFE[name])
    assert result.ok
    # Nothing passes because nothing happens.
    idle = set(OUT_OF_REACH.get(name, ()))
    if SAFE[name].max_compaction_ops == 0:
        idle.add("StartCompactionOperation")
    if isinstance(SAFE[name], Partitions) and getattr(SAFE[name], "evolve_to", None) is None:
        idle.add("EvolvePartitionSpec")
    assert set(result.unreached) == idle


SMALL = (
    "partitions",
    "equality deletes",
    "equality deletes, serializable",
    "equality deletes, new sequence number",
    "filter deletes",
    "vectors, no fix needed",
    "delete files compacted",
    "delete files compacted, new sequence number",
    "expiry",
    "server",
)


@pytest.mark.parametrize("name", SMALL)
def test_reduction_keeps_the_verdicts_of_safe_configurations(name: str) -> None:
    full = check(SAFE[name], without=DANGLING)
    assert full.verdicts == run(SAFE[name]).verdicts


#: model, property broken, steps of the shortest trace, moves of the reduced one
MUTANTS: dict[str, tuple[IcebergV2, str, int, int]] = {
    "exclusive projection": (
        partitioned(fix="A", mutant=EXCLUSIVE_PROJECTION),
        "ConsistentRead",
        14,
        9,
    ),
    "filter of the new value": (
        partitioned(fix="A", mutant=FILTER_OF_NEW_VALUE),
        "ConsistentRead",
        14,
        9,
    ),
    "new spec on old files": (
        partitioned(fix="A", evolve_to=2, mutant=NEW_SPEC_ON_OLD_FILES),
        "ConsistentRead",
        14,
        9,
    ),
    "equal sequence number hides": (
        equality(max_write_ops=1, mutant=EQUAL_SEQUENCE),
        "ConsistentRead",
        4,
        2,
    ),
    "rewrite forgets equality deletes": (
        equality(max_write_ops=2, starting_sequence=False, mutant=UNCHECKED_REWRITE),
        "ConsistentRead",
        13,
        6,
    ),
    "bounds are exact": (
        filtering(col1_values=TWO, max_compaction_ops=1, mutant=BOUNDS_ARE_EXACT),
        "ConsistentRead",
        16,
        8,
    ),
    "filter on the scan version": (
        filtering(col1_values=TWO, mutant=FILTERS_THE_SCAN),
        "ConsistentRead",
        11,
        6,
    ),
    "vector without union": (
        vectors(writers=1, max_write_ops=4, max_compaction_ops=1, col1_values=TWO, mutant=NO_UNION),
        "VectorsOnlyGrow",
        23,
        10,
    ),
    "vector unchecked": (vectors(mutant=UNCHECKED_VECTOR), "ConsistentRead", 14, 6),
    "delete files lost": (rewriting(mutant=LOSES_DELETES), "ConsistentRead", 19, 8),
    "validation skipped": (expiring(mutant=SKIPS_VALIDATION), "ConsistentRead", 15, 12),
    "clean-up on unknown outcome": (
        expiring(mutant=CLEANS_ON_UNKNOWN, max_unknowns=1),
        "RetainedVersionsAreWhole",
        4,
        3,
    ),
    "shared files deleted": (
        expiring(mutant=DELETES_SHARED),
        "RetainedVersionsAreWhole",
        11,
        9,
    ),
    "put again unchecked": (served(fix="A", mutant=RETRIES_PUT), "ConsistentRead", 17, 12),
    "request sent again": (served(fix="A", mutant=RESENDS), "ConsistentRead", 9, 8),
    "two vectors": (
        served(
            fix="A",
            mutant=TWO_VECTORS,
            writers=1,
            col1_values=TWO,
            max_write_ops=4,
            max_compaction_ops=1,
            lost_replies=0,
        ),
        "BothFacesReadTheSame",
        28,
        20,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str) -> None:
    model, broken, steps, moves = MUTANTS[name]
    result = run(model, stop_at_first=True)
    assert result.verdicts[broken] == "violated"
    assert result.trace is not None
    assert (len(result.trace), result.trace.moves) == (steps, moves)


def test_partitions_without_the_fix_show_the_anomaly_too() -> None:
    assert run(partitioned()).violated == "ConsistentRead"


def test_history_by_key_flags_a_delete_that_an_update_moved_out_of_sight() -> None:
    # DELETE WHERE col2 = red saw jack; meanwhile an update made him blue, in another partition,
    # where a serializable DELETE does not look. Update first, delete second is a serial order
    # that ends like this: the history, which believes what the DELETE saw, is stricter.
    result = run(partitioned(isolation=SER))
    assert result.violated == "ConsistentRead"
    assert result.trace is not None
    starts = [step for step in result.trace.steps if step.action.startswith("Start")]
    assert starts[1].action == "StartDeleteOperation"
    assert starts[1].arguments["predicate"] == (None, "red", None)
    assert starts[2].arguments["set"] == (None, "blue", None)
    assert run(partitioned(isolation=SER, partition_by=0)).ok


def test_server_does_not_mask_the_anomaly() -> None:
    # The client refreshes before it commits, so its requirement holds, and the vector of the file
    # has not changed since the version it builds on: nothing is left for the server to refuse.
    result = run(served())
    assert result.violated == "ConsistentRead"
    assert "jack" in result.violations[0].message


def test_vectors_of_rewritten_files_do_not_dangle() -> None:
    model = vectors(writers=1, max_write_ops=3, max_compaction_ops=2, col1_values=TWO)
    result = check(model, reduction=True)
    assert result.ok
    assert result.verdicts["NoDanglingDeleteFiles"] == "holds"


def test_disjoint_partitions_never_abort_each_other() -> None:
    aborted: list[tuple[str | None, set[str]]] = []

    def note(outcome: Outcome) -> bool:
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

    run(partitioned(fix="A", isolation=SER, col1_values=TWO, partition_by=0), tally=note)
    assert aborted
    assert all(wanted in touched for wanted, touched in aborted)


@pytest.mark.parametrize(
    "kind",
    [
        IcebergV2,
        Partitions,
        EqualityDeletes,
        FilterDeletes,
        DeletionVectors,
        DeleteFileCompaction,
        SnapshotExpiry,
        ThroughServer,
    ],
)
def test_unknown_mutant_is_refused(kind: type[IcebergV2]) -> None:
    with pytest.raises(ModelError, match="is no mutant"):
        kind(mutant="typo")
