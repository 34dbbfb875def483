"""Optimistic transactions: snapshot in, commit out.

A transaction records what it read and what it wants to write, tries the next version, and if
another writer commits it first, runs the conflict rules against every winner and tries again. The
outcome of a try is settled before anything else happens (``publish``): an unknown outcome ends
the transaction with ``CommitUnknown`` and never leads to another version.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from twinlake.actions import Metadata, Protocol, SetTransaction, encode_lines
from twinlake.commit.change import Base, Change, assemble
from twinlake.commit.checks.compat import CompatChange
from twinlake.commit.checks.draft_reader import DraftReader
from twinlake.commit.checks.file_spelling import with_our_spellings
from twinlake.commit.checks.registry import COMPAT_CHECK, run_checks
from twinlake.commit.commit_write import Lost, write_commit
from twinlake.commit.conflict.rules import Conflicting, check_conflicts
from twinlake.commit.conflict.winners import missed_winner, read_winners
from twinlake.commit.hooks import DELTA_HOOKS, HookContext, PostCommitHook, run_hooks
from twinlake.commit.options import AlreadyCommitted, CommitOptions, CommitResult, engine_info
from twinlake.commit.read_set import ReadSet
from twinlake.commit.row_tracking import mark_of, stored_metadata
from twinlake.commit.summary import summarize
from twinlake.errors import Code, ConcurrentWriteException, UserError
from twinlake.log import Snapshot, commit_key, first_snapshot, has_table
from twinlake.protocol import CLIENT_FEATURES, keys
from twinlake.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from twinlake.actions import Action
    from twinlake.commit.change import Body
    from twinlake.commit.checks.check import Draft
    from twinlake.commit.operation import Operation
    from twinlake.schema.predicates import Expr
    from twinlake.storage import Store

__all__ = ["Transaction"]

_FIRST_PAUSE: Final = 0.001
_LONGEST_PAUSE: Final = 0.25
_DEFAULTS: Final = CommitOptions()


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
        hooks: Iterable[PostCommitHook] = DELTA_HOOKS,
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
        self._drafts = DraftReader(
            home,
            self._runtime.executor,
            trusted_files=options.trusted_files,
            system_domains=options.system_domains,
            waived_rules=options.waived_rules,
        )

    @classmethod
    def for_new_table(
        cls,
        store: Store,
        operation: Operation,
        runtime: Runtime | None = None,
        hooks: Iterable[PostCommitHook] = DELTA_HOOKS,
        *,
        options: CommitOptions = _DEFAULTS,
    ) -> Transaction:
        """A transaction that makes version 0; it must update the metadata."""
        return cls(None, operation, runtime, hooks, options=options, store=store)

    # What was read

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot that this transaction reads."""
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
                "This transaction has ended.",
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
            draft = self._drafts.read(change, current)
            if attempts == 1:
                draft = _with_implied_reads(draft)
            change = draft.change
            run_checks(draft, self._options.checks)
            body = self._assemble(change, txn_id)
            data = encode_lines(body.actions)
            # Made before the write: what fails after it would make a commit look failed.
            result = self._result(current, body, attempts, notes)
            context = self._context(current, result)
            outcome = self._ruled_out(current) or write_commit(
                self._store,
                commit_key(body.version),
                data,
                clock=self._runtime.clock,
                ids=self._runtime.ids,
                commit_id=txn_id,
            )
            if not isinstance(outcome, Lost):
                return replace(result, warnings=run_hooks(self._hooks, context))
            if current is None:
                raise self._table_exists()
            if attempts >= self._options.max_attempts:
                raise self._exhausted(change, attempts)
            if self._read_columns:
                change = replace(change, reads=change.reads.with_files(self.reads.files))
            for winner in read_winners(self._store, change, outcome.winner):
                known = with_our_spellings(winner, change, current.paths)
                moved = check_conflicts(change, known, self._options.context, self._options.rules)
                if isinstance(moved, Conflicting):
                    raise moved.to_error()
                change = moved.change
                notes.extend(moved.notes)
                current = current.advance(
                    winner.version, winner.actions, modified_ms=winner.modified_ms
                )
            self._pause(attempts)

    def check_compat(self) -> None:
        """Raise if the commit breaks a rule of a compat feature, without committing.

        For operations that take several commits: the first is not made if the last cannot be.
        """
        run_checks(self._drafts.read(self._change(), self._snapshot), (COMPAT_CHECK,))

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
            stored = stored_metadata(metadata, base.metadata, self._runtime.ids)
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
        turns_on = any(
            isinstance(a, Metadata) and a.flag(keys.ENABLE_IN_COMMIT_TIMESTAMPS)
            for a in self._actions
        )
        stamped = snapshot.metadata.flag(keys.ENABLE_IN_COMMIT_TIMESTAMPS)
        return Base(
            version=snapshot.version,
            protocol=snapshot.protocol,
            metadata=snapshot.metadata,
            row_id_mark=mark_of(snapshot.domains.values()),
            # The file's time costs a request and only matters when timestamps are enabled.
            timestamp_ms=snapshot.timestamp_ms if stamped or turns_on else None,
        )

    def _gate(self, protocol: Protocol) -> None:
        metadata = self.snapshot.metadata
        if self._reads.reads_data:
            protocol.check_read_write(CLIENT_FEATURES, metadata=metadata)
        else:
            protocol.check_writable(CLIENT_FEATURES, metadata=metadata)

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

    def _pause(self, losses: int) -> None:
        longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(losses - 1, 16))
        self._runtime.clock.sleep(longest * self._runtime.ids.uniform())

    def _result(
        self, previous: Snapshot | None, body: Body, attempts: int, notes: list[str]
    ) -> CommitResult:
        """What the commit comes to, should the body be written."""
        snapshot = (
            first_snapshot(self._store, body.actions)
            if previous is None
            else previous.advance(body.version, body.actions)
        )
        return CommitResult(
            version=body.version,
            snapshot=snapshot,
            attempts=attempts,
            actions=body.actions,
            rebased=tuple(notes),
        )

    def _context(self, previous: Snapshot | None, result: CommitResult) -> HookContext:
        return HookContext(
            snapshot=result.snapshot,
            previous=previous,
            actions=result.actions,
            runtime=self._runtime,
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
            fix="Run the operation again when fewer writers are active.",
            delta_class="DELTA_CONCURRENT_WRITE",
            fields={"winner": change.version, "attempts": attempts},
        )


def _with_implied_reads(draft: Draft) -> Draft:
    """The draft with what its change depends on without having read it.

    Committing a live file again depends on its being there: otherwise a file that somebody deletes
    meanwhile would come back with all its rows. Enabling a compat feature depends on every live
    file: one that somebody adds meanwhile is not checked.
    """
    change = draft.change
    again = draft.live.keys() - change.summary.removed_paths
    reads = change.reads.with_files(again) if again else change.reads
    if change.version > 0 and CompatChange.of(change).enabled:
        reads = replace(reads, whole_table=True)
    return draft if reads is change.reads else replace(draft, change=replace(change, reads=reads))
