"""A log that is made in memory, on top of the files of a real store, and put in place at the end.

Until its first version is there, a log is no table: so that one is written last, and whoever looks
sees no table or the whole of it. What an attempt that was killed left behind is known by its mark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.errors import Code, StorageError, UserError
from twinlake.log.names import LOG_FOLDER, commit_key, parse_log_file
from twinlake.storage import Committed, Conflict, MemoryStore, OnDisk, Reopenable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from twinlake.storage import CreateOutcome, ObjectMeta, Store

__all__ = ["StagedLog", "is_in_place", "put_in_place"]

_MARK: Final = f"{LOG_FOLDER}/_import.mark"


class StagedLog:
    """A store whose log and all that is written are in memory; the rest is the store below."""

    def __init__(self, base: Store) -> None:
        self.base = base
        self._log = MemoryStore()
        self.files: set[str] = set()
        """What was written beside the log."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Other processes look at data files only.
        return (StagedLog, (self.base,))

    @property
    def url(self) -> str:
        """The root of the store below."""
        return self.base.url

    def read(self, key: str) -> bytes:
        """The whole object."""
        return self._of(key).read(key)

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """A part of an object."""
        return self._of(key).read_range(key, start, length)

    def head(self, key: str) -> ObjectMeta | None:
        """Size and time of an object."""
        return self._of(key).head(key)

    def list_from(self, folder: str, start_after: str = "") -> Iterator[ObjectMeta]:
        """The objects below a folder."""
        return self._of(folder).list_from(folder, start_after)

    def create(self, key: str, data: bytes) -> CreateOutcome:
        """Create an object."""
        return self._log.create(self._noted(key), data)

    def put(self, key: str, *pieces: bytes | memoryview) -> None:
        """Create or replace an object."""
        self._log.put(self._noted(key), *pieces)

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects."""
        wanted = list(keys)
        self.files.difference_update(wanted)
        self._log.delete(wanted)

    def reopen(self, url: str) -> Store:
        """A store of the same kind at another root."""
        if isinstance(self.base, Reopenable):
            return self.base.reopen(url)
        raise StorageError(Code.STORAGE, f"{url} cannot be opened from {self.url}.")

    def local_path(self, key: str) -> str:
        """Where an object is in the file system."""
        if isinstance(self.base, OnDisk):
            return self.base.local_path(key)
        raise StorageError(Code.STORAGE, f"{self.url} is not in the file system.")

    def _noted(self, key: str) -> str:
        if not _is_log(key):
            self.files.add(key)
        return key

    def _of(self, key: str) -> Store:
        return self._log if _is_log(key) or key in self.files else self.base


def _is_log(key: str) -> bool:
    return key.split("/", 1)[0] == LOG_FOLDER


def is_in_place(store: Store, what: str) -> bool:
    """Whether an earlier attempt at the same, which was killed then, got to its end.

    Raises:
        UserError: there is a table already, or a log that no import of ours began.
    """
    logged, is_ours = _found(store)
    is_whole = commit_key(0) in logged
    if logged and (not is_ours or (is_whole and store.read(_MARK) != what.encode())):
        raise UserError(
            Code.TABLE_EXISTS,
            f"There is a Delta log at {store.url} already.",
            why="importing would mix two tables",
            fix="Open the table as it is, or remove its _delta_log first.",
            delta_class="DELTA_TABLE_ALREADY_EXISTS",
            fields={"url": store.url},
        )
    if is_whole:
        # It was killed between the last step and tidying up.
        store.delete([_MARK])
        return True
    return False


def _found(store: Store) -> tuple[list[str], bool]:
    """The files of a log, and whether an import of ours began it."""
    keys = [item.key for item in store.list_from(LOG_FOLDER)]
    return [key for key in keys if parse_log_file(key) is not None], _MARK in keys


def put_in_place(staged: StagedLog, versions: int, what: str) -> None:
    """Write the log to the real store, its first version last; ``what`` is noted meanwhile."""
    store = staged.base
    store.put(_MARK, what.encode())
    leftover, _ = _found(store)
    store.delete(leftover)
    for key in sorted(staged.files):
        store.put(key, staged.read(key))
    for version in range(versions - 1, 0, -1):
        store.put(commit_key(version), staged.read(commit_key(version)))
    data = staged.read(commit_key(0))
    outcome = store.create(commit_key(0), data)
    if not isinstance(outcome, Committed):
        _settle(store, data, outcome)
    store.delete([_MARK])


def _settle(store: Store, data: bytes, outcome: CreateOutcome) -> None:
    """Find out what became of the first version when the store did not say that it was made."""
    try:
        if store.read(commit_key(0)) == data:
            return
    except StorageError as error:
        if error.code is not Code.STORAGE_NOT_FOUND or isinstance(outcome, Conflict):
            raise
    raise UserError(
        Code.TABLE_EXISTS,
        f"The import to {store.url} could not be finished.",
        why="somebody else made a table there, or the store did not take the first version",
        fix="Look at what is there; if there is no table, run the import again.",
        fields={"url": store.url},
    )
