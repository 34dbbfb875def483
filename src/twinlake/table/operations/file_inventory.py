"""What lies in a table's folder, and how it is deleted; file-parallel, by an ``Executor``.

The functions that an executor runs are values, so that they can be sent to other processes: a
store opens itself again there.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from twinlake.commit.plans import RESERVED_FOLDERS
from twinlake.errors import Code, StorageError
from twinlake.runtime import InProcess
from twinlake.storage import ObjectMeta, OnDisk, check_file_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from twinlake.runtime import Executor
    from twinlake.storage import Store

__all__ = ["DeleteFiles", "Inventory", "delete_folders", "list_table"]

_LOG: Final = "_delta_log"
_GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR})
_LAST: Final = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class Inventory:
    """Files, and the folders of stores that have folders."""

    files: Sequence[ObjectMeta] = ()
    folders: Sequence[str] = ()


def list_table(store: Store, executor: Executor) -> Inventory:
    """All that lies in the table's folder but for what never holds data."""
    walk: _WalkFolder | _ListFolder
    if isinstance(store, OnDisk):
        walk = _WalkFolder(os.path.dirname(store.local_path("-")))  # noqa: PTH120
        top = walk.one("")
    elif isinstance(executor, InProcess):
        kept = (m for m in store.list_from("") if m.key.partition("/")[0] not in RESERVED_FOLDERS)
        return Inventory(tuple(kept))
    else:
        walk = _ListFolder(store)
        top = _top_level(store)
    below = [folder for folder in top.folders if folder not in RESERVED_FOLDERS]
    parts = [Inventory(top.files, below), *executor.map(walk, below)]
    return Inventory(
        tuple(meta for part in parts for meta in part.files),
        tuple(folder for part in parts for folder in part.folders),
    )


def _top_level(store: Store) -> Inventory:
    """The files of the root and its folders, at the price of one request a folder."""
    files: list[ObjectMeta] = []
    folders: list[str] = []
    after: str | None = ""
    while after is not None:
        start, after = after, None
        for meta in store.list_from("", start):
            folder, below, _ = meta.key.partition("/")
            if not below:
                files.append(meta)
            elif folder not in folders[-1:]:
                folders.append(folder)
                after = f"{folder}/{_LAST}"
                break
    return Inventory(files, folders)


@dataclass(frozen=True, slots=True)
class _ListFolder:
    store: Store

    def __call__(self, folder: str) -> Inventory:
        return Inventory(tuple(self.store.list_from(folder)))


@dataclass(frozen=True, slots=True)
class _WalkFolder:
    """Lists folders of a disk; a store's own listing tells of no folders."""

    root: str

    def __call__(self, folder: str) -> Inventory:
        """All that is below a folder."""
        files: list[ObjectMeta] = []
        folders: list[str] = []
        waiting = [folder]
        while waiting:
            found = self.one(waiting.pop())
            files += found.files
            folders += found.folders
            waiting += found.folders
        return Inventory(files, folders)

    def one(self, folder: str) -> Inventory:
        """What is directly in a folder; links to folders are not followed."""
        prefix = f"{folder}/" if folder else ""
        files: list[ObjectMeta] = []
        folders: list[str] = []
        try:
            with os.scandir(f"{self.root}/{folder}") as entries:
                for entry in entries:
                    # A name that is not spelt as the log spells it would look like no live file.
                    check_file_name(entry.name)
                    if not entry.is_dir(follow_symlinks=False):
                        files += _measured(entry, prefix + entry.name)
                    elif folder and entry.name == _LOG:
                        # Another table: the mark tells whose it is, the rest is not looked at.
                        return Inventory((ObjectMeta(f"{prefix}{_LOG}/", 0, 0),))
                    else:
                        folders.append(prefix + entry.name)
        except OSError as error:
            if error.errno in _GONE:
                return Inventory()
            raise StorageError(
                Code.STORAGE,
                f"Could not list {folder!r} in {self.root}.",
                why=error.strerror or str(error),
                fix="Give this user access to the folder, then run the operation again.",
                fields={"folder": folder, "root": self.root},
            ) from error
        return Inventory(files, folders)


def _measured(entry: os.DirEntry[str], key: str) -> Iterator[ObjectMeta]:
    try:
        status = entry.stat()
    except OSError as error:
        # Deleted between the listing and now, or a link to nothing.
        if error.errno in _GONE:
            return
        raise
    if not stat.S_ISDIR(status.st_mode):
        yield ObjectMeta(key, status.st_size, status.st_mtime_ns // 1_000_000)


@dataclass(frozen=True, slots=True)
class DeleteFiles:
    """Deletes a batch of files; says how many were there, where that can be seen for free."""

    store: Store

    def __call__(self, keys: Sequence[str]) -> int:
        """Delete them."""
        store = self.store
        if not isinstance(store, OnDisk):
            store.delete(keys)
            return len(keys)
        there = sum(os.path.lexists(store.local_path(key)) for key in keys)
        # Hadoop's own deletion takes the hidden checksum beside a file with it.
        store.delete([*keys, *map(_sidecar, keys)])
        return there


def _sidecar(key: str) -> str:
    folder, slash, name = key.rpartition("/")
    return f"{folder}{slash}.{name}.crc"


def delete_folders(store: Store, folders: Iterable[str]) -> int:
    """Delete those that are empty, in the order given; says how many went."""
    if not isinstance(store, OnDisk):
        return 0
    gone = 0
    for folder in folders:
        try:
            os.rmdir(store.local_path(folder))  # noqa: PTH106
        except OSError:
            # Something is in it, now or again; an empty folder would do no harm either.
            continue
        gone += 1
    return gone
