"""The files of the Iceberg side: where they are, and reading and writing them.

Everything is under ``_iceberg/metadata``. ``v<N>.metadata.json`` is that of Delta version N, and
``version-hint.text`` says which is the newest, so that path readers open ``<table>/_iceberg``.
"""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import msgspec

from twinlake.errors import Code, StorageError
from twinlake.iceberg.derive.iceberg_state import IcebergState
from twinlake.iceberg.format.manifest import DamagedFile, content_name
from twinlake.iceberg.format.manifest_list import read_manifest_list
from twinlake.iceberg.format.table_metadata import decode_metadata, encode_metadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from twinlake.iceberg.format.manifest_list import ManifestFile
    from twinlake.iceberg.format.table_metadata import TableMetadata
    from twinlake.storage import ObjectMeta, Store

__all__ = ["MetadataFiles", "is_metadata_name"]

FOLDER: Final = "_iceberg/metadata"
_HINT: Final = f"{FOLDER}/version-hint.text"
_REBUILD_MARKER: Final = f"{FOLDER}/made-anew.text"
_FAILURE: Final = f"{FOLDER}/last-failure.text"
_DIGITS: Final = re.compile(rb"\d{1,18}")
_NAME: Final = re.compile(rf"{FOLDER}/v(\d+)\.metadata\.json")


class MetadataFiles:
    """The Iceberg files of one table."""

    def __init__(self, store: Store) -> None:
        self.store = store
        # Iceberg's locations are literal text; a store's is a URL.
        self.location = unquote(store.url)
        self.folder = f"{self.location}/{FOLDER}"

    def key_of(self, location: str) -> str:
        """The key of a file below the table, by its location."""
        return location.removeprefix(f"{self.location}/")

    def metadata_location(self, version: int) -> str:
        """Where the metadata of a version is, or would be."""
        return f"{self.folder}/v{version}.metadata.json"

    def newest(self) -> int | None:
        """The newest version that has metadata: by the hint, or where it is lost by looking."""
        hint = self.hint()
        return max(self._versions(), default=None) if hint is None else hint

    def hint(self) -> int | None:
        """The version the pointer names; None where it is lost or damaged."""
        data = self._read(_HINT)
        # Just what we write: readers are strict, and do not even forgive a line break.
        return int(data) if data is not None and _DIGITS.fullmatch(data) else None

    def metadata_stamp(self, version: int) -> ObjectMeta | None:
        """The metadata file of a version as the store lists it."""
        return self.store.head(_metadata_key(version))

    def rebuild_marker(self) -> ObjectMeta | None:
        """What changes whenever somebody rebuilds the metadata."""
        return self.store.head(_REBUILD_MARKER)

    def write_rebuild_marker(self) -> None:
        """Tell others that theirs may name files which are gone."""
        self.store.put(_REBUILD_MARKER, uuid.uuid4().hex.encode())

    def _versions(self) -> Iterator[int]:
        for item in self.store.list_from(FOLDER):
            if (match := _NAME.fullmatch(item.key)) is not None:
                yield int(match[1])

    def load(self, version: int) -> IcebergState | None:
        """The state of a version; None where it is not there, or not whole."""
        data = self._read(_metadata_key(version))
        if data is None:
            return None
        try:
            metadata = decode_metadata(data)
            # A table that was moved, or whose file somebody put here, names files elsewhere.
            if metadata.delta_version != version or metadata.location != self.location:
                return None
            rows = self._rows(metadata)
        except (msgspec.DecodeError, ValueError, LookupError, TypeError, DamagedFile):
            return None
        return None if rows is None else IcebergState(metadata=metadata, rows=rows)

    def _rows(self, metadata: TableMetadata) -> tuple[ManifestFile, ...] | None:
        current = metadata.current
        if current is None:
            return ()
        try:
            return tuple(read_manifest_list(self.read(current.manifest_list)))
        except StorageError as error:
            if error.code is Code.STORAGE_NOT_FOUND:
                return None
            raise

    def read(self, location: str) -> bytes:
        """A manifest or a list, exactly as it was written: its name is a hash of it."""
        data = self.store.read(self.key_of(location))
        if content_name(data) not in location:
            raise DamagedFile(location)
        return data

    def read_metadata(self, location: str) -> TableMetadata | None:
        """An earlier metadata file; None where it is not there, or not whole."""
        data = self._read(self.key_of(location))
        try:
            return None if data is None else decode_metadata(data)
        except msgspec.DecodeError:
            return None

    def read_range(self, location: str, start: int, length: int) -> bytes:
        """A part of a file."""
        return self.store.read_range(self.key_of(location), start, length)

    def write(self, name: str, data: bytes) -> str:
        """Write a manifest, a list or a Puffin file; returns where it is."""
        self.store.put(f"{FOLDER}/{name}", data)
        return f"{self.folder}/{name}"

    def publish(self, metadata: TableMetadata, *, instead_of: int | None = None) -> None:
        """Write a metadata file, and then point to it.

        The pointer goes back only from what it may not stay at: ``instead_of``.
        """
        version = metadata.delta_version
        self.store.put(_metadata_key(version), *encode_metadata(metadata))
        self.point_to(version, instead_of=instead_of)

    def point_to(self, version: int, *, instead_of: int | None = None) -> None:
        """Move the pointer, unless it is further already."""
        hint = self.hint()
        if hint is None or hint < version or (hint == instead_of and hint != version):
            self.store.put(_HINT, str(version).encode())

    def delete_ahead(self, version: int) -> None:
        """Delete metadata files after a version: path readers would go on to them by number."""
        ahead = [number for number in self._versions() if number > version]
        if ahead and self.hint() == version:
            self.store.delete([_metadata_key(number) for number in ahead])

    def listed(self) -> Iterator[ObjectMeta]:
        """All files of the metadata folder."""
        return iter(self.store.list_from(FOLDER))

    def failure(self) -> str:
        """Why the last conversion failed; empty if it did not."""
        data = self._read(_FAILURE)
        return "" if data is None else data.decode(errors="replace")

    def note_failure(self, why: str | None) -> None:
        """Write down why a conversion failed, or (None) that the last one did not."""
        if why is not None:
            self.store.put(_FAILURE, why.encode())
        elif self.store.head(_FAILURE) is not None:
            self.store.delete([_FAILURE])

    def delete(self, locations: Iterable[str]) -> None:
        """Delete files that no snapshot reaches any more."""
        self.store.delete([self.key_of(location) for location in locations])

    def _read(self, key: str) -> bytes | None:
        try:
            return self.store.read(key)
        except StorageError as error:
            if error.code is Code.STORAGE_NOT_FOUND:
                return None
            raise


def is_metadata_name(location: str) -> bool:
    """Whether a metadata file has a name as we give them."""
    return _NAME.fullmatch(f"{FOLDER}/{location.rpartition('/')[2]}") is not None


def _metadata_key(version: int) -> str:
    return f"{FOLDER}/v{version}.metadata.json"
