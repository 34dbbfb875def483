"""Delta commits in Iceberg's words."""

from __future__ import annotations

import pytest

from twinlake.actions import AddFile, RemoveFile
from twinlake.actions.files import DeletionVectorDescriptor
from twinlake.iceberg.derive.operation import file_changes, operation_of, snapshot_summary
from twinlake.log.paths.canonical import CanonicalPaths

VECTOR = DeletionVectorDescriptor("i", "x", 4, 1)


def add(path: str, *, change: bool = True, masked: bool = False) -> AddFile:
    return AddFile(
        path=path,
        partition_values={},
        size=1,
        modification_time=0,
        data_change=change,
        deletion_vector=VECTOR if masked else None,
    )


def remove(path: str, *, change: bool = True, masked: bool = False) -> RemoveFile:
    vector = VECTOR if masked else None
    return RemoveFile(path=path, data_change=change, deletion_vector=vector)


CASES = {
    "append": ([add("a")], 5, 0, "append"),
    "delete": ([remove("a")], 0, 5, "delete"),
    "delete without a change of data": ([remove("a", change=False)], 0, 5, "delete"),
    "overwrite": ([add("b"), remove("a")], 9, 5, "overwrite"),
    "compaction": ([add("b", change=False), remove("a", change=False)], 5, 5, "replace"),
    "compaction that grew": (
        [add("b", change=False), remove("a", change=False)],
        6,
        5,
        "overwrite",
    ),
    "rows hidden": ([add("a", masked=True), remove("a")], 0, 0, "delete"),
    "rows hidden and others added": (
        [add("a", masked=True), remove("a"), add("b")],
        3,
        0,
        "overwrite",
    ),
    "rows shown again": ([add("a"), remove("a", masked=True)], 0, 0, "overwrite"),
    "mixed": ([add("b"), add("c", change=False), remove("a", change=False)], 5, 5, "overwrite"),
}


@pytest.mark.parametrize(("actions", "added", "removed", "name"), CASES.values(), ids=CASES)
def test_operations(
    actions: list[AddFile | RemoveFile], added: int, removed: int, name: str
) -> None:
    changes = file_changes(actions, CanonicalPaths.of("file:///lake/t"))

    assert str(operation_of(changes, added_rows=added, removed_rows=removed)) == name


def test_totals_run_on_from_the_parent() -> None:
    first = snapshot_summary({"added-data-files": 2, "added-records": 10}, None)
    second = snapshot_summary({"deleted-data-files": 1, "deleted-records": 4}, first)

    assert first["total-data-files"] == "2"
    assert second["total-data-files"] == "1"
    assert second["total-records"] == "6"
    assert "added-records" not in second
    assert second["total-delete-files"] == "0"


def test_a_total_the_parent_lacks_stays_unknown() -> None:
    found = snapshot_summary({"added-records": 1}, {"operation": "append", "total-records": "x"})

    assert "total-records" not in found
