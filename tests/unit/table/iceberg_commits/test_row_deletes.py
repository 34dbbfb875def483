"""Rows that clients delete by position: applied or refused, in format 2 and as vectors in 3."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.iceberg.outside_writer import (
    OutsideWriter,
    column,
    hold_together,
    log_of,
    refused,
)
from twinlake import Table
from twinlake.table.iceberg_commits import CommitLimits, IcebergCommits

if TYPE_CHECKING:
    from collections.abc import Callable

COLUMNS = (column(1, "id", "long", required=True), column(2, "s", "string"))
THREE = [{"id": 1}, {"id": 2}, {"id": 3}]
MODE = "twinlake.iceberg.positionDeletes"


def ids(writer: OutsideWriter) -> list[int]:
    return sorted(row["id"] for row in hold_together(writer.folder))


@pytest.fixture
def table(tmp_path: Path) -> OutsideWriter:
    return OutsideWriter(tmp_path / "t").create(*COLUMNS)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> OutsideWriter:
    """A table of format 2 whose requests are all refused."""
    writer = OutsideWriter(tmp_path_factory.mktemp("positions") / "t").create(*COLUMNS)
    writer.append(THREE)
    return writer


# Format 2


def test_positions_of_all_files_unite(table: OutsideWriter) -> None:
    """In several delete files, twice, under several spellings, for old files and new ones."""
    old, gone, whole = table.append(THREE), table.append([{"id": 10}]), table.append([{"id": 20}])
    new = table.write([{"id": 30}, {"id": 31}])
    plain = old["file_path"].replace("file://", "file:")
    deletes = [
        table.positions([(old, 0), (old, 0), (gone, 0)]),
        table.positions([(plain, 2), (plain, 0), (new, 1)]),
        table.positions([(whole, 0)]),
    ]
    version = table.state.version
    updates = table.change(added=[new], removed=[gone], deletes=deletes, operation="overwrite")
    table.send(updates)
    assert table.state.version == version + 1
    assert ids(table) == [2, 30]
    assert not table.live(content=1)


def test_a_late_delete_names_a_dead_file(table: OutsideWriter) -> None:
    """A rewritten file has another path; the client has to scan again, not to retry."""
    file = table.append(THREE)
    table.send(table.change(deletes=[table.positions([(file, 0)])], operation="delete"))
    late = table.change(deletes=[table.positions([(file, 1)])], operation="delete")
    refused(table, late, "does not have any more")
    assert ids(table) == [2, 3]


def test_a_table_may_refuse_positions(table: OutsideWriter) -> None:
    file = table.append(THREE)
    table.send([{"action": "set-properties", "updates": {MODE: "refuse"}}])
    delete = table.change(deletes=[table.positions([(file, 0)])], operation="delete")
    refused(table, delete, "refuses position deletes")
    assert MODE not in table.metadata["properties"]
    table.send([{"action": "set-properties", "updates": {MODE: "apply"}}])
    table.send(delete)
    assert ids(table) == [2, 3]


@pytest.mark.parametrize("limits", [{"applied_bytes": 100}, {"deleted_rows": 2}], ids=str)
def test_limits(kept: OutsideWriter, limits: dict[str, int]) -> None:
    strict = OutsideWriter(kept.folder, IcebergCommits(limits=CommitLimits(**limits)))
    (file,) = (one["data_file"] for one in kept.live())
    deletes = [kept.positions([(file, number) for number in range(3)])]
    refused(strict, kept.change(deletes=deletes, operation="delete"), "")
    two = [kept.positions([(file, 0), (file, 1)]), kept.positions([(file, 2)])]
    refused(strict, kept.change(deletes=two, operation="delete"), "")


def test_an_append_only_table_keeps_its_rows(tmp_path: Path) -> None:
    table = OutsideWriter(tmp_path / "t").create(*COLUMNS)
    file = table.append(THREE)
    Table.open(table.folder).set_properties({"delta.appendOnly": "true"})
    delete = table.change(deletes=[table.positions([(file, 0)])], operation="delete")
    refused(table, delete, "append")
    refused(table, table.change(removed=[file], operation="delete"), "append")
    refused(table, table.change(removed=[file], operation="replace"), "replace of 3 rows by 0")


BAD_POSITIONS: dict[str, tuple[Callable[[OutsideWriter, Any], Any], str]] = {
    "negative": (lambda w, f: w.positions([(f, -1)]), "cannot be read"),
    "after the last": (lambda w, f: w.positions([(f, 3)]), "after the last"),
    "far after": (lambda w, f: w.positions([(f, 1 << 62)]), "after the last"),
    "null": (lambda w, f: w.positions([(f, None), (f, 1)]), "nulls"),
    "text": (lambda w, f: w.positions([(f, "1")]), "its columns are"),
    "fraction": (lambda w, f: w.positions([(f, 1.5)]), "its columns are"),
    "no path": (lambda w, _: w.positions([({"file_path": None}, 1)]), "cannot be read"),
    "number as a path": (lambda w, _: w.positions([({"file_path": 5}, 1)]), "its columns are"),
    "bytes as a path": (lambda w, _: w.positions([({"file_path": b"x"}, 1)]), "no text"),
    "outside": (lambda w, _: w.positions([("file:///etc/passwd", 1)]), "not a place"),
    "dead": (lambda w, f: w.positions([(f["file_path"] + "x", 1)]), "does not have any more"),
    "other count": (lambda w, f: w.positions([(f, 1)], record_count=9), "its manifest says 9"),
    "other format": (lambda w, f: w.positions([(f, 1)], file_format="AVRO"), "format AVRO"),
    "vector": (lambda w, f: w.vectors((f, [1]))[0], "format PUFFIN"),
    "by equality": (lambda w, f: {**w.positions([(f, 1)]), "content": 2}, "by equality"),
    "missing": (lambda w, _: w.record("data/none", 9, 1, content=1), "there is no such file"),
    "data file": (lambda w, _: {**w.write([{"id": 1}]), "content": 1}, "cannot be read"),
    "log": (
        lambda w, _: w.record("_delta_log/00000000000000000000.json", 9, 1, content=1),
        "cannot be read",
    ),
}


@pytest.mark.parametrize("name", BAD_POSITIONS)
def test_positions_that_are_none(kept: OutsideWriter, name: str) -> None:
    make, why = BAD_POSITIONS[name]
    (file,) = (one["data_file"] for one in kept.live())
    refused(kept, kept.change(deletes=[make(kept, file)], operation="delete"), why)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-10],
        lambda _: b"",
        lambda _: b"x" * 300,
        lambda data: data[:4] + bytes(one ^ 0xFF for one in data[4:40]) + data[40:],
        lambda data: data[:-60] + bytes(one ^ 0xFF for one in data[-60:-8]) + data[-8:],
    ],
    ids=["cut", "empty", "no Parquet", "pages", "footer"],
)
def test_damaged_delete_files(kept: OutsideWriter, damage: Callable[[bytes], bytes]) -> None:
    (file,) = (one["data_file"] for one in kept.live())
    delete = kept.positions([(file, 1)])
    path = Path(delete["file_path"].removeprefix("file://"))
    path.write_bytes(damage(path.read_bytes()))
    refused(kept, kept.change(deletes=[delete], operation="delete"), "cannot be read")


@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_BYTE_ARRAY"])
def test_a_delete_file_that_unpacks_to_more_than_the_limit(
    kept: OutsideWriter, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    """What reads it allocates what the header of a page says."""
    (file,) = (one["data_file"] for one in kept.live())
    delete = kept.positions([(file, 1)])
    path = Path(delete["file_path"].removeprefix("file://"))
    rows = pa.table({"file_path": ["a" * (4 << 20)], "pos": [1]})
    options: Any = {"use_dictionary": False, "column_encoding": {"file_path": encoding}}
    pq.write_table(rows, path, compression="zstd", write_statistics=False, **options)
    assert path.stat().st_size < 10_000
    limits = CommitLimits(unpacked_bytes=1 << 20)
    monkeypatch.setattr(kept, "commits", IcebergCommits(limits=limits))
    refused(kept, kept.change(deletes=[delete], operation="delete"), "it unpacks to 4,194,")


# Format 3


@pytest.fixture
def third(tmp_path: Path) -> OutsideWriter:
    return OutsideWriter(tmp_path / "v3").create(*COLUMNS, version=3)


@pytest.fixture(scope="module")
def kept3(tmp_path_factory: pytest.TempPathFactory) -> OutsideWriter:
    """A table of format 3 whose requests are all refused; its file has a vector already."""
    writer = OutsideWriter(tmp_path_factory.mktemp("vectors") / "t").create(*COLUMNS, version=3)
    file = writer.append(THREE)
    writer.send(writer.change(deletes=writer.vectors((file, [0])), operation="delete"))
    return writer


def test_vectors_are_copied(third: OutsideWriter) -> None:
    """Several in one Puffin file, for old files and a new one, into a vector file of Delta's."""
    a, b = third.append(THREE), third.append([{"id": 10}, {"id": 11}])
    new = third.write([{"id": 20}, {"id": 21}])
    vectors = third.vectors((a, [0, 2]), (b, [1]), (new, [0]))
    third.send(third.change(added=[new], deletes=vectors, operation="overwrite"))
    assert ids(third) == [2, 10, 21]
    kinds = {add.deletion_vector.storage_type for add in _adds(third) if add.deletion_vector}
    assert kinds == {"u"}
    Path(vectors[0]["file_path"].removeprefix("file://")).unlink()
    assert ids(third) == [2, 10, 21]
    old = [one["data_file"] for one in third.live(content=1) if one["data_file"]]
    mine = [one for one in old if one["referenced_data_file"] == a["file_path"]]
    more = third.vectors((a, [0, 1, 2]))
    third.send(third.change(removed=mine, deletes=more, operation="delete"))
    assert ids(third) == [10, 21]


def _adds(writer: OutsideWriter) -> list[Any]:
    return list(Table.open(writer.folder).snapshot.adds())


def test_a_compaction_takes_the_vectors_along(third: OutsideWriter) -> None:
    file = third.append(THREE)
    third.send(third.change(deletes=third.vectors((file, [0])), operation="delete"))
    (vector,) = (one["data_file"] for one in third.live(content=1))
    back = third.write(THREE)
    refused(
        third,
        third.change(added=[back], removed=[file, vector], operation="replace"),
        "a replace of 2 rows by 3",
    )
    left = third.write(THREE[1:])
    third.send(third.change(added=[left], removed=[file, vector], operation="replace"))
    assert ids(third) == [2, 3]
    assert not third.live(content=1)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "offset below 0": ({"content_offset": -4}, "cannot be read"),
    "offset behind": ({"content_offset": 1 << 30}, "damaged"),
    "no offset": ({"content_offset": None}, "no offset or size"),
    "no size": ({"content_size_in_bytes": None}, "no offset or size"),
    "empty": ({"content_size_in_bytes": 0}, "odd size"),
    "size below 0": ({"content_size_in_bytes": -1}, "odd size"),
    "huge": ({"content_size_in_bytes": 1 << 40}, "odd size"),
    "other size": ({"content_size_in_bytes": 21}, "damaged"),
    "no data file": ({"referenced_data_file": None}, "names no data file"),
    "data file elsewhere": ({"referenced_data_file": "file:///x"}, "not a place"),
    "vector elsewhere": ({"file_path": "file:///etc/passwd"}, "not a place"),
    "by equality": ({"content": 2}, "by equality"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_vectors_that_are_none(kept3: OutsideWriter, name: str) -> None:
    changes, why = REFUSED[name]
    (file,) = (one["data_file"] for one in kept3.live())
    vectors = kept3.vectors((file, [0, 1]), **changes)
    refused(kept3, kept3.change(deletes=vectors, operation="delete"), why)


@pytest.mark.parametrize("rows", [[0, 3], [1], []], ids=["after the last", "other", "none"])
def test_vectors_that_the_file_cannot_have(kept3: OutsideWriter, rows: list[int]) -> None:
    (file,) = (one["data_file"] for one in kept3.live())
    (old,) = (one["data_file"] for one in kept3.live(content=1))
    vectors = kept3.vectors((file, rows))
    refused(kept3, kept3.change(removed=[old], deletes=vectors, operation="delete"), "")
    refused(kept3, kept3.change(deletes=vectors, operation="delete"), "")


def test_rows_do_not_come_back(kept3: OutsideWriter) -> None:
    (old,) = (one["data_file"] for one in kept3.live(content=1))
    refused(kept3, kept3.change(removed=[old], operation="overwrite"), "come back")
    rows = [row for row in kept3.listed() if row["content"] == 0]
    left_out = kept3.to_main(kept3.snapshot(kept3.manifest_list(rows), "overwrite"))
    refused(kept3, left_out, "come back")


def test_position_delete_files_are_of_format_2(kept3: OutsideWriter) -> None:
    (file,) = (one["data_file"] for one in kept3.live())
    deletes = [kept3.positions([(file, 1)])]
    refused(kept3, kept3.change(deletes=deletes, operation="delete"), "format PARQUET")


@pytest.mark.parametrize("at", [0, 3, 4, 7, 8, 12, 16, -1])
def test_a_byte_that_changed(kept3: OutsideWriter, at: int) -> None:
    (file,) = (one["data_file"] for one in kept3.live())
    (vector,) = kept3.vectors((file, [0, 1]))
    path = Path(vector["file_path"].removeprefix("file://"))
    data = bytearray(path.read_bytes())
    start, size = vector["content_offset"], vector["content_size_in_bytes"]
    data[start + at if at >= 0 else start + size + at] ^= 0xFF
    path.write_bytes(data)
    refused(kept3, kept3.change(deletes=[vector], operation="delete"), "damaged")


MAGIC = bytes.fromhex("d1d33964")


@pytest.mark.parametrize(
    "payload",
    [
        b"XXXX" + bytes(30),
        MAGIC + struct.pack("<Q", 1 << 60) + bytes(20),
        MAGIC + struct.pack("<QI", 1, 0) + b"\x3b\x30" + bytes(3),
        MAGIC + struct.pack("<QI", 1, 0) + bytes(range(40)),
    ],
    ids=["magic", "bitmaps", "cut", "no bitmap"],
)
def test_payloads_with_a_right_checksum(kept3: OutsideWriter, payload: bytes) -> None:
    (file,) = (one["data_file"] for one in kept3.live())
    (vector,) = kept3.vectors((file, [0, 1]))
    blob = struct.pack(">I", len(payload)) + payload + struct.pack(">I", zlib.crc32(payload))
    Path(vector["file_path"].removeprefix("file://")).write_bytes(b"PFA1" + blob)
    forged = {**vector, "content_offset": 4, "content_size_in_bytes": len(blob)}
    refused(kept3, kept3.change(deletes=[forged], operation="delete"), "damaged")


# Row ids


def with_row_ids(name: str, kind: str = "int64", number: int = 2147483540) -> pa.Schema:
    fields = [("id", "int64", 1), (name, kind, number)]
    return pa.schema(
        [
            pa.field(
                n,
                pa.type_for_alias(k),
                nullable=n != "id",
                metadata={b"PARQUET:field_id": str(i).encode()},
            )
            for n, k, i in fields
        ]
    )


def test_row_ids_of_a_rewrite_are_kept(third: OutsideWriter) -> None:
    file = third.append(THREE)
    rows = [{**row, "_row_id": 2 - at} for at, row in enumerate(THREE)]
    copy = third.write(rows, schema=with_row_ids("_row_id"))
    third.send(third.change(added=[copy], removed=[file], operation="replace"))
    assert ids(third) == [1, 2, 3]


@pytest.mark.parametrize(
    "schema",
    [
        with_row_ids("_other"),
        with_row_ids("_row_id", number=17),
        with_row_ids("_row_id", "string"),
    ],
    ids=["name", "id", "type"],
)
def test_row_ids_that_would_be_lost(kept3: OutsideWriter, schema: pa.Schema) -> None:
    file = kept3.write([{"id": 9}], schema=schema)
    refused(kept3, kept3.change(added=[file]), "")


def test_a_refused_delete_leaves_no_files(tmp_path: Path) -> None:
    """The server has written its files already when the commit itself is refused."""
    table = OutsideWriter(tmp_path / "t").create(*COLUMNS)
    file = table.append(THREE)
    Table.open(table.folder).set_properties({"delta.appendOnly": "true"})
    delete = table.change(deletes=[table.positions([(file, 0)])], operation="delete")
    before = log_of(table.folder)
    refused(table, delete, "")
    assert log_of(table.folder) == before
