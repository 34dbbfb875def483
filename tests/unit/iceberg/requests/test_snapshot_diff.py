"""What the snapshots of a request add and remove, and how they contradict themselves."""

from __future__ import annotations

import pytest

from twinlake.iceberg.requests import EntryStatus, SourceEntry, SourceFile, diff_files

OLD, OWN = 1, 9
ADDED, EXISTING, DELETED = EntryStatus.ADDED, EntryStatus.EXISTING, EntryStatus.DELETED


def entry(path: str, status: EntryStatus, snapshot: int | None = OWN) -> SourceEntry:
    file = SourceFile(
        path=path,
        content=0,
        format="PARQUET",
        spec_id=0,
        partition=(),
        record_count=1,
        size=1,
        sequence_number=1,
        null_value_counts={},
        nan_value_counts={},
        lower_bounds={},
        upper_bounds={},
        is_encrypted=False,
    )
    return SourceEntry(status=status, snapshot_id=snapshot, file=file)


#: Entries of the last snapshot; the live files whose manifests it no longer lists; what is wrong.
CONTRADICTIONS = [
    pytest.param([], {"a"}, "a is neither listed nor deleted", id="left out"),
    pytest.param([entry("a", DELETED, OLD)], {"a"}, "a is neither", id="deleted by another"),
    pytest.param([entry("a", EXISTING)], set(), "does not have it", id="never there"),
    pytest.param([entry("a", ADDED, OLD)], set(), "added by another", id="of another"),
    pytest.param([entry("a", ADDED)], {"a"}, "the table has it", id="added again"),
    pytest.param(
        [entry("a", DELETED), entry("a", EXISTING)], {"a"}, "deleted and listed", id="both"
    ),
    pytest.param([entry("a", ADDED), entry("a", ADDED)], set(), "listed twice", id="twice"),
    pytest.param(
        [entry("a", EXISTING), entry("a", EXISTING)], {"a"}, "listed twice", id="carried twice"
    ),
    pytest.param([entry("a", DELETED)], set(), "stays in a manifest", id="deleted in vain"),
]


@pytest.mark.parametrize(("listed", "dropped", "why"), CONTRADICTIONS)
def test_a_contradiction_is_named(listed: list[SourceEntry], dropped: set[str], why: str) -> None:
    found = diff_files(listed, listed, {path: path for path in dropped}, frozenset({OWN}))
    assert any(why in problem for problem in found.problems), found.problems


def test_files_come_and_go() -> None:
    listed = [entry("new", ADDED, None), entry("kept", EXISTING, OLD), entry("gone", DELETED)]
    keys = {"kept": "data/kept", "gone": "data/gone"}
    found = diff_files(listed, listed, keys, frozenset({OWN}))
    assert not found.problems
    assert [file.path for file in found.added] == ["new"]
    assert found.removed == {"data/gone"}


def test_what_comes_and_goes_within_a_request_does_neither() -> None:
    first = [entry("a", ADDED, 8), entry("b", ADDED, 8)]
    last = [entry("a", EXISTING, 8), entry("b", DELETED, OWN)]
    found = diff_files([*first, *last], last, {}, frozenset({8, OWN}))
    assert not found.problems
    assert [file.path for file in found.added] == ["a"]
    assert not found.removed


def test_a_replaced_table_leaves_out_its_files() -> None:
    found = diff_files([], [], {"a": "a"}, frozenset({OWN}), may_leave_out=True)
    assert not found.problems
    assert found.removed == {"a"}
