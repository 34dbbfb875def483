from __future__ import annotations

import msgspec
import pytest

from twinlake.actions import AddCDCFile, AddFile, DeletionVectorDescriptor, Metadata
from twinlake.commit.plans import (
    DropFile,
    Mode,
    RewriteFile,
    TableRules,
    WriteDeletionVector,
    Written,
    plan_delete,
    plan_delete_files,
    plan_update,
    positions,
    touched,
)
from twinlake.commit.read_set import ReadSet
from twinlake.errors import Code, UserError

VECTORS = TableRules(mode=Mode.DELETION_VECTORS)
COPY = TableRules()
OLD_VECTOR = DeletionVectorDescriptor("u", "old", 4, 1, 1)


def file(path: str = "a", rows: int | None = 4, **changes: object) -> AddFile:
    add = AddFile(
        path=path,
        partition_values={"p": "1"},
        size=100,
        modification_time=5,
        data_change=False,
        stats=None if rows is None else f'{{"numRecords":{rows},"maxValues":{{"d":0.10}}}}',
        tags={"T": "1"},
        base_row_id=7,
        default_row_commit_version=2,
        clustering_provider="liquid",
        extra={"unknown": 1},
    )
    return msgspec.structs.replace(add, **changes)


def vector(count: int, name: str = "new") -> DeletionVectorDescriptor:
    return DeletionVectorDescriptor("u", name, 4, count, 1)


@pytest.mark.parametrize(
    ("rules", "delete", "update", "step"),
    [
        pytest.param(COPY, [0], [], RewriteFile, id="copy-some"),
        pytest.param(COPY, [0, 2, 3], [], DropFile, id="copy-all"),
        pytest.param(VECTORS, [0], [], WriteDeletionVector, id="vector-some"),
        pytest.param(VECTORS, [0, 2, 3], [], DropFile, id="vector-all"),
    ],
)
def test_step_of_a_file_with_one_hidden_row(
    rules: TableRules, delete: list[int], update: list[int], step: type
) -> None:
    touch = touched(file(deletion_vector=OLD_VECTOR), delete=delete, update=update, hidden=[1])
    (found,) = plan_delete([touch], rules=rules, reads=ReadSet()).steps
    assert type(found) is step
    if isinstance(found, RewriteFile):
        assert set(found.keep) == {2, 3}
    if isinstance(found, WriteDeletionVector):
        assert set(found.positions) == {0, 1}


def test_vector_update_is_remove_and_add_that_keeps_everything_else() -> None:
    add = file(deletion_vector=OLD_VECTOR)
    plan = plan_delete([touched(add, delete=[0], hidden=[1])], rules=VECTORS, reads=ReadSet())
    outcome = plan.finish(Written(vectors={"a": vector(2)}), now=99)
    (remove,), (new,) = outcome.removes, outcome.adds
    assert remove.key == add.key
    assert (remove.deletion_timestamp, remove.base_row_id) == (99, 7)
    assert new == msgspec.structs.replace(
        add,
        data_change=True,
        deletion_vector=vector(2),
        stats='{"numRecords":4,"maxValues":{"d":0.10},"tightBounds":false}',
    )
    assert outcome.metrics["numDeletionVectorsUpdated"] == "1"
    assert outcome.metrics["numRemovedFiles"] == outcome.metrics["numAddedFiles"] == "0"


def test_untouched_files_are_read_but_stay() -> None:
    plan = plan_delete(
        [touched(file("b"), delete=[1]), touched(file("a"))],
        rules=COPY,
        reads=ReadSet(files=frozenset({"z"})),
    )
    assert [step.file.add.path for step in plan.steps] == ["b"]
    assert plan.reads.files == {"a", "b", "z"}


def test_nothing_matched_commits_nothing() -> None:
    plan = plan_update([touched(file())], rules=VECTORS, reads=ReadSet())
    assert plan.finish(Written(), now=1).actions == ()


@pytest.mark.parametrize("mode", Mode)
def test_change_files_hold_whole_drops_too_once_there_are_any(mode: Mode) -> None:
    rules = TableRules(mode=mode, change_data=True)
    whole = touched(file("a", 2), delete=[0, 1])
    assert not plan_delete([whole], rules=rules, reads=ReadSet()).needs_change_files
    both = plan_delete([whole, touched(file("b"), delete=[3])], rules=rules, reads=ReadSet())
    assert [(c.file.add.path, c.change_type, set(c.positions)) for c in both.change_rows] == [
        ("a", "delete", {0, 1}),
        ("b", "delete", {3}),
    ]


def test_updating_every_row_drops_the_file_and_still_tells_the_change() -> None:
    rules = TableRules(change_data=True, row_tracking=True)
    plan = plan_update([touched(file("a", 1), update=[0])], rules=rules, reads=ReadSet())
    assert isinstance(plan.steps[0], DropFile)
    assert [c.change_type for c in plan.change_rows] == ["update_preimage", "update_postimage"]
    assert plan.materialise_row_ids
    cdc = AddCDCFile(path="_change_data/c", partition_values={}, size=1, data_change=True)
    new = file("n", 1, base_row_id=None)
    outcome = plan.finish(Written(files=(new,), changes=(cdc,)), now=1)
    assert [action.data_change for action in outcome.changes] == [False]
    assert outcome.adds[0].base_row_id is None
    assert outcome.tags == {"delta.rowTracking.preserved": "true"}


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        pytest.param(Written(), "b: its deletion vector is missing", id="missing"),
        pytest.param(
            Written(vectors={"b": vector(1), "x": vector(1)}),
            "x: an unexpected deletion",
            id="extra",
        ),
        pytest.param(Written(vectors={"b": vector(3)}), "hides 3 rows", id="cardinality"),
        pytest.param(Written(vectors={"b": vector(1)}), "no new files", id="no-files"),
        pytest.param(
            Written(vectors={"b": vector(1)}, files=(file("n", 3),)), "hold 3 rows", id="rows"
        ),
        pytest.param(
            Written(vectors={"b": vector(1)}, files=(file("b", 1),)), "path of another", id="path"
        ),
        pytest.param(
            Written(
                vectors={"b": vector(1)},
                files=(file("n", 1),),
                changes=(AddCDCFile(path="c", partition_values={}, size=1, data_change=False),),
            ),
            "change files were written",
            id="changes",
        ),
    ],
)
def test_results_that_do_not_fit_are_refused(written: Written, problem: str) -> None:
    plan = plan_update([touched(file("b"), update=[0])], rules=VECTORS, reads=ReadSet())
    with pytest.raises(UserError, match=problem) as caught:
        plan.finish(written, now=1)
    assert caught.value.code is Code.COMMIT_INVALID


def test_a_vector_with_the_old_id_is_refused() -> None:
    add = file(deletion_vector=OLD_VECTOR)
    plan = plan_delete([touched(add, delete=[0], hidden=[1])], rules=VECTORS, reads=ReadSet())
    same = msgspec.structs.replace(OLD_VECTOR, cardinality=2)
    with pytest.raises(UserError, match="id of the old one"):
        plan.finish(Written(vectors={"a": same}), now=1)


def test_all_contradictions_are_told_at_once() -> None:
    bad = [
        touched(file("a"), delete=[9]),
        touched(file("b"), delete=[0], hidden=[0]),
        touched(file("c"), update=[0]),
        touched(file("c")),
    ]
    with pytest.raises(UserError) as caught:
        plan_delete(bad, rules=COPY, reads=ReadSet())
    assert [problem.split(":")[0] for problem in caught.value.fields["problems"]] == [
        "c",
        "a",
        "b",
        "b",
        "c",
    ]


@pytest.mark.parametrize("stats", [None, "", "{}", "nonsense", '{"numRecords":"x"}', "[" * 10_000])
def test_unknown_row_count_has_to_be_given(stats: str | None) -> None:
    add = file(stats=stats)
    assert add.num_records is None
    assert add.num_live_records is None
    with pytest.raises(UserError, match="not known"):
        touched(add, delete=[0])
    plan = plan_delete([touched(add, delete=[0], physical_rows=3)], rules=VECTORS, reads=ReadSet())
    (new,) = plan.finish(Written(vectors={"a": vector(1)}), now=1).adds
    assert new.num_records == 3


def test_append_only_tables_lose_no_rows() -> None:
    rules = TableRules(append_only=True)
    with pytest.raises(UserError) as caught:
        plan_delete([touched(file(), delete=[0])], rules=rules, reads=ReadSet())
    assert caught.value.code is Code.APPEND_ONLY
    with pytest.raises(UserError):
        plan_delete_files([file()], rules=rules, reads=ReadSet(), now=1)
    assert plan_delete([touched(file())], rules=rules, reads=ReadSet()).steps == ()


def test_delete_by_partition_omits_what_statistics_do_not_tell() -> None:
    files = [file("b", None), file("a", 4, deletion_vector=OLD_VECTOR)]
    outcome = plan_delete_files(files, rules=COPY, reads=ReadSet(), now=3)
    assert [remove.path for remove in outcome.removes] == ["a", "b"]
    assert "numDeletedRows" not in outcome.metrics
    assert outcome.metrics["numDeletionVectorsRemoved"] == "1"
    known = plan_delete_files(files[1:], rules=COPY, reads=ReadSet(), now=3)
    assert known.metrics["numDeletedRows"] == "3"
    with pytest.raises(UserError, match="named twice"):
        plan_delete_files([file(), file()], rules=COPY, reads=ReadSet(), now=3)


def test_rules_come_from_the_properties() -> None:
    names = ("enableDeletionVectors", "enableChangeDataFeed", "enableRowTracking", "appendOnly")
    all_on = Metadata(configuration={f"delta.{name}": "true" for name in names})
    assert TableRules.of(all_on) == TableRules(
        mode=Mode.DELETION_VECTORS, change_data=True, row_tracking=True, append_only=True
    )
    assert TableRules.of(Metadata()) == TableRules()


def test_positions_are_an_immutable_bitmap() -> None:
    assert positions([3, 1]) == positions({1, 3})
    assert hash(positions(positions([1]))) == hash(positions([1]))
    with pytest.raises(UserError, match="negative"):
        positions([-1])
