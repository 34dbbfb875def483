"""What goes between Iceberg clients, servers and the Delta log, as values."""

from __future__ import annotations

from typing import NamedTuple

from twinlake.verify.models.iceberg.values import NEVER, IcebergDataFile, Record, Row, Writer

# Where a server, an unsure client and a direct Delta client are in their programs.
WAITING, CHECK_REQUIREMENTS, PUT = "WAITING", "CHECK_REQUIREMENTS", "PUT"
SETTLE, ANSWER = "SETTLE", "ANSWER"
UNSURE = "UNSURE"
DELTA_PUT = "DELTA_PUT"

# What a server answers, and what a client tells its user in the end.
REPLY_COMMITTED, REPLY_CONFLICT = "committed", "conflict"
REPLY_UNKNOWN, REPLY_FAILED = "unknown", "failed"

#: What only a direct Delta client does: compact, set a table property, add a column.
OPTIMIZE, PROPERTIES, SCHEMA = "OPTIMIZE", "PROPERTIES", "SCHEMA"
#: The kind of an entry that changes no file: it makes no snapshot.
METADATA = "metadata"

#: Clients choose snapshot ids above this; below it are those that follow from a version.
RESERVED_IDS = 100

Vector = frozenset[int]
#: An attempt of an operation: the operation's number, and the version it was built on.
Key = tuple[int, int]
#: What a request requires: the id of the current snapshot and of the current schema.
Required = tuple[int, int]


class AddedFile(NamedTuple):
    """A data file with the positions that are deleted in it."""

    file: IcebergDataFile
    vector: Vector = frozenset()


class RemovedFile(NamedTuple):
    """A logical file that is gone: the path with the vector it had."""

    path: str
    vector: Vector = frozenset()


class ServerLogEntry(NamedTuple):
    """One entry of the Delta log; what follows ``schema`` only a checker or a server needs."""

    operation: str
    adds: tuple[AddedFile, ...] = ()
    removes: tuple[RemovedFile, ...] = ()
    schema: int = 0
    #: The snapshot id that a client chose; 0 where none is recorded.
    snapshot_id: int = 0
    #: The idempotency key of the request.
    key: Key | None = None
    #: What the request required.
    required: Required | None = None
    recorded: tuple[Record, ...] = ()
    #: The rows that the version has by the client's own metadata; ``None`` for direct commits.
    meant: tuple[Row, ...] | None = None

    @property
    def makes_snapshot(self) -> bool:
        """Whether it changes files."""
        return bool(self.adds or self.removes)


#: Entry of version v at index v; the first one creates the table.
Log = tuple[ServerLogEntry, ...]
CREATED = ServerLogEntry("create")


class CommitRequest(NamedTuple):
    """What a client sends: requirements and updates, under an idempotency key."""

    key: Key
    required: Required
    client: Writer


NO_REQUEST = CommitRequest((0, 0), (0, 0), Writer())


class ServerState(NamedTuple):
    """A server: where it is with the request it holds, and the entry it made of it."""

    state: str = WAITING
    request: CommitRequest = NO_REQUEST
    #: The version it has loaded.
    loaded: int = NEVER
    entry: ServerLogEntry = CREATED
    answer: str = ""
    #: Whether it has loaded the log again for this request.
    again: bool = False
    #: Mutants only: the version it loaded for the request before, and its own snapshot ids.
    cached: int = NEVER
    numbers: tuple[tuple[int, int], ...] = ()


#: Requests under way, and answers under way, by key.
Requests = tuple[CommitRequest, ...]
Replies = frozenset[tuple[Key, str]]
#: By operation: what was reported to the user.
Reports = tuple[tuple[int, str], ...]
#: What servers have shown: version, snapshot id, sequence number.
Published = frozenset[tuple[int, int, int]]
