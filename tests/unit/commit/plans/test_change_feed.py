from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from twinlake.actions import (
    AddCDCFile,
    AddFile,
    CommitInfo,
    DeletionVectorDescriptor,
    Metadata,
    RemoveFile,
)
from twinlake.commit.plans import check_change_feed, plan_change_feed
from twinlake.errors import TwinlakeError
from twinlake.log import CommitActions
from twinlake.schema import parse_ddl, render_schema

if TYPE_CHECKING:
    from twinlake.actions import Action


def vector(name: str) -> DeletionVectorDescriptor:
    return DeletionVectorDescriptor("u", name, 1, 1, 1)


def add(path: str, dv: str = "", **more: Any) -> AddFile:
    given: dict[str, Any] = {"partition_values": {}, "data_change": True, **more}
    return AddFile(
        path=path,
        size=5,
        modification_time=0,
        deletion_vector=vector(dv) if dv else None,
        **given,
    )


def remove(path: str, dv: str = "", **more: Any) -> RemoveFile:
    given: dict[str, Any] = {"partition_values": {}, "size": 5, "data_change": True, **more}
    return RemoveFile(path=path, deletion_vector=vector(dv) if dv else None, **given)


def cdc(path: str) -> AddCDCFile:
    return AddCDCFile(path=path, partition_values={}, size=5, data_change=False)


def merge(**counts: str) -> CommitInfo:
    named = {f"numTargetRows{name}": count for name, count in counts.items()}
    return CommitInfo(operation="MERGE", operation_metrics=named)


def commit(version: int, *actions: Action) -> CommitActions:
    return CommitActions(version=version, timestamp_ms=version * 1000, actions=actions)


CASES: dict[str, tuple[tuple[Action, ...], dict[str, list[str]]]] = {
    "added": ((add("a"), add("b")), {"added": ["a", "b"]}),
    "removed": ((remove("a", "v"),), {"removed": ["a"]}),
    "rewritten": ((remove("a"), add("b")), {"added": ["b"], "removed": ["a"]}),
    "change files alone": ((remove("a"), add("b"), cdc("c")), {"change_files": ["c"]}),
    "compacted": ((remove("a", data_change=False), add("b", data_change=False)), {}),
    "another vector": ((remove("a"), add("a", "v")), {"vector_changes": ["a"]}),
    "order does not matter": ((add("a", "v"), remove("a", "w")), {"vector_changes": ["a"]}),
    "the same vector": ((remove("a", "v"), add("a", "v")), {}),
    "a merge that copied": (
        (merge(Inserted="0", Updated="0", Deleted="0"), remove("a"), add("b")),
        {},
    ),
    "a merge that changed rows": (
        (merge(Inserted="0", Updated="1", Deleted="0"), remove("a"), add("b")),
        {"added": ["b"], "removed": ["a"]},
    ),
    "a merge that does not say": (
        (merge(Inserted="0"), remove("a"), add("b")),
        {"added": ["b"], "removed": ["a"]},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_read_of_a_commit(name: str) -> None:
    actions, expected = CASES[name]
    plan = plan_change_feed([commit(3, *actions)])
    found = {
        "change_files": [f.file.path for f in plan.change_files],
        "added": [f.file.path for f in plan.added],
        "removed": [f.file.path for f in plan.removed],
        "vector_changes": [c.after.file.path for c in plan.vector_changes],
    }
    assert {kind: paths for kind, paths in found.items() if paths} == expected


def test_files_keep_version_time_and_vectors() -> None:
    plan = plan_change_feed(
        [commit(1, add("a")), commit(2, remove("a"), add("a", "v")), commit(3, remove("a", "v"))]
    )
    assert [(f.version, f.timestamp_ms) for f in plan.added] == [(1, 1000)]
    (changed,) = plan.vector_changes
    assert (changed.after.version, changed.before) == (2, None)
    assert changed.after.file.deletion_vector == vector("v")
    assert [(f.version, f.file.deletion_vector) for f in plan.removed] == [(3, vector("v"))]


@pytest.mark.parametrize("missing", [{"size": None}, {"partition_values": None}])
def test_removed_files_that_cannot_be_read_are_refused(missing: dict[str, Any]) -> None:
    with pytest.raises(TwinlakeError) as refused:
        plan_change_feed([commit(3, remove("a", **missing))])
    assert refused.value.delta_class == "DELTA_REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA"
    assert refused.value.fields == {"version": 3, "path": "a"}


def metadata(columns: str, feed: bool = True, partition_by: tuple[str, ...] = ()) -> Metadata:
    return Metadata(
        schema_string=render_schema(parse_ddl(columns)),
        partition_columns=partition_by,
        configuration={"delta.enableChangeDataFeed": str(feed).lower()},
    )


NOW = metadata("id BIGINT, v INT, w INT")
REFUSED: dict[str, tuple[Metadata, list[CommitActions], str, int]] = {
    "off at the start": (
        metadata("id BIGINT", feed=False),
        [commit(4)],
        "DELTA_MISSING_CHANGE_DATA",
        4,
    ),
    "turned off in the range": (
        NOW,
        [commit(4), commit(5, metadata("id BIGINT, v INT, w INT", feed=False))],
        "DELTA_MISSING_CHANGE_DATA",
        5,
    ),
    "another type at the start": (
        metadata("id BIGINT, v SMALLINT"),
        [commit(4), commit(5, NOW)],
        "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA",
        4,
    ),
    "another type in between": (
        NOW,
        [commit(4), commit(5, metadata("id BIGINT, v STRING")), commit(6, NOW)],
        "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE",
        5,
    ),
    "a column that is gone": (
        metadata("id BIGINT, old INT"),
        [commit(4)],
        "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA",
        4,
    ),
    "files partitioned by another column": (
        NOW,
        [commit(4, add("v=1/a", partition_values={"v": "1"}))],
        "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA",
        4,
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_ranges_that_cannot_be_read_together(name: str) -> None:
    start, commits, delta_class, version = REFUSED[name]
    with pytest.raises(TwinlakeError) as refused:
        check_change_feed(commits, start, NOW, read_version=9)
    assert refused.value.delta_class == delta_class
    assert refused.value.fields["version"] == version


def test_added_columns_and_dropped_constraints_can_be_read() -> None:
    start = metadata("id BIGINT NOT NULL")
    commits = [commit(4, add("a")), commit(5, metadata("id BIGINT, v INT"), remove("a"))]
    check_change_feed(commits, start, NOW, read_version=9)
