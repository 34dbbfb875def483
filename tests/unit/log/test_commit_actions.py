from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from twinlake.actions import CommitInfo
from twinlake.errors import Code, TwinlakeError
from twinlake.log import commit_key, read_commits
from twinlake.storage import open_store
from twinlake.table import Table

if TYPE_CHECKING:
    from pathlib import Path

    from twinlake.storage import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    table = Table.create(tmp_path / "t", "id BIGINT")
    for number in range(4):
        table = table.append({"id": [number]})
    return open_store(tmp_path / "t")


def test_commits_of_a_range_with_their_times(store: Store) -> None:
    commits = read_commits(store, range(1, 4))
    assert [commit.version for commit in commits] == [1, 2, 3]
    assert [commit.info is not None for commit in commits] == [True] * 3
    history = {row.version: row.timestamp for row in Table.open(store.url).history()}
    assert [commit.timestamp_ms for commit in commits] == [history[v] for v in (1, 2, 3)]
    assert read_commits(store, range(0)) == []


def test_the_time_that_a_commit_states_counts(tmp_path: Path) -> None:
    properties = {"delta.enableInCommitTimestamps": "true"}
    Table.create(tmp_path / "t", "id BIGINT", properties=properties)
    (commit,) = read_commits(open_store(tmp_path / "t"), range(1))
    assert isinstance(commit.info, CommitInfo)
    assert commit.timestamp_ms == commit.info.in_commit_timestamp


@pytest.mark.parametrize(
    ("lost", "asked", "code", "delta_class"),
    [
        ((0, 1), range(1, 5), Code.VERSION_NOT_FOUND, "DELTA_LOG_FILE_NOT_FOUND"),
        ((2,), range(1, 5), Code.LOG_CORRUPT, "DELTA_VERSIONS_NOT_CONTIGUOUS"),
        ((1, 2), range(1, 5), Code.LOG_CORRUPT, "DELTA_VERSIONS_NOT_CONTIGUOUS"),
        ((4,), range(1, 5), Code.LOG_CORRUPT, "DELTA_VERSIONS_NOT_CONTIGUOUS"),
    ],
)
def test_a_range_that_is_not_whole_is_refused(
    store: Store, lost: tuple[int, ...], asked: range, code: Code, delta_class: str
) -> None:
    for version in lost:
        store.delete([commit_key(version)])
    with pytest.raises(TwinlakeError) as refused:
        read_commits(store, asked)
    assert (refused.value.code, refused.value.delta_class) == (code, delta_class)
