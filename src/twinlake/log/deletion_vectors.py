"""Deletion vectors: which rows of a file are gone, as bitmaps of row positions.

Delta protocol, "Deletion Vectors" and "Deletion Vector File Storage Format". Vectors are written
in the portable layout only; the native layout is read because logs in the wild hold it. Nothing a
vector claims about itself (sizes, counts, order) is believed before it is checked against the
bytes that are really there.
"""

from __future__ import annotations

import operator
import struct
import sys
import uuid as uuids
import zlib
from array import array
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from twinlake.actions import DeletionVectorDescriptor
from twinlake.errors import Code, CorruptTable, UserError, how_to_restore
from twinlake.log.z85 import decode_z85, encode_z85

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyroaring import BitMap64

    from twinlake.storage import Store

__all__ = [
    "decode_payload",
    "dv_key",
    "dv_location",
    "dv_path",
    "encode_bitmap",
    "inline_descriptor",
    "read_dv",
    "write_dv_file",
]

PORTABLE_MAGIC: Final = 1681511377
NATIVE_MAGIC: Final = 1681511376
FILE_VERSION: Final = 1
MAX_POSITION: Final = 2**63 - 1

_UUID_CHARACTERS: Final = 20
_FIRST_OFFSET: Final = 1
# A claimed size above this is compared with the object's real size before anything is read.
_TRUSTED_READ: Final = 16 * 1024 * 1024

# The standard 32-bit roaring layout (RoaringFormatSpec).
_COOKIE_PLAIN: Final = 12346
_COOKIE_RUNS: Final = 12347
_OFFSETS_FROM: Final = 4
_ARRAY_LIMIT: Final = 4096
_BITSET_BYTES: Final = 8192


class _Damage(Exception):
    """What is wrong with the bytes; turned into ``CorruptTable`` where the vector is known."""


def encode_bitmap(positions: Iterable[int] | BitMap64) -> bytes:
    """The payload of a vector: magic and portable 64-bit roaring.

    >>> decode_payload(encode_bitmap([3, 4, 7]))
    BitMap64([3, 4, 7])
    """
    return struct.pack("<I", PORTABLE_MAGIC) + _bitmap(positions).serialize()


def decode_payload(payload: bytes) -> BitMap64:
    """The positions of a payload, in the portable or one of the native layouts."""
    try:
        return _decode(payload)
    except _Damage as damage:
        raise _corrupt(str(damage)) from damage


def write_dv_file(
    bitmaps: Sequence[Iterable[int] | BitMap64], uuid: uuids.UUID, *, prefix: str = ""
) -> tuple[bytes, tuple[DeletionVectorDescriptor, ...]]:
    """One file with all the vectors, and a descriptor for each; ``dv_key`` names the file."""
    dv_key(uuid, prefix=prefix)
    name = prefix + encode_z85(uuid.bytes)
    content = bytearray([FILE_VERSION])
    descriptors = []
    for positions in bitmaps:
        bitmap = _bitmap(positions)
        payload = encode_bitmap(bitmap)
        descriptors.append(
            DeletionVectorDescriptor("u", name, len(payload), len(bitmap), len(content))
        )
        content += struct.pack(">I", len(payload))
        content += payload
        content += struct.pack(">I", zlib.crc32(payload))
    return bytes(content), tuple(descriptors)


def inline_descriptor(positions: Iterable[int] | BitMap64) -> DeletionVectorDescriptor:
    """A descriptor that holds the vector itself."""
    bitmap = _bitmap(positions)
    payload = encode_bitmap(bitmap)
    return DeletionVectorDescriptor("i", encode_z85(payload), len(payload), len(bitmap))


def dv_key(uuid: uuids.UUID, *, prefix: str = "") -> str:
    """The key, relative to the table, of the file with that identifier.

    >>> dv_key(uuids.UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61"), prefix="ab")
    'ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin'
    """
    parts = prefix.split("/") if prefix else []
    if any(part in ("", ".", "..") for part in parts) or "\\" in prefix or "\0" in prefix:
        raise CorruptTable(
            Code.PATH_UNSAFE,
            f"The deletion vector prefix {prefix!r} could leave the table's folder.",
            why="A prefix names folders below the table.",
            fix="Restore the commit that holds it from a backup.",
            fields={"prefix": prefix},
        )
    return "/".join([*parts, f"deletion_vector_{uuid}.bin"])


def dv_path(descriptor: DeletionVectorDescriptor) -> str | None:
    """The vector's file as the log would spell a path (URL-encoded), or None for an inline one.

    Relative to the table for ``u``, absolute for ``p``.
    """
    match descriptor.storage_type:
        case "u":
            return quote(_relative_key(descriptor), safe="/-_.~!$&'()*+,;=:@")
        case "p":
            return descriptor.path_or_inline_dv
        case "i":
            return None
        case other:
            raise _corrupt(f"the storage type {other!r} is not one of u, i, p", descriptor)


def dv_location(store: Store, descriptor: DeletionVectorDescriptor) -> tuple[Store, str]:
    """The store and key of the vector's file; ``store`` is the table's."""
    match descriptor.storage_type:
        case "u":
            return store, _relative_key(descriptor)
        case "p":
            from twinlake.storage import resolve

            return resolve(store, descriptor.path_or_inline_dv)
        case other:
            raise _corrupt(f"a vector of storage type {other!r} has no file", descriptor)


def read_dv(store: Store, descriptor: DeletionVectorDescriptor) -> BitMap64:
    """The deleted positions; size, checksum, layout and cardinality are verified.

    Only the bytes of this vector are read, however many its file holds.
    """
    try:
        _check_numbers(descriptor)
        if descriptor.storage_type == "i":
            payload = _inline_payload(descriptor)
        else:
            payload = _stored_payload(*dv_location(store, descriptor), descriptor)
        bitmap = _decode(payload)
        if len(bitmap) != descriptor.cardinality:
            raise _Damage(
                f"it holds {len(bitmap)} positions, its descriptor says {descriptor.cardinality}"
            )
    except _Damage as damage:
        raise _corrupt(str(damage), descriptor) from damage
    return bitmap


def _bitmap(positions: Iterable[int] | BitMap64) -> BitMap64:
    from pyroaring import BitMap64

    try:
        bitmap = BitMap64(positions)
    except (OverflowError, TypeError, ValueError) as error:
        raise _bad_positions(str(error)) from error
    if bitmap and bitmap.max() > MAX_POSITION:
        raise _bad_positions(f"{bitmap.max()} is above the largest position, {MAX_POSITION}")
    bitmap.run_optimize()
    return bitmap


def _bad_positions(reason: str) -> UserError:
    return UserError(
        Code.INVALID_ARGUMENT,
        "Row positions of a deletion vector must be whole numbers from 0 to 2^63 - 1.",
        why=reason,
        fix="Pass positions counted from the start of the data file.",
    )


def _corrupt(reason: str, descriptor: DeletionVectorDescriptor | None = None) -> CorruptTable:
    where = ""
    fields: dict[str, object] = {"reason": reason}
    if descriptor is not None:
        identity = descriptor.unique_id
        shown = identity if len(identity) <= 80 else identity[:80] + "..."
        where = f" {shown}"
        fields["deletion_vector"] = shown
    return CorruptTable(
        Code.DV_CORRUPT,
        f"The deletion vector{where} is damaged.",
        why=reason[:1].upper() + reason[1:] + ".",
        fix=f"Restore its file from a backup, or run {how_to_restore()} with a version before it.",
        fields=fields,
    )


def _check_numbers(descriptor: DeletionVectorDescriptor) -> None:
    if descriptor.storage_type not in ("u", "i", "p"):
        raise _Damage(f"the storage type {descriptor.storage_type!r} is not one of u, i, p")
    for name, value in (
        ("size", descriptor.size_in_bytes),
        ("cardinality", descriptor.cardinality),
        ("offset", descriptor.offset or 0),
    ):
        if value < 0:
            raise _Damage(f"its {name} is negative ({value})")
    if descriptor.size_in_bytes >= 2**31:
        raise _Damage(f"its size of {descriptor.size_in_bytes} bytes does not fit into 31 bits")
    if descriptor.cardinality > MAX_POSITION:
        raise _Damage(f"its cardinality of {descriptor.cardinality} does not fit into 63 bits")


def _relative_key(descriptor: DeletionVectorDescriptor) -> str:
    text = descriptor.path_or_inline_dv
    prefix, encoded = text[:-_UUID_CHARACTERS], text[-_UUID_CHARACTERS:]
    try:
        identifier = uuids.UUID(bytes=decode_z85(encoded, 16))
    except ValueError as error:
        raise _corrupt(f"its name does not end in an identifier: {error}", descriptor) from error
    return dv_key(identifier, prefix=prefix)


def _inline_payload(descriptor: DeletionVectorDescriptor) -> bytes:
    try:
        return decode_z85(descriptor.path_or_inline_dv, descriptor.size_in_bytes)
    except ValueError as error:
        raise _Damage(f"its inline text is not valid Z85: {error}") from error


def _stored_payload(store: Store, key: str, descriptor: DeletionVectorDescriptor) -> bytes:
    offset = _FIRST_OFFSET if descriptor.offset is None else descriptor.offset
    if offset < _FIRST_OFFSET:
        raise _Damage("its offset points at the version byte of the file")
    size = descriptor.size_in_bytes
    if size > _TRUSTED_READ:
        meta = store.head(key)
        if meta is not None and meta.size < offset + size + 8:
            raise _Damage(f"its file has {meta.size} bytes, it should end at {offset + size + 8}")
    # The version byte comes along for free where it is next to the vector.
    lead = 1 if offset == _FIRST_OFFSET else 0
    block = store.read_range(key, offset - lead, lead + 4 + size + 4)
    if lead and block[:1] and block[0] != FILE_VERSION:
        raise _Damage(f"its file has the format version {block[0]}, only {FILE_VERSION} is known")
    block = block[lead:]
    if len(block) < 4 + size + 4:
        raise _Damage(f"its file ends after {len(block)} of {4 + size + 4} bytes")
    (stored_size,) = struct.unpack_from(">I", block)
    if stored_size != size:
        raise _Damage(f"its file says {stored_size} bytes, its descriptor says {size}")
    payload = bytes(block[4 : 4 + size])
    (checksum,) = struct.unpack_from(">I", block, 4 + size)
    actual = zlib.crc32(payload)
    if checksum != actual:
        raise _Damage(f"the checksum is {actual:08x}, its file says {checksum:08x}")
    return payload


def _decode(payload: bytes) -> BitMap64:
    if len(payload) < 4:
        raise _Damage(f"the payload has {len(payload)} bytes, not even a magic number")
    little, big = struct.unpack("<I", payload[:4])[0], struct.unpack(">I", payload[:4])[0]
    if little == PORTABLE_MAGIC:
        return _decode_portable(payload)
    if little == NATIVE_MAGIC:
        return _decode_native(payload, "<")
    # The sample vector in the protocol text has its header the other way round.
    if big == NATIVE_MAGIC:
        return _decode_native(payload, ">")
    raise _Damage(f"the magic number {little} is unknown")


def _decode_portable(payload: bytes) -> BitMap64:
    (count,) = struct.unpack("<Q", _take(payload, 4, 8, "the bucket count"))
    position = 12
    if count > (len(payload) - position) // 12:
        raise _Damage(f"{count} buckets cannot fit into {len(payload)} bytes")
    last = -1
    for _ in range(count):
        (key,) = struct.unpack("<I", _take(payload, position, 4, "a bucket key"))
        if key <= last:
            raise _Damage(f"bucket key {key} follows {last}")
        if key >= 2**31:
            raise _Damage(f"bucket key {key} stands for positions beyond 2^63")
        last = key
        position = _end_of_roaring(payload, position + 4)
    if position != len(payload):
        raise _Damage(f"{len(payload) - position} bytes follow the last bucket")
    return _deserialize(payload[4:])


def _decode_native(payload: bytes, order: str) -> BitMap64:
    """The layout of Delta's memory: count, then size and 32-bit roaring for keys 0, 1, 2..."""
    (count,) = struct.unpack(f"{order}I", _take(payload, 4, 4, "the bucket count"))
    position = 8
    if count > (len(payload) - position) // 12:
        raise _Damage(f"{count} buckets cannot fit into {len(payload)} bytes")
    buckets = []
    for key in range(count):
        (size,) = struct.unpack(f"{order}I", _take(payload, position, 4, "a bucket size"))
        start = position + 4
        position = _end_of_roaring(payload, start)
        if position - start != size:
            raise _Damage(f"bucket {key} has {position - start} bytes, its header says {size}")
        buckets.append(struct.pack("<I", key) + payload[start:position])
    if position != len(payload):
        raise _Damage(f"{len(payload) - position} bytes follow the last bucket")
    portable = struct.pack("<Q", count) + b"".join(buckets)
    return _deserialize(portable)


def _deserialize(portable: bytes) -> BitMap64:
    from pyroaring import BitMap64

    try:
        return BitMap64.deserialize(portable)
    except (ValueError, IndexError, OverflowError, MemoryError) as error:
        raise _Damage(f"the bitmap cannot be read: {error}") from error


def _take(data: bytes, start: int, length: int, what: str) -> bytes:
    piece = data[start : start + length]
    if len(piece) != length:
        raise _Damage(f"the payload ends inside {what}")
    return piece


def _shorts(data: bytes, start: int, count: int, what: str) -> array[int]:
    values = array("H", _take(data, start, 2 * count, what))
    if sys.byteorder == "big":
        values.byteswap()
    return values


def _ascending(values: array[int]) -> bool:
    return all(map(operator.lt, values, values[1:]))


def _end_of_roaring(data: bytes, start: int) -> int:
    """Where the 32-bit roaring bitmap at ``start`` ends; raises unless it is well-formed.

    The library that reads it believes sorted keys and counts; a hostile payload would make its
    answers contradict each other.
    """
    (cookie,) = struct.unpack("<I", _take(data, start, 4, "a bitmap header"))
    position = start + 4
    runs: bytes | None = None
    if cookie & 0xFFFF == _COOKIE_RUNS:
        count = (cookie >> 16) + 1
        runs = _take(data, position, (count + 7) // 8, "the run flags")
        position += len(runs)
    elif cookie == _COOKIE_PLAIN:
        (count,) = struct.unpack("<I", _take(data, position, 4, "a container count"))
        position += 4
        if count > 2**16:
            raise _Damage(f"a bitmap claims {count} containers")
    else:
        raise _Damage(f"the bitmap cookie {cookie} is unknown")
    header = _shorts(data, position, 2 * count, "the container headers")
    position += 4 * count
    keys, sizes = header[0::2], header[1::2]
    if not _ascending(keys):
        raise _Damage("container keys are not ascending")
    offsets: tuple[int, ...] | None = None
    if runs is None or count >= _OFFSETS_FROM:
        table = _take(data, position, 4 * count, "the container offsets")
        offsets = struct.unpack(f"<{count}I", table)
        position += len(table)
    for index in range(count):
        if offsets is not None and offsets[index] != position - start:
            raise _Damage(f"container {index} is not where its offset says")
        if runs is not None and runs[index // 8] >> (index % 8) & 1:
            position = _end_of_runs(data, position, sizes[index] + 1)
        else:
            position = _end_of_values(data, position, sizes[index] + 1)
    return position


def _end_of_runs(data: bytes, position: int, cardinality: int) -> int:
    (count,) = _shorts(data, position, 1, "a run count")
    pairs = _shorts(data, position + 2, 2 * count, "the runs")
    total, last = 0, -1
    for begin, extra in zip(pairs[0::2], pairs[1::2], strict=True):
        if begin <= last or begin + extra > 0xFFFF:
            raise _Damage("the runs of a container overlap or leave it")
        total, last = total + extra + 1, begin + extra
    if total != cardinality:
        raise _Damage(f"a container holds {total} positions, its header says {cardinality}")
    return position + 2 + 4 * count


def _end_of_values(data: bytes, position: int, cardinality: int) -> int:
    if cardinality > _ARRAY_LIMIT:
        bits = _take(data, position, _BITSET_BYTES, "a bit set")
        if int.from_bytes(bits, "little").bit_count() != cardinality:
            raise _Damage(f"a bit set does not hold the {cardinality} positions of its header")
        return position + _BITSET_BYTES
    if not _ascending(_shorts(data, position, cardinality, "an array of positions")):
        raise _Damage("the positions of a container are not ascending")
    return position + 2 * cardinality
