"""Data files that a table does not take: each is refused, and nothing is left behind."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tests.support.iceberg.outside_writer import (
    OutsideWriter,
    column,
    entry,
    entry_schema,
    hold_together,
    refused,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

LIST = {"type": "list", "element-id": 7, "element": "int", "element-required": True}
STRUCT = {"type": "struct", "fields": [column(8, "x", "int", required=True)]}
COLUMNS = (
    column(1, "id", "long", required=True),
    column(2, "s", "string"),
    column(3, "t", "timestamp"),
    column(4, "d", "decimal(9, 2)"),
    column(5, "l", LIST),
    column(6, "a", STRUCT),
)
#: What ``create`` numbers the parts of ``l`` and ``a``.
ELEMENT, INNER = 7, 8


def typed(name: str, kind: pa.DataType, number: int | None, *, nullable: bool = True) -> pa.Field:
    metadata = None if number is None else {b"PARQUET:field_id": str(number).encode()}
    return pa.field(name, kind, nullable=nullable, metadata=metadata)


ID = typed("id", pa.int64(), 1, nullable=False)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> OutsideWriter:
    writer = OutsideWriter(tmp_path_factory.mktemp("refused") / "t").create(*COLUMNS)
    writer.append([{"id": 1}])
    return writer


PLACES = {
    "dots": "file://{t}/../other/x.parquet",
    "dot": "file://{t}/./x.parquet",
    "encoded dots": "file://{t}/%2e%2e/x.parquet",
    "encoded twice": "file://{t}/%252e%252e/x.parquet",
    "absolute": "file:///etc/passwd",
    "no scheme": "/etc/passwd",
    "host": "file://host{t}/x.parquet",
    "scheme": "s3://bucket/x.parquet",
    "upper case": "FILE://{t}/x.parquet",
    "log": "file://{t}/_delta_log/00000000000000000000.json",
    "metadata": "file://{t}/_iceberg/metadata/x.parquet",
    "change data": "file://{t}/_change_data/x.parquet",
    "relative": "data/x.parquet",
    "nothing": "",
    "the table": "file://{t}",
    "a folder": "file://{t}/data",
    "slash": "file://{t}/",
    "two slashes": "file://{t}//x.parquet",
    "NUL": "file://{t}/a\0b.parquet",
    "long name": "file://{t}/" + "a" * 300,
    "long path": "file://{t}/" + "a/" * 2000 + "x",
    "link out": "file://{t}/out/passwd",
    "link to itself": "file://{t}/loop",
}


@pytest.mark.parametrize("place", PLACES)
def test_places(table: OutsideWriter, place: str) -> None:
    for name, target in (("out", "/etc"), ("loop", "loop")):
        if not (table.folder / name).is_symlink():
            (table.folder / name).symlink_to(target)
    path = PLACES[place].replace("{t}", str(table.folder))
    refused(table, table.change(added=[{**table.write([{"id": 7}]), "file_path": path}]), "")


LIES: list[tuple[Mapping[str, Any], str]] = [
    ({"file_size_in_bytes": 5}, "bytes, the log says 5"),
    ({"file_size_in_bytes": 1 << 40}, "bytes, the log says"),
    ({"file_size_in_bytes": -5}, "less than no"),
    ({"record_count": 5}, "holds 1 rows"),
    ({"record_count": 0}, "holds 1 rows"),
    ({"record_count": -1}, "less than no"),
    ({"null_value_counts": [{"key": 2, "value": 9}]}, "another number of nulls"),
    ({"null_value_counts": [{"key": 2, "value": -1}]}, "another number of nulls"),
    ({"nan_value_counts": [{"key": 2, "value": 9}]}, "another number of nulls"),
    ({"content": 1}, "no data file"),
    ({"content": 2}, "no data file"),
    ({"file_format": "ORC"}, "format ORC"),
    ({"file_format": "PUFFIN"}, "format PUFFIN"),
    ({"key_metadata": b"key"}, "encrypted"),
]


@pytest.mark.parametrize(("lie", "why"), LIES, ids=lambda one: str(one)[:50])
def test_entries_that_lie(table: OutsideWriter, lie: Mapping[str, Any], why: str) -> None:
    refused(table, table.change(added=[{**table.write([{"id": 7}]), **lie}]), why)


NOON = dt.datetime(2020, 1, 1, 12)
CONTENTS: list[tuple[str, Sequence[pa.Field], Mapping[str, Any], str]] = [
    ("no ids", [typed("id", pa.int64(), None)], {"id": 7}, "required column id"),
    ("other type", [typed("id", pa.string(), 1, nullable=False)], {"id": "7"}, "as BYTE_ARRAY"),
    ("text as number", [ID, typed("s", pa.int64(), 2)], {"id": 7, "s": 8}, "column s as INT64"),
    ("bytes as text", [ID, typed("s", pa.binary(), 2)], {"id": 7, "s": b"a"}, "as BYTE_ARRAY"),
    ("unsigned", [typed("id", pa.uint64(), 1, nullable=False)], {"id": 7}, "INTEGER(64, 0)"),
    ("zone", [ID, typed("t", pa.timestamp("us", "UTC"), 3)], {"id": 7, "t": NOON}, "(1, 6)"),
    ("nanoseconds", [ID, typed("t", pa.timestamp("ns"), 3)], {"id": 7, "t": NOON}, "(0, 9)"),
    ("scale", [ID, typed("d", pa.decimal128(9, 3), 4)], {"id": 7, "d": 1}, "(9, 3)"),
    ("precision", [ID, typed("d", pa.decimal128(10, 2), 4)], {"id": 7, "d": 1}, "(10, 2)"),
    ("leaf for a list", [ID, typed("l", pa.int32(), 5)], {"id": 7, "l": 1}, "column l as INT32"),
    (
        "group for a leaf",
        [ID, typed("s", pa.struct([typed("x", pa.int32(), 8)]), 2)],
        {"id": 7},
        "",
    ),
    ("unknown id", [ID, typed("new", pa.string(), 99)], {"id": 7}, "has not given out"),
    ("reserved id", [ID, typed("f", pa.string(), 2147483646)], {"id": 7}, "Iceberg reserves"),
    ("row ids", [ID, typed("_row_id", pa.int64(), 2147483540)], {"id": 7}, "do not look"),
    ("one id twice", [ID, typed("s", pa.int64(), 1)], {"id": 7, "s": 1}, ""),
    ("id of another", [ID, typed("s", pa.struct([typed("x", pa.int64(), 3)]), 6)], {"id": 7}, ""),
    ("required left out", [typed("s", pa.string(), 2)], {"s": "a"}, "required column id"),
    ("null", [typed("id", pa.int64(), 1)], {"id": None}, "required column id"),
    (
        "null element",
        [ID, typed("l", pa.list_(typed("element", pa.int32(), ELEMENT)), 5)],
        {"id": 7, "l": [None]},
        "required column l.element",
    ),
    (
        "null inside",
        [ID, typed("a", pa.struct([typed("x", pa.int32(), INNER)]), 6)],
        {"id": 7, "a": {"x": None}},
        "required column a.x",
    ),
    (
        "element without id",
        [ID, typed("l", pa.list_(pa.field("element", pa.int32(), nullable=False)), 5)],
        {"id": 7, "l": [1]},
        "l.element",
    ),
]


@pytest.mark.parametrize("case", CONTENTS, ids=lambda case: case[0])
def test_contents(table: OutsideWriter, case: Any) -> None:
    _, fields, row, why = case
    refused(table, table.change(added=[table.write([row], schema=pa.schema(fields))]), why)


def test_int96(table: OutsideWriter) -> None:
    options = {"use_deprecated_int96_timestamps": True}
    file = table.write([{"id": 7, "t": NOON}], options=options)
    refused(table, table.change(added=[file]), "INT96")


def test_no_counts_of_nulls_in_a_column_that_may_have_some(table: OutsideWriter) -> None:
    schema = pa.schema([typed("id", pa.int64(), 1)])
    file = table.write([{"id": 7}], schema=schema, options={"write_statistics": False})
    refused(table, table.change(added=[file]), "required column id")


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-10],
        lambda _: b"",
        lambda _: b"x" * 300,
        lambda data: data[:-4] + b"PARE",
        lambda data: data[:-8] + b"\xff\xff\xff\x7f" + data[-4:],
    ],
    ids=["cut", "empty", "no Parquet", "encrypted footer", "length of the footer"],
)
def test_damage(table: OutsideWriter, damage: Callable[[bytes], bytes]) -> None:
    file = table.write([{"id": 7}])
    path = Path(file["file_path"].removeprefix("file://"))
    path.write_bytes(damage(path.read_bytes()))
    added = {**file, "file_size_in_bytes": path.stat().st_size}
    refused(table, table.change(added=[added]), "no footer that can be read")


def test_a_missing_file(table: OutsideWriter) -> None:
    refused(table, table.change(added=[table.record("data/none.parquet", 99, 1)]), "not there")


def test_several_files_are_judged_at_once(table: OutsideWriter) -> None:
    file = {**table.write([{"id": 7}]), "file_format": "ORC"}
    other = {**table.write([{"id": 7}]), "content": 2}
    why = str(refused(table, table.change(added=[file, other]), "format ORC").why)
    assert "no data file" in why


def test_what_fits_is_taken(tmp_path: Path) -> None:
    """Narrower types that Iceberg widens, milliseconds, and columns that are left out."""
    table = OutsideWriter(tmp_path / "t").create(*COLUMNS)
    fields = [
        typed("id", pa.int32(), 1),
        typed("t", pa.timestamp("ms"), 3),
        typed("d", pa.decimal128(5, 2), 4),
    ]
    table.append([{"id": 7, "t": NOON}], schema=pa.schema(fields))
    table.append([{"id": 8, "s": "b", "l": [1], "a": {"x": 2}}])
    rows = hold_together(table.folder)
    assert sorted((row["id"], row["s"], row["t"]) for row in rows) == [
        (7, None, NOON),
        (8, "b", None),
    ]


# Partition values

PARTITIONED = (column(1, "p", "int", required=True), column(2, "s", "string"))


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> OutsideWriter:
    folder = tmp_path_factory.mktemp("parts") / "t"
    return OutsideWriter(folder).create(*PARTITIONED, partition_by=[1])


TUPLES: list[tuple[Mapping[str, Any], Mapping[str, Any], str]] = [
    ({}, {}, "0 partition values for 1"),
    ({"p": "int", "q": "int"}, {"p": 1, "q": 2}, "2 partition values for 1"),
    ({"p": "int"}, {"p": 2}, "holds other values"),
    ({"p": "int"}, {"p": None}, "holds other values"),
    ({"p": "string"}, {"p": "x"}, "not a whole number"),
    ({"p": "string"}, {"p": ""}, "the empty text"),
    ({"p": "long"}, {"p": 1 << 40}, "not between"),
    ({"p": "double"}, {"p": float("nan")}, "not a whole number"),
    ({"p": {"type": "array", "items": "int"}}, {"p": [1]}, "not a whole number"),
]


@pytest.mark.parametrize(("kinds", "values", "why"), TUPLES, ids=lambda one: str(one)[:40])
def test_partition_values(
    parts: OutsideWriter, kinds: Mapping[str, Any], values: Mapping[str, Any], why: str
) -> None:
    file = parts.write([{"p": 1}], partition=values)
    row = parts.manifest([entry(file)], schema=entry_schema(kinds))
    refused(parts, parts.to_main(parts.snapshot(parts.manifest_list([row]))), why)


def test_another_partition_spec(parts: OutsideWriter) -> None:
    file = parts.write([{"p": 1}], partition={"p": 1})
    row = parts.manifest([entry(file)], partition_spec_id=5)
    updates = parts.to_main(parts.snapshot(parts.manifest_list([row])))
    refused(parts, updates, "partition spec 5")
