from __future__ import annotations

import pytest

from twinlake.actions import AddFile
from twinlake.commit.plans import (
    MergeClause,
    TableRules,
    Then,
    When,
    Written,
    ambiguous_rows,
    check_clauses,
    plan_merge,
    refuse_ambiguous,
    touched,
)
from twinlake.commit.read_set import ReadSet
from twinlake.errors import UserError

UPDATE = MergeClause(When.MATCHED, Then.UPDATE)
UPDATE_IF = MergeClause(When.MATCHED, Then.UPDATE, conditional=True)
DELETE = MergeClause(When.MATCHED, Then.DELETE)
DELETE_IF = MergeClause(When.MATCHED, Then.DELETE, conditional=True)
INSERT = MergeClause(When.NOT_MATCHED, Then.INSERT)
SOURCE_DELETE = MergeClause(When.NOT_MATCHED_BY_SOURCE, Then.DELETE)


def file(path: str, rows: int) -> AddFile:
    return AddFile(
        path=path,
        partition_values={},
        size=10,
        modification_time=0,
        data_change=True,
        stats=f'{{"numRecords":{rows}}}',
    )


@pytest.mark.parametrize(
    ("clauses", "delta_class"),
    [
        pytest.param([], "DELTA_MERGE_MISSING_WHEN", id="none"),
        pytest.param(
            [UPDATE, DELETE], "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION", id="unreachable"
        ),
        pytest.param(
            [INSERT, INSERT], "DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION", id="inserts"
        ),
        pytest.param(
            [SOURCE_DELETE, SOURCE_DELETE],
            "DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION",
            id="by-source",
        ),
        pytest.param([MergeClause(When.MATCHED, Then.INSERT)], None, id="wrong-action"),
        pytest.param([MergeClause(When.NOT_MATCHED, Then.DELETE)], None, id="wrong-action-2"),
    ],
)
def test_clauses_that_cannot_be_used(clauses: list[MergeClause], delta_class: str | None) -> None:
    with pytest.raises(UserError) as caught:
        check_clauses(clauses)
    assert caught.value.delta_class == delta_class


def test_clauses_that_can_be_used() -> None:
    check_clauses([UPDATE_IF, DELETE, INSERT, SOURCE_DELETE])


@pytest.mark.parametrize(
    ("clauses", "rows"),
    [
        pytest.param([UPDATE], ("b", "c"), id="update"),
        pytest.param([DELETE_IF], ("b", "c"), id="conditional-delete"),
        pytest.param([DELETE, INSERT], (), id="only-deletes"),
        pytest.param([INSERT], (), id="only-inserts"),
        pytest.param([DELETE, SOURCE_DELETE], (), id="only-deletes-by-both"),
        pytest.param([SOURCE_DELETE], ("b", "c"), id="by-source"),
        pytest.param([INSERT, SOURCE_DELETE], ("b", "c"), id="insert-and-by-source"),
        pytest.param([UPDATE_IF, DELETE], ("b", "c"), id="update-or-delete"),
    ],
)
def test_ambiguous_rows(clauses: list[MergeClause], rows: tuple[str, ...]) -> None:
    matches = [("c", 3), ("a", 1), ("b", 2), ("d", 0)]
    assert ambiguous_rows(clauses, matches) == rows
    if rows:
        with pytest.raises(UserError) as caught:
            refuse_ambiguous(clauses, matches)
        assert caught.value.delta_class is not None
        assert caught.value.fields == {"rows": ["b", "c"], "count": 2}
    else:
        refuse_ambiguous(clauses, matches)


def test_metrics_split_matched_and_by_source() -> None:
    plan = plan_merge(
        [touched(file("a", 4), update=[0], delete=[1, 2])],
        clauses=[UPDATE, INSERT, SOURCE_DELETE],
        source_rows=9,
        inserted_rows=2,
        deleted_by_source=2,
        rules=TableRules(),
        reads=ReadSet(),
    )
    metrics = plan.finish(Written(files=(file("n", 4),)), now=1).metrics
    wanted = {
        "numSourceRows": "9",
        "numTargetRowsInserted": "2",
        "numTargetRowsUpdated": "1",
        "numTargetRowsMatchedUpdated": "1",
        "numTargetRowsDeleted": "2",
        "numTargetRowsMatchedDeleted": "0",
        "numTargetRowsNotMatchedBySourceDeleted": "2",
        "numTargetRowsCopied": "1",
        "numOutputRows": "4",
        "numTargetFilesAdded": "1",
        "numTargetFilesRemoved": "1",
    }
    assert wanted.items() <= metrics.items()


def test_only_inserts_need_no_change_files_and_fit_append_only_tables() -> None:
    rules = TableRules(change_data=True, append_only=True)
    plan = plan_merge(
        [touched(file("a", 4))],
        clauses=[INSERT],
        source_rows=1,
        inserted_rows=1,
        rules=rules,
        reads=ReadSet(),
    )
    outcome = plan.finish(Written(files=(file("n", 1),)), now=1)
    assert [action.path for action in outcome.actions] == ["n"]
    assert outcome.reads.files == {"a"}


def test_rows_without_a_clause_are_refused() -> None:
    with pytest.raises(UserError) as caught:
        plan_merge(
            [touched(file("a", 4), update=[0], delete=[1])],
            clauses=[UPDATE],
            source_rows=1,
            inserted_rows=1,
            updated_by_source=5,
            deleted_by_source=-1,
            rules=TableRules(),
            reads=ReadSet(),
        )
    assert len(caught.value.fields["problems"]) == 4
