"""What goes between Iceberg clients, servers and the Delta log, as values."""

from __future__ import annotations

from typing import NamedTuple

from twinlake.verify.models.iceberg.values import NEVER, DataFile, Record, Row, Writer

__all__ = [
    "ANSWER",
    "CHECK_REQUIREMENTS",
    "CREATED",
    "DELTA_PUT",
    "METADATA",
    "NO_REQUEST",
    "OPTIMIZE",
    "PROPERTIES",
    "PUT",
    "RESERVED_IDS",
    "SCHEMA",
    "SETTLE",
    "TELLS_COMMITTED",
    "TELLS_CONFLICT",
    "TELLS_FAILED",
    "TELLS_UNKNOWN",
    "UNSURE",
    "WAITING",
    "Add",
    "Key",
    "Log",
    "LogEntry",
    "Published",
    "Remove",
    "Replies",
    "Request",
    "Requests",
    "Required",
    "Server",
    "Told",
    "Vector",
]

# Where a server, an unsure client and a direct Delta client are in their programs.
WAITING, CHECK_REQUIREMENTS, PUT = "WAITING", "CHECK_REQUIREMENTS", "PUT"
SETTLE, ANSWER = "SETTLE", "ANSWER"
UNSURE = "UNSURE"
DELTA_PUT = "DELTA_PUT"

# What a server answers, and what a client tells its user in the end.
TELLS_COMMITTED, TELLS_CONFLICT = "committed", "conflict"
TELLS_UNKNOWN, TELLS_FAILED = "unknown", "failed"

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


class Add(NamedTuple):
    """A data file with the positions that are deleted in it."""

    file: DataFile
    vector: Vector = frozenset()


class Remove(NamedTuple):
    """A logical file that is gone: the path with the vector it had."""

    path: str
    vector: Vector = frozenset()


class LogEntry(NamedTuple):
    """One entry of the Delta log; what follows ``schema`` only a checker or a server needs."""

    operation: str
    adds: tuple[Add, ...] = ()
    removes: tuple[Remove, ...] = ()
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
Log = tuple[LogEntry, ...]
CREATED = LogEntry("create")


class Request(NamedTuple):
    """What a client sends: requirements and updates, under an idempotency key."""

    key: Key
    required: Required
    client: Writer


NO_REQUEST = Request((0, 0), (0, 0), Writer())


class Server(NamedTuple):
    """A server: where it is with the request it holds, and the entry it made of it."""

    state: str = WAITING
    request: Request = NO_REQUEST
    #: The version it has loaded.
    loaded: int = NEVER
    entry: LogEntry = CREATED
    answer: str = ""
    #: Whether it has loaded the log anew for this request.
    again: bool = False
    #: Mutants only: the version it loaded for the request before, and its own snapshot ids.
    cached: int = NEVER
    numbers: tuple[tuple[int, int], ...] = ()


#: Requests under way, and answers under way, by key.
Requests = tuple[Request, ...]
Replies = frozenset[tuple[Key, str]]
#: By operation: what the user was told.
Told = tuple[tuple[int, str], ...]
#: What servers have shown: version, snapshot id, sequence number.
Published = frozenset[tuple[int, int, int]]
