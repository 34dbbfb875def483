"""What Iceberg clients do to a table: append, overwrite, delete; and requests sent by others."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from twinlake.commit import AlreadyCommitted
from twinlake.errors import Code, CommitUnknown, StorageError
from twinlake.verify.code.client_data import AnswerKind, SentRequest
from twinlake.verify.code.row_engine import RowEffect
from twinlake.verify.code.server.client_files import SnapshotFiles
from twinlake.verify.code.server.iceberg_client import IcebergClient

if TYPE_CHECKING:
    from twinlake.iceberg.format import ManifestFile
    from twinlake.table.iceberg_commits import TwinState
    from twinlake.verify.code.row_engine import Row, RowEngine, Rows, StatementResult

__all__ = [
    "REQUEST",
    "ClientAppend",
    "ClientDelete",
    "ClientUpdate",
    "DeliverRequest",
    "FindSnapshot",
    "PrepareRequest",
]

REQUEST: Final = "request"
"""The name of the client whose request lies ready before a run begins."""
_READY: Final = "request.json"
_SCANNED: Final = "twinlake.scanned-snapshot-id"


@dataclass(frozen=True, slots=True)
class ClientAppend:
    """Rows in a new file; after a conflict the same file is committed after the new snapshot."""

    rows: tuple[Row, ...]
    attempts: int = 2
    loses_reply: bool = False
    """Whether the first answer gets lost on its way, so that the request is sent again."""
    name: str = "client append"

    def run(self, engine: RowEngine) -> StatementResult:
        """Write the file, then ask until there is an answer that ends it."""
        client = IcebergClient(engine, engine.tag)
        new: ManifestFile | None = None
        wrote = client.snapshot_id
        for attempt in range(1, self.attempts + 1):
            state = client.load()
            files = SnapshotFiles(client, state)
            if new is None or wrote != client.snapshot_id:
                new, wrote = self.write(files), client.snapshot_id
            engine.effect = RowEffect(read_version=state.version, added=self.rows)
            request = self.request(files, attempt, new)
            answer = client.send(request)
            if self.loses_reply and attempt == 1:
                answer = client.send_again(request)
            if answer.kind is AnswerKind.UNKNOWN:
                return client.find_snapshot(request)
            if answer.kind is AnswerKind.COMMITTED:
                return answer.version
            error = answer.error
            if answer.kind is not AnswerKind.CONFLICT:
                break
        raise error or AssertionError(self)

    def write(self, files: SnapshotFiles) -> ManifestFile:
        """The data file, and a manifest of it."""
        return files.write_manifest([files.write_data(self.rows)])

    def request(self, files: SnapshotFiles, attempt: int, new: ManifestFile) -> SentRequest:
        """The request to commit the file after the snapshot that was loaded."""
        location = files.write_list([new, *files.listed()])
        return files.client.snapshot_request(
            files.state, attempt, operation="append", manifest_list=location
        )

    def apply(self, rows: Rows) -> Rows:
        """All that was there, and these."""
        return rows + Counter(self.rows)


@dataclass(frozen=True, slots=True)
class _ClientChange:
    """A change of the rows with one id; after a conflict the user has to run it again."""

    part: str
    id: int

    def _matches(self, row: Row) -> bool:
        return row[:2] == (self.part, self.id)

    def _answered(self, client: IcebergClient, request: SentRequest) -> StatementResult:
        answer = client.send(request)
        if answer.kind is AnswerKind.UNKNOWN:
            return client.find_snapshot(request)
        if answer.error is not None:
            raise answer.error
        return answer.version


@dataclass(frozen=True, slots=True)
class ClientUpdate(_ClientChange):
    """UPDATE by copy-on-write: the file goes, and another comes with the new values."""

    letter: str
    name: str = "client update"

    def run(self, engine: RowEngine) -> StatementResult:
        """Scan, write the file again, commit."""
        client = IcebergClient(engine, engine.tag)
        files = SnapshotFiles(client, client.load())
        hit = [one for one in files.scan() if one.matching(self._matches)]
        old = [row for one in hit for n, row in enumerate(one.rows) if n not in one.hidden]
        gone = [row for row in old if self._matches(row)]
        if not gone:
            return None
        engine.effect = RowEffect(
            read_version=files.state.version,
            removed=tuple(gone),
            added=tuple(self._changed(row) for row in gone),
        )
        written = files.write_data([self._changed(row) for row in old])
        kept = files.kept(frozenset(one.path for one in hit))
        location = files.write_list([files.write_manifest([written]), *kept])
        request = client.snapshot_request(
            files.state, 1, operation="overwrite", manifest_list=location
        )
        return self._answered(client, request)

    def _changed(self, row: Row) -> Row:
        return (row[0], row[1], row[2] + self.letter) if self._matches(row) else row

    def apply(self, rows: Rows) -> Rows:
        """The rows that match get a letter more."""
        after: Rows = Counter()
        for row, count in rows.items():
            after[self._changed(row)] += count
        return after


@dataclass(frozen=True, slots=True)
class ClientDelete(_ClientChange):
    """DELETE by merge-on-read: the file stays, with a deletion vector."""

    also: int | None = None
    """Another id whose row goes, by a second vector of the same file in the same request."""
    refreshes: bool = False
    """Whether the table is loaded again between the scan and the commit."""
    names_scan: bool = True
    """Whether the request says which snapshot was scanned."""
    name: str = "client delete"

    def run(self, engine: RowEngine) -> StatementResult:
        """Scan, write vectors, commit."""
        client = IcebergClient(engine, engine.tag)
        scanned = client.load()
        files = SnapshotFiles(client, scanned)
        wanted = [one for one in (self.id, self.also) if one is not None]
        vectors, gone = {}, list[tuple[str, int, str]]()
        for file in files.scan():
            hits = [file.matching(partial(_is_row, part=self.part, number=n)) for n in wanted]
            if any(hits):
                gone += [file.rows[position] for hit in hits for position in sorted(hit)]
                vectors[file.path] = [file.hidden | hit for hit in hits if hit]
        if not gone:
            return None
        engine.effect = RowEffect(read_version=scanned.version, removed=tuple(gone))
        if self.refreshes:
            files = SnapshotFiles(client, client.load())
        return self._answered(client, self._request(files, vectors, scanned))

    def _request(
        self,
        files: SnapshotFiles,
        vectors: dict[str, list[frozenset[int]]],
        scanned: TwinState,
    ) -> SentRequest:
        new = files.write_manifest(files.write_vectors(vectors))
        kept = files.kept_but_vectors(frozenset(vectors))
        return files.client.snapshot_request(
            files.state,
            1,
            operation="delete",
            manifest_list=files.write_list([new, *kept]),
            summary=self._summary(scanned),
        )

    def _summary(self, scanned: TwinState) -> dict[str, str]:
        number = scanned.table_metadata.current_snapshot_id
        return {_SCANNED: str(number)} if self.names_scan else {}

    def apply(self, rows: Rows) -> Rows:
        """All but the rows that match."""
        ids = {self.id, self.also}
        return Counter(
            {row: n for row, n in rows.items() if not (row[0] == self.part and row[1] in ids)}
        )


def _is_row(row: Row, *, part: str, number: int) -> bool:
    return row[:2] == (part, number)


# A request that lies ready


@dataclass(frozen=True, slots=True)
class PrepareRequest:
    """A client has written its files, and its request is on its way."""

    rows: tuple[Row, ...]
    """What is appended; without any, a column is added."""
    name: str = "prepare request"

    def run(self, engine: RowEngine) -> StatementResult:
        """Load, write, and put the request where those who deliver it find it."""
        client = IcebergClient(engine, REQUEST)
        state = client.load()
        if self.rows:
            append, files = ClientAppend(self.rows), SnapshotFiles(client, state)
            request = append.request(files, 1, append.write(files))
        else:
            request = client.column_request(state, 1, "note")
        engine.store.put(_READY, msgspec.json.encode(request))
        return None

    def apply(self, rows: Rows) -> Rows:
        """The same rows: nothing is committed yet."""
        return rows


@dataclass(frozen=True, slots=True)
class _PreparedCommit:
    rows: tuple[Row, ...] = ()
    """Those that the request appends."""

    def _begin(self, engine: RowEngine) -> tuple[IcebergClient, SentRequest]:
        client = IcebergClient(engine, REQUEST)
        try:
            request = msgspec.json.decode(engine.store.read(_READY), type=SentRequest)
        except StorageError as error:
            # Others may deliver it all the same.
            raise CommitUnknown(
                Code.COMMIT_UNKNOWN, "The request cannot be read.", fix="Read it again."
            ) from error
        engine.effect = RowEffect(read_version=request.base, added=self.rows)
        return client, request

    def apply(self, rows: Rows) -> Rows:
        """All that was there, and these."""
        return rows + Counter(self.rows)


@dataclass(frozen=True, slots=True)
class DeliverRequest(_PreparedCommit):
    """Hand the request to a server, and take its answer."""

    name: str = "deliver request"

    def run(self, engine: RowEngine) -> StatementResult:
        """Send it once."""
        client, request = self._begin(engine)
        answer = client.send(request)
        if answer.kind is AnswerKind.UNKNOWN:
            raise client.not_found(request)
        if answer.error is not None:
            raise answer.error
        if request.snapshot_id is None and answer.version is not None:
            # Nothing in the answer says which version it was, only that it is there.
            return AlreadyCommitted(app_id=request.key, version=1, latest=answer.version)
        return answer.version


@dataclass(frozen=True, slots=True)
class FindSnapshot(_PreparedCommit):
    """Wait for the answer no longer, and look whether the snapshot is in the table."""

    name: str = "find snapshot"

    def run(self, engine: RowEngine) -> StatementResult:
        """Load the table through another server."""
        client, request = self._begin(engine)
        return client.find_snapshot(request)
