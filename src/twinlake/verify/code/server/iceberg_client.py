"""An Iceberg client: it reads and writes files of the table, and asks a server to commit them.

The files are written as an outsider would: named by itself, with sequence numbers left open, and
nothing known of the log. The server is the shipped commit path with snapshots of its own, as it
would have them in a process of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import msgspec

from twinlake.errors import Code, CommitUnknown, ConflictError, StorageError, TwinlakeError
from twinlake.log import SnapshotCache
from twinlake.table.iceberg_commits import IcebergCommits
from twinlake.verify.code.client_data import KEY_MARK, AnswerKind, SentRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from twinlake.iceberg.format import SnapshotEntry, TableMetadata
    from twinlake.storage import Store
    from twinlake.table.iceberg_commits import TwinState
    from twinlake.verify.code.row_engine import RowEngine

__all__ = ["CommitAnswer", "IcebergClient"]

#: Ids that the server computes have a bit above these.
_ID_BITS: Final = 62


@dataclass(frozen=True, slots=True)
class CommitAnswer:
    """What a client gets for a commit request."""

    kind: AnswerKind
    version: int | None = None
    """Of the snapshot that was asked for; of the table, where that was none."""
    error: TwinlakeError | None = None


@dataclass(slots=True)
class IcebergClient:
    """One commit of one client, however often it is sent."""

    engine: RowEngine
    name: str
    server: IcebergCommits = field(init=False)
    snapshot_id: int = field(init=False)

    def __post_init__(self) -> None:
        self.server = self.another_server()
        self.draw_snapshot_id()

    @property
    def store(self) -> Store:
        """Where the table is."""
        return self.engine.store

    @property
    def location(self) -> str:
        """The location of the table, as Iceberg spells it."""
        return unquote(self.store.url)

    def another_server(self) -> IcebergCommits:
        """A server that knows nothing of what others have loaded."""
        return IcebergCommits(runtime=self.engine.runtime, cache=SnapshotCache())

    def draw_snapshot_id(self) -> None:
        """A new id for the snapshot of this commit."""
        self.snapshot_id = self.engine.runtime.ids.uuid().int % (1 << _ID_BITS - 1) + 1

    def load(self) -> TwinState:
        """The table, as the server shows it."""
        state = self.server.load(self.store)
        self._note(state)
        return state

    def _note(self, state: TwinState) -> None:
        shown = ((one.sequence_number, one.snapshot_id) for one in state.table_metadata.snapshots())
        self.engine.exchange.shown.update(shown)

    # Commit requests

    def snapshot_request(
        self,
        state: TwinState,
        attempt: int,
        *,
        operation: str,
        manifest_list: str,
        summary: Mapping[str, str] | None = None,
    ) -> SentRequest:
        """The request that adds a snapshot after that of a state."""
        table = state.table_metadata
        snapshot = {
            "snapshot-id": self.snapshot_id,
            "parent-snapshot-id": table.current_snapshot_id,
            "sequence-number": table.last_sequence_number + 1,
            "timestamp-ms": self.engine.runtime.clock.now_ms(),
            "manifest-list": manifest_list,
            "summary": {"operation": operation, **(summary or {})},
            "schema-id": table.current_schema_id,
        }
        reference = {"ref-name": "main", "type": "branch", "snapshot-id": self.snapshot_id}
        updates = (
            {"action": "add-snapshot", "snapshot": snapshot},
            {"action": "set-snapshot-ref", **reference},
        )
        return self._request(state, attempt, updates, self.snapshot_id)

    def column_request(self, state: TwinState, attempt: int, name: str) -> SentRequest:
        """The request that adds a column; no snapshot comes of it."""
        table = state.table_metadata
        number = table.last_column_id + 1
        current = next(s for s in table.schemas if s["schema-id"] == table.current_schema_id)
        column = {"id": number, "name": name, "required": False, "type": "string"}
        schema = {**current, "schema-id": 0, "fields": [*current["fields"], column]}
        updates = (
            {"action": "add-schema", "schema": schema, "last-column-id": number},
            {"action": "set-current-schema", "schema-id": -1},
        )
        return self._request(state, attempt, updates, None)

    def _request(
        self,
        state: TwinState,
        attempt: int,
        updates: Sequence[Mapping[str, Any]],
        snapshot_id: int | None,
    ) -> SentRequest:
        table = state.table_metadata
        document = {"requirements": list(_requirements(table)), "updates": updates}
        return SentRequest(
            key=f"{self.name}{KEY_MARK}{attempt}",
            body=msgspec.json.encode(document),
            base=state.version,
            snapshot_id=snapshot_id,
            requires=table.current_snapshot_id,
        )

    def send(self, request: SentRequest) -> CommitAnswer:
        """Send a request; errors mean what the REST catalog makes of them."""
        answers = self.engine.exchange.answers
        at = len(answers)
        answers.append((request, AnswerKind.NONE))
        answer = self._sent(request)
        answers[at] = (request, answer.kind)
        return answer

    def _sent(self, request: SentRequest) -> CommitAnswer:
        try:
            state = self.server.commit(self.store, request.body, request.key)
        except ConflictError as error:
            return CommitAnswer(AnswerKind.CONFLICT, error=error)
        except (CommitUnknown, StorageError) as error:
            return CommitAnswer(AnswerKind.UNKNOWN, error=error)
        except TwinlakeError as error:
            return CommitAnswer(AnswerKind.REFUSED, error=error)
        self._note(state)
        # Whether it is shown under its id is a property of its own.
        version = _version(state, request.snapshot_id)
        shown = state.version if version is None else version
        return CommitAnswer(AnswerKind.COMMITTED, shown)

    def send_again(self, request: SentRequest) -> CommitAnswer:
        """The answer was lost: send the very same request, and meet another server."""
        self.server = self.another_server()
        return self.send(request)

    def find_snapshot(self, request: SentRequest) -> int:
        """The version of the snapshot that was asked for, as no answer came.

        Raises:
            CommitUnknown: it is not there, so far.
        """
        try:
            version = _version(self.load(), request.snapshot_id)
        except TwinlakeError as error:
            raise self.not_found(request) from error
        if version is None:
            raise self.not_found(request)
        return version

    def not_found(self, request: SentRequest) -> TwinlakeError:
        """What a client says that does not find its snapshot: the request may still arrive."""
        return CommitUnknown(
            Code.COMMIT_UNKNOWN,
            f"The snapshot {request.snapshot_id} is not in the table yet.",
            fix="Look again later.",
        )


def _version(state: TwinState, snapshot_id: int | None) -> int | None:
    snapshots: Iterable[SnapshotEntry] = state.table_metadata.snapshots()
    return next((one.sequence_number for one in snapshots if one.snapshot_id == snapshot_id), None)


def _requirements(table: TableMetadata) -> Iterable[dict[str, Any]]:
    yield {"type": "assert-table-uuid", "uuid": table.table_uuid}
    main = table.current_snapshot_id
    yield {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": main}
    yield {"type": "assert-current-schema-id", "current-schema-id": table.current_schema_id}
