"""Histories that are hard to carry on: where they begin, what they lose, what the clocks say."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from math import nan
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.data_files import append, write_file
from tests.support.iceberg.both_sides import (
    V3,
    agree,
    hide,
    now_ms,
    opened,
    remove_files,
    replace_table,
    twin,
)
from tests.support.log_tables import commit
from twinlake.errors import CorruptTable
from twinlake.iceberg import sync_table
from twinlake.log import CACHE
from twinlake.table import Table

HOUR = 3_600_000


def summaries(folder: Path) -> list[dict[str, str]]:
    found = [snapshot.summary for snapshot in opened(folder).metadata.snapshots]
    return [{"operation": one.operation.value, **one.additional_properties} for one in found if one]


def versions(folder: Path) -> list[int]:
    return [int(one["delta-version"]) for one in summaries(folder)]


def foreign(table: Table, *actions: Any) -> Table:
    """A commit that our own checks do not see."""
    commit(table.snapshot.store, table.version + 1, *actions)
    return table.refresh()


def begun_at(table: Table, folder: Path, version: int) -> Table:
    """The table without the commits before a version."""
    table.at(version).checkpoint()
    for old in range(version):
        (folder / "_delta_log" / f"{old:020}.json").unlink()
    shutil.rmtree(folder / "_iceberg", ignore_errors=True)
    return Table.open(folder, durable=False)


def at_hours(folder: Path, table: Table, *hours: float) -> Table:
    """The table as if its commits had been made so many hours after the first."""
    start = now_ms() / 1000 - 100 * 3600
    for version, after in enumerate(hours):
        moment = start + after * 3600
        os.utime(folder / "_delta_log" / f"{version:020}.json", (moment, moment))
    CACHE.forget(table.snapshot.store.url)
    return Table.open(folder, durable=False)


def test_a_first_version_with_files_and_other_partitions_later(tmp_path: Path) -> None:
    table = append(twin(tmp_path, "id INT, v STRING"), tmp_path, [{"id": 1, "v": "a"}])
    table = replace_table(table, "id INT, v INT", "v")
    table = append(table, tmp_path, [{"id": 2, "v": 2}])

    done = agree(begun_at(table, tmp_path, 1), tmp_path)

    assert done.rebuilt
    assert versions(tmp_path) == [1, 2, 3]


def test_a_first_version_with_files_and_a_partition_column_renamed_later(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT, day INT", "day")
    files = [write_file(table, tmp_path, [{"id": day, "day": day}]) for day in (1, 2)]
    table = table.commit("WRITE", files, parameters={"mode": "Append"})
    old = table.metadata
    renamed = old.schema_string.replace('"name":"day"', '"name":"d"')
    table = foreign(table, replace(old, schema_string=renamed, partition_columns=("d",)))
    table = remove_files(table, files[:1])

    agree(begun_at(table, tmp_path, 1), tmp_path)


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE"])
def test_partitions_that_are_not_a_number(tmp_path: Path, kind: str) -> None:
    table = twin(tmp_path, f"id INT, p {kind}", "p")
    files = [write_file(table, tmp_path, [{"id": at, "p": nan}]) for at in (1, 2)]
    table = table.commit("WRITE", files, parameters={"mode": "Append"})
    sync_table(table.snapshot)
    # Added again with other tags, which are no concern of Iceberg.
    tagged = [msgspec.structs.replace(file, tags={"a": "b"}) for file in files]
    table = table.commit("WRITE", tagged, parameters={"mode": "Append"})
    agree(Table.open(tmp_path, durable=False), tmp_path)
    carried = summaries(tmp_path)
    shutil.rmtree(tmp_path / "_iceberg")

    agree(table, tmp_path)

    assert summaries(tmp_path) == carried
    assert [one["changed-partition-count"] for one in carried] == ["1"]


def test_vectors_in_a_partition_that_is_not_a_number(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT, p DOUBLE", "p", properties=V3)
    table = append(table, tmp_path, [{"id": at, "p": nan} for at in range(4)])
    (add,) = table.snapshot.adds()

    agree(hide(table, tmp_path, {add.path: [1, 2]}), tmp_path)


def test_the_log_was_cleaned_up_to_just_behind_the_face(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT")
    sync_table(table.snapshot)
    table = append(table, tmp_path, [{"id": 1}]).set_properties({"note": "x"})
    table.at(1).checkpoint()
    (tmp_path / "_delta_log" / f"{0:020}.json").unlink()

    done = agree(Table.open(tmp_path, durable=False), tmp_path)

    assert "does not hold version 0" in done.rebuilt


@pytest.mark.parametrize("mended", ["written again", "counted"])
def test_a_file_without_a_row_count_stands_in_the_way_only_while_it_is_there(
    tmp_path: Path, mended: str
) -> None:
    table = append(twin(tmp_path, "id INT"), tmp_path, [{"id": 1}])
    sync_table(table.snapshot)
    good = write_file(table, tmp_path, [{"id": 2}])
    bad = msgspec.structs.replace(good, stats=None)
    table = append(foreign(table, bad), tmp_path, [{"id": 3}])
    with pytest.raises(CorruptTable, match="no row count"):
        sync_table(table.snapshot)
    assert versions(tmp_path) == [1]

    if mended == "counted":
        table = foreign(table, good)
    else:
        new = write_file(table, tmp_path, [{"id": 2}])
        table = foreign(table, bad.remove(deletion_timestamp=now_ms()), new)
    done = agree(table, tmp_path)

    assert "before version 4 there is no Iceberg form" in done.rebuilt
    assert "no row count" in done.rebuilt
    assert versions(tmp_path) == [4]
    shutil.rmtree(tmp_path / "_iceberg")
    agree(append(table, tmp_path, [{"id": 4}]), tmp_path)
    assert versions(tmp_path) == [4, 5]


def test_a_partition_value_that_is_none_stands_in_the_way_only_while_it_is_there(
    tmp_path: Path,
) -> None:
    table = append(twin(tmp_path, "id INT, p INT", "p"), tmp_path, [{"id": 1, "p": 1}])
    sync_table(table.snapshot)
    good = write_file(table, tmp_path, [{"id": 2, "p": 2}])
    (key,) = good.partition_values
    bad = msgspec.structs.replace(good, partition_values={key: "two"})
    table = foreign(table, bad)
    with pytest.raises(CorruptTable, match="'two' is not a partition value") as raised:
        sync_table(table.snapshot)
    assert raised.value.fields["path"] == bad.path

    table = foreign(table, bad.remove(deletion_timestamp=now_ms()))

    assert "'two' is not a partition value" in sync_table(table.snapshot).rebuilt
    assert versions(tmp_path) == [3]


def test_vacuum_goes_by_the_time_in_the_tombstone(tmp_path: Path) -> None:
    """The removal began before the cutoff, and was committed after it."""
    table = append(twin(tmp_path, "id INT"), tmp_path, [{"id": 1}])
    table = at_hours(tmp_path, table, 0, 1)
    (add,) = table.snapshot.adds()
    began = now_ms() - HOUR
    os.utime(tmp_path / add.path, (began / 1000, began / 1000))
    table = foreign(
        table, add.remove(deletion_timestamp=began), write_file(table, tmp_path, [{"id": 2}])
    )
    sync_table(table.snapshot)
    assert versions(tmp_path) == [1, 2]

    table.vacuum(0.5, enforce_retention=False)

    assert not (tmp_path / add.path).exists()
    for _ in ("continued", "rebuilt"):
        agree(table.refresh(), tmp_path)
        assert versions(tmp_path) == [2]
        shutil.rmtree(tmp_path / "_iceberg")


def test_a_removal_that_others_overtook(tmp_path: Path) -> None:
    """Its time lies before snapshots that still have the file; they go with it, not before."""
    table = append(twin(tmp_path, "id INT"), tmp_path, [{"id": 1}])
    table = at_hours(tmp_path, table, 0, 1)
    (add,) = table.snapshot.adds()
    began = now_ms() - HOUR
    os.utime(tmp_path / add.path, (began / 1000, began / 1000))
    for at in (2, 3):
        table = append(table, tmp_path, [{"id": at}])
        sync_table(table.snapshot)
    table = foreign(table, add.remove(deletion_timestamp=began))
    sync_table(table.snapshot)
    listed = opened(tmp_path).metadata.properties["twinlake.early-removals"]
    assert listed == f"4:{began}"
    table = append(table, tmp_path, [{"id": 4}])
    sync_table(table.snapshot)
    assert versions(tmp_path) == [1, 2, 3, 4, 5]

    table.vacuum(0.5, enforce_retention=False)

    assert not (tmp_path / add.path).exists()
    for _ in ("continued", "rebuilt"):
        agree(table.refresh(), tmp_path)
        assert versions(tmp_path) == [4, 5]
        assert "twinlake.early-removals" not in opened(tmp_path).metadata.properties
        shutil.rmtree(tmp_path / "_iceberg")


def test_both_faces_travel_to_the_same_version_where_clocks_went_back(tmp_path: Path) -> None:
    table = append(twin(tmp_path, "id INT"), tmp_path, [{"id": 1}])
    table = append(table.set_properties({"note": "x"}), tmp_path, [{"id": 2}])
    table = at_hours(tmp_path, table, 0, 10, 20, 15)

    sync_table(table.at(1).snapshot)
    agree(table, tmp_path)

    first = table.at(0).snapshot.timestamp_ms
    for hours in (12, 17, 19):
        moment = first + hours * HOUR
        found = opened(tmp_path).snapshot_as_of_timestamp(moment)
        assert found is not None
        assert found.summary is not None
        there = Table.open(tmp_path, timestamp=datetime.fromtimestamp(moment / 1000, UTC))
        assert found.summary.additional_properties["delta-version"] == str(there.version) == "1"
    assert opened(tmp_path).metadata.last_updated_ms == first + 20 * HOUR + 1


def test_a_table_may_ask_for_less_history(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT")
    for at in range(3):
        table = append(table, tmp_path, [{"id": at}])
    table = at_hours(tmp_path, table, 0, 10, 20, 30)
    sync_table(table.snapshot)
    assert versions(tmp_path) == [1, 2, 3]

    wish = "delta.universalFormat.config.iceberg.history.expire.max-snapshot-age-ms"
    table = table.set_properties({wish: str(75 * HOUR)})

    for _ in ("continued", "rebuilt"):
        agree(table, tmp_path)
        # The commit is of now, a hundred hours after the first.
        assert versions(tmp_path) == [2, 3]
        shutil.rmtree(tmp_path / "_iceberg")


def test_history_that_begins_with_a_commit_without_files(tmp_path: Path) -> None:
    table = append(twin(tmp_path, "id INT"), tmp_path, [{"id": 1}])
    table = table.set_properties({"note": "x"})
    table = append(table, tmp_path, [{"id": 2}])
    wish = "delta.universalFormat.config.iceberg.history.expire.max-snapshot-age-ms"
    table = table.set_properties({wish: str(75 * HOUR)})
    # The newest commit at the end of history is the second, which made no snapshot.
    table = at_hours(tmp_path, table, 0, 10, 20, 30, 100)

    sync_table(table.at(3).snapshot)
    for _ in ("continued", "rebuilt"):
        agree(table, tmp_path)
        assert versions(tmp_path) == [1, 3]
        shutil.rmtree(tmp_path / "_iceberg")


@pytest.mark.parametrize("place", ["property", "summary"])
def test_notes_of_removals_that_are_damaged(tmp_path: Path, place: str) -> None:
    table = append(twin(tmp_path, "id INT"), tmp_path, [{"id": 1}])
    sync_table(table.snapshot)
    newest = tmp_path / "_iceberg" / "metadata" / f"v{table.version}.metadata.json"
    found = msgspec.json.decode(newest.read_bytes())
    if place == "property":
        found["properties"]["twinlake.early-removals"] = "rubbish"
    else:
        found["snapshots"][0]["summary"]["delta-removal-timestamp"] = "rubbish"
    newest.write_bytes(msgspec.json.encode(found))

    done = agree(append(table, tmp_path, [{"id": 2}]), tmp_path)

    assert "damaged" in done.rebuilt


def test_a_snapshot_tells_where_it_comes_from(tmp_path: Path) -> None:
    table = append(twin(tmp_path, "id INT"), tmp_path, [{"id": 1}])
    sync_table(table.snapshot)

    (found,) = summaries(tmp_path)

    assert found["delta-version"] == "1"
    assert found["delta-timestamp"] == str(table.snapshot.timestamp_ms)
    assert found["engine-name"] == "twinlake"
