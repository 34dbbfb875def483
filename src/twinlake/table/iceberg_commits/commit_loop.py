"""Committing an Iceberg request to the Delta log.

The log is the only truth: a request is checked against the newest version, translated, and tried as
the next one. If another writer takes that version, everything begins anew, because the requirements
may not hold any more, and because the request may have been committed meanwhile by another server.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from twinlake.commit import CommitOptions, Transaction
from twinlake.errors import (
    Code,
    CommitUnknown,
    ConcurrentWriteException,
    ConflictError,
    TwinlakeError,
)
from twinlake.iceberg.requests import (
    NewTable,
    decode_commit,
    decode_create,
    failed_requirements,
)
from twinlake.log import CACHE, SnapshotCache, has_table
from twinlake.runtime import InProcess, Runtime
from twinlake.table.catalog import TABLE_HOOKS
from twinlake.table.iceberg_commits.client_files import ClientFiles, CommitLimits
from twinlake.table.iceberg_commits.create import (
    create_table,
    future_state,
    staged_metadata,
    table_metadata,
)
from twinlake.table.iceberg_commits.previous_commit import RequestIdentity
from twinlake.table.iceberg_commits.refusals import requirement_failed
from twinlake.table.iceberg_commits.translation import Translator
from twinlake.table.iceberg_commits.twin_state import load_state
from twinlake.table.rows import UncommittedFiles

if TYPE_CHECKING:
    from twinlake.actions import Metadata
    from twinlake.iceberg.requests import CommitTableRequest
    from twinlake.runtime import Executor
    from twinlake.storage import Store
    from twinlake.table.iceberg_commits.translation import Translation
    from twinlake.table.iceberg_commits.twin_state import TwinState

__all__ = ["IcebergCommits"]

_DEADLINE_MS: Final = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergCommits:
    """Creates, loads and changes twin tables by the requests of Iceberg clients."""

    runtime: Runtime = field(default_factory=Runtime)
    limits: CommitLimits = field(default_factory=CommitLimits)
    readers: Executor = field(default_factory=InProcess)
    """What reads several files of a client at once, where they lie in a service."""
    deadline_ms: int = _DEADLINE_MS
    """How long a commit is tried while others win."""
    cache: SnapshotCache = CACHE
    """The snapshots that this server knows: those of the process, unless it is given its own."""

    def load(self, store: Store) -> TwinState:
        """The table as its newest version has it."""
        return load_state(store, self.runtime, self.cache)

    def create(self, store: Store, body: bytes, key: str | None = None) -> TwinState:
        """Make a table by a ``CreateTableRequest``."""
        table = NewTable.of_request(decode_create(body))
        identity = RequestIdentity.of(body, key)
        if has_table(store):
            return self._created(store, identity)
        metadata = table_metadata(table, unquote(store.url), self.runtime)
        return self._make(store, metadata, identity)

    def stage(self, store: Store, body: bytes) -> bytes:
        """The metadata that a ``CreateTableRequest`` would give; nothing is stored."""
        table = NewTable.of_request(decode_create(body))
        metadata = table_metadata(table, unquote(store.url), self.runtime)
        return staged_metadata(store, metadata, self.runtime)

    def create_staged(self, store: Store, body: bytes, key: str | None = None) -> TwinState:
        """Make a table, and its first rows with it, by the commit that ends a staged creation."""
        request = decode_commit(body)
        identity = RequestIdentity.of(body, key, request)
        if has_table(store):
            return self._created(store, identity)
        metadata = table_metadata(NewTable.of_updates(request), unquote(store.url), self.runtime)
        state = future_state(store, metadata, self.runtime)
        failed = failed_requirements(request.other_requirements, state.table_metadata)
        if failed:
            raise requirement_failed(failed)
        with UncommittedFiles(store) as made:
            translation = None
            if request.last_snapshot_id is not None:
                translation = self._translator(state, made).translate(request.rows_only())
            return self._make(store, metadata, identity, translation, made)

    def _make(
        self,
        store: Store,
        metadata: Metadata,
        identity: RequestIdentity,
        translation: Translation | None = None,
        made: UncommittedFiles | None = None,
    ) -> TwinState:
        """Write version 0, unless somebody else has meanwhile."""
        try:
            create_table(store, metadata, self.runtime, translation, tags=identity.tags)
        except TwinlakeError as lost:
            if lost.code is not Code.TABLE_EXISTS:
                raise
            # It may have been this very request, at another server.
            state = self.load(store)
            if not identity.is_committed(state, self.runtime.clock.now_ms()):
                raise
            return state
        if made is not None:
            made.keep()
        return self._after_commit(store)

    def _created(self, store: Store, identity: RequestIdentity) -> TwinState:
        """The table that is there already, if this very request has made it."""
        state = self.load(store)
        if identity.is_committed(state, self.runtime.clock.now_ms()):
            return state
        raise requirement_failed(["the table exists already"])

    def commit(self, store: Store, body: bytes, key: str | None = None) -> TwinState:
        """Commit a ``CommitTableRequest``; returns the table as it is then.

        Raises:
            ConflictError: a requirement does not hold, or others won until the deadline.
            UserError, CompatViolation: the table cannot take the commit.
            CommitUnknown: the store did not say whether it was committed.
        """
        request = decode_commit(body)
        return self._commit(store, request, RequestIdentity.of(body, key, request))

    def _commit(
        self, store: Store, request: CommitTableRequest, identity: RequestIdentity
    ) -> TwinState:
        until = self.runtime.clock.now_ms() + self.deadline_ms
        while True:
            state = load_state(store, self.runtime, self.cache)
            if identity.is_committed(state, self.runtime.clock.now_ms()):
                return state
            failed = failed_requirements(request.requirements, state.table_metadata)
            if failed:
                raise requirement_failed(failed)
            if state.lag:
                raise requirement_failed([f"the Iceberg metadata is behind: {state.lag}"])
            with UncommittedFiles(store) as made:
                translation = self._translator(state, made).translate(request)
                if translation.is_empty:
                    return state
                try:
                    self._place(state, translation, identity, made)
                    break
                except ConcurrentWriteException as lost:
                    if self.runtime.clock.now_ms() >= until:
                        raise _overtaken(self.deadline_ms) from lost
            self.cache.forget(store.url)
        return self._after_commit(store)

    def _after_commit(self, store: Store) -> TwinState:
        """The table as a commit left it.

        Whatever fails now must not look like a refusal: after one a client deletes the files that
        it has written, and the log names them already.
        """
        try:
            return self.load(store)
        except TwinlakeError as error:
            raise CommitUnknown(
                Code.COMMIT_UNKNOWN,
                "The commit was made, and the table cannot be read after it.",
                why=error.what,
                fix="Load the table again: its history has the commit.",
                fields={"store": store.url},
            ) from error

    def _translator(self, state: TwinState, made: UncommittedFiles) -> Translator:
        store, location = state.snapshot.store, state.table_metadata.location
        files = ClientFiles(store, location, self.limits, self.readers)
        return Translator(state=state, files=files, runtime=self.runtime, made=made)

    def _place(
        self,
        state: TwinState,
        translation: Translation,
        identity: RequestIdentity,
        made: UncommittedFiles,
    ) -> None:
        """Try the next version, once."""
        options = CommitOptions(
            policy="minimal",
            max_attempts=1,
            tags={**(translation.tags or {}), **identity.tags},
        )
        transaction = Transaction(
            state.snapshot, translation.operation, self.runtime, TABLE_HOOKS, options=options
        )
        if translation.metadata is not None:
            transaction.update_metadata(translation.metadata)
        result = transaction.add(*translation.actions).commit()
        made.keep()
        self.cache.offer(result.snapshot)


def _overtaken(deadline_ms: int) -> ConflictError:
    return ConcurrentWriteException(
        Code.CONFLICT_WRITE,
        f"Other writers took every version for {deadline_ms / 1000:g} seconds.",
        why="a commit is tried as the next version until a deadline",
        fix="Commit again when fewer writers are active.",
    )
