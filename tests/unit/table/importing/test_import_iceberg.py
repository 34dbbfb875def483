"""Iceberg tables made by PyIceberg become Delta tables with the same rows at every version."""

from __future__ import annotations

import datetime as dt
import gzip
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from tests.support.iceberg.both_sides import as_text
from tests.unit.cli.running import run
from twinlake import ImportResult, import_iceberg
from twinlake.errors import Code, UserError
from twinlake.schema.predicates import parse_predicate
from twinlake.table import Table
from twinlake.table.twin.verify_twin import verify_twin

pytestmark = pytest.mark.slow

ALL_TYPES = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "name", StringType(), doc="what it is called"),
    NestedField(3, "price", DecimalType(20, 4)),
    NestedField(4, "ratio", DoubleType()),
    NestedField(5, "small", FloatType()),
    NestedField(6, "day", DateType()),
    NestedField(7, "at", TimestamptzType()),
    NestedField(8, "local", TimestampType()),
    NestedField(9, "ok", BooleanType()),
    NestedField(10, "raw", BinaryType()),
    NestedField(11, "n", IntegerType()),
    NestedField(
        12,
        "s",
        StructType(NestedField(13, "a", IntegerType()), NestedField(14, "b", StringType())),
    ),
    NestedField(15, "l", ListType(16, StructType(NestedField(17, "x", IntegerType())))),
    NestedField(18, "m", MapType(19, StringType(), 20, IntegerType())),
)


def row(number: int) -> dict[str, Any]:
    moment = dt.datetime(2024, 5, 1, 12, 0, number % 60, 123_456)
    return {
        "id": number + 2**60,
        "name": f"name {number} " * 5,
        "price": Decimal("12345678901234.5678") + number,
        "ratio": number / 3,
        "small": 0.5 * number,
        "day": dt.date(2024, 1, 1 + number),
        "at": moment.replace(tzinfo=dt.UTC),
        "local": moment,
        "ok": number % 2 == 0,
        "raw": bytes([number]),
        "n": number,
        "s": {"a": number, "b": None},
        "l": [{"x": number}],
        "m": [("k", number)],
    }


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqlCatalog]:
    warehouse = tmp_path / "lake"
    warehouse.mkdir()
    found = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{warehouse}")
    found.create_namespace("d")
    yield found
    found.engine.dispose()


def append(table: Any, *rows: dict[str, Any]) -> None:
    table.append(pa.Table.from_pylist(list(rows), schema=table.schema().as_arrow()))


def iceberg_rows(table: Any, snapshot_id: int | None = None) -> list[str]:
    return as_text(table.scan(snapshot_id=snapshot_id).to_arrow().to_pylist())


def delta_rows(table: Table) -> list[str]:
    return as_text(table.to_arrow().to_pylist())


def folder_of(table: Any) -> Path:
    return Path(table.location().removeprefix("file://"))


def import_and_compare(table: Any, *, left_out: int = 0) -> ImportResult:
    """Import, and hold the rows of every snapshot against those of its version."""
    source = StaticTable.from_metadata(table.metadata_location)
    snapshots = source.metadata.snapshots[left_out:]
    before = {path: path.read_bytes() for path in folder_of(table).rglob("*") if path.is_file()}
    result = import_iceberg(table.metadata_location, durable=False)
    assert result.snapshots == len(snapshots)
    for version, snapshot in enumerate(snapshots):
        expected = iceberg_rows(source, snapshot.snapshot_id)
        at = result.table.at(version)
        assert delta_rows(at) == expected, version
        assert at.snapshot.timestamp_ms >= snapshot.timestamp_ms
    assert delta_rows(result.table) == iceberg_rows(source)
    assert all(path.read_bytes() == data for path, data in before.items())
    return result


def test_all_types_become_a_twin_at_once(catalog: SqlCatalog) -> None:
    table = catalog.create_table("d.t", ALL_TYPES)
    append(table, row(1), row(2))
    append(table, row(3), {"id": 4})
    result = import_and_compare(table)
    assert result.notes == ()
    assert result.is_twin
    assert result.accepts_iceberg_writers
    made = result.table
    assert made.metadata.id == str(table.metadata.table_uuid)
    assert made.metadata.get("delta.columnMapping.mode") == "id"
    assert made.metadata.get("delta.columnMapping.maxColumnId") == "20"
    columns = {column.name: column for column in made.schema}
    # PyIceberg numbers the columns of a new table itself.
    items, pairs = table.schema().find_field("l"), table.schema().find_field("m")
    assert isinstance(items.field_type, ListType)
    assert isinstance(pairs.field_type, MapType)
    assert columns["l"].metadata["delta.columnMapping.nested.ids"] == {
        f"col-{items.field_id}.element": items.field_type.element_id
    }
    assert columns["m"].metadata["delta.columnMapping.nested.ids"] == {
        f"col-{pairs.field_id}.key": pairs.field_type.key_id,
        f"col-{pairs.field_id}.value": pairs.field_type.value_id,
    }
    assert columns["name"].metadata["comment"] == "what it is called"
    assert not columns["id"].nullable
    assert {add.tags == {"ICEBERG_COMPAT_VERSION": "2"} for add in made.snapshot.adds()} == {True}
    assert verify_twin(made, rows=True).findings == ()


def test_format_version_1(catalog: SqlCatalog) -> None:
    table = catalog.create_table("d.t", ALL_TYPES, properties={"format-version": "1"})
    append(table, row(1))
    append(table, row(2))
    assert table.format_version == 1
    result = import_and_compare(table)
    assert verify_twin(result.table, rows=True).agrees


def test_evolution_is_kept(catalog: SqlCatalog) -> None:
    table = catalog.create_table("d.t", ALL_TYPES)
    append(table, row(1), row(2))
    with table.update_schema() as update:
        update.rename_column("name", "title")
        update.delete_column("raw")
        update.add_column("extra", StringType())
        update.update_column("n", LongType())
        update.update_column("price", DecimalType(24, 4))
        update.add_column(("s", "c"), LongType())
        update.move_first("name")
    later = {k: v for k, v in row(3).items() if k not in ("name", "raw")}
    append(table, {**later, "title": "t", "extra": "e"})
    with table.update_schema() as update:
        update.rename_column("extra", "name")
    result = import_and_compare(table)
    assert result.table.version == 2
    assert result.is_twin
    assert next(iter(result.table.schema)).name == "title"
    assert verify_twin(result.table, rows=True).findings == ()


def test_a_column_that_became_required_is_imported(catalog: SqlCatalog) -> None:
    table = catalog.create_table("d.t", ALL_TYPES)
    append(table, row(1))
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.update_column("n", required=True)
    append(table, row(2))
    result = import_and_compare(table)
    column = result.table.schema.get("n")
    assert column is not None
    assert not column.nullable


PARTITIONS = {2: "name", 6: "day", 7: "at", 9: "ok", 3: "price", 8: "local", 11: "n", 4: "ratio"}
IDENTITY = PartitionSpec(
    *(
        PartitionField(source, 1000 + source, IdentityTransform(), name)
        for source, name in PARTITIONS.items()
    )
)


def test_identity_partitions(catalog: SqlCatalog) -> None:
    table = catalog.create_table("d.t", ALL_TYPES, partition_spec=IDENTITY)
    append(table, row(1), row(2))
    append(table, {"id": 3})
    result = import_and_compare(table)
    assert result.table.metadata.partition_columns == tuple(PARTITIONS.values())
    assert result.is_twin
    assert verify_twin(result.table, rows=True).findings == ()


def test_deletes_and_overwrites(catalog: SqlCatalog) -> None:
    table = catalog.create_table("d.t", ALL_TYPES)
    for number in range(4):
        append(table, row(number), row(number + 10))
    table.delete("n = 1")
    table.overwrite(pa.Table.from_pylist([row(20)], schema=table.schema().as_arrow()), "n = 12")
    table.delete("n = 0 or n = 10")
    result = import_and_compare(table)
    assert verify_twin(result.table, rows=True).findings == ()


def test_an_empty_table(catalog: SqlCatalog) -> None:
    table = catalog.create_table("d.t", ALL_TYPES)
    result = import_iceberg(table.metadata_location, durable=False)
    assert result.table.version == 0
    assert result.snapshots == 0
    assert delta_rows(result.table) == []


def test_expired_history_starts_later(catalog: SqlCatalog) -> None:
    table = catalog.create_table("d.t", ALL_TYPES)
    for number in range(3):
        append(table, row(number))
    oldest = table.metadata.snapshots[0].snapshot_id
    table.maintenance.expire_snapshots().by_id(oldest).commit()
    result = import_and_compare(table.refresh())
    assert result.snapshots == 2


def test_it_can_be_found_by_folder_and_by_name(
    catalog: SqlCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = catalog.create_table("d.one", ALL_TYPES)
    append(one, row(1))
    assert delta_rows(import_iceberg(str(folder_of(one))).table) == iceberg_rows(one)
    two = catalog.create_table("d.two", ALL_TYPES)
    append(two, row(2))
    monkeypatch.setenv("PYICEBERG_CATALOG__C__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__C__URI", f"sqlite:///{tmp_path}/c.db")
    assert delta_rows(import_iceberg("c.d.two").table) == iceberg_rows(two)


# Deletes by position, which PyIceberg reads and does not write


def avro(path: Path, change: Callable[[list[Any]], list[Any]], target: Path) -> None:
    with path.open("rb") as file:
        reader: Any = fastavro.reader(file)
        records = list(reader)
        schema = reader.writer_schema
        extra = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
    buffer = io.BytesIO()
    extra = {k: "deletes" if k == "content" else v for k, v in extra.items()}
    fastavro.writer(buffer, schema, change(records), codec="deflate", metadata=extra)
    target.write_bytes(buffer.getvalue())


def local(path: str) -> Path:
    return Path(path.removeprefix("file://"))


def with_deletes(table: Any, positions: list[int], *, content: int = 1) -> str:
    """Add a snapshot that deletes positions of the first file; returns its metadata file."""
    current = table.current_snapshot()
    (*_, manifest) = current.manifests(table.io)
    (entry, *_) = manifest.fetch_manifest_entry(table.io)
    folder = local(manifest.manifest_path).parent
    target = entry.data_file.file_path
    fields = [
        pa.field("file_path", pa.string(), False, {"PARQUET:field_id": "2147483546"}),
        pa.field("pos", pa.int64(), False, {"PARQUET:field_id": "2147483545"}),
    ]
    data = pa.table([[target] * len(positions), positions], schema=pa.schema(fields))
    name = folder / f"deletes-{current.snapshot_id}.parquet"
    pq.write_table(data, name)
    own, number = current.snapshot_id + 1, current.sequence_number + 1

    def entries(records: list[Any]) -> list[Any]:
        file = {
            **records[0]["data_file"],
            "content": content,
            "file_path": f"file://{name}",
            "record_count": len(positions),
            "file_size_in_bytes": name.stat().st_size,
            "lower_bounds": None,
            "upper_bounds": None,
            "equality_ids": [1] if content == 2 else None,
        }
        return [{**records[0], "status": 1, "snapshot_id": own, "data_file": file,
                 "sequence_number": None, "file_sequence_number": None}]  # fmt: skip

    deletes = folder / f"deletes-{own}.avro"
    avro(local(manifest.manifest_path), entries, deletes)

    def rows(records: list[Any]) -> list[Any]:
        new = {**records[0], "manifest_path": f"file://{deletes}", "content": 1,
               "manifest_length": deletes.stat().st_size, "sequence_number": number,
               "min_sequence_number": number, "added_snapshot_id": own}  # fmt: skip
        return [*records, new]

    listed = folder / f"snap-{own}.avro"
    avro(local(current.manifest_list), rows, listed)
    document = json.loads(local(table.metadata_location).read_text())
    document["snapshots"].append(
        {
            "snapshot-id": own,
            "parent-snapshot-id": current.snapshot_id,
            "sequence-number": number,
            "timestamp-ms": current.timestamp_ms + 1,
            "manifest-list": f"file://{listed}",
            "summary": {"operation": "delete"},
            "schema-id": 0,
        }
    )
    document |= {"current-snapshot-id": own, "last-sequence-number": number}
    document["refs"]["main"]["snapshot-id"] = own
    document["last-updated-ms"] = current.timestamp_ms + 1
    document["snapshot-log"].append({"snapshot-id": own, "timestamp-ms": current.timestamp_ms + 1})
    path = folder / f"00099-{own}.metadata.json"
    path.write_text(json.dumps(document))
    return str(path)


def test_position_deletes_become_deletion_vectors(catalog: SqlCatalog) -> None:
    table = catalog.create_table("d.t", ALL_TYPES)
    append(table, *(row(number) for number in range(10)))
    append(table, row(11))
    deleted = StaticTable.from_metadata(with_deletes(table, [1, 3, 4, 77]))
    assert len(iceberg_rows(deleted)) == 8
    result = import_and_compare(deleted)
    assert not result.is_twin
    assert any("deletion vectors" in note for note in result.notes)
    assert sum(add.deletion_vector is not None for add in result.table.snapshot.adds()) == 1


def test_shared_leaves_the_promise_about_writers_out(catalog: SqlCatalog) -> None:
    table = catalog.create_table("d.t", ALL_TYPES)
    append(table, row(1))
    with pytest.raises(UserError) as caught:
        import_iceberg(table.metadata_location, mode="other")
    assert caught.value.code is Code.INVALID_ARGUMENT
    result = import_iceberg(table.metadata_location, mode="shared", durable=False)
    assert result.is_twin
    assert not result.accepts_iceberg_writers
    assert "icebergWriterCompatV1" not in (result.table.protocol.writer_features or ())
    assert delta_rows(result.table) == iceberg_rows(table)


# What is refused


def refusal(source: str) -> list[str]:
    with pytest.raises(UserError) as caught:
        import_iceberg(source, durable=False)
    assert caught.value.code is Code.COMPAT
    problems: list[str] = caught.value.fields["problems"]
    return problems


def test_everything_is_refused_at_once(catalog: SqlCatalog) -> None:
    schema = Schema(
        NestedField(1, "id", LongType()),
        NestedField(2, "ID", TimeType()),
        NestedField(3, "u", UUIDType()),
        NestedField(4, "l", ListType(5, TimeType())),
        NestedField(6, "at", TimestampType()),
    )
    spec = PartitionSpec(
        PartitionField(1, 1000, BucketTransform(4), "bucket"),
        PartitionField(6, 1001, DayTransform(), "by_day"),
    )
    table = catalog.create_table("d.t", schema, partition_spec=spec)
    problems = refusal(table.metadata_location)
    for word in ("ID has type time", "u has type uuid", "l.element has type time", "bucket[4]"):
        assert any(word in one for one in problems), (word, problems)
    assert any("differ in case only" in one for one in problems)
    assert any("day" in one for one in problems)
    assert not (folder_of(table) / "_delta_log").exists()


def test_branches_are_refused_and_tags_are_told(catalog: SqlCatalog) -> None:
    table = catalog.create_table("d.t", ALL_TYPES)
    append(table, row(1))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    table.manage_snapshots().create_tag(snapshot.snapshot_id, "first").commit()
    assert import_iceberg(table.metadata_location).notes == ("tag first is not carried over",)
    other = catalog.create_table("d.u", ALL_TYPES)
    append(other, row(1))
    snapshot = other.current_snapshot()
    assert snapshot is not None
    other.manage_snapshots().create_branch(snapshot.snapshot_id, "dev").commit()
    assert refusal(other.metadata_location) == ["branch dev: Delta has one line of versions"]


def test_equality_deletes_are_refused(catalog: SqlCatalog) -> None:
    table = catalog.create_table("d.t", ALL_TYPES)
    append(table, row(1))
    (problem,) = refusal(with_deletes(table, [0], content=2))
    assert "by equality" in problem


def test_files_without_ids_are_refused(catalog: SqlCatalog, tmp_path: Path) -> None:
    table = catalog.create_table("d.t", Schema(NestedField(1, "id", LongType())))
    folder = folder_of(table) / "data"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), folder / "x.parquet")
    table.add_files([f"file://{folder}/x.parquet"])
    (problem,) = refusal(table.metadata_location)
    assert "no field ids on id" in problem


def list_again(table: Any) -> None:
    """Add the files that are there once more, which PyIceberg lets one do at this level."""
    files = [task.file for task in table.scan().plan_files()]
    with table.transaction() as change, change.update_snapshot().fast_append() as update:
        for file in files:
            update.append_data_file(file)


def test_files_that_are_listed_twice_are_refused(catalog: SqlCatalog) -> None:
    """Iceberg reads them twice, and a Delta log has a file once."""
    table = catalog.create_table("d.t", ALL_TYPES)
    append(table, row(1))
    append(table, row(2))
    listed = table.inspect.files().column("file_path").to_pylist()
    list_again(table)
    assert len(iceberg_rows(table)) == 4
    problems = refusal(table.metadata_location)
    assert sorted(problems) == sorted(
        f"file {path} is listed twice, and Iceberg reads its rows twice" for path in listed
    )


def test_history_begins_after_a_file_that_was_listed_twice(catalog: SqlCatalog) -> None:
    table = catalog.create_table("d.t", ALL_TYPES)
    append(table, row(1))
    list_again(table)
    table.delete()
    append(table, row(3))
    result = import_and_compare(table, left_out=2)
    assert "listed twice" in " ".join(result.notes)


def test_the_empty_text_is_no_partition_of_delta(catalog: SqlCatalog) -> None:
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "name"))
    table = catalog.create_table("d.t", ALL_TYPES, partition_spec=spec)
    append(table, {**row(1), "name": ""})
    (problem,) = refusal(table.metadata_location)
    assert "empty text" in problem


@pytest.mark.parametrize("value", [b"", b"\xff", b"\xed\xa0\x80"], ids=repr)
def test_bytes_without_a_text_are_no_partition_of_delta(catalog: SqlCatalog, value: bytes) -> None:
    spec = PartitionSpec(PartitionField(10, 1000, IdentityTransform(), "raw"))
    table = catalog.create_table("d.t", ALL_TYPES, partition_spec=spec)
    append(table, {**row(1), "raw": value})
    (problem,) = refusal(table.metadata_location)
    assert ("not UTF-8" if value else "empty text") in problem
    assert not (folder_of(table) / "_delta_log").exists()


def test_partitions_by_bytes_and_by_a_float_that_was_widened(catalog: SqlCatalog) -> None:
    """The text of the float 0.1 is another double once the column holds doubles."""
    fields = [(5, "small"), (10, "raw")]
    spec = PartitionSpec(*(PartitionField(n, 995 + n, IdentityTransform(), c) for n, c in fields))
    table = catalog.create_table("d.t", ALL_TYPES, partition_spec=spec)
    append(table, {**row(1), "small": 0.1, "raw": "ü".encode()})
    append(table, {**row(2), "small": 0.5, "raw": "€😀".encode()})
    with table.update_schema() as update:
        update.update_column("small", DoubleType())
    append(table, {**row(3), "small": 0.1, "raw": b"\x00"})

    result = import_and_compare(table)

    assert verify_twin(result.table, rows=True).findings == ()


def test_history_begins_after_what_cannot_be_said(catalog: SqlCatalog) -> None:
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "name"))
    table = catalog.create_table("d.t", ALL_TYPES, partition_spec=spec)
    append(table, {**row(1), "name": ""})
    append(table, row(2))
    table.delete("name = ''")
    append(table, row(3))
    assert len(table.metadata.snapshots) == 4
    result = import_and_compare(table, left_out=2)
    assert result.left_out == 2
    assert "empty text" in " ".join(result.notes)


def test_a_table_that_is_there_stays(catalog: SqlCatalog) -> None:
    table = catalog.create_table("d.t", ALL_TYPES)
    append(table, row(1))
    import_iceberg(table.metadata_location)
    with pytest.raises(UserError) as caught:
        import_iceberg(table.metadata_location)
    assert caught.value.code is Code.TABLE_EXISTS
    # The log may be the only record of rows that were written since.
    assert "Do not delete `_delta_log`" in caught.value.fix


@pytest.mark.parametrize("source", ["nowhere/at/all", "{tmp}", "{tmp}/x.metadata.json"])
def test_what_is_no_table_is_said(tmp_path: Path, source: str) -> None:
    (tmp_path / "x.metadata.json").write_text("[]")
    with pytest.raises(UserError) as caught:
        import_iceberg(source.format(tmp=tmp_path))
    assert caught.value.code is Code.TABLE_NOT_FOUND


# Killed on the way

KILLED = """
import os, sys, signal
from twinlake.storage import LocalStore
from twinlake import import_iceberg

left = int(sys.argv[2])
def counted(name):
    real = getattr(LocalStore, name)
    def call(self, *arguments):
        global left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return real(self, *arguments)
    setattr(LocalStore, name, call)
for name in ("put", "create", "delete"):
    counted(name)
import_iceberg(sys.argv[1], durable=False)
"""


@pytest.mark.slow
def test_a_killed_import_leaves_no_half_table_and_can_be_repeated(catalog: SqlCatalog) -> None:
    table = catalog.create_table("d.t", ALL_TYPES)
    append(table, *(row(number) for number in range(10)))
    append(table, row(11))
    source = with_deletes(table, [1, 3])
    expected = iceberg_rows(StaticTable.from_metadata(source))
    folder = folder_of(table)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    killed = 0
    for writes in range(20):
        words = [sys.executable, "-c", KILLED, source, str(writes)]
        done = subprocess.run(words, check=False, capture_output=True, text=True, env=environment)
        if Table.exists(folder) and (folder / "_delta_log" / f"{0:020}.json").exists():
            assert delta_rows(Table.open(folder)) == expected
        else:
            with pytest.raises(Exception, match="TWIN-"):
                Table.open(folder)
        if done.returncode == 0:
            break
        assert done.returncode == -9, done.stderr
        killed += 1
    assert killed >= 5
    assert delta_rows(Table.open(folder)) == expected
    assert Table.open(folder).version == 2
    assert not list(folder.glob("_delta_log/_import*"))


# The command


def test_the_command(catalog: SqlCatalog) -> None:
    table = catalog.create_table("d.t", ALL_TYPES)
    append(table, row(1))
    done = run("import", table.metadata_location, "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["is_twin"] is True
    again = run("import", table.metadata_location)
    assert again.exit_code == 1
    assert "already" in again.stderr


# Other places, other shapes


def rewritten(table: Any, change: Callable[[dict[str, Any]], None]) -> str:
    """The metadata file with something changed; returns where it is."""
    path = local(table.metadata_location)
    document = json.loads(path.read_text())
    change(document)
    other = path.with_name(f"00098-{path.name.partition('-')[2]}")
    other.write_text(json.dumps(document))
    return str(other)


def test_a_hadoop_folder_is_read_by_its_hint(catalog: SqlCatalog) -> None:
    table = catalog.create_table("d.t", ALL_TYPES)
    append(table, row(1))
    first = local(table.metadata_location).read_bytes()
    append(table, row(2))
    folder = folder_of(table) / "metadata"
    second = local(table.metadata_location).read_bytes()
    for path in folder.glob("*.metadata.json"):
        path.unlink()
    (folder / "v1.metadata.json").write_bytes(first)
    (folder / "v2.gz.metadata.json").write_bytes(gzip.compress(second))
    (folder / "v3.metadata.json").write_bytes(first)
    (folder / "version-hint.text").write_text("2")
    result = import_iceberg(str(folder_of(table)))
    assert result.metadata_location.endswith("v2.gz.metadata.json")
    assert len(delta_rows(result.table)) == 2


def test_two_files_of_one_number_are_not_guessed_at(catalog: SqlCatalog) -> None:
    table = catalog.create_table("d.t", ALL_TYPES)
    path = local(table.metadata_location)
    path.with_name(f"{path.name.partition('-')[0]}-other.metadata.json").write_bytes(
        path.read_bytes()
    )
    with pytest.raises(UserError, match="several metadata files"):
        import_iceberg(str(folder_of(table)))


def test_format_1_without_a_manifest_list(catalog: SqlCatalog) -> None:
    table = catalog.create_table("d.t", ALL_TYPES, properties={"format-version": "1"})
    append(table, row(1))
    current = table.current_snapshot()
    assert current is not None
    manifests = [one.manifest_path for one in current.manifests(table.io)]

    def change(document: dict[str, Any]) -> None:
        (one,) = document["snapshots"]
        del one["manifest-list"]
        one["manifests"] = manifests

    assert delta_rows(import_iceberg(rewritten(table, change)).table) == iceberg_rows(table)


def test_files_outside_the_table_are_read_where_they_are(
    catalog: SqlCatalog, tmp_path: Path
) -> None:
    elsewhere = {"write.data.path": f"file://{tmp_path}/else where"}
    table = catalog.create_table("d.t", ALL_TYPES, properties=elsewhere)
    append(table, row(1))
    result = import_and_compare(table)
    (add,) = result.table.snapshot.adds()
    assert add.path.startswith(f"file://{tmp_path}/else%20where/")
    assert verify_twin(result.table, rows=True).agrees


def test_a_renamed_partition_column(catalog: SqlCatalog) -> None:
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "name"))
    table = catalog.create_table("d.t", ALL_TYPES, partition_spec=spec)
    append(table, row(1))
    with table.update_schema() as update:
        update.rename_column("name", "title")
    append(table, {**{k: v for k, v in row(2).items() if k != "name"}, "title": "a=b/c %"})
    result = import_and_compare(table)
    assert result.table.at(0).metadata.partition_columns == ("name",)
    assert result.table.metadata.partition_columns == ("title",)


def test_snapshots_that_are_lost_are_left_out(catalog: SqlCatalog) -> None:
    table = catalog.create_table("d.t", ALL_TYPES)
    for number in range(3):
        append(table, row(number))
    local(table.metadata.snapshots[0].manifest_list).unlink()
    local(table.metadata.snapshots[1].manifest_list).write_bytes(b"Obj\x01 no more")
    result = import_and_compare(table, left_out=2)
    assert result.left_out == 2
    assert "cannot be read" in " ".join(result.notes)


def change_files(table: Any, **values: Any) -> str:
    """Change the entries of the newest manifest."""
    current = table.current_snapshot()
    (manifest, *_) = current.manifests(table.io)
    path = local(manifest.manifest_path)

    def change(records: list[Any]) -> list[Any]:
        for record in records:
            record["data_file"] |= values
        return records

    avro(path, change, path)
    return str(table.metadata_location)


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"file_format": "ORC"}, "is of format ORC"),
        ({"file_format": "AVRO"}, "is of format AVRO"),
        ({"key_metadata": b"key"}, "is encrypted"),
        ({"record_count": 7}, "its manifest says 7"),
        ({"file_path": "file:///no/such/file.parquet"}, "cannot be read"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_files_delta_cannot_have(catalog: SqlCatalog, values: dict[str, Any], word: str) -> None:
    table = catalog.create_table("d.t", ALL_TYPES)
    append(table, row(1))
    (problem,) = refusal(change_files(table, **values))
    assert word in problem


def test_no_row_is_lost_by_statistics(catalog: SqlCatalog) -> None:
    """Every file is kept for every value in it."""
    table = catalog.create_table("d.t", ALL_TYPES)
    odd = [
        {**row(1), "ratio": float("nan"), "small": float("inf")},
        {**row(2), "ratio": -0.0, "small": float("-inf")},
        {**row(3), "at": dt.datetime(2024, 5, 1, 12, 0, 0, 999_999, dt.UTC)},
        {**row(4), "name": "\U0010ffff" * 20, "price": Decimal("-9999999999999999.9999")},
        {**row(5), "name": "z" * 40, "id": 2**63 - 1},
    ]
    append(table, *odd)
    made = import_iceberg(table.metadata_location).table
    for one in odd:
        conditions = [
            f"id = {one['id']}",
            f"price = {one['price']}",
            f"day = date'{one['day']}'",
            f"at = timestamp'{one['at'].isoformat()}'",
            f"name = '{one['name']}'",
        ]
        for condition in conditions:
            where = parse_predicate(condition, made.schema)
            assert made.snapshot.files(where).num_rows == 1, condition
    for condition in ("ratio > 1000", "small > 1e30", "small < -1e30", "ratio = 0"):
        assert made.snapshot.files(parse_predicate(condition, made.schema)).num_rows == 1, condition
    # And they do skip.
    for condition in ("id = 0", "day = date'2030-01-01'", "at > timestamp'2025-01-01T00:00:00Z'"):
        assert made.snapshot.files(parse_predicate(condition, made.schema)).num_rows == 0, condition
