"""Files that other writers spell in several ways: the Iceberg side has what Delta readers see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.support.data_files import append, write_file
from tests.support.iceberg.both_sides import iceberg_rows, now_ms, twin
from tests.support.log_tables import commit, info
from twinlake.errors import CompatViolation
from twinlake.iceberg import sync_table
from twinlake.table.twin.report import DifferenceKind
from twinlake.table.twin.version_check import VersionCheck

if TYPE_CHECKING:
    from pathlib import Path

    from twinlake import Table

SPARK = "Apache-Spark/4.1.4 Delta-Lake/4.4.0"


def two_files(folder: Path) -> Table:
    table = append(twin(folder, "id INT"), folder, [{"id": 1}])
    table = append(table, folder, [{"id": 2}])
    sync_table(table.snapshot)
    return table


@pytest.mark.parametrize(
    ("spelled", "left"),
    [(".//{path}", [2]), ("{root}/{path}", [1, 2]), ("file://{root}/{path}", [1, 2])],
    ids=["one file to Delta", "another file to Delta", "another file to Delta, by URL"],
)
def test_a_remove_in_another_spelling(tmp_path: Path, spelled: str, left: list[int]) -> None:
    table = two_files(tmp_path)
    first = next(iter(table.at(1).snapshot.adds()))
    gone = first.remove(deletion_timestamp=now_ms())
    path = spelled.format(path=first.path, root=tmp_path)
    commit(
        table.snapshot.store,
        3,
        info("DELETE", engine_info=SPARK),
        msgspec.structs.replace(gone, path=path),
    )
    table = table.refresh()
    sync_table(table.snapshot)
    assert table.snapshot.num_files == len(left)
    assert sorted(int(row["id"]) for row in iceberg_rows(tmp_path)) == left


def test_a_file_that_is_listed_in_two_spellings_is_not_published(tmp_path: Path) -> None:
    table = two_files(tmp_path)
    again = next(iter(table.snapshot.adds()))
    other = f"{tmp_path}/{again.path}"
    commit(
        table.snapshot.store,
        3,
        info(engine_info=SPARK),
        msgspec.structs.replace(again, path=other),
    )
    table = table.refresh()
    with pytest.raises(CompatViolation) as caught:
        sync_table(table.snapshot)
    assert again.path in caught.value.why
    assert other in caught.value.why
    # Should another writer of the metadata publish it nevertheless, the comparison finds it.
    found = next(iter(VersionCheck(table.snapshot, None, f"file://{tmp_path}").findings()))
    assert (found.what, found.delta) == (DifferenceKind.FILE_TWICE, f"{again.path} and {other}")


def test_files_in_another_spelling_are_located_as_usual(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT")
    file = write_file(table, tmp_path, [{"id": 1}])
    odd = msgspec.structs.replace(file, path=f"file:{tmp_path}//{file.path}")
    commit(table.snapshot.store, 1, info(engine_info=SPARK), odd)
    table = table.refresh()
    sync_table(table.snapshot)
    assert iceberg_rows(tmp_path) == [{"id": 1}]
