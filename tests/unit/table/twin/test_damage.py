"""verify-twin: damage that some readers of Iceberg see and others do not."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.data_files import append, write_file
from tests.support.iceberg.both_sides import V2, V3, hide, twin
from tests.unit.table.twin.test_verify_twin import in_metadata, kinds, metadata_files, rewrite_avro
from twinlake.iceberg import sync_table
from twinlake.table import Table
from twinlake.table.twin.report import DifferenceKind
from twinlake.table.twin.verify_twin import verify_twin

DATA, DELETES = 0, 1


def made(folder: Path, *, hidden: tuple[int, int] = (2, 1)) -> Table:
    """Two files with row ids, some rows of each hidden, and a commit without files at the end."""
    table = twin(folder, "id INT", properties=V3)
    table = append(
        table, folder, [{"id": at} for at in range(5)], [{"id": at} for at in range(10, 13)]
    )
    paths = sorted(add.path for add in table.snapshot.adds())
    table = hide(table, folder, {p: range(n) for p, n in zip(paths, hidden, strict=True)})
    table = append(table, folder, [{"id": 20}])
    table = table.set_properties({"note": "x"})
    sync_table(table.snapshot)
    assert verify_twin(table, rows=True).findings == ()
    return table


def in_entries(folder: Path, content: int, change: Callable[[dict[str, Any]], None]) -> None:
    """Change every entry of the manifests of one content."""

    def changed(records: list[Any]) -> list[Any]:
        for record in records:
            if record["data_file"]["content"] == content:
                change(record)
        return records

    for path in metadata_files(folder, "m-*.avro"):
        rewrite_avro(path, changed)


def set_entry(content: int, name: str, value: Any) -> Callable[[Path], None]:
    return lambda folder: in_entries(folder, content, lambda entry: entry.update({name: value}))


def set_file(content: int, name: str, value: Any) -> Callable[[Path], None]:
    return lambda folder: in_entries(
        folder, content, lambda entry: entry["data_file"].update({name: value})
    )


def name_another_file(folder: Path) -> None:
    """In the field alone; the bounds, which PyIceberg goes by, stay right."""

    def change(entry: dict[str, Any]) -> None:
        entry["data_file"]["referenced_data_file"] += "x"

    in_entries(folder, DELETES, change)


def bound_another_file(folder: Path) -> None:
    """In the bounds alone."""

    def change(entry: dict[str, Any]) -> None:
        for name in ("lower_bounds", "upper_bounds"):
            for pair in entry["data_file"][name]:
                pair["value"] += b"x"

    in_entries(folder, DELETES, change)


def exchange_vectors(folder: Path) -> None:
    names = ("referenced_data_file", "lower_bounds", "upper_bounds")
    found: dict[str, dict[str, Any]] = {}

    def remember(entry: dict[str, Any]) -> None:
        file = entry["data_file"]
        found[file["referenced_data_file"]] = {name: file[name] for name in names}

    def exchange(entry: dict[str, Any]) -> None:
        file = entry["data_file"]
        (other,) = found.keys() - {file["referenced_data_file"]}
        file.update(found[other])

    in_entries(folder, DELETES, remember)
    in_entries(folder, DELETES, exchange)


def main_at_first(document: dict[str, Any]) -> None:
    document["refs"]["main"]["snapshot-id"] = document["snapshots"][0]["snapshot-id"]


def row_ids_again(document: dict[str, Any]) -> None:
    document["next-row-id"] = 1


DAMAGE: dict[str, tuple[Callable[[Path], None], DifferenceKind]] = {
    "a vector of another file": (name_another_file, DifferenceKind.DELETES),
    "a vector of another file by its bounds": (bound_another_file, DifferenceKind.DELETES),
    "a vector of no file": (
        set_file(DELETES, "referenced_data_file", None),
        DifferenceKind.DELETES,
    ),
    "exchanged vectors": (exchange_vectors, DifferenceKind.DELETES),
    "a vector older than its file": (
        set_entry(DELETES, "sequence_number", 0),
        DifferenceKind.DELETES,
    ),
    "a branch left behind": (in_metadata(main_at_first), DifferenceKind.SNAPSHOT),
    "row ids that rows have": (in_metadata(row_ids_again), DifferenceKind.LINEAGE),
    "other row ids": (set_file(DATA, "first_row_id", 7), DifferenceKind.LINEAGE),
    "no row ids": (set_file(DATA, "first_row_id", None), DifferenceKind.LINEAGE),
    "rows of another version": (set_entry(DATA, "sequence_number", 2), DifferenceKind.LINEAGE),
}


def test_a_file_with_nulls_and_a_vector_agrees(tmp_path: Path) -> None:
    """Its entry is left alone, while Delta does not know any more how many nulls are left."""
    table = twin(tmp_path, "id INT", properties=V3)
    table = append(table, tmp_path, [{"id": 1}, {"id": None}, {"id": 3}])
    (add,) = table.snapshot.adds()
    table = hide(table, tmp_path, {add.path: [0]})
    sync_table(table.snapshot)
    assert verify_twin(table, rows=True).findings == ()


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_found_without_rows(tmp_path: Path, name: str) -> None:
    table = made(tmp_path)
    tamper, expected = DAMAGE[name]
    tamper(tmp_path)
    assert kinds(verify_twin(table)) == {expected}


def test_a_vector_is_told_by_its_data_file(tmp_path: Path) -> None:
    table = made(tmp_path)
    exchange_vectors(tmp_path)
    first, second = sorted(
        add.path for add in table.snapshot.adds() if add.deletion_vector is not None
    )
    told = {
        (one.file.rsplit("/", 1)[1], one.delta, one.iceberg) for one in verify_twin(table).findings
    }
    assert told == {(first, "2 rows", "1 rows"), (second, "1 rows", "2 rows")}


@pytest.mark.parametrize("rows", [False, True], ids=["metadata", "rows"])
def test_an_unknown_schema_is_unreadable(tmp_path: Path, rows: bool) -> None:
    table = twin(tmp_path, "id INT", properties=V2)
    table = append(table, tmp_path, [{"id": 1}])
    table = table.set_properties({"note": "x"})
    table = append(table, tmp_path, [{"id": 2}])
    sync_table(table.snapshot)
    in_metadata(lambda document: document["snapshots"][0].update({"schema-id": 12345}))(tmp_path)

    report = verify_twin(table, rows=rows)

    (finding,) = report.findings
    assert finding.what is DifferenceKind.UNREADABLE
    assert "schema 12345" in finding.iceberg
    # The version after it has no snapshot of its own, and shows the same one.
    assert report.versions == (3,)


def test_rows_are_read_again_under_another_zone(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT, p TIMESTAMP", "p")
    add = write_file(table, tmp_path, [{"id": 1, "p": dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)}])
    # As other writers spell it; PyIceberg takes the value from the file, which says noon.
    values = dict.fromkeys(add.partition_values, "2024-01-01 12:00:00")
    table = table.commit("WRITE", [msgspec.structs.replace(add, partition_values=values)])
    table = table.set_properties({"twinlake.partitionTimeZone": "UTC"})
    sync_table(table.snapshot)
    assert verify_twin(table, rows=True).agrees
    table = table.set_properties({"twinlake.partitionTimeZone": "+05:00"})
    sync_table(table.snapshot)

    found = verify_twin(table, rows=True).findings

    assert [(one.what, one.version) for one in found] == [(DifferenceKind.ROWS, table.version)]
