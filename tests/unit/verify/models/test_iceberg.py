"""The Iceberg v2 model: its counts, its verdicts, its traces."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from tests.support.scale import is_full_scale
from tests.unit.verify.models import fused_oracle
from twinlake.verify import check
from twinlake.verify.checker import ModelError, ScheduledStep, explore, run_schedule
from twinlake.verify.checker.value_symmetry import permute_values
from twinlake.verify.models import IcebergV2
from twinlake.verify.models.iceberg import compare_fixes
from twinlake.verify.models.iceberg.snapshot_scan import history, scan

COW = "COPY_ON_WRITE"
MOR = "MERGE_ON_READ"
SER = "SERIALIZABLE"
SI = "SNAPSHOT_ISOLATION"
TWO = ("jack", "sarah")
DANGLING = ("NoDanglingDeleteFiles",)


def iceberg(**parameters: Any) -> IcebergV2:
    return IcebergV2(**parameters)


def small(**parameters: Any) -> IcebergV2:
    return IcebergV2(identity="canonical", **parameters)


# --- the source document's configuration ------------------------------------------------------


def test_seed_configuration_reads_a_deleted_row_after_14_steps() -> None:
    result = check(iceberg())
    assert not result.ok
    assert result.violated == "ConsistentRead"
    failure = result.violations[0]
    assert failure.message == "row 'jack', column col2, version 3: expected None, read blue"
    assert failure.fields["id"] == "jack"
    assert failure.fields["version"] == 3
    assert failure.fields["expected"] is None
    assert failure.fields["actual"] == "blue"
    assert result.trace is not None
    assert [f"{step.actor[-1]} {step.action}" for step in result.trace.steps] == [
        "0 StartInsertOperation",
        "0 WriteDataFiles",
        "0 WriteMetadataFiles",
        "0 Commit",
        "0 StartDeleteOperation",
        "0 ReadDataFiles",
        "0 WriteDataFiles",
        "1 StartUpdateOperation",
        "1 ReadDataFiles",
        "1 WriteDataFiles",
        "1 WriteMetadataFiles",
        "1 Commit",
        "0 WriteMetadataFiles",
        "0 Commit",
    ]
    assert len(result.trace) == result.depth - 1 == 14


def test_seed_trace_tells_checks_arguments_and_changes() -> None:
    trace = check(iceberg()).trace
    assert trace is not None
    last = trace.steps[-1]
    assert [(one.name, one.passed) for one in last.checks] == [("compare-and-swap", True)]
    assert last.changes["table"]["version"] == 3
    # The delete came to its file name before the update did, and commits after it.
    assert last.changes["table"]["files"] == {
        "data-1": "EXISTING",
        "data-2": "EXISTING",
        "delete-2": "EXISTING",
        "delete-1": "ADDED",
    }
    validated = trace.steps[-2]
    assert [(one.name, one.passed) for one in validated.checks] == [
        ("V1 referenced files exist", True)
    ]
    started = next(step for step in trace.steps if step.action == "StartUpdateOperation")
    assert started.arguments == {"predicate": ("jack", None, None), "set": (None, "blue", None)}


def test_seed_configuration_with_the_fix_has_2741_states_and_everything_holds() -> None:
    result = check(iceberg(fix="A"))
    assert result.states == 2741
    assert result.ok
    assert set(result.verdicts.values()) == {"holds"}
    assert result.unreached == ("StartCompactionOperation",)


def test_seed_configuration_explored_on_has_12_violating_states() -> None:
    result = check(iceberg(), stop_at_first=False)
    assert (result.states, result.violating_states) == (2861, 12)


def test_result_is_json() -> None:
    told = json.loads(json.dumps(check(iceberg()).to_dict()))
    assert told["violated"] == "ConsistentRead"
    assert len(told["trace"]) == 14
    assert told["parameters"]["col2_values"] == ["red", "blue"]


def test_unknown_parameters_are_all_named_at_once() -> None:
    with pytest.raises(ModelError) as caught:
        iceberg(isolation="READ", fix="Z", writers=0)
    assert all(word in str(caught.value) for word in ("isolation", "fix", "writers"))


# --- the document's own schedule --------------------------------------------------------------

INSERT = [
    ScheduledStep("writer-0", "StartInsertOperation", {"row": ("jack", "red", "A")}),
    ScheduledStep("writer-0", "WriteDataFiles"),
    ScheduledStep("writer-0", "WriteMetadataFiles"),
    ScheduledStep("writer-0", "Commit", {"version": 1}),
]
JACK = ("jack", None, None)
SCHEDULE = [
    *INSERT,
    ScheduledStep(
        "writer-0", "StartUpdateOperation", {"predicate": JACK, "set": (None, "blue", None)}
    ),
    ScheduledStep("writer-1", "StartDeleteOperation", {"predicate": JACK}),
    ScheduledStep("writer-0", "ReadDataFiles"),
    ScheduledStep("writer-1", "ReadDataFiles"),
    ScheduledStep("writer-0", "WriteDataFiles"),
    ScheduledStep("writer-1", "WriteDataFiles"),
    ScheduledStep("writer-0", "WriteMetadataFiles", {"base version": 1}),
    ScheduledStep("writer-0", "Commit", {"version": 2}),
    ScheduledStep("writer-1", "WriteMetadataFiles", {"base version": 2}),
    ScheduledStep("writer-1", "Commit", {"version": 3}),
]


def test_schedule_of_the_source_document_ends_in_the_violation() -> None:
    followed = run_schedule(iceberg(), SCHEDULE)
    assert [(number, name) for number, name, _ in followed.failures] == [(14, "ConsistentRead")]
    table: Any = followed.trace.shared["table"]
    names = {
        entry.file.path: entry.status
        for entry in (*table[3].data.entries, *table[3].deletes.entries)
    }
    # As in the document: both data files live, one delete file of each writer.
    assert names == {
        "data-1": "EXISTING",
        "data-2": "EXISTING",
        "delete-1": "EXISTING",
        "delete-2": "ADDED",
    }
    assert [row for _, rows in scan(table[3]) for _, row in rows] == [("jack", "blue", "A")]


def test_schedule_of_the_source_document_is_no_path_with_the_fix() -> None:
    with pytest.raises(ModelError, match="step 13: writer-1 cannot take WriteMetadataFiles"):
        run_schedule(iceberg(fix="A"), SCHEDULE)


def test_history_of_a_column_is_linearised() -> None:
    serial = [
        *INSERT,
        ScheduledStep(
            "writer-0", "StartUpdateOperation", {"predicate": JACK, "set": (None, "blue", None)}
        ),
        *(ScheduledStep("writer-0", name) for name in ("ReadDataFiles", "WriteDataFiles")),
        *(ScheduledStep("writer-0", name) for name in ("WriteMetadataFiles", "Commit")),
        ScheduledStep("writer-1", "StartDeleteOperation", {"predicate": JACK}),
        *(ScheduledStep("writer-1", name) for name in ("ReadDataFiles", "WriteDataFiles")),
        *(ScheduledStep("writer-1", name) for name in ("WriteMetadataFiles", "Commit")),
    ]
    followed = run_schedule(iceberg(), serial)
    assert not followed.failures
    table: Any = followed.trace.shared["table"]
    assert history(table, "jack", 1) == [(1, "red"), (2, "blue"), (3, None)]


# --- counts -----------------------------------------------------------------------------------

#: parameters, options of the check, states, property violated
ROWS: dict[str, tuple[IcebergV2, dict[str, Any], int, str | None]] = {
    "S canonical stops": (small(), {}, 1851, "ConsistentRead"),
    "S canonical fixed": (small(fix="A"), {}, 1837, None),
    "2 ids faithful fixed": (iceberg(fix="A", col1_values=TWO), {}, 29233, None),
    "2 ids canonical fixed": (small(fix="A", col1_values=TWO), {}, 8869, None),
    "2 ids, 4 writes fixed": (
        small(fix="A", col1_values=TWO, max_write_ops=4),
        {},
        72585,
        None,
    ),
    "2 ids, 5 writes, sorted writers": (
        small(fix="A", col1_values=TWO, max_write_ops=5),
        {"symmetry": True},
        268473,
        None,
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_count_of_states(row: str) -> None:
    model, options, states, violated = ROWS[row]
    result = check(model, **options)
    assert (result.states, result.violated) == (states, violated)
    assert result.ok == (violated is None)


REDUCED = {
    "S": (small(), 106, 6),
    "S fixed": (small(fix="A"), 115, None),
    "S serializable": (small(isolation=SER), 117, None),
    "S copy-on-write": (small(update_mode=COW, delete_mode=COW), 115, None),
    "4 writes, update COW": (small(max_write_ops=4, update_mode=COW), 393, 8),
    "4 writes, update COW, fixed": (small(max_write_ops=4, update_mode=COW, fix="A"), 405, None),
    "4 writes, update COW, SER": (
        small(max_write_ops=4, update_mode=COW, isolation=SER),
        421,
        None,
    ),
    "2 ids, 3 writes": (small(fix="A", col1_values=TWO), 585, None),
    "2 ids, 4 writes": (small(fix="A", col1_values=TWO, max_write_ops=4), 4225, None),
    "2 ids, 5 writes": (small(fix="A", col1_values=TWO, max_write_ops=5), 30537, None),
}


@pytest.mark.parametrize("row", REDUCED)
def test_derived_reduction_stores_as_few_states_as_fusing_by_hand(row: str) -> None:
    model, states, moves = REDUCED[row]
    result = check(model, symmetry=True, reduction=True)
    assert result.states == states
    assert (result.trace.moves if result.trace else None) == moves
    if states < 5000:
        oracle = fused_oracle.search(model)
        assert (oracle.states, oracle.moves) == (states, moves)


@pytest.mark.skipif(not is_full_scale(), reason="large: run with TWINLAKE_SCALE=full")
@pytest.mark.parametrize(
    ("parameters", "options", "states"),
    [
        ({"max_write_ops": 6}, {"reduction": True}, 204_949),
        ({"max_write_ops": 5, "writers": 3}, {}, 985_129),
        ({"max_write_ops": 5, "writers": 3}, {"reduction": True}, 49_593),
        ({"max_write_ops": 4, "writers": 3, "max_compaction_ops": 2}, {}, 5_240_909),
        (
            {"max_write_ops": 4, "writers": 3, "max_compaction_ops": 2},
            {"reduction": True},
            249_721,
        ),
    ],
    ids=["6 writes reduced", "3 writers", "3 writers reduced", "compaction", "compaction reduced"],
)
def test_count_of_states_of_large_configurations(
    parameters: dict[str, Any], options: dict[str, Any], states: int
) -> None:
    model = small(fix="A", col1_values=TWO, **parameters)
    result = check(model, symmetry=True, without=DANGLING, **options)
    assert (result.states, result.ok) == (states, True)


@pytest.mark.skipif(not is_full_scale(), reason="large: run with TWINLAKE_SCALE=full")
def test_reduction_of_the_largest_configuration_reaches_the_same_tables() -> None:
    model = small(fix="A", col1_values=TWO, max_write_ops=4, max_compaction_ops=2, writers=3)
    tables = []
    for reduction in (True, False):
        space, found = explore(model, symmetry=True, reduction=reduction, without=DANGLING)
        assert found.complete
        # A value is interned when a reached state has it.
        tables.append(frozenset(space.shared[space.variables.index("table")].values))
    assert tables[0] == tables[1]
    assert len(tables[0]) == 11_205


# --- all settings -----------------------------------------------------------------------------


def test_exactly_six_of_64_settings_violate() -> None:
    violating = set()
    for ids, writes, update, delete, isolation, fix in itertools.product(
        (("jack",), TWO), (3, 4), (MOR, COW), (MOR, COW), (SI, SER), (None, "A")
    ):
        model = small(
            col1_values=ids,
            max_write_ops=writes,
            update_mode=update,
            delete_mode=delete,
            isolation=isolation,
            fix=fix,
        )
        result = check(model, symmetry=True, reduction=True)
        if not result.ok:
            assert result.violated == "ConsistentRead"
            violating.add((len(ids), writes, update, delete, isolation, fix))
    assert violating == {
        *((ids, writes, MOR, MOR, SI, None) for ids in (1, 2) for writes in (3, 4)),
        *((ids, 4, COW, MOR, SI, None) for ids in (1, 2)),
    }


def test_fixes_compared_with_4_writes() -> None:
    found = {one.fix: one for one in compare_fixes(max_write_ops=4)}
    assert {fix: dict(one.violated) for fix, one in found.items()} == {
        None: {"key": "ConsistentRead", "row": "ConsistentRead"},
        "A": {"key": None, "row": None},
        "B": {"key": None, "row": None},
        "C": {"key": "ConsistentRead", "row": None},
    }
    aborts = {fix: one.delete_aborts["key"] for fix, one in found.items()}
    assert (aborts["A"], aborts["C"]) == (108, 46)
    # The narrower the fix, the fewer operations it gives up.
    assert found["C"].delete_aborts["row"] < aborts["B"] < aborts["A"]


def test_fix_c_is_clean_with_3_writes() -> None:
    result = check(small(fix="C", col1_values=TWO), symmetry=True, reduction=True)
    assert result.ok


@pytest.mark.parametrize(("fix", "aborts"), [("A", 576), ("C", 46)])
def test_delete_aborts_with_5_writes(fix: str, aborts: int) -> None:
    from twinlake.verify.models.iceberg.fix_comparison import is_aborting_delete

    result = check(
        small(fix=fix, col1_values=TWO, max_write_ops=5),
        symmetry=True,
        reduction=True,
        tally=is_aborting_delete,
    )
    assert result.tally == aborts
    assert result.violated == (None if fix == "A" else "ConsistentRead")


# --- dangling deletes, mutants ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("writes", "compactions", "ids", "violated"),
    [
        (3, 2, TWO, True),
        (4, 1, TWO, True),
        (2, 2, TWO, False),
        (3, 1, TWO, False),
        (5, 1, ("jack",), False),
    ],
)
def test_compaction_leaves_dangling_deletes(
    writes: int, compactions: int, ids: tuple[str, ...], violated: bool
) -> None:
    model = small(writers=1, max_write_ops=writes, max_compaction_ops=compactions, col1_values=ids)
    result = check(model, reduction=True)
    assert result.violated == ("NoDanglingDeleteFiles" if violated else None)
    weak = check(model, reduction=True, without=DANGLING)
    assert weak.ok
    assert weak.verdicts["DanglingDeletesHideNoRow"] == "holds"


def test_shortest_path_to_a_dangling_delete_has_23_steps() -> None:
    model = small(writers=1, max_write_ops=3, max_compaction_ops=2, col1_values=TWO)
    trace = check(model).trace
    assert trace is not None
    assert len(trace) == 23


def test_copy_on_write_that_ignores_deletes_is_caught() -> None:
    parameters: dict[str, Any] = {
        "writers": 1,
        "update_mode": COW,
        "col1_values": TWO,
        "max_write_ops": 4,
        "max_compaction_ops": 1,
    }
    mutant = small(mutant="cow-ignores-deletes", **parameters)
    result = check(mutant, reduction=True, without=DANGLING)
    assert result.violated == "ConsistentRead"
    assert result.trace is not None
    assert result.trace.moves == 10
    assert check(small(**parameters), reduction=True, without=DANGLING).ok


# --- reductions change nothing but the number of states ----------------------------------------

SMALL: dict[str, dict[str, Any]] = {
    "2 writers": {"max_write_ops": 3, "col1_values": TWO, "fix": "A"},
    "3 writers": {"max_write_ops": 3, "col1_values": TWO, "fix": "A", "writers": 3},
    "compaction": {"max_write_ops": 3, "max_compaction_ops": 1, "col1_values": TWO, "fix": "A"},
    "serializable": {"max_write_ops": 3, "col1_values": TWO, "isolation": SER},
    "violating": {"max_write_ops": 3},
    "violating COW/MOR": {"max_write_ops": 4, "update_mode": COW},
}


@pytest.mark.parametrize("config", SMALL)
def test_reductions_reach_the_same_committed_tables_and_verdicts(config: str) -> None:
    model = small(**SMALL[config])
    full = check(model, stop_at_first=False)
    tables = committed(model)
    for symmetry, reduction in ((True, False), (False, True), (True, True)):
        reduced = check(model, symmetry=symmetry, reduction=reduction, stop_at_first=False)
        assert reduced.verdicts == full.verdicts
        assert reduced.states < full.states
        assert committed(model, symmetry=symmetry, reduction=reduction) == tables
    assert fused_oracle.search(model, stop=False).tables == tables


def committed(model: IcebergV2, **options: Any) -> frozenset[Any]:
    space, found = explore(model, **options)
    assert found.complete
    index = space.variables.index("table")
    numbers = {space.layout.shared(state)[index] for level in found.levels for state in level}
    return frozenset(space.shared[index].values[number] for number in numbers)


OPTIONS: tuple[dict[str, bool], ...] = ({}, {"symmetry": True, "reduction": True})


def test_reachable_tables_have_the_known_number() -> None:
    counts = [
        len(committed(small(col1_values=TWO, fix="A", max_write_ops=4), **options))
        for options in OPTIONS
    ]
    assert counts == [525, 525]


def test_faithful_identity_loses_the_reduction_of_what_it_names() -> None:
    # Names come from shared counters, so writing files is no longer private.
    full = check(iceberg(fix="A"))
    reduced = check(iceberg(fix="A"), reduction=True)
    assert reduced.ok
    assert 1837 < reduced.states < full.states


def test_trace_of_a_reduced_search_expands_to_full_steps() -> None:
    trace = check(small(), symmetry=True, reduction=True).trace
    assert trace is not None
    assert (trace.moves, len(trace)) == (6, 14)
    planned = [ScheduledStep(step.actor, step.action, step.arguments) for step in trace.steps]
    assert [name for _, name, _ in run_schedule(small(), planned).failures] == ["ConsistentRead"]


@pytest.mark.parametrize("symmetry", [False, True])
@pytest.mark.parametrize(
    "model",
    [small(fix="A"), small(), small(fix="A", col1_values=TWO, max_write_ops=2)],
    ids=["fixed", "violating", "2 ids"],
)
def test_value_symmetry_keeps_one_state_of_each_orbit(model: IcebergV2, symmetry: bool) -> None:
    full = check(model, symmetry=symmetry, stop_at_first=False)
    reduced = check(model, symmetry=symmetry, value_symmetry=True, stop_at_first=False)
    assert reduced.verdicts == full.verdicts
    assert reduced.depth == full.depth
    if not symmetry:
        assert reduced.states == orbits(model)
    assert reduced.states < full.states
    if full.trace is not None:
        assert reduced.trace is not None
        assert len(reduced.trace) == len(full.trace)


def orbits(model: IcebergV2) -> int:
    """How many states there are up to renaming, counted on the values themselves."""
    space, found = explore(model)
    mappings: list[dict[Any, Any]] = []
    for ids in itertools.permutations(model.col1_values):
        for colours in itertools.permutations(model.col2_values):
            olds = (*model.col1_values, *model.col2_values)
            mappings.append(dict(zip(olds, (*ids, *colours), strict=True)))
    kept = set()
    for level in found.levels:
        for state in level:
            shared = tuple(space.shared_values(state).values())
            whole = (shared, space.actor_values(state))
            kept.add(frozenset(permute_values(whole, mapping) for mapping in mappings))
    return len(kept)
