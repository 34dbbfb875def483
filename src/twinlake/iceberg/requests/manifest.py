"""Manifest lists and manifests that other writers made, decoded.

Iceberg table format, Manifests and Manifest Lists, versions 1 to 3. What is not as the
specification says is a damaged file, with its path in the error; so is one that unpacks to more
than the caller allows, which is found out before it is unpacked.
"""

from __future__ import annotations

import contextlib
import io
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from twinlake.errors import Code, CorruptTable
from twinlake.iceberg.format.manifest import EntryStatus, ManifestContent
from twinlake.iceberg.requests.data_file import SourceFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    "EntryStatus",
    "ListedManifest",
    "SourceEntry",
    "check_unpacked_size",
    "decode_manifest",
    "decode_manifest_list",
]

_MAGIC: Final = b"Obj\x01"
_SYNC_SIZE: Final = 16
#: No number of Avro takes more bytes.
_LONGEST_VARINT: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedManifest:
    """One row of a manifest list."""

    path: str
    length: int
    spec_id: int
    content: ManifestContent
    sequence_number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceEntry:
    """One entry of a manifest."""

    status: EntryStatus
    snapshot_id: int | None
    """None where it is that of the manifest list."""
    file: SourceFile


def decode_manifest_list(data: bytes, path: str) -> list[ListedManifest]:
    """The rows of a manifest list; ``path`` names it in errors."""
    import fastavro

    with _damage(path):
        records: Any = fastavro.reader(io.BytesIO(data))
        return [
            ListedManifest(
                path=str(one["manifest_path"]),
                length=int(one["manifest_length"]),
                spec_id=int(one["partition_spec_id"]),
                content=ManifestContent(one.get("content") or 0),
                sequence_number=one.get("sequence_number") or 0,
            )
            for one in records
        ]


def decode_manifest(
    data: bytes, path: str, *, spec_id: int | None, sequence_number: int
) -> list[SourceEntry]:
    """The entries of a manifest; without a spec id it is the one the manifest names."""
    import fastavro

    with _damage(path):
        reader: Any = fastavro.reader(io.BytesIO(data))
        spec = int(reader.metadata.get("partition-spec-id", "0")) if spec_id is None else spec_id
        return [
            SourceEntry(
                status=EntryStatus(one["status"]),
                snapshot_id=one.get("snapshot_id"),
                file=_file(one, spec, sequence_number),
            )
            for one in reader
        ]


def check_unpacked_size(data: bytes, path: str, limit: int) -> None:
    """Refuse an Avro file whose blocks unpack to more than ``limit`` bytes, without keeping any."""
    with _damage(path):
        left = limit
        for block, is_deflated in _blocks(data):
            size = len(block)
            if is_deflated:
                unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
                size = len(unpacker.decompress(block, left + 1))
            left -= size
            if left < 0:
                raise ValueError(f"it unpacks to more than {limit:,} bytes")


def _blocks(data: bytes) -> Iterator[tuple[bytes, bool]]:
    """The blocks of an Avro object container file as they are stored, and whether by deflate."""
    if not data.startswith(_MAGIC):
        raise ValueError("it is no Avro file")
    metadata, at = _header(data, len(_MAGIC))
    codec = metadata.get(b"avro.codec", b"null")
    if codec not in (b"null", b"deflate"):
        raise ValueError(
            f"its codec is {codec.decode(errors='replace')}; null and deflate are read, "
            "which writers use with write.avro.compression-codec=gzip"
        )
    at += _SYNC_SIZE
    while at < len(data):
        _, at = _varint(data, at)
        size, at = _varint(data, at)
        if size < 0 or at + size + _SYNC_SIZE > len(data):
            raise ValueError("a block ends after the file")
        yield data[at : at + size], codec == b"deflate"
        at += size + _SYNC_SIZE


def _header(data: bytes, at: int) -> tuple[Mapping[bytes, bytes], int]:
    found: dict[bytes, bytes] = {}
    while True:
        count, at = _varint(data, at)
        if count == 0:
            return found, at
        if count < 0:
            # A negative count is followed by the size of the block in bytes.
            count, (_, at) = -count, _varint(data, at)
        for _ in range(count):
            key, at = _bytes(data, at)
            found[key], at = _bytes(data, at)


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _varint(data, at)
    if size < 0 or at + size > len(data):
        raise ValueError("a text ends after the file")
    return data[at : at + size], at + size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    for index in range(at, at + _LONGEST_VARINT):
        byte = data[index]
        number |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return (number >> 1) ^ -(number & 1), index + 1
        shift += 7
    raise ValueError("a number is longer than any")


@contextlib.contextmanager
def _damage(path: str) -> Iterator[None]:
    """Whatever the Avro library stumbles over is damage of the file."""
    try:
        yield
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        EOFError,
        OSError,
        ArithmeticError,
        RecursionError,
        zlib.error,
    ) as error:
        raise CorruptTable(
            Code.STORAGE,
            f"The manifest {path} cannot be read.",
            why=f"{type(error).__name__}: {error}",
            fix="Restore it from a backup.",
            fields={"path": path},
        ) from error


def _file(entry: Mapping[str, Any], spec_id: int, inherited: int) -> SourceFile:
    found = entry["data_file"]
    number = entry.get("sequence_number")
    return SourceFile(
        path=found["file_path"],
        content=found.get("content") or 0,
        format=str(found["file_format"]).upper(),
        spec_id=spec_id,
        partition=tuple(found["partition"].values()),
        record_count=found["record_count"],
        size=found["file_size_in_bytes"],
        sequence_number=inherited if number is None else number,
        null_value_counts=_mapping(found.get("null_value_counts")),
        nan_value_counts=_mapping(found.get("nan_value_counts")),
        lower_bounds=_mapping(found.get("lower_bounds")),
        upper_bounds=_mapping(found.get("upper_bounds")),
        is_encrypted=bool(found.get("key_metadata")),
        referenced_data_file=found.get("referenced_data_file"),
        content_offset=found.get("content_offset"),
        content_size=found.get("content_size_in_bytes"),
    )


def _mapping(pairs: Any) -> dict[int, Any]:
    return {pair["key"]: pair["value"] for pair in pairs or ()}
