from __future__ import annotations

import pytest

from twinlake.actions import AddFile, DeletionVectorDescriptor
from twinlake.commit.plans import OptimizeOptions, TableRules, plan_optimize, plan_reorg_purge
from twinlake.errors import UserError

RULES = TableRules()


def file(
    path: str, size: int, part: str | None = "x", rows: int | None = 100, hidden: int = 0
) -> AddFile:
    vector = DeletionVectorDescriptor("u", f"dv-{path}", 4, hidden, 1) if hidden else None
    return AddFile(
        path=path,
        partition_values={"p": part},
        size=size,
        modification_time=0,
        data_change=True,
        stats=None if rows is None else f'{{"numRecords":{rows}}}',
        deletion_vector=vector,
    )


def bins(files: list[AddFile], **options: float) -> list[list[str]]:
    chosen = OptimizeOptions(
        target_size=int(options.get("target", 100)),
        min_file_size=int(options["smallest"]) if "smallest" in options else None,
        max_deleted_ratio=options.get("ratio", 0.05),
    )
    plan = plan_optimize(files, rules=RULES, options=chosen)
    return [[add.path for add in packed.files] for packed in plan.bins]


@pytest.mark.parametrize(
    ("files", "options", "expected"),
    [
        pytest.param([], {}, [], id="empty"),
        pytest.param([file("a", 10)], {}, [], id="one-small-file"),
        pytest.param([file("b", 10), file("a", 10)], {}, [["a", "b"]], id="two-by-path"),
        pytest.param([file("a", 20), file("b", 10)], {}, [["b", "a"]], id="two-by-size"),
        pytest.param([file("a", 10), file("b", 10, "y")], {}, [], id="two-partitions"),
        pytest.param([file("a", 1, None), file("b", 1, "")], {}, [["a", "b"]], id="null-is-empty"),
        pytest.param([file("a", 50), file("b", 50), file("c", 50)], {}, [["a", "b"]], id="full"),
        pytest.param([file("a", 100), file("b", 10)], {}, [], id="large-enough"),
        pytest.param(
            [file("a", 40), file("b", 10)], {"smallest": 30}, [], id="min-size-below-target"
        ),
        pytest.param([file("a", 10, hidden=1)], {}, [["a"]], id="small-with-vector"),
        pytest.param([file("a", 500, hidden=5)], {}, [], id="few-hidden"),
        pytest.param([file("a", 500, hidden=6)], {}, [["a"]], id="many-hidden"),
        pytest.param([file("a", 500, rows=None, hidden=6)], {}, [["a"]], id="unknown-hidden"),
        pytest.param([file("a", 500, hidden=6)], {"ratio": 0.5}, [], id="ratio"),
    ],
)
def test_bins(files: list[AddFile], options: dict[str, float], expected: list[list[str]]) -> None:
    assert bins(files, **options) == expected


def test_commit_changes_no_data_and_tells_sizes() -> None:
    plan = plan_optimize(
        [file("a", 10), file("b", 20, hidden=40), file("c", 1, "y")],
        rules=TableRules(row_tracking=True),
        options=OptimizeOptions(target_size=100),
    )
    assert plan.materialise_row_ids
    assert (plan.considered, plan.skipped) == (3, 1)
    outcome = plan.finish([[file("n", 12, rows=90), file("m", 8, rows=70)]], now=4)
    assert [action.path for action in outcome.actions] == ["a", "b", "m", "n"]
    assert not any(add.data_change for add in outcome.adds)
    assert not any(remove.data_change for remove in outcome.removes)
    assert not outcome.changes_data
    assert outcome.metrics == {
        "numRemovedFiles": "2",
        "numRemovedBytes": "30",
        "numAddedFiles": "2",
        "numAddedBytes": "20",
        "numDeletionVectorsRemoved": "1",
        "minFileSize": "8",
        "p25FileSize": "8",
        "p50FileSize": "12",
        "p75FileSize": "12",
        "maxFileSize": "12",
    }


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        pytest.param([], "1 bins were planned, 0 written", id="bins"),
        pytest.param([[file("n", 1, rows=199)]], "have 200 rows", id="rows"),
        pytest.param([[]], "have 200 rows", id="nothing"),
        pytest.param([[file("a", 1, rows=200)]], "path of another", id="path"),
        pytest.param([[file("n", 1, "y", rows=200)]], "not in the partition", id="partition"),
        pytest.param([[file("n", 1, rows=200, hidden=1)]], "has a deletion vector", id="vector"),
    ],
)
def test_results_that_do_not_fit_are_refused(written: list[list[AddFile]], problem: str) -> None:
    plan = plan_optimize([file("a", 1), file("b", 1)], rules=RULES)
    with pytest.raises(UserError, match=problem):
        plan.finish(written, now=1)


def test_purge_takes_vectors_and_stale_files_of_any_size() -> None:
    files = [file("a", 1 << 40, hidden=1), file("b", 5), file("c", 5), file("d", 5, hidden=100)]
    plan = plan_reorg_purge(files, rules=RULES, stale={"c"})
    assert [[add.path for add in packed.files] for packed in plan.bins] == [["c", "d"], ["a"]]
    gone = plan_reorg_purge(files[3:], rules=RULES).finish([[]], now=1)
    assert [action.path for action in gone.actions] == ["d"]
    assert gone.metrics["maxFileSize"] == "0"


def test_options_and_files_are_checked() -> None:
    with pytest.raises(UserError) as caught:
        OptimizeOptions(target_size=0, min_file_size=-1, max_deleted_ratio=2)
    assert len(caught.value.fields["problems"]) == 3
    with pytest.raises(UserError, match="named twice"):
        plan_optimize([file("a", 1), file("a", 1)], rules=RULES)
