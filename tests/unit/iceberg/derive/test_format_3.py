"""Format version 3: deletion vectors in true Puffin files, and row lineage."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import msgspec
import pytest

from tests.support.data_files import append
from tests.support.iceberg.both_sides import (
    V2,
    V3,
    agree,
    hide,
    iceberg_rows,
    opened,
    remove_files,
    twin,
)
from tests.support.log_tables import commit
from twinlake.actions import AddFile, DomainMetadata
from twinlake.errors import CompatViolation
from twinlake.iceberg import sync_table
from twinlake.table import Table


def rows(*ids: int) -> list[dict[str, Any]]:
    return [{"id": at, "p": at % 2} for at in ids]


def made(folder: Path) -> tuple[Table, list[AddFile]]:
    table = twin(folder, "id INT, p INT", "p", properties=V3)
    table = append(table, folder, rows(0, 2, 4, 6), rows(1, 3, 5))
    return table, sorted(table.snapshot.adds(), key=lambda add: add.base_row_id or 0)


def ids(folder: Path) -> list[int]:
    return sorted(row["id"] for row in iceberg_rows(folder))


def summary(folder: Path) -> dict[str, str]:
    current = opened(folder).current_snapshot()
    assert current is not None
    assert current.summary is not None
    return {"operation": current.summary.operation.value, **current.summary.additional_properties}


@pytest.mark.parametrize("inline", [False, True], ids=["stored", "inline"])
def test_vectors_come_change_and_go(tmp_path: Path, inline: bool) -> None:
    table, (first, second) = made(tmp_path)
    agree(table, tmp_path)
    table = hide(table, tmp_path, {first.path: [0], second.path: [1, 2]}, inline=inline)
    assert not agree(table, tmp_path).rebuilt
    assert ids(tmp_path) == [1, 2, 4, 6]
    assert summary(tmp_path)["operation"] == "delete"
    assert summary(tmp_path)["total-position-deletes"] == "3"

    table = hide(table, tmp_path, {first.path: [0, 3]}, inline=not inline)
    assert not agree(table, tmp_path).rebuilt
    assert ids(tmp_path) == [1, 2, 4]
    assert summary(tmp_path)["removed-dvs"] == summary(tmp_path)["added-dvs"] == "1"
    assert summary(tmp_path)["total-delete-files"] == "2"

    table = hide(table, tmp_path, {second.path: []})
    assert not agree(table, tmp_path).rebuilt
    assert ids(tmp_path) == [1, 2, 3, 4, 5]
    assert summary(tmp_path)["operation"] == "overwrite"

    masked = [add for add in table.snapshot.adds() if add.deletion_vector is not None]
    table = remove_files(table, masked)
    assert not agree(table, tmp_path).rebuilt
    assert ids(tmp_path) == [1, 3, 5]
    assert summary(tmp_path)["total-delete-files"] == "0"
    assert summary(tmp_path)["total-position-deletes"] == "0"

    table = table.restore(3)
    assert not agree(table, tmp_path).rebuilt
    assert ids(tmp_path) == [1, 2, 4]


def test_vectors_of_a_first_conversion(tmp_path: Path) -> None:
    table, (first, second) = made(tmp_path)
    table = hide(table, tmp_path, {first.path: [1]})
    table = hide(table, tmp_path, {second.path: [0]}, inline=True)
    table = append(table, tmp_path, rows(8))
    table.checkpoint()
    for version in range(table.version):
        (tmp_path / "_delta_log" / f"{version:020}.json").unlink()

    agree(Table.open(tmp_path), tmp_path)

    assert ids(tmp_path) == [0, 3, 4, 5, 6, 8]
    assert len(opened(tmp_path).metadata.snapshots) == 1


def test_many_vectors_are_merged_and_found_again(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT, p INT", properties=V3)
    table = append(table, tmp_path, *(rows(at, at + 100) for at in range(12)))
    sync_table(table.snapshot)
    paths = [add.path for add in table.snapshot.adds()]
    for path in paths:
        table = hide(table, tmp_path, {path: [0]})
        assert not sync_table(table.snapshot).rebuilt
    agree(table, tmp_path)
    for path in paths:
        table = hide(table, tmp_path, {path: []})
        assert not sync_table(table.snapshot).rebuilt

    agree(table, tmp_path)

    assert len(ids(tmp_path)) == 24


def lineage(folder: Path) -> dict[str, tuple[int | None, int | None]]:
    """Of every data file: its first row id, and the sequence number of its rows."""
    table = opened(folder)
    current = table.current_snapshot()
    assert current is not None
    found = {}
    for manifest in current.manifests(table.io):
        with Path(manifest.manifest_path.removeprefix("file://")).open("rb") as file:
            for record in fastavro.reader(file):
                data: Any = record
                if data["data_file"]["content"] == 0 and data["status"] != 2:
                    number = data["sequence_number"]
                    name = data["data_file"]["file_path"].rsplit("/", 1)[1]
                    number = manifest.sequence_number if number is None else number
                    found[name] = (data["data_file"]["first_row_id"], number)
    return found


def test_row_ids_and_versions_are_those_of_delta(tmp_path: Path) -> None:
    table, (first, _) = made(tmp_path)
    table = append(table, tmp_path, rows(7), rows(8))
    table = hide(table, tmp_path, {first.path: [0]})
    table = remove_files(table, [next(iter(table.snapshot.adds("p = 1")))])
    table = table.restore(2)
    agree(table, tmp_path)

    expected = {
        add.path: (add.base_row_id, add.default_row_commit_version) for add in table.snapshot.adds()
    }
    assert lineage(tmp_path) == expected
    metadata = opened(tmp_path).metadata
    assert metadata.format_version == 3
    assert metadata.next_row_id == 9

    # From a checkpoint alone the numbers are the same.
    table.checkpoint()
    for version in range(table.version):
        (tmp_path / "_delta_log" / f"{version:020}.json").unlink()
    for file in (tmp_path / "_iceberg" / "metadata").iterdir():
        file.unlink()
    agree(Table.open(tmp_path), tmp_path)
    assert lineage(tmp_path) == expected


def test_a_table_that_goes_over_to_format_3(tmp_path: Path) -> None:
    table = append(twin(tmp_path, "id INT"), tmp_path, [{"id": 1}], [{"id": 2}])
    agree(table, tmp_path)
    kept = {k: v for k, v in table.metadata.configuration.items() if k not in V2}
    again = [
        msgspec.structs.replace(
            add, base_row_id=at, default_row_commit_version=1, data_change=False
        )
        for at, add in enumerate(table.snapshot.adds())
    ]
    mark = DomainMetadata(
        domain="delta.rowTracking", configuration='{"rowIdHighWaterMark":1}', removed=False
    )
    protocol = twin(tmp_path / "model", "id INT", properties=V3).protocol
    now_v3 = replace(table.metadata, configuration={**kept, **V3})
    commit(table.snapshot.store, table.version + 1, protocol, now_v3, mark, *again)

    done = agree(table.refresh(), tmp_path)

    assert "format version 3" in done.rebuilt
    metadata = opened(tmp_path).metadata
    assert (metadata.format_version, len(metadata.snapshots)) == (3, 1)
    assert sorted(lineage(tmp_path).values()) == [(0, 1), (1, 1)]


def test_format_2_refuses_vectors(tmp_path: Path) -> None:
    properties = {"delta.columnMapping.mode": "id", "delta.enableDeletionVectors": "true"}
    table = append(
        twin(tmp_path, "id INT", properties=properties), tmp_path, [{"id": 1}, {"id": 2}]
    )
    (file,) = table.snapshot.adds()
    table = hide(table, tmp_path, {file.path: [0]})
    enabled = replace(table.metadata, configuration={**table.metadata.configuration, **V2})
    commit(table.snapshot.store, table.version + 1, enabled)

    with pytest.raises(CompatViolation, match="deletion vector"):
        sync_table(table.refresh().snapshot)


def test_a_vector_that_went_hides_nothing_any_more(tmp_path: Path) -> None:
    """Vectors that came with one commit do not stay together."""
    table, (first, second) = made(tmp_path)
    table = hide(table, tmp_path, {first.path: [0], second.path: [1, 2]})
    sync_table(table.snapshot)
    table = hide(table, tmp_path, {second.path: []})

    agree(table, tmp_path)

    assert ids(tmp_path) == [1, 2, 3, 4, 5, 6]
