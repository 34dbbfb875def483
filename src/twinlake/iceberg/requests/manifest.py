"""Manifest lists and manifests that other writers made, decoded.

Iceberg table format, Manifests and Manifest Lists, versions 1 to 3. What is not as the
specification says is a damaged file, with its path in the error; so is one that unpacks to more
than the caller allows, which is found out before it is unpacked.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from twinlake.errors import Code, CorruptTable
from twinlake.iceberg.format.manifest import EntryStatus, ManifestContent
from twinlake.iceberg.requests.avro_safety import check_avro
from twinlake.iceberg.requests.data_file import SourceFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    "EntryStatus",
    "ListedManifest",
    "SourceEntry",
    "check_manifest_bytes",
    "decode_manifest",
    "decode_manifest_list",
]


_DAMAGE: Final = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    EOFError,
    OSError,
    ArithmeticError,
    RecursionError,
    zlib.error,
)
_LONGEST_WHY: Final = 500
"""Errors of the Avro library quote schemas, which may be megabytes."""


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


def decode_manifest_list(
    data: bytes, path: str, *, limit: int | None = None
) -> list[ListedManifest]:
    """The rows of a manifest list; ``path`` names it in errors.

    After ``limit`` rows and one it is not read any further.
    """
    import fastavro

    with _damage(path):
        records: Any = fastavro.reader(io.BytesIO(data))
        return [
            ListedManifest(
                path=_text(one["manifest_path"]),
                length=_whole(one["manifest_length"]),
                spec_id=_whole(one["partition_spec_id"]),
                content=ManifestContent(one.get("content") or 0),
                sequence_number=_whole(one.get("sequence_number") or 0),
            )
            for one in itertools.islice(records, None if limit is None else limit + 1)
        ]


def decode_manifest(
    data: bytes,
    path: str,
    *,
    spec_id: int | None,
    sequence_number: int,
    limit: int | None = None,
) -> list[SourceEntry]:
    """The entries of a manifest; without a spec id it is the one the manifest names.

    After ``limit`` entries and one it is not read any further.
    """
    import fastavro

    with _damage(path):
        reader: Any = fastavro.reader(io.BytesIO(data))
        spec = int(reader.metadata.get("partition-spec-id", "0")) if spec_id is None else spec_id
        return [
            SourceEntry(
                status=EntryStatus(one["status"]),
                snapshot_id=_optional_whole(one.get("snapshot_id")),
                file=_file(one, spec, sequence_number),
            )
            for one in itertools.islice(reader, None if limit is None else limit + 1)
        ]


def check_manifest_bytes(data: bytes, path: str, limit: int) -> None:
    """Refuse an Avro file that is not safe to decode, or unpacks to more than ``limit`` bytes."""
    with _damage(path):
        check_avro(data, limit)


@contextlib.contextmanager
def _damage(path: str) -> Iterator[None]:
    """Whatever the Avro library stumbles over is damage of the file."""
    try:
        yield
    except Exception as error:
        # Errors of its own have no class in common; they are told by where they come from.
        is_of_library = type(error).__module__.partition(".")[0] == "fastavro"
        if not is_of_library and not isinstance(error, _DAMAGE):
            raise
        raise CorruptTable(
            Code.STORAGE,
            f"The manifest {path} cannot be read.",
            why=f"{type(error).__name__}: {str(error)[:_LONGEST_WHY]}",
            fix="Restore it from a backup.",
            fields={"path": path},
        ) from error


def _file(entry: Mapping[str, Any], spec_id: int, inherited: int) -> SourceFile:
    found = entry["data_file"]
    number = _optional_whole(entry.get("sequence_number"))
    referenced = found.get("referenced_data_file")
    return SourceFile(
        path=_text(found["file_path"]),
        content=_whole(found.get("content") or 0),
        format=_text(found["file_format"]).upper(),
        spec_id=spec_id,
        partition=tuple(found["partition"].values()),
        record_count=_whole(found["record_count"]),
        size=_whole(found["file_size_in_bytes"]),
        sequence_number=inherited if number is None else number,
        null_value_counts=_mapping(found.get("null_value_counts"), int),
        nan_value_counts=_mapping(found.get("nan_value_counts"), int),
        lower_bounds=_mapping(found.get("lower_bounds"), bytes),
        upper_bounds=_mapping(found.get("upper_bounds"), bytes),
        is_encrypted=bool(found.get("key_metadata")),
        referenced_data_file=None if referenced is None else _text(referenced),
        content_offset=_optional_whole(found.get("content_offset")),
        content_size=_optional_whole(found.get("content_size_in_bytes")),
    )


# The Avro library decodes by the schema of the file, which may give a field any type.


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is no whole number")
    return value


def _optional_whole(value: Any) -> int | None:
    return None if value is None else _whole(value)


def _mapping(pairs: Any, kind: type) -> dict[int, Any]:
    found = {_whole(pair["key"]): pair["value"] for pair in pairs or ()}
    if any(type(value) is not kind for value in found.values()):
        raise TypeError(f"a value of a column is no {kind.__name__}")
    return found
