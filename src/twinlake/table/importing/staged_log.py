"""A log that is made in memory, on top of the files of a real store, and put in place at the end.

Until its first version is there, a log is no table: so that one is written last, and whoever looks
sees no table or the whole of it. What an attempt that was killed left behind is known by its mark.

Marks are numbered and made by conditional create, so each belongs to one import, and the highest
one counts. Who begins takes over from the mark that was there then, by making the next one; whoever
finds a mark or a log that came meanwhile, stops. So does an import that has been taken over.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinlake.errors import Code, StorageError, UserError
from twinlake.log import IMPORT_MARK, LOG_FOLDER, LogFileKind, commit_key, parse_log_file
from twinlake.storage import (
    Committed,
    Conflict,
    MemoryStore,
    OnDisk,
    Reopenable,
    StoreConfig,
    Unknown,
    store_config,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from twinlake.storage import CreateOutcome, ObjectMeta, Store

__all__ = ["Mark", "StagedLog", "is_in_place", "last_mark", "put_in_place", "remove_marks"]


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

    @property
    def config(self) -> StoreConfig:
        """How to open the store below in another process."""
        return store_config(self.base)

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


@dataclass(frozen=True, slots=True)
class Mark:
    """The sign of one import in a log that is not whole yet."""

    number: int = 0
    """From one on; zero is no mark."""
    data: bytes = b""

    @property
    def key(self) -> str:
        """Where it is."""
        return f"{LOG_FOLDER}/_import.{self.number:06d}.mark"

    @property
    def what(self) -> str:
        """What is being imported."""
        return self.data.partition(b"\n")[2].decode()

    def next(self, what: str) -> Mark:
        """A mark that counts instead of this one, and that nobody else can have made."""
        return Mark(self.number + 1, f"{uuid.uuid4()}\n{what}".encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What is in the folder of the log."""

    commits: frozenset[int]
    marks: tuple[int, ...]
    has_more: bool
    """Files of a log that an import never writes: this table is in use."""

    @property
    def is_whole(self) -> bool:
        return 0 in self.commits

    @property
    def newest(self) -> int:
        return self.marks[-1] if self.marks else 0


def _find(store: Store) -> _Found:
    keys = [item.key for item in store.list_from(LOG_FOLDER)]
    files = [file for file in map(parse_log_file, keys) if file is not None]
    commits = frozenset(file.version for file in files if file.kind is LogFileKind.COMMIT)
    marks = sorted(int(match[1]) for match in map(IMPORT_MARK.fullmatch, keys) if match is not None)
    return _Found(commits=commits, marks=tuple(marks), has_more=len(files) > len(commits))


def last_mark(store: Store) -> Mark:
    """The mark that an import which was killed left behind, or that another one has just made."""
    number = _find(store).newest
    return Mark(number, _read(store, Mark(number).key) or b"") if number else Mark()


def is_in_place(store: Store, what: str, mark: Mark) -> bool:
    """Whether an earlier attempt at the same, which was killed then, put its log in place.

    Raises:
        UserError: there is a table already, or a log that no import of ours began.
    """
    found = _find(store)
    if found.is_whole and mark.number and mark.what == what:
        return True
    _refuse_log(store, found, mark)
    return False


def put_in_place(staged: StagedLog, versions: int, what: str, before: Mark) -> None:
    """Write the log to the real store, its first version last; ``what`` is noted meanwhile.

    ``before`` is the last mark that was there when the import began. The mark of this one stays
    until :func:`remove_marks`: what is left to do after the log is finished by the next import.

    Raises:
        UserError: a table, or another import, came meanwhile; nothing of it is touched.
    """
    store = staged.base
    mark, found = _claim(store, what, before)
    for key in sorted(staged.files):
        store.put(key, staged.read(key))
    kept = _sweep(staged, found.commits, versions, mark)
    for version in range(versions - 1, 0, -1):
        if version not in kept:
            _check_owner(store, mark)
            _create(store, commit_key(version), staged.read(commit_key(version)), mark)
    _check_owner(store, mark)
    found = _find(store)
    if found.has_more or found.commits != frozenset(range(1, versions)):
        raise _exists(store)
    _create(store, commit_key(0), staged.read(commit_key(0)), mark)


def remove_marks(store: Store) -> None:
    """The import is over: the table is nobody's but its own from here on."""
    store.delete(Mark(number).key for number in _find(store).marks)


def _claim(store: Store, what: str, before: Mark) -> tuple[Mark, _Found]:
    """Make the mark of this import; returns it, and what an earlier one left behind."""
    # Looked at before as well: a mark of ours has no business beside the log of somebody else.
    _refuse_log(store, _find(store), before)
    if before.number and _read(store, before.key) != before.data:
        raise _overtaken(store)
    mark = before.next(what)
    _create(store, mark.key, mark.data, mark)
    found = _find(store)
    try:
        _refuse_log(store, found, before)
        _check_owner(store, mark)
    except UserError:
        store.delete([mark.key])
        raise
    return mark, found


def _refuse_log(store: Store, found: _Found, before: Mark) -> None:
    """Only the part of a log that stands under a mark we began with may be finished by us."""
    if found.is_whole or found.has_more or (found.commits and not before.number):
        raise _exists(store)


def _sweep(staged: StagedLog, left: frozenset[int], versions: int, mark: Mark) -> frozenset[int]:
    """Remove what an earlier import left behind, but for what is the same; returns that."""
    store = staged.base
    kept = frozenset(
        version
        for version, key in ((version, commit_key(version)) for version in left)
        if version < versions and _read(store, key) == staged.read(key)
    )
    if left - kept:
        _check_owner(store, mark)
        store.delete(commit_key(version) for version in sorted(left - kept))
    return kept


def _check_owner(store: Store, mark: Mark) -> None:
    """Stop if another import has taken over, or has finished and tidied up."""
    following = Mark(mark.number + 1)
    if _read(store, mark.key) != mark.data or store.head(following.key) is not None:
        raise _overtaken(store)


def _create(store: Store, key: str, data: bytes, mark: Mark) -> None:
    """Create an object of this import; where the store does not say that it did, find out."""
    outcome = store.create(key, data)
    if isinstance(outcome, Committed):
        return
    if isinstance(outcome, Conflict):
        # The object, even with the same bytes, may be that of an import which has the mark now.
        _check_owner(store, mark)
    if _read(store, key) == data:
        return
    if isinstance(outcome, Unknown) and outcome.refusal is not None:
        raise outcome.refusal
    raise UserError(
        Code.TABLE_EXISTS,
        f"The import to {store.url} could not be finished.",
        why=f"another process wrote {key}, or the store refused it",
        fix="Look at what is there with `twinlake show PATH`; if there is no table, run "
        "the import again.",
        fields={"url": store.url},
    )


def _read(store: Store, key: str) -> bytes | None:
    try:
        return store.read(key)
    except StorageError as error:
        if error.code is not Code.STORAGE_NOT_FOUND:
            raise
        return None


def _exists(store: Store) -> UserError:
    return UserError(
        Code.TABLE_EXISTS,
        f"There is a Delta log at {store.url} already.",
        why="importing would mix two tables",
        fix="Open the table as it is with `Table.open(PATH)` or `twinlake show PATH`. "
        "Do not delete `_delta_log`: it may be the only record of the table. To "
        "import the Iceberg table anyway, copy it to another folder with an Iceberg "
        "engine and import the copy.",
        delta_class="DELTA_TABLE_ALREADY_EXISTS",
        fields={"url": store.url},
    )


def _overtaken(store: Store) -> UserError:
    return UserError(
        Code.TABLE_EXISTS,
        f"Another import to {store.url} began meanwhile.",
        why="only one of them may write the log; nothing of the other one was changed",
        fix="Wait for it and open the table; if it was killed, run the import again.",
        fields={"url": store.url},
    )
