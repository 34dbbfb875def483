"""Listings are not taken at one moment: a commit may be missing although a later one is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.log_tables import add, commit, info, metadata
from twinlake.errors import Code, CorruptTable
from twinlake.log import commit_key, history, load_snapshot
from twinlake.protocol import Protocol
from twinlake.storage import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from twinlake.storage import ObjectMeta


class PassingBy(MemoryStore):
    """A store whose listings pass some objects by."""

    unlisted: frozenset[str] = frozenset()

    def list_from(self, folder: str, start_after: str = "") -> Iterator[ObjectMeta]:
        for meta in super().list_from(folder, start_after):
            if meta.key not in self.unlisted:
                yield meta


def make(versions: int) -> PassingBy:
    store = PassingBy()
    commit(store, 0, info("CREATE TABLE"), Protocol(1, 2), metadata())
    for version in range(1, versions):
        commit(store, version, info(), add(f"f{version}.parquet", version))
    return store


@pytest.mark.parametrize("missed", [{3}, {4}, {3, 4}, {1, 2, 3, 4}], ids=str)
def test_commits_that_were_passed_by_are_asked_for_by_name(missed: set[int]) -> None:
    store = make(6)
    store.unlisted = frozenset(commit_key(version) for version in missed)
    snapshot = load_snapshot(store)
    assert (snapshot.version, snapshot.num_files) == (5, 5)
    assert [record.version for record in history(store, snapshot)] == [5, 4, 3, 2, 1, 0]


def test_the_newest_passed_by_gives_the_version_before() -> None:
    store = make(6)
    store.unlisted = frozenset({commit_key(5)})
    assert load_snapshot(store).version == 4


def test_a_commit_that_is_gone_is_a_gap() -> None:
    store = make(6)
    store.delete([commit_key(3)])
    with pytest.raises(CorruptTable) as caught:
        load_snapshot(store)
    assert caught.value.code == Code.LOG_CORRUPT
    assert caught.value.fields["missing"] == [3]
