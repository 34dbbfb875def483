"""Columns that begin as those that twinlake adds to a scan: refused by every door, read anyway."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from twinlake import Table, UserError
from twinlake.errors import Code

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MAPPED = {"delta.columnMapping.mode": "name"}


def orders(path: Path) -> Table:
    return Table.create(path, "id BIGINT", properties=MAPPED)


DOORS: dict[str, Callable[[Path], object]] = {
    "create": lambda path: Table.create(path, "id BIGINT, __twinlake_row BIGINT"),
    "create in capitals": lambda path: Table.create(path, "id BIGINT, `__Twinlake_Row` BIGINT"),
    "create as a partition": lambda path: Table.create(
        path, "id BIGINT, __twinlake_file INT", partition_by=["__twinlake_file"]
    ),
    "add": lambda path: orders(path).add_column("__twinlake_source BIGINT"),
    "rename": lambda path: orders(path).rename_column("id", "__twinlake_row"),
    "evolve": lambda path: orders(path).append(
        {"id": [1], "__twinlake_row": [2]}, merge_schema=True
    ),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_reserved_name_is_refused_and_named(tmp_path: Path, door: str) -> None:
    with pytest.raises(UserError, match=r"(?i)__twinlake_\w+ begins with __twinlake_") as caught:
        DOORS[door](tmp_path / "t")
    assert caught.value.code is Code.SCHEMA_INVALID
    commits = list((tmp_path / "t" / "_delta_log").glob("*.json"))
    assert len(commits) == (0 if door.startswith("create") else 1)


def test_a_name_within_a_struct_is_free(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id BIGINT, s STRUCT<__twinlake_row: INT>, twinlake_row INT")
    assert tuple(field.name for field in table.schema) == ("id", "s", "twinlake_row")


def test_a_table_that_has_such_a_column_is_read_and_repaired(tmp_path: Path) -> None:
    """Another writer made it."""
    orders(tmp_path / "made").append({"id": [1, 2]})
    shutil.copytree(tmp_path / "made", tmp_path / "t", ignore=shutil.ignore_patterns("*.crc"))
    first = tmp_path / "t" / "_delta_log" / f"{0:020}.json"
    text = first.read_text()
    assert text.count(r"\"name\":\"id\"") == 1
    first.write_text(text.replace(r"\"name\":\"id\"", r"\"name\":\"__twinlake_row\""))

    table = Table.open(tmp_path / "t")
    assert table.to_arrow().to_pydict() == {"__twinlake_row": [1, 2]}
    repaired = table.rename_column("__twinlake_row", "id")
    assert repaired.to_arrow().to_pydict() == {"id": [1, 2]}
