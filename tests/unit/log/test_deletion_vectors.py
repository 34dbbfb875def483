"""Deletion vectors: the vectors of the protocol text, the file layout, every kind of damage."""

from __future__ import annotations

import struct
import uuid
import zlib
from typing import TYPE_CHECKING

import deltalake
import msgspec
import pyarrow as pa
import pytest
from pyroaring import BitMap, BitMap64

from twinlake.actions import DeletionVectorDescriptor
from twinlake.errors import Code, CorruptTable, TwinlakeError, UserError
from twinlake.log.deletion_vectors import (
    decode_payload,
    dv_key,
    dv_location,
    dv_path,
    encode_bitmap,
    inline_descriptor,
    read_dv,
    write_dv_file,
)
from twinlake.log.z85 import decode_z85, encode_z85
from twinlake.storage import Committed, CreateOutcome, ObjectMeta, open_store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

UUID = uuid.UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")
UUID_TEXT = "^-aqEH.-t@S}K{vb[*k^"
SAMPLE = "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
SAMPLE_ROWS = [3, 4, 7, 11, 18, 29]


class Shelf:
    """A store over a dict that remembers which ranges were read."""

    url = "memory:///table"

    def __init__(self, objects: dict[str, bytes]) -> None:
        self.objects = objects
        self.ranges: list[tuple[str, int, int]] = []

    def read(self, key: str) -> bytes:
        return self.objects[key]

    def read_range(self, key: str, start: int, length: int) -> bytes:
        self.ranges.append((key, start, length))
        return self.objects[key][start : start + length]

    def head(self, key: str) -> ObjectMeta | None:
        data = self.objects.get(key)
        return None if data is None else ObjectMeta(key, len(data), 0)

    def list_from(self, folder: str, start_after: str = "") -> Iterator[ObjectMeta]:
        return iter(())

    def create(self, key: str, data: bytes) -> CreateOutcome:
        self.objects[key] = data
        return Committed()

    def put(self, key: str, *pieces: bytes | memoryview) -> None:
        self.objects[key] = b"".join(pieces)

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            self.objects.pop(key, None)


EMPTY = Shelf({})


def portable(*buckets: tuple[int, bytes], count: int | None = None) -> bytes:
    body = b"".join(struct.pack("<I", key) + data for key, data in buckets)
    return struct.pack("<IQ", 1681511377, len(buckets) if count is None else count) + body


def roaring(*values: int) -> bytes:
    data: bytes = BitMap(values).serialize()
    return data


def test_uuid_vector_of_the_protocol() -> None:
    assert decode_z85(UUID_TEXT, 16) == UUID.bytes
    assert encode_z85(UUID.bytes) == UUID_TEXT


@pytest.mark.parametrize(
    ("text", "size", "reason"),
    [
        ("abcd", None, "multiple of five"),
        ("abcde", 8, "take 10 characters"),
        ("ab de", None, "not in the alphabet"),
        ("#####", None, "does not fit"),
        ("é0000", None, "not in the alphabet"),
    ],
)
def test_bad_z85_says_why(text: str, size: int | None, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        decode_z85(text, size)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 16, 17])
def test_z85_pads_and_cuts(size: int) -> None:
    data = bytes(range(200, 200 + size))
    assert decode_z85(encode_z85(data), size) == data


def test_inline_sample_of_the_protocol() -> None:
    descriptor = DeletionVectorDescriptor("i", SAMPLE, 40, 6)
    assert list(read_dv(EMPTY, descriptor)) == SAMPLE_ROWS


@pytest.mark.parametrize("order", ["<", ">"])
def test_native_layout_is_read_in_both_byte_orders(order: str) -> None:
    parts = [roaring(1, 2), roaring(), roaring(5)]
    payload = struct.pack(f"{order}II", 1681511376, len(parts))
    for part in parts:
        payload += struct.pack(f"{order}I", len(part)) + part
    assert list(decode_payload(payload)) == [1, 2, 2 * 2**32 + 5]


def test_portable_bytes_of_the_sample_rows() -> None:
    expected = (
        "d1d339640100000000000000000000003a3000000100000000000500100000000300040007000b0012001d00"
    )
    assert encode_bitmap(SAMPLE_ROWS).hex() == expected


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [0],
        SAMPLE_ROWS,
        list(range(100_000)),
        list(range(0, 200_000, 2)),
        [2**32 - 1, 2**32, 2**40, 2**63 - 1],
        [65536 * i for i in range(10)],
    ],
    ids=["empty", "zero", "sample", "runs", "bitset", "high", "containers"],
)
def test_round_trip_inline_and_stored(rows: list[int]) -> None:
    inline = inline_descriptor(rows)
    assert inline.offset is None
    assert inline.cardinality == len(rows)
    assert list(read_dv(EMPTY, inline)) == rows
    data, (stored,) = write_dv_file([rows], UUID)
    assert stored.offset == 1
    assert list(read_dv(Shelf({dv_key(UUID): data}), stored)) == rows


def test_several_vectors_in_one_file_are_read_by_range() -> None:
    vectors = [BitMap64([1]), BitMap64(range(10_000)), BitMap64([2**33])]
    data, descriptors = write_dv_file(vectors, UUID, prefix="ab")
    shelf = Shelf({"ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin": data})
    assert data[0] == 1
    assert [read_dv(shelf, d) for d in descriptors] == vectors
    last = descriptors[-1]
    assert last.offset is not None
    assert shelf.ranges[-1][1:] == (last.offset, last.size_in_bytes + 8)
    assert struct.unpack_from(">I", data, last.offset) == (last.size_in_bytes,)
    assert struct.unpack(">I", data[-4:]) == (zlib.crc32(data[last.offset + 4 : -4]),)


def test_the_callers_bitmap_is_left_alone() -> None:
    bitmap = BitMap64(range(1000))
    before = bitmap.serialize()
    encode_bitmap(bitmap)
    assert bitmap.serialize() == before


@pytest.mark.parametrize("positions", [[-1], [2**63], [2**64], ["a"]])
def test_positions_outside_the_range_are_refused(positions: list[int]) -> None:
    with pytest.raises(UserError) as caught:
        encode_bitmap(positions)
    assert caught.value.code == Code.INVALID_ARGUMENT


def test_paths() -> None:
    name = f"deletion_vector_{UUID}.bin"
    assert dv_path(DeletionVectorDescriptor("u", UUID_TEXT, 1, 1, 1)) == name
    assert dv_path(DeletionVectorDescriptor("u", "a b" + UUID_TEXT, 1, 1, 1)) == f"a%20b/{name}"
    assert dv_path(DeletionVectorDescriptor("p", "s3://b/x%20y.bin", 1, 1, 1)) == "s3://b/x%20y.bin"
    assert dv_path(DeletionVectorDescriptor("i", "", 0, 0)) is None
    located = dv_location(EMPTY, DeletionVectorDescriptor("u", "a b" + UUID_TEXT, 1, 1, 1))
    assert located == (EMPTY, f"a b/{name}")


@pytest.mark.parametrize("prefix", ["..", "a/../b", "/etc", "a//b", "a\\b", "a\0", ".", "a/"])
def test_a_prefix_cannot_leave_the_table(prefix: str) -> None:
    with pytest.raises(TwinlakeError) as caught:
        dv_path(DeletionVectorDescriptor("u", prefix + UUID_TEXT, 1, 1, 1))
    assert caught.value.code == Code.PATH_UNSAFE


DAMAGED_PAYLOADS = {
    "empty": (b"", "not even a magic"),
    "unknown magic": (struct.pack("<I", 7) + bytes(8), "magic number 7"),
    "no count": (struct.pack("<I", 1681511377) + bytes(3), "bucket count"),
    "claimed buckets": (portable(count=2**60), "cannot fit"),
    "native claimed buckets": (struct.pack("<II", 1681511376, 2**32 - 1), "cannot fit"),
    "keys descend": (portable((1, roaring(1)), (0, roaring(1))), "follows"),
    "keys repeat": (portable((1, roaring(1)), (1, roaring(2))), "follows"),
    "key too high": (portable((2**31, roaring(1))), "beyond 2^63"),
    "trailing bytes": (portable((0, roaring(1))) + b"x", "1 bytes follow"),
    "cut": (portable((0, roaring(1, 2)))[:-1], "ends inside"),
    "cookie": (portable((0, struct.pack("<II", 99, 0))), "cookie 99"),
    "containers": (portable((0, struct.pack("<II", 12346, 2**31))), "2147483648 containers"),
    "array order": (
        portable((0, struct.pack("<IIHHIHH", 12346, 1, 0, 1, 16, 5, 4))),
        "not ascending",
    ),
    "container keys": (
        portable((0, struct.pack("<IIHHHHIIHH", 12346, 2, 1, 0, 1, 0, 24, 26, 5, 4))),
        "container keys",
    ),
    "container offset": (
        portable((0, struct.pack("<IIHHIHH", 12346, 1, 0, 1, 17, 4, 5))),
        "where its offset says",
    ),
    "runs overlap": (
        portable((0, struct.pack("<IBHHHHHHH", 12347, 1, 0, 7, 2, 0, 3, 2, 3))),
        "overlap",
    ),
    "run leaves": (portable((0, struct.pack("<IBHHHHH", 12347, 1, 0, 9, 1, 65530, 9))), "leave"),
    "run cardinality": (
        portable((0, struct.pack("<IBHHHHH", 12347, 1, 0, 5, 1, 0, 3))),
        "holds 4 positions, its header says 6",
    ),
    "bit set cardinality": (
        portable((0, struct.pack("<IIHHI", 12346, 1, 0, 4999, 16) + bytes(8192))),
        "bit set",
    ),
    "native bucket size": (
        struct.pack("<III", 1681511376, 1, 99) + roaring(1),
        "its header says 99",
    ),
}


@pytest.mark.parametrize(
    ("payload", "reason"), DAMAGED_PAYLOADS.values(), ids=list(DAMAGED_PAYLOADS)
)
def test_damaged_payload(payload: bytes, reason: str) -> None:
    with pytest.raises(CorruptTable) as caught:
        decode_payload(payload)
    assert caught.value.code == Code.DV_CORRUPT
    assert reason in caught.value.fields["reason"]


def _flip(data: bytes, index: int) -> bytes:
    return data[:index] + bytes([data[index] ^ 1]) + data[index + 1 :]


FILE, (STORED,) = write_dv_file([SAMPLE_ROWS], UUID)
replace = msgspec.structs.replace
DAMAGED_FILES = {
    "version": (_flip(FILE, 0), STORED, "format version 0"),
    "size": (_flip(FILE, 4), STORED, "its descriptor says 44"),
    "payload": (_flip(FILE, 20), STORED, "checksum"),
    "crc": (_flip(FILE, len(FILE) - 1), STORED, "checksum"),
    "cut": (FILE[:-1], STORED, "ends after 51 of 52"),
    "empty": (b"", STORED, "ends after 0"),
    "cardinality": (FILE, replace(STORED, cardinality=5), "holds 6 positions"),
    "cardinality claim": (FILE, replace(STORED, cardinality=2**60), "holds 6 positions"),
    "cardinality beyond": (FILE, replace(STORED, cardinality=2**63), "63 bits"),
    "descriptor size": (FILE, replace(STORED, size_in_bytes=40), "file says 44"),
    "size claim": (FILE, replace(STORED, size_in_bytes=2**31 - 1), "its file has 53 bytes"),
    "size beyond": (FILE, replace(STORED, size_in_bytes=2**60), "31 bits"),
    "negative size": (FILE, replace(STORED, size_in_bytes=-1), "negative"),
    "negative offset": (FILE, replace(STORED, offset=-5), "negative"),
    "offset zero": (FILE, replace(STORED, offset=0), "version byte"),
    "offset beyond": (FILE, replace(STORED, offset=1000), "ends after 0"),
    "storage type": (FILE, replace(STORED, storage_type="x"), "'x'"),
    "name": (FILE, replace(STORED, path_or_inline_dv="short"), "identifier"),
    "inline size": (FILE, DeletionVectorDescriptor("i", SAMPLE, 36, 6), "Z85"),
    "inline text": (FILE, DeletionVectorDescriptor("i", " " * 50, 40, 6), "Z85"),
}


@pytest.mark.parametrize(
    ("data", "descriptor", "reason"), DAMAGED_FILES.values(), ids=list(DAMAGED_FILES)
)
def test_damaged_file(data: bytes, descriptor: DeletionVectorDescriptor, reason: str) -> None:
    with pytest.raises(CorruptTable) as caught:
        read_dv(Shelf({dv_key(UUID): data}), descriptor)
    assert caught.value.code == Code.DV_CORRUPT
    assert reason in caught.value.fields["reason"]


def test_absent_offset_means_the_first_vector() -> None:
    assert list(read_dv(Shelf({dv_key(UUID): FILE}), replace(STORED, offset=None))) == SAMPLE_ROWS


def test_absolute_path_is_resolved_and_decoded(tmp_path: Path) -> None:
    place = tmp_path / "else where" / "v.bin"
    place.parent.mkdir()
    place.write_bytes(FILE)
    table = tmp_path / "table"
    table.mkdir()
    descriptor = replace(STORED, storage_type="p", path_or_inline_dv=place.as_uri())
    assert "%20" in descriptor.path_or_inline_dv
    assert list(read_dv(open_store(table), descriptor)) == SAMPLE_ROWS


@pytest.mark.parametrize("inline", [True, False], ids=["inline", "stored"])
def test_delta_rs_reads_our_vectors(tmp_path: Path, inline: bool) -> None:
    deltalake.write_deltalake(tmp_path, pa.table({"id": list(range(100))}))
    log = tmp_path / "_delta_log"
    lines = (log / f"{0:020d}.json").read_bytes().splitlines()
    (add,) = (line["add"] for line in map(msgspec.json.decode, lines) if "add" in line)
    rows = [0, 1, 2, 50, *range(60, 80)]
    if inline:
        descriptor = inline_descriptor(rows)
    else:
        # The second of two vectors, so that the offset counts.
        data, (_, descriptor) = write_dv_file([[99], rows], UUID)
        (tmp_path / dv_key(UUID)).write_bytes(data)
    features = ["deletionVectors"]
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": features,
        "writerFeatures": features,
    }
    remove = {"path": add["path"], "dataChange": True, "deletionTimestamp": 1}
    commit = [
        {"protocol": protocol},
        {"remove": remove},
        {"add": {**add, "deletionVector": msgspec.to_builtins(descriptor)}},
    ]
    body = b"\n".join(map(msgspec.json.encode, commit))
    (log / f"{1:020d}.json").write_bytes(body)
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(tmp_path))
    found = query.execute("SELECT id FROM t ORDER BY id").read_all()
    assert pa.table(found)["id"].to_pylist() == sorted(set(range(100)) - set(rows))
