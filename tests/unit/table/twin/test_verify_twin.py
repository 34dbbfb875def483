"""verify-twin: agreement on all kinds of tables, and every kind of damage found."""

from __future__ import annotations

import datetime as dt
import io
import json
import pickle
import struct
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest

from tests.support.data_files import append
from tests.support.iceberg.both_sides import V3, hide, remove_files, twin
from tests.unit.cli.running import run
from twinlake.iceberg import sync_table
from twinlake.iceberg.format.puffin import Blob, write_puffin
from twinlake.log.deletion_vectors import encode_bitmap
from twinlake.runtime import Runtime
from twinlake.table import Table
from twinlake.table.twin.report import DifferenceKind, TwinReport
from twinlake.table.twin.verify_twin import verify_twin

SCHEMA = """id BIGINT, name STRING, price DECIMAL(20, 4), ratio DOUBLE, small FLOAT, day DATE,
at TIMESTAMP, local TIMESTAMP_NTZ, ok BOOLEAN, raw BINARY, s STRUCT<a: INT, b: STRING>,
l ARRAY<STRUCT<x: INT>>, m MAP<STRING, INT>"""


def row(number: int) -> dict[str, Any]:
    moment = dt.datetime(2024, 5, 1, 12, 0, number, 123_456)
    return {
        "id": number + 2**60,
        "name": f"name {number}" * 5,
        "price": Decimal("12345678901234.5678") + number,
        "ratio": number / 3,
        "small": 0.1 * number,
        "day": dt.date(2024, 1, 1 + number),
        "at": moment.replace(tzinfo=dt.UTC),
        "local": moment,
        "ok": number % 2 == 0,
        "raw": bytes([number]),
        "s": {"a": number, "b": None},
        "l": [{"x": number}, None],
        "m": {"k": number},
    }


def made(folder: Path) -> Table:
    """A table of several versions, with a rename in between."""
    table = twin(folder, SCHEMA)
    table = append(table, folder, [row(1), row(2)], [row(3)])
    table = table.rename_column("name", "title")
    rows = [{**row(number), "title": "x", "name": None} for number in (4, 5)]
    table = append(table, folder, rows)
    table = remove_files(table, list(table.snapshot.adds())[:1])
    table = table.rename_column("title", "name")
    sync_table(table.snapshot)
    return table


def kinds(report: TwinReport) -> set[DifferenceKind]:
    return {finding.what for finding in report.findings}


# What agrees


@pytest.mark.parametrize("rows", [False, True], ids=["metadata", "rows"])
def test_a_twin_agrees_at_every_version(tmp_path: Path, rows: bool) -> None:
    report = verify_twin(made(tmp_path), rows=rows)
    assert report.findings == ()
    assert report.agrees
    assert report.versions == tuple(range(1, 6))
    assert report.files == 3
    assert report.rows is None if not rows else (report.rows or 0) >= 5


def test_partitions_of_every_type_agree(tmp_path: Path) -> None:
    columns = ("name", "price", "day", "at", "ok", "id", "ratio")
    table = twin(tmp_path, SCHEMA, *columns)
    empty = {**row(3), **dict.fromkeys(columns)}
    table = append(
        table, tmp_path, [row(1)], [row(2)], [empty], [{**row(4), "ratio": float("nan")}]
    )
    sync_table(table.snapshot)
    assert verify_twin(table, rows=True).findings == ()


def test_deletion_vectors_agree(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT", properties=V3)
    table = append(table, tmp_path, [{"id": n} for n in range(10)], [{"id": n} for n in range(5)])
    first, second = (add.path for add in table.snapshot.adds())
    table = hide(table, tmp_path, {first: [1, 3], second: [0]})
    sync_table(table.snapshot)
    assert verify_twin(table, rows=True).findings == ()


def test_an_empty_table_agrees(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT")
    sync_table(table.snapshot)
    assert verify_twin(table, rows=True).agrees


class Pickling:
    """Sends everything through pickle, as an executor on other machines does."""

    def map(self, fn: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            far, thing = pickle.loads(pickle.dumps((fn, item)))
            yield pickle.loads(pickle.dumps(far(thing)))


def test_rows_can_be_read_on_other_machines(tmp_path: Path) -> None:
    made(tmp_path)
    table = Table.open(tmp_path, runtime=Runtime(executor=Pickling()))
    report = verify_twin(table, rows=True)
    assert report.agrees
    assert report.rows


# What does not


def metadata_files(folder: Path, pattern: str) -> list[Path]:
    return sorted((folder / "_iceberg" / "metadata").glob(pattern))


def metadata_file(folder: Path) -> Path:
    hint = (folder / "_iceberg/metadata/version-hint.text").read_text()
    return folder / f"_iceberg/metadata/v{hint}.metadata.json"


def rewrite_avro(path: Path, change: Callable[[list[Any]], list[Any]]) -> None:
    with path.open("rb") as file:
        reader: Any = fastavro.reader(file)
        records = list(reader)
        schema = reader.writer_schema
        extra = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
    buffer = io.BytesIO()
    fastavro.writer(buffer, schema, change(records), codec="deflate", metadata=extra)
    path.write_bytes(buffer.getvalue())


def in_entries(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the first live entry of every manifest."""
    for path in metadata_files(folder, "m-*.avro"):

        def changed(records: list[Any]) -> list[Any]:
            change(next(r for r in records if r["status"] != 2)["data_file"])
            return records

        rewrite_avro(path, changed)


def drop_entry(folder: Path) -> None:
    newest = metadata_files(folder, "m-*.avro")[0]
    rewrite_avro(newest, lambda records: records[1:])


def set_bound(name: str, value: bytes, column: int = 1) -> Callable[[Path], None]:
    def tamper(folder: Path) -> None:
        def change(file: dict[str, Any]) -> None:
            for pair in file[name]:
                if pair["key"] == column:
                    pair["value"] = value

        in_entries(folder, change)

    return tamper


def set_field(name: str, value: Any) -> Callable[[Path], None]:
    return lambda folder: in_entries(folder, lambda file: file.__setitem__(name, value))


def set_nulls(folder: Path) -> None:
    in_entries(folder, lambda file: file["null_value_counts"][0].__setitem__("value", 1))


def in_list(name: str) -> Callable[[Path], None]:
    def tamper(folder: Path) -> None:
        def change(records: list[Any]) -> list[Any]:
            records[0][name] += 1
            return records

        rewrite_avro(metadata_files(folder, "snap-*.avro")[-1], change)

    return tamper


def in_metadata(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    def tamper(folder: Path) -> None:
        path = metadata_file(folder)
        document = json.loads(path.read_text())
        change(document)
        path.write_text(json.dumps(document))

    return tamper


def swap_columns(document: dict[str, Any]) -> None:
    for schema in document["schemas"]:
        fields = {field["name"]: field for field in schema["fields"]}
        one, other = fields["at"], fields["id"]
        one["type"], other["type"] = other["type"], one["type"]


def lose_snapshot(document: dict[str, Any]) -> None:
    del document["snapshots"][1]


def total(document: dict[str, Any]) -> None:
    document["snapshots"][-1]["summary"]["total-records"] = "77"


def other_file(folder: Path) -> None:
    """Let Iceberg read a copy of a file with one row changed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def change(file: dict[str, Any]) -> None:
        path = Path(file["file_path"].removeprefix("file://"))
        copy = path.with_name(f"copy-{path.name}")
        data = pq.ParquetFile(path).read()
        ids = data.column(0).to_pylist()
        changed = pa.array([ids[0] + 1, *ids[1:]], data.schema.field(0).type)
        pq.write_table(data.set_column(0, data.schema.field(0), changed), copy)
        file["file_path"] = f"file://{copy}"

    in_entries(folder, change)


LONG = struct.Struct("<q")

DAMAGE: dict[str, tuple[Callable[[Path], None], DifferenceKind]] = {
    "a dropped file": (drop_entry, DifferenceKind.FILE_MISSING),
    "another file": (other_file, DifferenceKind.FILE_EXTRA),
    "a lower bound that is too high": (
        set_bound("lower_bounds", LONG.pack(2**62)),
        DifferenceKind.BOUND_LOSES_ROWS,
    ),
    "an upper bound that is too low": (
        set_bound("upper_bounds", LONG.pack(0)),
        DifferenceKind.BOUND_LOSES_ROWS,
    ),
    "a timestamp cut to milliseconds": (
        set_bound("upper_bounds", LONG.pack(1_714_564_801_123_000), 7),
        DifferenceKind.BOUND_LOSES_ROWS,
    ),
    "a bound that is wider than it was": (
        set_bound("lower_bounds", LONG.pack(5)),
        DifferenceKind.BOUND_DIFFERS,
    ),
    "a bound that is no number": (set_bound("lower_bounds", b"x"), DifferenceKind.BOUND_LOSES_ROWS),
    "no bounds": (set_field("upper_bounds", []), DifferenceKind.BOUND_DIFFERS),
    "a wrong count": (set_field("record_count", 17), DifferenceKind.COUNT),
    "a wrong size": (set_field("file_size_in_bytes", 17), DifferenceKind.SIZE),
    "a wrong count of nulls": (set_nulls, DifferenceKind.STATISTICS),
    "a wrong count of files in the list": (in_list("existing_files_count"), DifferenceKind.COUNT),
    "a wrong count of rows in the list": (in_list("existing_rows_count"), DifferenceKind.COUNT),
    "a wrong total": (in_metadata(total), DifferenceKind.COUNT),
    "swapped types": (in_metadata(swap_columns), DifferenceKind.SCHEMA),
    "a lost snapshot": (in_metadata(lose_snapshot), DifferenceKind.FILE_MISSING),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_found(tmp_path: Path, name: str) -> None:
    table = made(tmp_path)
    tamper, expected = DAMAGE[name]
    tamper(tmp_path)
    report = verify_twin(table)
    assert not report.agrees
    assert expected in kinds(report)


def test_a_changed_row_is_found_by_rows(tmp_path: Path) -> None:
    table = made(tmp_path)
    other_file(tmp_path)
    assert DifferenceKind.ROWS in kinds(verify_twin(table, rows=True))


def test_another_hidden_row_is_found_by_rows_alone(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT", properties=V3)
    table = append(table, tmp_path, [{"id": number} for number in range(10)])
    (add,) = table.snapshot.adds()
    table = hide(table, tmp_path, {add.path: [1, 3]})
    sync_table(table.snapshot)
    (puffin,) = metadata_files(tmp_path, "dv-*.puffin")
    location = f"{table.snapshot.store.url}/{add.path}"
    before = puffin.read_bytes()
    blob = Blob(referenced_data_file=location, cardinality=2, payload=encode_bitmap([1, 4]))
    data, _ = write_puffin([blob])
    puffin.write_bytes(data)
    assert before != data
    assert verify_twin(table).agrees
    assert kinds(verify_twin(table, rows=True)) == {DifferenceKind.ROWS}


def test_a_wrong_partition_value_is_found(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT, day DATE", "day")
    table = append(table, tmp_path, [{"id": 1, "day": dt.date(2024, 1, 1)}])
    sync_table(table.snapshot)
    in_entries(tmp_path, lambda file: file.__setitem__("partition", {"day": dt.date(2024, 1, 2)}))
    report = verify_twin(table)
    # The manifest list still says that there is the first of January only.
    assert kinds(report) == {DifferenceKind.PARTITION, DifferenceKind.BOUND_LOSES_ROWS}


def test_a_face_that_is_behind_does_not_agree(tmp_path: Path) -> None:
    table = made(tmp_path)
    table = append(table, tmp_path, [row(6)])
    assert kinds(verify_twin(table)) == {DifferenceKind.BEHIND}


def test_a_lost_manifest_is_told(tmp_path: Path) -> None:
    table = made(tmp_path)
    metadata_files(tmp_path, "m-*.avro")[0].unlink()
    assert DifferenceKind.UNREADABLE in kinds(verify_twin(table))


# The command


def test_exit_status_says_whether_both_agree(tmp_path: Path) -> None:
    made(tmp_path)
    good = run("verify-twin", tmp_path, "--rows", "--json")
    assert good.exit_code == 0
    assert json.loads(good.stdout)["agrees"] is True
    set_field("record_count", 17)(tmp_path)
    bad = run("verify-twin", tmp_path, "--json")
    assert bad.exit_code == 1
    found = json.loads(bad.stdout)["findings"]
    assert {"count"} <= {one["what"] for one in found}
    text = run("verify-twin", tmp_path)
    assert text.exit_code == 1
    assert "17 rows" in text.stdout


def test_without_iceberg_metadata_it_says_what_to_do(tmp_path: Path) -> None:
    twin(tmp_path, "id INT")
    done = run("verify-twin", tmp_path)
    assert done.exit_code == 1
    assert "twinlake sync" in done.stderr
