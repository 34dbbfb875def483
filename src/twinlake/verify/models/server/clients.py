"""Iceberg clients: the writer of the Iceberg model, whose commits go to a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from twinlake.verify.checker import InitialState, ModelError, Next, Role, action
from twinlake.verify.models.iceberg.model import IcebergV2
from twinlake.verify.models.iceberg.operations import CANONICAL, Started
from twinlake.verify.models.iceberg.values import (
    ABORTED,
    COMMIT,
    COMMITTED,
    IDLE,
    INSERT,
    NEVER,
    READ_DATA_FILES,
    ROW_DELTA,
    WRITE_DATA_FILES,
    WRITE_METADATA_FILES,
    DeleteFile,
    FileNames,
    IcebergDataFile,
    PositionDeleteFile,
    Row,
    Writer,
)
from twinlake.verify.models.server.mutants import (
    CACHED_VIEW,
    FORGETS_KEY,
    LOCAL_IDS,
    NO_KEY,
    REFUSES_AS_CONFLICT,
    RESENDS,
    RETRIES_PUT,
    SERVER_GIVES_UP,
    TWO_VECTORS,
    UNKNOWN_IS_FAILURE,
)
from twinlake.verify.models.server.translation import schema_of, snapshot_id_of, view
from twinlake.verify.models.server.values import (
    CREATED,
    OPTIMIZE,
    PROPERTIES,
    REPLY_COMMITTED,
    REPLY_CONFLICT,
    REPLY_FAILED,
    REPLY_UNKNOWN,
    RESERVED_IDS,
    SCHEMA,
    UNSURE,
    AddedFile,
    CommitRequest,
    Key,
    Log,
    Replies,
    Reports,
    Requests,
    ServerLogEntry,
    ServerState,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

__all__ = ["DELTA_OPERATIONS", "NO_CHECK", "SINCE_BASE", "SINCE_SCAN", "IcebergClients"]

#: Whether a server looks if the files of a commit are still as they were: not at all, since the
#: version that the request was built on, or since the version that the client scanned, which no
#: request of the REST protocol tells.
NO_CHECK, SINCE_BASE, SINCE_SCAN = FILE_CHECKS = ("none", "base", "scan")

DELTA_OPERATIONS = ("INSERT", "UPDATE", "DELETE", OPTIMIZE, PROPERTIES, SCHEMA)
Faulted = tuple[int]


@dataclass(frozen=True, kw_only=True)
class IcebergClients(IcebergV2):
    """Parameters, the initial state, and what the clients do."""

    append_only: ClassVar[tuple[str, ...]] = ("log",)
    only_grows: ClassVar[tuple[str, ...]] = ("started", "faulted", "direct")
    mutants: ClassVar[tuple[str | None, ...]] = (
        None,
        RETRIES_PUT,
        CACHED_VIEW,
        LOCAL_IDS,
        TWO_VECTORS,
        NO_KEY,
        FORGETS_KEY,
        RESENDS,
        UNKNOWN_IS_FAILURE,
        SERVER_GIVES_UP,
        REFUSES_AS_CONFLICT,
    )

    servers: int = 1
    #: How many direct Delta clients there are, how much they do, and of which kinds.
    delta_clients: int = 0
    max_delta_ops: int = 0
    delta_operations: tuple[str, ...] = ("DELETE", PROPERTIES, SCHEMA)
    #: How many times a client may time out, a server crash, or the store's answer get lost.
    faults: int = 0
    #: Ids whose rows one data file holds from the start.
    stored_ids: tuple[str, ...] = ()
    file_check: str = NO_CHECK
    #: Whether a file of which no row is left is removed instead of getting a full vector.
    drop_emptied: bool = False
    identity: str = CANONICAL

    def __post_init__(self) -> None:
        super().__post_init__()
        wrong = [name for name in self.delta_operations if name not in DELTA_OPERATIONS]
        if wrong:
            raise ModelError(f"{wrong[0]!r} is none of {', '.join(DELTA_OPERATIONS)}")
        if self.file_check not in FILE_CHECKS:
            raise ModelError(f"file_check={self.file_check!r} is none of {', '.join(FILE_CHECKS)}")
        if self.servers < 1:
            raise ModelError("servers must be at least 1")
        if self.identity != CANONICAL:
            raise ModelError("commits through a server are modelled in canonical identity only")

    @property
    def roles(self) -> tuple[Role, ...]:
        """Iceberg clients, servers, and clients that write the log directly."""
        return (
            Role(name="Client", count=self.writers),
            Role(name="Server", count=self.servers),
            Role(name="DeltaClient", count=self.delta_clients),
        )

    def interchangeable(self) -> tuple[tuple[Hashable, ...], ...]:
        """None: which rows are stored from the start tells values apart, and rows are sorted."""
        return ()

    def initial(self) -> Iterator[InitialState]:
        """A table that was just created, or one with a file of rows; nothing is under way."""
        shared: dict[str, Hashable] = {
            "log": (CREATED, *self._stored()),
            "started": (0, 0),
            "direct": (0,),
            "inserting": frozenset(),
            "requests": (),
            "replies": frozenset(),
            "reported": (),
            "faulted": (0,),
            "published": frozenset(),
        }
        actors = (Writer(),) * self.writers + (ServerState(),) * self.servers
        yield InitialState(shared, (*actors, *(Writer(),) * self.delta_clients))

    def _stored(self) -> tuple[ServerLogEntry, ...]:
        if not self.stored_ids:
            return ()
        rows: tuple[Row, ...] = tuple(
            (one, self.col2_values[0], self.col3_values[0]) for one in self.stored_ids
        )
        client = Writer(
            sql_op=INSERT,
            update="MERGE_APPEND",
            data_files=(IcebergDataFile("data-0", rows),),
            row_history=tuple((row, 0) for row in rows),
        )
        recorded = self.build(view((CREATED,)), client).recorded
        return (
            ServerLogEntry("append", adds=(AddedFile(client.data_files[0]),), recorded=recorded),
        )

    # --- an operation starts --------------------------------------------------------------------

    @action(at=IDLE, writes=("started", "inserting"))
    def start_insert_operation(  # type: ignore[override]
        self, _client: Writer, log: Log, started: Started, inserting: frozenset[str]
    ) -> Iterator[Next]:
        """Insert a row whose id is neither in the table nor being inserted."""
        found = super().start_insert_operation(_client, view(log), started, inserting)
        yield from _numbered(found, started)

    @action(at=IDLE, writes=("started",))
    def start_delete_operation(  # type: ignore[override]
        self, _client: Writer, log: Log, started: Started
    ) -> Iterator[Next]:
        """Delete by one column, where the history has a row that matches."""
        found = super().start_delete_operation(_client, view(log), started)
        yield from _numbered(found, started)

    @action(at=IDLE, writes=("started",))
    def start_update_operation(  # type: ignore[override]
        self, _client: Writer, log: Log, started: Started
    ) -> Iterator[Next]:
        """Set one column where another (or it itself) has a value, if that changes something."""
        found = super().start_update_operation(_client, view(log), started)
        yield from _numbered(found, started)

    @action(at=IDLE, writes=("started",))
    def start_compaction_operation(  # type: ignore[override]
        self, _client: Writer, log: Log, started: Started
    ) -> Iterator[Next]:
        """Compact the whole table into one file."""
        found = super().start_compaction_operation(_client, view(log), started)
        yield from _numbered(found, started)

    @action(at=READ_DATA_FILES, frozen={"log": "scan_version"})
    def read_data_files(self, client: Writer, log: Log) -> Iterator[Next]:  # type: ignore[override]
        """Scan the scan version, as a server shows it, and work out what to write."""
        yield from super().read_data_files(client, view(log))

    @action(at=WRITE_DATA_FILES)
    def write_data_files(self, client: Writer, names: FileNames | None = None) -> Iterator[Next]:
        """Write the data files, and a delete file for each row that is to go."""
        for written in super().write_data_files(client, names):
            yield written._replace(actor=_named(written.actor))

    def delete_files(self, writer: Writer) -> tuple[DeleteFile, ...]:
        """One for each deleted row, as if each had been found by another task."""
        if writer.update != ROW_DELTA:
            return ()
        return tuple(PositionDeleteFile("", (position,)) for position in writer.deletes)

    # --- it sends its commit --------------------------------------------------------------------

    @action(at=WRITE_METADATA_FILES, writes=("requests",), name="SendCommit")
    def write_metadata_files(  # type: ignore[override]
        self, client: Writer, log: Log, requests: Requests
    ) -> Iterator[Next]:
        """Refresh, validate, and send requirements and updates under a new key."""
        checks = self._validate(view(log), client)
        if not all(check.passed for check in checks):
            return
        base = len(log) - 1
        ready = client._replace(state=COMMIT, base=base)
        sent = _with(requests, self._request(ready, log))
        yield Next(ready, {"requests": sent}, {"base version": base}, checks)

    def _request(self, client: Writer, log: Log) -> CommitRequest:
        required = (snapshot_id_of(log, client.base), schema_of(log[: client.base + 1]))
        return CommitRequest((client.token, client.base), required, client)

    def retry(self, writer: Writer) -> Writer:
        """Refused: refresh, validate and send again; files and snapshot id stay what they are."""
        return writer._replace(state=WRITE_METADATA_FILES, base=NEVER)

    @action(at=WRITE_METADATA_FILES, writes=("reported",), name="WriteMetadataFiles (abort)")
    def abort(self, client: Writer, log: Log, reported: Reports) -> Iterator[Next]:  # type: ignore[override]
        """Give the operation up because a validation fails: it was never sent, or was refused."""
        checks = self._validate(view(log), client)
        if not all(check.passed for check in checks):
            done = {"reported": _with_report(reported, client.token, REPLY_FAILED)}
            yield Next(Writer(state=ABORTED), done, checks=checks)

    @action(at=COMMIT, writes=("replies", "reported", "inserting"), name="ReceiveReply")
    def commit(  # type: ignore[override]
        self, client: Writer, replies: Replies, reported: Reports, inserting: frozenset[str]
    ) -> Iterator[Next]:
        """Take an answer to the request, whichever of its copies it is for."""
        for reply in sorted(replies):
            key, answer = reply
            if key != key_of(client):
                continue
            shared: dict[str, Hashable] = {"replies": replies - {reply}}
            if answer == REPLY_COMMITTED:
                shared |= _done(client, reported, inserting)
                yield Next(Writer(state=COMMITTED), shared, {"answer": answer})
            elif answer == REPLY_CONFLICT:
                yield Next(self.retry(client), shared, {"answer": answer})
            elif answer == REPLY_FAILED:
                shared["reported"] = _with_report(reported, client.token, REPLY_FAILED)
                yield Next(Writer(state=ABORTED), shared, {"answer": answer})
            else:
                yield Next(client._replace(state=UNSURE), shared, {"answer": answer})

    @action(at=COMMIT, writes=("faulted",), fair=False)
    def time_out(self, client: Writer, faulted: Faulted) -> Iterator[Next]:
        """Wait no longer: the request or its answer may be lost, or just late."""
        if faulted[0] < self.faults:
            unsure = self.retry(client) if self.mutant == RESENDS else client._replace(state=UNSURE)
            yield Next(unsure, {"faulted": (faulted[0] + 1,)})

    @action(at=UNSURE, writes=("requests",))
    def send_again(self, client: Writer, log: Log, requests: Requests) -> Iterator[Next]:
        """Send the same request under the same key."""
        again = client._replace(state=COMMIT)
        yield Next(again, {"requests": _with(requests, self._request(again, log))})

    @action(at=UNSURE, writes=("reported", "inserting"))
    def look_for_snapshot(
        self, client: Writer, log: Log, reported: Reports, inserting: frozenset[str]
    ) -> Iterator[Next]:
        """Look whether the snapshot is there; if it is not, it may still come."""
        mine = RESERVED_IDS + client.token
        if any(version.snapshot_id == mine for version in view(log)):
            done = _done(client, reported, inserting)
            yield Next(Writer(state=COMMITTED), done, {"found": True})
            return
        answer = REPLY_FAILED if self.mutant == UNKNOWN_IS_FAILURE else REPLY_UNKNOWN
        # The row may still come, so its id stays taken.
        unknown = {"reported": _with_report(reported, client.token, answer)}
        yield Next(Writer(state=ABORTED), unknown, {"found": False, "tells": answer})


def key_of(client: Writer) -> Key:
    """The idempotency key of a client's attempt."""
    return (client.token, client.base)


def _numbered(found: Iterator[Next], started: Started) -> Iterator[Next]:
    """Operations get a number each, of which the key and the snapshot id are made."""
    for one in found:
        yield one._replace(actor=one.actor._replace(token=sum(started) + 1))


def _named(client: Writer) -> Writer:
    """A client names its files itself; nobody else uses these names."""
    own = client.token
    return client._replace(
        data_files=tuple(
            file._replace(path=f"data-{own}" + (f".{index}" if index else ""))
            for index, file in enumerate(client.data_files)
        ),
        delete_files=tuple(
            file._replace(path=f"delete-{own}.{index}")
            for index, file in enumerate(client.delete_files)
        ),
        metadata_files=("data-manifest", "delete-manifest", "manifest-list", "metadata"),
        snapshot_id=RESERVED_IDS + own,
    )


def _with(requests: Requests, one: CommitRequest) -> Requests:
    return tuple(sorted((*requests, one), key=lambda request: request.key))


def _done(client: Writer, reported: Reports, inserting: frozenset[str]) -> dict[str, Hashable]:
    shared: dict[str, Hashable] = {
        "reported": _with_report(reported, client.token, REPLY_COMMITTED)
    }
    if client.sql_op == INSERT:
        shared["inserting"] = inserting - {client.row_history[0][0][0]}
    return shared


def _with_report(reported: Reports, token: int, answer: str) -> Reports:
    return tuple(sorted((*reported, (token, answer))))
