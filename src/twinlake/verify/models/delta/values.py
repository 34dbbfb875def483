"""What a Delta table is made of, as values: files, log entries, transactions, writers."""

from __future__ import annotations

from typing import NamedTuple

# Where a writer is in its program.
READY, READ, WRITE = "READY", "READ", "WRITE"
VERSION_CHECK, COMMIT, FAILED = "VERSION_CHECK", "COMMIT", "FAILED"
ACTIVE = (READ, WRITE, VERSION_CHECK, COMMIT)

INSERT, UPDATE, DELETE = "INSERT", "UPDATE", "DELETE"


class FileId(NamedTuple):
    """A data file's name: a number, and the partition it lies in (``None`` without any)."""

    number: int
    partition: str | None


class DeltaDataFile(NamedTuple):
    """A data file: a set of ``(col1, col2)`` rows, so that duplicates collapse."""

    id: FileId
    rows: frozenset[tuple[str, str]]


class DeltaLogEntry(NamedTuple):
    """One entry of the log."""

    added: frozenset[FileId]
    removed: frozenset[FileId]


class DeltaTransaction(NamedTuple):
    """What a writer wants: by ``col1``, and with a new value of ``col2`` but for a delete."""

    read_version: int
    kind: str
    col1: str
    col2: str | None
    partition: str | None


#: Entry of version v at index v - 1.
Log = tuple[DeltaLogEntry, ...]
#: Every data file ever written, by number of writing.
Files = tuple[DeltaDataFile, ...]
#: By col1 value: the committed transactions with their versions, in the order of the commits.
History = tuple[tuple[str, tuple[tuple[int, DeltaTransaction], ...]], ...]


class DeltaWriter(NamedTuple):
    """A writer: where it is, and what it holds of its transaction."""

    state: str = READY
    #: The log as it was when the transaction started.
    cached: Log = ()
    transaction: DeltaTransaction | None = None
    targets: frozenset[DeltaDataFile] = frozenset()
    commit_version: int = 0
    added: frozenset[FileId] = frozenset()
    removed: frozenset[FileId] = frozenset()


def is_live(file: FileId, log: Log, version: int) -> bool:
    """Whether a file belongs to a version: added, and not removed by a later entry."""
    live = False
    for entry in log[:version]:
        if file in entry.removed:
            live = False
        # An entry that adds and removes one file leaves it live: only a later one takes it away.
        if file in entry.added:
            live = True
    return live
