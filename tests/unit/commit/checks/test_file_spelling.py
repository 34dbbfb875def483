"""Commits that name a file of the table in another spelling than its log does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.log_tables import commit, info
from tests.support.path_spellings import spellings
from twinlake import Table
from twinlake.actions import AddFile, RemoveFile
from twinlake.commit import Operation, Transaction
from twinlake.errors import Code, ConflictError, TwinlakeError
from twinlake.log import read_commit

if TYPE_CHECKING:
    from pathlib import Path

NAMES = tuple(spellings("/"))


def file(path: str) -> AddFile:
    return AddFile(
        path=path, partition_values={}, size=1, modification_time=0, data_change=True, stats=None
    )


def gone(path: str) -> RemoveFile:
    return RemoveFile(path=path, data_change=True, deletion_timestamp=0)


def table_with(folder: Path, path: str) -> Table:
    table = Table.create(folder / "t", "id INT")
    table.commit("WRITE", [file(path)])
    return Table.open(folder / "t")


@pytest.mark.parametrize("loaded", [True, False], ids=["loaded", "not loaded"])
@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("usual", "up and down")])
def test_a_live_file_cannot_come_in_again(tmp_path: Path, name: str, *, loaded: bool) -> None:
    path = spellings(str(tmp_path / "t"))[name]
    table = table_with(tmp_path, spellings("")["usual"])
    if loaded:
        table.files()
    with pytest.raises(TwinlakeError) as caught:
        table.commit("WRITE", [file(path)])
    assert caught.value.code == Code.COMMIT_INVALID
    assert f"{path} (as d/aü%20b.parquet)" in str(caught.value)
    assert Table.open(tmp_path / "t").version == 1


@pytest.mark.parametrize("name", [n for n in NAMES if n != "up and down"])
def test_a_remove_is_written_as_the_log_spells_the_file(tmp_path: Path, name: str) -> None:
    path = spellings(str(tmp_path / "t"))[name]
    table = table_with(tmp_path, spellings("")["usual"])
    after = table.commit("WRITE", [gone(path)])
    assert after.snapshot.num_files == 0
    written = [a.path for a in read_commit(table.snapshot.store, 2) if isinstance(a, RemoveFile)]
    assert written == ["d/aü%20b.parquet"]


def test_a_live_file_may_be_respelled_by_removing_it(tmp_path: Path) -> None:
    table = table_with(tmp_path, f"{tmp_path}/t/x")
    with pytest.raises(TwinlakeError, match="add and remove of the same"):
        table.commit("WRITE", [file("x"), gone(f"{tmp_path}/t/x")])


def test_one_commit_does_not_add_a_file_twice(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "id INT")
    with pytest.raises(TwinlakeError, match="more than one add"):
        table.commit("WRITE", [file("x"), file(f"file://{tmp_path}/t/x")])


@pytest.mark.parametrize("path", ["x/../a", "a/b/../../c", "d/../d/x", "%2e%2e/x", "x/%2E%2E/a"])
def test_no_commit_brings_in_a_path_that_goes_up(tmp_path: Path, path: str) -> None:
    table = Table.create(tmp_path / "t", "id INT")
    with pytest.raises(TwinlakeError) as caught:
        table.commit("WRITE", [file(path)])
    assert caught.value.code == Code.PATH_UNSAFE
    assert Table.open(tmp_path / "t").version == 0


def test_a_winner_that_removes_our_file_in_another_spelling_conflicts(tmp_path: Path) -> None:
    stale = table_with(tmp_path, "x/a")
    commit(stale.snapshot.store, 2, info("DELETE"), gone("x//a"))
    ours = Transaction(stale.snapshot, Operation(name="DELETE"))
    ours.add(gone("x/a"))
    with pytest.raises(ConflictError, match="x/a"):
        ours.commit()
