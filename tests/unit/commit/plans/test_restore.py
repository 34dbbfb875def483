from __future__ import annotations

import pytest

from twinlake.actions import AddFile, DeletionVectorDescriptor
from twinlake.commit.plans import plan_restore
from twinlake.errors import Code, UserError


def file(path: str, vector: str | None = None, kind: str = "u") -> AddFile:
    return AddFile(
        path=path,
        partition_values={},
        size=5,
        modification_time=0,
        data_change=False,
        tags={"k": "v"},
        base_row_id=3,
        deletion_vector=DeletionVectorDescriptor(kind, vector, 1, 1) if vector else None,
    )


def test_difference_is_by_path_and_vector() -> None:
    plan = plan_restore(
        [file("same"), file("new"), file("hid", "2"), file("bare", "3")],
        [file("same"), file("old"), file("hid", "1"), file("bare")],
    )
    outcome = plan.finish(now=8)
    assert [a.key for a in outcome.removes] == [("bare", "u3"), ("hid", "u2"), ("new", None)]
    assert [a.key for a in outcome.adds] == [("bare", None), ("hid", "u1"), ("old", None)]
    assert all(add.data_change and add.base_row_id == 3 for add in outcome.adds)
    assert all(remove.data_change for remove in outcome.removes)
    assert outcome.reads.whole_table
    assert outcome.metrics == {
        "tableSizeAfterRestore": "20",
        "numOfFilesAfterRestore": "4",
        "numRemovedFiles": "3",
        "numRestoredFiles": "3",
        "removedFilesSize": "15",
        "restoredFilesSize": "15",
    }


def test_files_that_must_be_there_are_named_and_refused_if_gone() -> None:
    plan = plan_restore([file("a")], [file("a"), file("b", "x"), file("c", "in", "i")])
    assert plan.needed_paths == ("b", "c")
    assert [vector.unique_id for vector in plan.needed_vectors] == ["ux"]
    with pytest.raises(UserError) as caught:
        plan.finish(now=1, missing=["c", "b"])
    assert caught.value.code is Code.STORAGE_NOT_FOUND
    assert caught.value.fields == {"missing": ["b", "c"]}


def test_nothing_to_do() -> None:
    assert plan_restore([file("a")], [file("a")]).finish(now=1).actions == ()


def test_a_path_live_twice_is_refused() -> None:
    with pytest.raises(UserError, match="live twice"):
        plan_restore([file("a"), file("a", "1")], [])
