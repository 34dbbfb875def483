"""Optimistic transactions: snapshot in, commit out.

A transaction records what it read and what it wants to write, tries the next version, and if
somebody else got there first runs the conflict rules against every winner and tries again. The
outcome of a try is settled before anything else happens (``publish``): an unknown outcome ends
the transaction with ``CommitUnknown`` and never leads to another version.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from twinlake.actions import Metadata, Protocol, SetTransaction, decode_whole_commit, encode_lines
from twinlake.commit.change import Base, Change, assemble
from twinlake.commit.checks.compat import Promises, Witness
from twinlake.commit.checks.file_spelling import (
    live_spellings,
    with_live_spellings,
    with_our_spellings,
)
from twinlake.commit.checks.registry import Draft, run_checks
from twinlake.commit.checks.schema import keeps_files
from twinlake.commit.conflict.base_version import missed_winner
from twinlake.commit.conflict.rules import Refused, follow
from twinlake.commit.hooks import DEFAULT_HOOKS, HookContext, PostCommitHook, run_hooks
from twinlake.commit.publish import Lost, publish
from twinlake.commit.readset import ReadSet
from twinlake.commit.row_tracking import mark_of
from twinlake.commit.settings import AlreadyCommitted, CommitOptions, CommitResult, engine_info
from twinlake.commit.summary import Winner, summarize
from twinlake.commit.timestamps import ENABLED as TIMESTAMPS
from twinlake.errors import Code, ConcurrentWriteException, StorageError, UserError
from twinlake.log import Snapshot, commit_key, first_snapshot, has_table
from twinlake.protocol import CLIENT_FEATURES, strip_steering
from twinlake.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa

    from twinlake.actions import Action, FileKey
    from twinlake.commit.change import Body
    from twinlake.commit.checks.registry import CommitCheck
    from twinlake.commit.operation import Operation
    from twinlake.log.paths.canonical import CanonicalPaths
    from twinlake.schema.predicates import Expr
    from twinlake.storage import Store

__all__ = ["Transaction"]

_FIRST_PAUSE: Final = 0.001
_LONGEST_PAUSE: Final = 0.25
_DEFAULTS: Final = CommitOptions()
_ROW_TRACKING: Final = "delta.enableRowTracking"
_ROW_TRACKING_COLUMNS: Final = {
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-",
}


class Transaction:
    """One attempt at changing a table, from one snapshot.

    >>> from twinlake.commit import Operation, Transaction
    >>> from twinlake.protocol import Metadata
    >>> from twinlake.storage import MemoryStore
    >>> txn = Transaction.for_new_table(MemoryStore(), Operation(name="CREATE TABLE"))
    >>> table = txn.update_metadata(Metadata(id="t")).commit().snapshot
    >>> txn = Transaction(table, Operation(name="SET TBLPROPERTIES"))
    >>> changed = table.metadata.with_configuration({"team": "orders"})
    >>> txn.update_metadata(changed).commit().version
    1
    """

    def __init__(
        self,
        snapshot: Snapshot | None,
        operation: Operation,
        runtime: Runtime | None = None,
        hooks: Iterable[PostCommitHook] = DEFAULT_HOOKS,
        *,
        options: CommitOptions = _DEFAULTS,
        store: Store | None = None,
    ) -> None:
        home = snapshot.store if snapshot is not None else store
        if home is None:
            raise UserError(
                Code.INVALID_ARGUMENT,
                "A transaction needs a snapshot, or a store to create a table in.",
                fix="Open the table first, or use `Transaction.for_new_table`.",
            )
        self._snapshot = snapshot
        self._store = home
        self._operation = operation
        self._runtime = runtime or Runtime()
        self._hooks = tuple(hooks)
        self._options = options
        self._actions: list[Action] = []
        self._reads = ReadSet()
        self._read_columns: list[pa.ChunkedArray] = []
        self._done = False
        self._witness = Witness(home, self._runtime.executor, trusted=options.trusted_files)

    @classmethod
    def for_new_table(
        cls,
        store: Store,
        operation: Operation,
        runtime: Runtime | None = None,
        hooks: Iterable[PostCommitHook] = DEFAULT_HOOKS,
        *,
        options: CommitOptions = _DEFAULTS,
    ) -> Transaction:
        """A transaction that makes version 0; it must update the metadata."""
        return cls(None, operation, runtime, hooks, options=options, store=store)

    # What was read

    @property
    def snapshot(self) -> Snapshot:
        """The table this transaction stands on."""
        if self._snapshot is None:
            raise UserError(
                Code.INVALID_ARGUMENT,
                "A table that is being created has nothing to read.",
                fix="Commit first, then read the new table.",
            )
        return self._snapshot

    @property
    def reads(self) -> ReadSet:
        """All that was recorded as read."""
        if self._read_columns:
            # Only needed once a version is lost: most transactions never pay for it.
            paths = (path for column in self._read_columns for path in column.to_pylist())
            self._reads = self._reads.with_files(paths)
            self._read_columns.clear()
        return self._reads

    def read_files(self, where: str | Expr | None = None) -> pa.Table:
        """The files that may hold rows matching ``where``; records the files and the predicate."""
        if where is None:
            return self.read_whole_table()
        if isinstance(where, str):
            from twinlake.schema.predicates import parse_predicate

            where = parse_predicate(where, self.snapshot.schema)
        files = self.snapshot.files(where)
        self._reads = replace(self._reads, predicates=(*self._reads.predicates, where))
        self._read_columns.append(files["path"])
        return files

    def read_paths(self, paths: Iterable[str]) -> Transaction:
        """Record single files as read."""
        self._reads = self._reads.with_files(paths)
        return self

    def read_whole_table(self) -> pa.Table:
        """All files; any file added or removed meanwhile is a conflict."""
        files = self.snapshot.files()
        self.record_whole_table()
        return files

    def record_whole_table(self) -> Transaction:
        """Record the whole table as read, without listing it."""
        self._reads = replace(self._reads, whole_table=True)
        return self

    def record(self, reads: ReadSet) -> Transaction:
        """Record what a plan says it read, on top of what was recorded before."""
        self._reads = self._reads.merge(reads)
        return self

    def read_application(self, app_id: str) -> SetTransaction | None:
        """The latest version an application wrote; records the look."""
        self._reads = replace(self._reads, app_ids=self._reads.app_ids | {app_id})
        return self.snapshot.set_transactions.get(app_id)

    def read_domain(self, name: str) -> str | None:
        """The configuration of a domain; records the look."""
        self._reads = replace(self._reads, domains=self._reads.domains | {name})
        found = self.snapshot.domains.get(name)
        return None if found is None else found.configuration

    # What is to be written

    def add(self, *actions: Action) -> Transaction:
        """Write these actions."""
        self._actions.extend(actions)
        return self

    def update_metadata(self, metadata: Metadata) -> Transaction:
        """Write this metadata; the protocol grows as far as it needs."""
        return self.add(metadata)

    def update_protocol(self, protocol: Protocol) -> Transaction:
        """Write this protocol."""
        return self.add(protocol)

    def set_transaction(
        self, app_id: str, version: int, *, last_updated: int | None = None
    ) -> AlreadyCommitted | None:
        """Make the commit happen once per application and version.

        Answers with a value if the table has that version already; then there is nothing to do.
        """
        found = self.read_application(app_id) if self._snapshot is not None else None
        if found is not None and found.version >= version:
            self._done = True
            return AlreadyCommitted(app_id=app_id, version=version, latest=found.version)
        stamp = self._runtime.clock.now_ms() if last_updated is None else last_updated
        self.add(SetTransaction(app_id=app_id, version=version, last_updated=stamp))
        return None

    # Commit

    def commit(self, *, metrics: Mapping[str, Any] | None = None) -> CommitResult:
        """Write the commit, or raise and leave the table as it was.

        ``metrics`` are added to those of the operation. Only ``CommitUnknown`` leaves open what
        happened.
        """
        if self._done:
            raise UserError(
                Code.COMMIT_INVALID,
                "This transaction is over.",
                why="It was committed, it failed, or its application version was there already.",
                fix="Start a new transaction from a fresh snapshot.",
            )
        self._done = True
        if metrics:
            merged = {**self._operation.metrics, **metrics}
            self._operation = replace(self._operation, metrics=merged)
        change = self._change()
        current, attempts, notes = self._snapshot, 0, list[str]()
        txn_id = str(self._runtime.ids.uuid())
        while True:
            attempts += 1
            change, spellings = self._spelled(change, current)
            draft = replace(self._draft(change, current), spellings=spellings)
            if attempts == 1:
                change = _with_implied_reads(change, draft.live)
                if current is not None and Promises.of(change).made:
                    # Every file was looked at: one that comes in meanwhile was not.
                    change = replace(change, reads=replace(change.reads, whole_table=True))
                draft = replace(draft, change=change)
            run_checks(draft, self._options.checks)
            body = self._assemble(change, txn_id)
            data = encode_lines(body.actions)
            outcome = self._ruled_out(current) or publish(
                self._store,
                commit_key(body.version),
                data,
                clock=self._runtime.clock,
                ids=self._runtime.ids,
                commit_id=txn_id,
            )
            if not isinstance(outcome, Lost):
                return self._finish(current, body, attempts, notes)
            if current is None:
                raise self._table_exists()
            if attempts >= self._options.max_attempts:
                raise self._exhausted(change, attempts)
            if self._read_columns:
                change = replace(change, reads=change.reads.with_files(self.reads.files))
            for winner in self._winners(change, outcome):
                known = with_our_spellings(winner, change, current.paths)
                moved = follow(change, known, self._options.context, self._options.rules)
                if isinstance(moved, Refused):
                    raise moved.to_error()
                change = moved.change
                notes.extend(moved.notes)
                current = current.advance(
                    winner.version, winner.actions, modified_ms=winner.modified_ms
                )
            self._pause(attempts)

    def rehearse(self, checks: Iterable[CommitCheck]) -> None:
        """Raise what these checks have against the commit as it would be tried now.

        For operations that take several commits: the first is not made if the last cannot be.
        """
        run_checks(self._draft(self._change(), self._snapshot), checks)

    def _change(self) -> Change:
        """The transaction as a value, with protocol and metadata made fit for each other."""
        base = self._base()
        before = base.protocol if self._snapshot is not None else None
        if before is not None:
            self._gate(before)
        actions, metadata, protocol = list(self._actions), base.metadata, before
        summary = summarize(actions)
        if len(summary.metadatas) == 1:
            metadata = summary.metadatas[0]
            asked = summary.protocol or before
            protocol = (
                Protocol.for_new_table(metadata, policy=self._options.policy)
                if asked is None
                else asked.upgraded_for(metadata, policy=self._options.policy)
            )
            stored = self._stored(metadata, base.metadata)
            actions = [stored if a is metadata else a for a in actions]
            if protocol != asked and len(summary.protocols) <= 1:
                actions = [a for a in actions if not isinstance(a, Protocol)]
                actions.append(protocol)
        elif summary.protocol is not None:
            protocol = summary.protocol
        if protocol is not None and protocol != before:
            protocol.check_storable()
            protocol.check_read_write(CLIENT_FEATURES, metadata=metadata)
        if protocol is not None and summary.metadatas:
            protocol.check_metadata(metadata)
        return Change(
            base=base,
            operation=self._operation,
            actions=tuple(actions),
            reads=self._reads,
            read_version=base.version,
            read_mark=base.row_id_mark,
            timestamp_ms=self._runtime.clock.now_ms(),
            isolation=self._options.isolation,
        )

    def _base(self) -> Base:
        snapshot = self._snapshot
        if snapshot is None:
            return Base(protocol=Protocol(1, 1), metadata=Metadata())
        turns_on = any(isinstance(a, Metadata) and a.flag(TIMESTAMPS) for a in self._actions)
        stamped = snapshot.metadata.flag(TIMESTAMPS)
        return Base(
            version=snapshot.version,
            protocol=snapshot.protocol,
            metadata=snapshot.metadata,
            row_id_mark=mark_of(snapshot.domains.values()),
            # The file's time costs a request and only matters when timestamps are switched on.
            timestamp_ms=snapshot.timestamp_ms if stamped or turns_on else None,
        )

    def _gate(self, protocol: Protocol) -> None:
        metadata = self.snapshot.metadata
        if self._reads.reads_data:
            protocol.check_read_write(CLIENT_FEATURES, metadata=metadata)
        else:
            protocol.check_writable(CLIENT_FEATURES, metadata=metadata)

    def _stored(self, metadata: Metadata, before: Metadata) -> Metadata:
        """The metadata as it may be stored: nothing that only steers, all that row ids need."""
        stored = strip_steering(metadata.configuration)
        if metadata.flag(_ROW_TRACKING):
            for key, prefix in _ROW_TRACKING_COLUMNS.items():
                known = stored.get(key) or before.configuration.get(key)
                stored[key] = known or f"{prefix}{self._runtime.ids.uuid()}"
        if stored == metadata.configuration:
            return metadata
        gone = metadata.configuration.keys() - stored.keys()
        return metadata.with_configuration(stored, remove=gone)

    def _spelled(
        self, change: Change, current: Snapshot | None
    ) -> tuple[Change, Mapping[str, str]]:
        """The change with files spelled as the log does; and which of them are not."""
        if current is None or self._options.trusted_files or not change.summary.has_files:
            return change, {}
        spellings = live_spellings(change, current)
        return with_live_spellings(change, spellings), spellings

    def _paths(self, change: Change) -> CanonicalPaths | None:
        """What compares the paths of a commit; None if their text will do."""
        summary = change.summary
        if self._options.trusted_files or not summary.has_files:
            return None
        from twinlake.log.paths.canonical import CanonicalPaths

        usual = CanonicalPaths.are_usual(summary.added_paths | summary.removed_paths)
        return None if usual else CanonicalPaths.of(self._store.url)

    def _draft(self, change: Change, current: Snapshot | None) -> Draft:
        live: dict[str, FileKey] = {}
        untracked = 0
        kept = False
        if current is not None:
            kept = keeps_files(change, current)
            if _may_be_live(change):
                found = current.live_files(change.summary.added_paths)
                live = {path: add.key for path, add in found.items()}
            metadata = change.summary.metadata
            tracked = change.base.metadata.flag(_ROW_TRACKING)
            if metadata is not None and metadata.flag(_ROW_TRACKING) and not tracked:
                untracked = current.add_files()["base_row_id"].null_count
        return Draft(
            change=change,
            live=live,
            paths=self._paths(change),
            untracked_files=untracked,
            system_domains=self._options.system_domains,
            evidence=self._witness.evidence(change, current, live),
            keeps_files=kept,
            waived_rules=self._options.waived_rules,
            trusted_files=self._options.trusted_files,
        )

    def _assemble(self, change: Change, txn_id: str) -> Body:
        return assemble(
            change,
            txn_id=txn_id,
            engine_info=engine_info(),
            user_metadata=self._options.user_metadata,
            tags=self._options.tags,
        )

    def _ruled_out(self, current: Snapshot | None) -> Lost | None:
        """A last look: a free version is ours only if it comes right after the newest one.

        The name after a version that was cleaned up, or of a table that was replaced, is free too;
        a commit placed there would be acknowledged and never be seen.
        """
        if current is not None:
            winner = missed_winner(current, self._operation.name)
            return None if winner is None else Lost(winner=winner)
        if has_table(self._store):
            raise self._table_exists()
        return None

    def _winners(self, change: Change, lost: Lost) -> Iterator[Winner]:
        """Every commit from the version we wanted to the newest, oldest first.

        Read one by one by name: a listing may be stale, a name that is there cannot be.
        """
        version, data = change.version, lost.winner
        turns_on = change.metadata.flag(TIMESTAMPS) and not change.base.metadata.flag(TIMESTAMPS)
        while True:
            key = commit_key(version)
            meta = self._store.head(key) if turns_on else None
            yield Winner(
                version=version,
                actions=decode_whole_commit(data, source=key),
                modified_ms=None if meta is None else meta.modified_ms,
            )
            version += 1
            try:
                data = self._store.read(commit_key(version))
            except StorageError as error:
                if error.code is Code.STORAGE_NOT_FOUND:
                    return
                raise

    def _pause(self, losses: int) -> None:
        longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(losses - 1, 16))
        self._runtime.clock.sleep(longest * self._runtime.ids.uniform())

    def _finish(
        self, previous: Snapshot | None, body: Body, attempts: int, notes: list[str]
    ) -> CommitResult:
        snapshot = (
            first_snapshot(self._store, body.actions)
            if previous is None
            else previous.advance(body.version, body.actions)
        )
        context = HookContext(
            snapshot=snapshot, previous=previous, actions=body.actions, runtime=self._runtime
        )
        return CommitResult(
            version=body.version,
            snapshot=snapshot,
            attempts=attempts,
            warnings=run_hooks(self._hooks, context),
            actions=body.actions,
            rebased=tuple(notes),
        )

    def _table_exists(self) -> UserError:
        return UserError(
            Code.TABLE_EXISTS,
            f"There is already a table at {self._store.url}.",
            why="Its log is there.",
            fix="Open the table with `Table.open(PATH)`, or choose another path.",
            delta_class="DELTA_TABLE_ALREADY_EXISTS",
            fields={"store": self._store.url},
        )

    def _exhausted(self, change: Change, attempts: int) -> ConcurrentWriteException:
        return ConcurrentWriteException(
            Code.CONFLICT_WRITE,
            f"{self._operation.name} found no free version in {attempts} attempts.",
            why=f"Others took every version up to {change.version}; none of them conflicted.",
            fix="Run the operation again when fewer writers are at work.",
            delta_class="DELTA_CONCURRENT_WRITE",
            fields={"winner": change.version, "attempts": attempts},
        )


def _may_be_live(change: Change) -> bool:
    """Whether added paths must be looked up in the table.

    Plain appends to a table without deletion vectors can neither double a path under two keys nor
    commit a file again, and that is the case that must cost nothing on large tables.
    """
    if not change.summary.adds:
        return False
    again = any(not add.data_change for add in change.summary.adds)
    return again or change.protocol.is_supported("deletionVectors")


def _with_implied_reads(change: Change, live: Mapping[str, FileKey]) -> Change:
    """Committing a live file again depends on its being there.

    Otherwise a file that somebody deletes meanwhile would come back with all its rows.
    """
    again = live.keys() - change.summary.removed_paths
    return replace(change, reads=change.reads.with_files(again)) if again else change
