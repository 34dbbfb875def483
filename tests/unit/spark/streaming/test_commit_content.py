"""What commits mean to a stream, under every option."""

from __future__ import annotations

import pytest

from twinlake.actions import (
    Action,
    AddCDCFile,
    AddFile,
    CommitInfo,
    DeletionVectorDescriptor,
    RemoveFile,
)
from twinlake.errors import UserError
from twinlake.spark.streaming.commit_content import CommitContent
from twinlake.spark.streaming.source_options import SourceOptions

CHANGES, DELETES = "DELTA_SOURCE_TABLE_IGNORE_CHANGES", "DELTA_SOURCE_IGNORE_DELETE"


def add(
    path: str, *, data_change: bool = True, vector: DeletionVectorDescriptor | None = None
) -> AddFile:
    return AddFile(
        path=path,
        partition_values={},
        size=1,
        modification_time=0,
        data_change=data_change,
        deletion_vector=vector,
    )


def remove(
    path: str, *, data_change: bool = True, vector: DeletionVectorDescriptor | None = None
) -> RemoveFile:
    return RemoveFile(
        path=path, deletion_timestamp=0, data_change=data_change, deletion_vector=vector
    )


def change(path: str) -> AddCDCFile:
    return AddCDCFile(path=path, partition_values={}, size=1, data_change=False)


APPEND: tuple[Action, ...] = (CommitInfo(operation="WRITE"), add("a"), add("b"))
DELETE: tuple[Action, ...] = (CommitInfo(operation="DELETE"), remove("a"))
UPDATE: tuple[Action, ...] = (CommitInfo(operation="UPDATE"), remove("a"), add("c"))
OPTIMIZE: tuple[Action, ...] = (remove("a", data_change=False), add("c", data_change=False))
PROPERTIES: tuple[Action, ...] = (CommitInfo(operation="SET TBLPROPERTIES"),)


@pytest.mark.parametrize(
    ("actions", "option", "outcome"),
    [
        (APPEND, None, ["a", "b"]),
        (APPEND, "ignoreChanges", ["a", "b"]),
        (APPEND, "skipChangeCommits", ["a", "b"]),
        (OPTIMIZE, None, []),
        (PROPERTIES, None, []),
        (DELETE, None, DELETES),
        (DELETE, "ignoreDeletes", []),
        (DELETE, "ignoreChanges", []),
        (DELETE, "skipChangeCommits", []),
        (DELETE, "ignoreFileDeletion", []),
        (UPDATE, None, CHANGES),
        (UPDATE, "ignoreDeletes", CHANGES),
        (UPDATE, "ignoreChanges", ["c"]),
        (UPDATE, "ignoreFileDeletion", ["c"]),
        (UPDATE, "skipChangeCommits", []),
    ],
)
def test_files_of_a_commit(
    actions: tuple[Action, ...], option: str | None, outcome: list[str] | str
) -> None:
    options = SourceOptions.parse({option: "true"} if option else {})
    commit = CommitContent.of(7, actions)
    if isinstance(outcome, list):
        assert [file.path for file in commit.new_files(options)] == outcome
        return
    with pytest.raises(UserError, match=r"Version 7 .* by (DELETE|UPDATE)") as raised:
        commit.new_files(options)
    assert raised.value.delta_class == outcome
    assert raised.value.fields["path"] == "a"


VECTOR = DeletionVectorDescriptor(
    storage_type="u", path_or_inline_dv="ab^-aqEH.-t@S}K{vb[*k^", size_in_bytes=4, cardinality=1
)


@pytest.mark.parametrize(
    ("actions", "parts"),
    [
        (APPEND, ["a", "b"]),
        (DELETE, ["a"]),
        # As a whole overwrite, which has no row in both: file by file.
        (UPDATE, ["a", "c"]),
        (OPTIMIZE, []),
        # Change files tell all, and together.
        ((*UPDATE, change("x"), change("y")), ["xy"]),
        # One file with two deletion vectors, or what an earlier one left over.
        ((add("a", vector=VECTOR), add("b"), remove("a")), ["aba"]),
        ((remove("a", vector=VECTOR), remove("b")), ["ab"]),
    ],
)
def test_parts_of_a_commit_in_a_change_feed(actions: tuple[Action, ...], parts: list[str]) -> None:
    options = SourceOptions.parse({"readChangeFeed": "true"})
    found = CommitContent.of(7, actions).parts(options)
    assert ["".join(action.path for action in part.actions) for part in found] == parts
    assert [part.is_whole for part in found] == [len(names) > 1 for names in parts]
