"""Files that an Iceberg client wrote for a commit, read within the limits of the server.

Nothing is read that does not lie below the table, whatever the request calls it.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from twinlake.errors import Code, CorruptTable, StorageError, UserError
from twinlake.iceberg.importing import key_or_url, plain_location
from twinlake.iceberg.requests import check_manifest_bytes, decode_manifest, decode_manifest_list
from twinlake.log import LOG_FOLDER
from twinlake.runtime import InProcess
from twinlake.storage import OnDisk, decode_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from twinlake.iceberg.requests import ListedManifest, SourceEntry
    from twinlake.runtime import Executor
    from twinlake.storage import Store

__all__ = ["ClientFiles", "CommitLimits"]

_OWN_FOLDERS: Final = ("_delta_log/", "_iceberg/", "_change_data/")
_METADATA_FOLDER: Final = "_iceberg/metadata/"
#: Of most file systems, and of the keys of object stores.
_LONGEST_NAME: Final = 255
_LONGEST_PATH: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitLimits:
    """How much of a client's files one commit may make us read."""

    manifests: int = 10_000
    entries: int = 1_000_000
    unpacked_bytes: int = 1 << 28
    """Of one manifest list or manifest."""
    deleted_rows: int = 20_000_000
    """Positions in the delete files of one commit."""
    applied_bytes: int = 1 << 30
    """Of data files that are rewritten because rows of them were deleted by position."""


@dataclass(frozen=True, slots=True)
class ClientFiles:
    """The files of a table as clients name them: literal locations."""

    store: Store
    location: str
    limits: CommitLimits
    readers: Executor = field(default_factory=InProcess)
    """What reads several files of a service at once."""

    def manifest_list(self, location: str) -> list[ListedManifest]:
        """The rows of a manifest list."""
        data = self._read_avro(location)
        with _client_damage(location):
            rows = decode_manifest_list(data, location, limit=self.limits.manifests)
        self._within(len(rows), self.limits.manifests, "manifests")
        twice = sorted(path for path, n in Counter(row.path for row in rows).items() if n > 1)
        if twice:
            raise _refused(location, f"it lists {twice[0]} twice")
        return rows

    def entries(self, rows: Iterable[ListedManifest]) -> dict[str, list[SourceEntry]]:
        """The entries of manifests, by the location of the manifest."""
        found: dict[str, list[SourceEntry]] = {}
        total = 0
        listed = list(rows)
        # A disk answers at once; a service takes its time for every request.
        readers: Executor = InProcess() if isinstance(self.store, OnDisk) else self.readers
        contents = readers.map(self._read_avro, [row.path for row in listed])
        for row, data in zip(listed, contents, strict=True):
            with _client_damage(row.path):
                entries = decode_manifest(
                    data,
                    row.path,
                    spec_id=row.spec_id,
                    sequence_number=row.sequence_number,
                    limit=self.limits.entries - total,
                )
            total += len(entries)
            self._within(total, self.limits.entries, "entries of manifests")
            found[row.path] = entries
        return found

    def data_key(self, location: str) -> str:
        """The path of a data file as the log spells it; refused where none may be."""
        path = self._path(location)
        key = decode_path(path)
        if key.startswith(_OWN_FOLDERS):
            raise _outside(location, "the table keeps its own files there")
        return path

    def metadata_key(self, location: str) -> str:
        """The key of a file of Iceberg metadata; refused where none may be."""
        key = decode_path(self._path(location))
        if not key.startswith(_METADATA_FOLDER):
            raise _outside(location, f"metadata of the table lies below {_METADATA_FOLDER}")
        return key

    def read(self, location: str) -> bytes:
        """A delete file or another file below the table."""
        return self._load(decode_path(self._path(location)), location)

    def read_range(self, location: str, start: int, length: int) -> bytes:
        """A part of a file."""
        key = decode_path(self._path(location))
        if start < 0 or length < 0:
            raise _refused(location, f"it has no {length:,} bytes from {start:,} on")
        try:
            return self.store.read_range(key, start, length)
        except StorageError as error:
            # Stores differ in what they say of a range behind the end.
            found = self.store.head(key)
            if found is not None and start + length > found.size:
                raise _refused(location, f"it has {found.size:,} bytes") from error
            raise _unreadable(location, error) from error

    def _read_avro(self, location: str) -> bytes:
        key = self.metadata_key(location)
        data = self._load(key, location)
        with _client_damage(location):
            check_manifest_bytes(data, location, self.limits.unpacked_bytes)
        return data

    def _load(self, key: str, location: str) -> bytes:
        try:
            found = self.store.head(key)
            if found is not None and found.size > self.limits.unpacked_bytes:
                raise _refused(location, f"it has {found.size:,} bytes")
            return self.store.read(key)
        except StorageError as error:
            raise _unreadable(location, error) from error

    def _path(self, location: str) -> str:
        """The path of a file below the table; symbolic links do not lead out of it."""
        path, is_below = key_or_url(plain_location(self.location), location)
        parts = decode_path(path).split("/")
        if not is_below or any(part in ("", ".", "..") for part in parts):
            raise _outside(location, f"the table is at {self.location}")
        if any(len(part.encode()) > _LONGEST_NAME for part in parts) or len(path) > _LONGEST_PATH:
            raise _outside(location, "its name is too long for a file system or a store")
        if isinstance(self.store, OnDisk):
            root = Path(self.store.local_path(LOG_FOLDER)).parent.resolve()
            try:
                real = Path(self.store.local_path("/".join(parts))).resolve()
            except (OSError, RuntimeError) as error:
                raise _outside(location, "a symbolic link leads nowhere") from error
            if not real.is_relative_to(root):
                raise _outside(location, "a symbolic link leads out of the table")
        return path

    @staticmethod
    def _within(count: int, limit: int, what: str) -> None:
        if count > limit:
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"The commit has too many {what}.",
                why=f"it has {count:,}, and the server reads {limit:,} at most",
                fix="Commit fewer files at once.",
            )


@contextlib.contextmanager
def _client_damage(location: str) -> Iterator[None]:
    """What is wrong with a file that a client brought is wrong with its request."""
    try:
        yield
    except CorruptTable as error:
        raise _refused(location, error.why) from error


def _outside(location: str, why: str) -> UserError:
    return UserError(
        Code.PATH_UNSAFE,
        f"The request names {location}, which is not a place for files of this table.",
        why=why,
        fix="Write files below the location of the table, where its metadata says.",
        fields={"location": location},
    )


def _refused(location: str, why: str) -> UserError:
    return UserError(
        Code.INVALID_ARGUMENT,
        f"The file {location} of the request cannot be read.",
        why=why,
        fix="Write the file again, then send the commit again.",
        fields={"location": location},
    )


def _unreadable(location: str, error: StorageError) -> StorageError | UserError:
    if error.code is Code.STORAGE_NOT_FOUND:
        return _refused(location, "there is no such file")
    return error
