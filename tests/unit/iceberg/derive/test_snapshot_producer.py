"""Schema changes, restores, removals and replacements: both sides show the same rows throughout."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.data_files import append, write_file
from tests.support.iceberg.both_sides import (
    V2,
    agree,
    as_text,
    iceberg_rows,
    now_ms,
    opened,
    remove_files,
    replace_table,
    sql,
    twin,
)
from tests.support.local_engine import rows_of
from tests.support.log_tables import commit
from twinlake.actions import RemoveFile
from twinlake.errors import CompatViolation
from twinlake.iceberg import sync_table
from twinlake.table import Table

pytestmark = pytest.mark.slow

WIDENING = {**V2, "delta.enableTypeWidening": "true"}


def operations(folder: Path) -> list[str]:
    found = [snapshot.summary for snapshot in opened(folder).metadata.snapshots]
    return [summary.operation.value for summary in found if summary is not None]


def foreign(table: Table, *actions: Any) -> Table:
    """A commit that our own checks do not see."""
    commit(table.snapshot.store, table.version + 1, *actions)
    return table.refresh()


def test_columns_come_go_and_change_their_names(tmp_path: Path) -> None:
    table = twin(
        tmp_path, "id INT, name STRING, s STRUCT<x: INT, y: STRUCT<z: DATE>>, l ARRAY<INT>"
    )
    row: dict[str, Any] = {
        "id": 1,
        "name": "a",
        "s": {"x": 1, "y": {"z": date(2024, 1, 1)}},
        "l": [1],
    }
    table = append(table, tmp_path, [row])
    agree(table, tmp_path)
    table = table.rename_column("name", "label").add_column("name LONG", first=True)
    table = append(table, tmp_path, [{"id": 2, "label": "b", "name": 7}])
    agree(table, tmp_path)
    table = table.rename_column("s.y.z", "day").add_column("s.y.z STRING")
    table = append(table, tmp_path, [{"id": 3, "s": {"x": 2, "y": {"day": None, "z": "t"}}}])
    agree(table, tmp_path)
    table = table.drop_column("label").drop_column("s.x").alter_column("id", after="l")
    agree(table, tmp_path)
    table = append(table, tmp_path, [{"id": 4, "name": 8}])
    table = table.add_column("label DATE")

    done = agree(table, tmp_path)

    assert not done.rebuilt
    assert len({snapshot.schema_id for snapshot in opened(tmp_path).metadata.snapshots}) == 4


def test_a_schema_that_comes_back_has_the_id_it_had(tmp_path: Path) -> None:
    table = append(twin(tmp_path, "id INT, name STRING"), tmp_path, [{"id": 1, "name": "a"}])
    table = append(table.rename_column("name", "label"), tmp_path, [{"id": 2, "label": "b"}])
    table = append(table.rename_column("label", "name"), tmp_path, [{"id": 3, "name": "c"}])

    agree(table, tmp_path)

    first, second, third = (s.schema_id for s in opened(tmp_path).metadata.snapshots)
    assert first == third != second
    assert len(opened(tmp_path).metadata.schemas) == 2


@pytest.mark.parametrize("partitioned", [False, True], ids=["plain", "partition"])
@pytest.mark.parametrize(
    ("old", "new", "values"),
    [
        ("BYTE", "INT", (1, 2**20)),
        ("INT", "LONG", (2**31 - 1, 2**40)),
        # PyIceberg reads a double of a manifest as a float.
        ("FLOAT", "DOUBLE", (0.5, 2.0**100)),
        ("DECIMAL(5, 2)", "DECIMAL(12, 2)", ("1.25", "1234567890.12")),
    ],
)
def test_types_widen(
    tmp_path: Path, old: str, new: str, values: tuple[Any, Any], partitioned: bool
) -> None:
    one, other = (Decimal(v) if isinstance(v, str) else v for v in values)
    table = twin(tmp_path, f"id INT, v {old}", *(["v"] * partitioned), properties=WIDENING)
    table = append(table, tmp_path, [{"id": 1, "v": one}])
    agree(table, tmp_path)
    table = table.widen_column("v", new)
    table = append(table, tmp_path, [{"id": 2, "v": other}])
    agree(table, tmp_path)
    # Enough of them that manifests of both types are put together.
    for at in range(10):
        table = append(table, tmp_path, [{"id": 3 + at, "v": other}])
        sync_table(table.snapshot)

    assert not agree(table, tmp_path).rebuilt

    assert len(iceberg_rows(tmp_path, where=sql.EqualTo("v", other))) == 11
    assert [row["id"] for row in iceberg_rows(tmp_path, where=sql.EqualTo("v", one))] == [1]
    agree(remove_files(table, list(table.snapshot.adds())[:3]), tmp_path)


def test_a_partition_column_is_renamed_and_its_name_given_away(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT, day DATE", "day")
    for day in (1, 2, 3):
        table = append(table, tmp_path, [{"id": day, "day": date(2024, 1, day)}])
    agree(table, tmp_path)
    metadata = table.metadata
    # The compat feature forbids it, not every engine keeps to that.
    text = metadata.schema_string.replace('"name":"day"', '"name":"d"')
    table = foreign(table, replace(metadata, schema_string=text, partition_columns=("d",)))
    table = table.add_column("day STRING")
    table = append(table, tmp_path, [{"id": 9, "d": date(2024, 1, 9), "day": "x"}])

    assert not agree(table, tmp_path).rebuilt

    shown = opened(tmp_path).metadata
    columns = {column.name: column.field_id for column in shown.schema().fields}
    for spec in shown.partition_specs:
        for part in spec.fields:
            assert columns.get(part.name, part.source_id) == part.source_id
    table = remove_files(table, [next(iter(table.snapshot.adds()))])
    assert not agree(table, tmp_path).rebuilt
    assert len(iceberg_rows(tmp_path, where=sql.GreaterThan("d", "2024-01-02"))) == 2


def test_restore(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT, name STRING")
    table = append(table, tmp_path, [{"id": 1, "name": "a"}], [{"id": 2, "name": "b"}])
    table = remove_files(table, [next(iter(table.snapshot.adds()))])
    table = append(table.rename_column("name", "label"), tmp_path, [{"id": 3, "label": "c"}])
    agree(table, tmp_path)

    table = table.restore(1)

    agree(table, tmp_path)
    assert {row["id"] for row in iceberg_rows(tmp_path)} == {1, 2}
    assert operations(tmp_path) == ["append", "delete", "append", "overwrite"]


def test_everything_goes_and_something_comes(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT")
    agree(table, tmp_path)
    assert opened(tmp_path).current_snapshot() is None
    table = append(table, tmp_path, [{"id": 1}], [{"id": 2}])
    table = remove_files(table)
    agree(table, tmp_path)
    assert iceberg_rows(tmp_path) == []
    table = append(table, tmp_path, [{"id": 3}])

    agree(table, tmp_path)

    totals = opened(tmp_path).current_snapshot()
    assert totals is not None
    assert totals.summary is not None
    assert totals.summary.additional_properties["total-data-files"] == "1"
    assert totals.summary.additional_properties["total-records"] == "1"


def test_a_compaction_is_a_replacement(tmp_path: Path) -> None:
    table = append(twin(tmp_path, "id INT"), tmp_path, *([{"id": at}] for at in range(4)))
    table = _compact(table, tmp_path)

    agree(table, tmp_path)

    assert operations(tmp_path) == ["append", "replace"]


def _compact(table: Table, folder: Path) -> Table:
    old = list(table.snapshot.adds())
    new = write_file(table, folder, rows_of(table.snapshot))
    gone = [add.remove(deletion_timestamp=now_ms(), data_change=False) for add in old]
    return table.commit("OPTIMIZE", [*gone, msgspec.structs.replace(new, data_change=False)])


@pytest.mark.parametrize("data_change", [False, True])
@pytest.mark.parametrize("removed_too", [False, True])
def test_a_file_committed_again_with_other_statistics(
    tmp_path: Path, data_change: bool, removed_too: bool
) -> None:
    table = append(twin(tmp_path, "id INT, p INT", "p"), tmp_path, [{"id": 1, "p": 1}])
    table = append(table, tmp_path, [{"id": 2, "p": 2}])
    agree(table, tmp_path)
    old = next(iter(table.snapshot.adds("p = 1")))
    bare = msgspec.structs.replace(old, stats='{"numRecords":1}', data_change=data_change)
    gone = [old.remove(deletion_timestamp=now_ms(), data_change=data_change)] * removed_too
    table = foreign(table, *gone, bare)

    assert not agree(table, tmp_path).rebuilt

    files = [task.file for task in opened(tmp_path).scan().plan_files()]
    assert len(files) == 2
    assert sorted(len(file.lower_bounds or {}) for file in files) == [0, 2]
    assert operations(tmp_path)[-1] == "replace"


def test_tags_alone_make_no_snapshot(tmp_path: Path) -> None:
    table = append(twin(tmp_path, "id INT, p FLOAT", "p"), tmp_path, [{"id": 1, "p": 0.1}])
    agree(table, tmp_path)
    (old,) = table.snapshot.adds()
    table = table.commit(
        "WRITE", [msgspec.structs.replace(old, tags={"a": "b"}, data_change=False)]
    )

    agree(table, tmp_path)

    assert operations(tmp_path) == ["append"]


def test_a_tombstone_of_a_file_that_never_was(tmp_path: Path) -> None:
    table = append(twin(tmp_path, "id INT"), tmp_path, [{"id": 1}])
    agree(table, tmp_path)
    stray = RemoveFile(path="never.parquet", data_change=True, deletion_timestamp=now_ms())
    table = table.commit("DELETE", [stray])
    assert agree(table, tmp_path).rebuilt
    table = append(table, tmp_path, [{"id": 2}])

    assert not agree(table, tmp_path).rebuilt


def test_replace_with_other_partitions(tmp_path: Path) -> None:
    table = append(twin(tmp_path, "id INT, p INT"), tmp_path, [{"id": 1, "p": 1}])
    agree(table, tmp_path)
    table = replace_table(table, "id INT, q STRING", "q")
    assert not agree(table, tmp_path).rebuilt
    table = append(table, tmp_path, [{"id": 2, "q": "x"}])
    table = append(table, tmp_path, [{"id": 3, "q": None}])

    assert not agree(table, tmp_path).rebuilt

    assert len(opened(tmp_path).metadata.partition_specs) == 2
    assert [row["id"] for row in iceberg_rows(tmp_path, where=sql.EqualTo("q", "x"))] == [2]


def test_two_tables_of_one_process_that_look_alike(tmp_path: Path) -> None:
    kinds = {"INT": 1, "STRING": "a", "DATE": date(2024, 1, 1), "DOUBLE": 0.5}
    for kind, value in kinds.items():
        folder = tmp_path / kind
        folder.mkdir()
        table = append(twin(folder, f"id INT, p {kind}", "p"), folder, [{"id": 1, "p": value}])
        agree(table, folder)


def test_rows_before_the_promise_are_not_shown_as_history(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT", properties={"delta.columnMapping.mode": "id"})
    table = append(table, tmp_path, [{"id": 1}])
    with pytest.raises(CompatViolation, match="has no Iceberg compat feature"):
        sync_table(table.snapshot)
    table = table.set_properties(V2)
    table = append(table, tmp_path, [{"id": 2}])

    agree(table, tmp_path)

    assert operations(tmp_path) == ["append", "append"]
    assert as_text(iceberg_rows(tmp_path)) == as_text([{"id": 1}, {"id": 2}])


def test_columns_that_iceberg_readers_would_take_for_one(tmp_path: Path) -> None:
    table = twin(tmp_path, "a STRUCT<b: INT>, `a.b` INT")

    with pytest.raises(CompatViolation) as refused:
        sync_table(table.snapshot)

    assert "like another column" in str(refused.value.fields["problems"])
