"""Files on a disk of this machine, or on a network file system with hard links.

A create writes a hidden temporary file beside the target and hard-links it to its final name:
the name appears complete or not at all, and the file system picks the one winner. With
``durable`` (the default) file and folder are synced before success is reported, so that an
acknowledged commit survives a power cut.
"""

from __future__ import annotations

import errno
import os
import re
from typing import TYPE_CHECKING

from twinlake.errors import Code, StorageError, UserError
from twinlake.storage.interface import Committed, Conflict, ObjectMeta, StoreConfig, Unknown
from twinlake.storage.os_errors import os_error
from twinlake.storage.paths import SPELLS_UTF8, check_file_name, check_key, parse_location

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from twinlake.storage.interface import CreateOutcome

__all__ = ["LocalStore"]

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
_READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)
_CHUNK = 1 << 30  # Linux moves at most 2 GiB in one call
_PIECES = 1024  # and so many pieces

# Our own temporary files, and `name#1`, which other clients leave behind when they crash.
_LEFTOVER = re.compile(r"^\..*\.tmp$|#\d+$", re.DOTALL)

_MISSING = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR})


def _check_spelling(key: str) -> str:
    check_file_name(key)
    return check_key(key)


# Nearly every process spells names in UTF-8, and each call of the store checks a key.
_check = check_key if SPELLS_UTF8 else _check_spelling


class LocalStore:
    """A folder of the file system.

    >>> import tempfile
    >>> store = LocalStore(tempfile.mkdtemp(), durable=False)
    >>> store.create("a/b.json", b"{}"), store.create("a/b.json", b"{}")
    (Committed(), Conflict())
    >>> [meta.key for meta in store.list_from("a")]
    ['a/b.json']
    """

    def __init__(self, path: str | os.PathLike[str], *, durable: bool = True) -> None:
        location = parse_location(os.fspath(path))
        if location.scheme != "file":
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"{location.url} is not a folder of the file system.",
                fix="Use `twinlake.storage.open_store(URL)`, which takes URLs of every kind.",
                fields={"url": location.url},
            )
        self.url = location.url
        """The root as a ``file://`` URL."""
        self._root = f"/{location.path}"
        self._base = self._root if self._root == "/" else f"{self._root}/"
        self._durable = durable
        # Folders whose names are known to be on disk, each with all the folders above it.
        self._synced: set[str] = set()

    def __repr__(self) -> str:
        return f"LocalStore({self._root!r}, durable={self._durable})"

    @property
    def path(self) -> str:
        """The root as a path of the file system."""
        return self._root

    @property
    def durable(self) -> bool:
        """Whether writes are synced before they are acknowledged."""
        return self._durable

    @property
    def config(self) -> StoreConfig:
        """How to open this folder in another process."""
        return StoreConfig(url=self.url, durable=self._durable)

    def reopen(self, url: str) -> LocalStore:
        """Another folder with the same settings."""
        return LocalStore(url, durable=self._durable)

    def local_path(self, key: str) -> str:
        """Where the file is on disk, for readers that want to open it themselves."""
        return self._base + _check(key)

    # Reading

    def read(self, key: str) -> bytes:
        """The whole file."""
        path = self._base + _check(key)
        try:
            descriptor = os.open(path, _READ)
            try:
                size = os.fstat(descriptor).st_size
                # One byte more than the size: a short answer then proves the end was reached.
                data = os.read(descriptor, min(size + 1, _CHUNK))
                if len(data) == size:
                    return data
                return data + _drain(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise _failure(error, "read", key, self.url, reading=True) from error

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """At most ``length`` bytes from ``start``."""
        path = self._base + _check(key)
        try:
            descriptor = os.open(path, _READ)
            try:
                part = os.pread(descriptor, min(max(length, 0), _CHUNK), start)
                parts = [part]
                while part and (length := length - len(part)) > 0:
                    start += len(part)
                    part = os.pread(descriptor, min(length, _CHUNK), start)
                    parts.append(part)
                return b"".join(parts)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise _failure(error, "read", key, self.url, reading=True) from error

    def head(self, key: str) -> ObjectMeta | None:
        """Size and time of one file, or None."""
        try:
            status = os.stat(self._base + _check(key))  # noqa: PTH116 - Path costs more than the call
        except OSError as error:
            if error.errno in _MISSING:
                return None
            raise _failure(error, "look at", key, self.url, reading=True) from error
        if status.st_mode & 0o170000 == 0o040000:
            return None
        return _meta(key, status)

    def list_from(self, folder: str, start_after: str = "") -> Iterator[ObjectMeta]:
        """The files below ``folder/`` after ``start_after``, ascending.

        Links to folders are not followed: they may lead round in circles or out of the table.
        """
        folder = folder.strip("/")
        prefix = f"{_check(folder)}/" if folder else ""
        return self._walk(prefix, start_after)

    def _walk(self, prefix: str, start_after: str) -> Iterator[ObjectMeta]:
        found: list[tuple[str, os.DirEntry[str] | None]] = []
        try:
            with os.scandir(self._base + prefix) as entries:
                for entry in entries:
                    check_file_name(entry.name)
                    key = prefix + entry.name
                    if entry.is_dir(follow_symlinks=False):
                        below = f"{key}/"
                        if below > start_after or start_after.startswith(below):
                            # Sorting by "name/" gives the order of full keys: "a.b" < "a/b" < "a0".
                            found.append((below, None))
                    elif key > start_after and not _LEFTOVER.search(entry.name):
                        found.append((key, entry))
        except OSError as error:
            if error.errno in _MISSING:
                return
            raise _failure(error, "list", prefix, self.url, reading=True) from error
        found.sort(key=lambda pair: pair[0])
        for name, file in found:
            if file is None:
                yield from self._walk(name, start_after)
                continue
            try:
                status = file.stat()
            except OSError as error:
                # Deleted between the listing and now, or a link to nothing.
                if error.errno in _MISSING:
                    continue
                raise _failure(error, "look at", name, self.url, reading=True) from error
            if status.st_mode & 0o170000 != 0o040000:
                yield _meta(name, status)

    # Writing

    def create(self, key: str, data: bytes) -> CreateOutcome:
        """Create the file if and only if none is there."""
        path = self._base + _check(key)
        folder = path[: path.rindex("/")]
        linked = False
        try:
            # The common loser is spared writing and syncing a file for nothing.
            if os.path.lexists(path):
                return Conflict()
            temporary = self._write_temporary(folder, data)
            try:
                os.link(temporary, path)
                linked = True
            except FileExistsError:
                return Conflict()
            finally:
                os.unlink(temporary)  # noqa: PTH108
            if self._durable:
                self._sync_names(folder)
        except OSError as error:
            failure = _failure(error, "create", key, self.url)
            if linked:
                # The name is there; whether it outlives a power cut, nobody knows.
                return Unknown(failure.why)
            raise failure from error
        return Committed()

    def put(self, key: str, *pieces: bytes | memoryview) -> None:
        """Create or replace the file, atomically."""
        path = self._base + _check(key)
        folder = path[: path.rindex("/")]
        try:
            temporary = self._write_temporary(folder, *pieces)
            try:
                os.replace(temporary, path)  # noqa: PTH105
            except OSError:
                os.unlink(temporary)  # noqa: PTH108
                raise
            if self._durable:
                self._sync_names(folder)
        except OSError as error:
            raise _failure(error, "write", key, self.url) from error

    def sync(self, key: str) -> None:
        """Bring the file and its name to disk, if this store is durable."""
        if not self._durable:
            return
        path = self._base + _check(key)
        try:
            descriptor = os.open(path, _READ)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            self._sync_names(path[: path.rindex("/")])
        except OSError as error:
            raise _failure(error, "sync", key, self.url) from error

    def delete(self, keys: Iterable[str]) -> None:
        """Delete files; one that is not there counts as deleted."""
        for key in keys:
            try:
                os.unlink(self._base + _check(key))  # noqa: PTH108
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                    raise _failure(error, "delete", key, self.url) from error

    def _write_temporary(self, folder: str, *pieces: bytes | memoryview) -> str:
        temporary = f"{folder}/.{os.urandom(8).hex()}.tmp"
        try:
            descriptor = os.open(temporary, _NEW_FILE, 0o666)
        except FileNotFoundError:
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103
            self._synced.discard(folder)
            descriptor = os.open(temporary, _NEW_FILE, 0o666)
        try:
            try:
                _write_all(descriptor, pieces)
                if self._durable:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except BaseException:
            os.unlink(temporary)  # noqa: PTH108
            raise
        return temporary

    def _sync_names(self, folder: str) -> None:
        """Sync the folder; the first time also the folders above, which may be as new as it is.

        A rival may have made them and not have synced them yet, so "it existed" proves nothing.
        """
        _sync_folder(folder)
        if folder in self._synced:
            return
        climbed = [folder]
        while climbed[-1] != "/":
            above = climbed[-1][: climbed[-1].rindex("/")] or "/"
            if above in self._synced:
                break
            try:
                _sync_folder(above)
            except PermissionError:
                # A folder we may not even open is not one we made names in.
                break
            climbed.append(above)
        self._synced.update(climbed)


def _meta(key: str, status: os.stat_result) -> ObjectMeta:
    changed = status.st_mtime_ns
    return ObjectMeta(key, status.st_size, changed // 1_000_000, f"{status.st_ino:x}-{changed:x}")


def _write_all(descriptor: int, pieces: Iterable[bytes | memoryview]) -> None:
    """Write pieces one after another, many in one call."""
    rest = [memoryview(piece) for piece in pieces]
    while rest:
        written = os.writev(descriptor, rest[:_PIECES])
        whole = 0
        while whole < len(rest) and len(rest[whole]) <= written:
            written -= len(rest[whole])
            whole += 1
        del rest[:whole]
        if written:
            rest[0] = rest[0][written:]


def _drain(descriptor: int) -> bytes:
    """What is left of a file that is larger than one call or that changed size meanwhile."""
    parts: list[bytes] = []
    while part := os.read(descriptor, _CHUNK):
        parts.append(part)
    return b"".join(parts)


def _sync_folder(path: str) -> None:
    descriptor = os.open(path, _READ)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some file systems cannot sync folders and say so; they order names themselves.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def _failure(
    error: OSError, verb: str, key: str, url: str, *, reading: bool = False
) -> StorageError:
    fields = {"key": key, "store": url}
    if reading and error.errno in _MISSING:
        return StorageError(
            Code.STORAGE_NOT_FOUND,
            f"There is no {key!r} in {url}.",
            why="the file does not exist",
            fix="Check the path; a cleanup may have deleted the file.",
            fields={**fields, "errno": errno.errorcode[error.errno]},
        )
    return os_error(error, f"Could not {verb} {key!r} in {url}.", fields)
