"""A data engine of a few lines, so that the shipped plans and commits have rows to change.

A row is a partition, an id and a value; a data file is a JSON list of rows under a name that ends
in ``.parquet``, which is all the control plane asks of it. Only files of Iceberg clients are true
ones. Everything that decides anything (plans,
read sets, transactions, hooks) is the shipped code.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from twinlake.actions import AddFile
from twinlake.commit import AlreadyCommitted, CommitOptions, Operation, Transaction
from twinlake.commit.plans import RewriteFile, WriteDeletionVector, Written, touched
from twinlake.errors import CommitUnknown, TwinlakeError
from twinlake.log import CACHE, dv_key, load_snapshot, read_dv, write_dv_file
from twinlake.schema import physical_name
from twinlake.verify.code.client_data import ClientExchange, is_parquet, read_parquet_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from twinlake.actions import Action
    from twinlake.commit import PostCommitHook
    from twinlake.commit.plans import Outcome, RowPlan, TouchedFile
    from twinlake.log import Snapshot
    from twinlake.protocol import Metadata
    from twinlake.runtime import Runtime
    from twinlake.storage import Store

__all__ = [
    "COLUMNS",
    "Row",
    "RowEffect",
    "RowEngine",
    "Rows",
    "StatementResult",
    "add_of",
    "decode_rows",
    "encode_rows",
]

Row = tuple[str, int, str]
"""Partition, id and value."""
Rows = Counter[Row]
StatementResult = int | AlreadyCommitted | None
"""What a statement comes to: its version, that it was there already, or nothing to commit."""
COLUMNS: Final = ("p", "id", "value")


def encode_rows(rows: Sequence[Row]) -> bytes:
    """The body of a data file."""
    return msgspec.json.encode(list(rows))


def decode_rows(data: bytes) -> list[Row]:
    """The rows of a data file, in their order."""
    if is_parquet(data):
        return list(read_parquet_rows(data))
    return msgspec.json.decode(data, type=list[Row])


@dataclass(frozen=True, slots=True, kw_only=True)
class RowEffect:
    """The intended change of rows: computed from the scan, recorded before the commit."""

    read_version: int
    removed: tuple[Row, ...] = ()
    added: tuple[Row, ...] = ()


@dataclass(slots=True, kw_only=True)
class RowEngine:
    """The data engine of one actor: its store, its ports, and what it has recorded."""

    tag: str
    """Told in every commit it makes, so that the commit can be found in the log."""
    store: Store
    runtime: Runtime
    hooks: tuple[PostCommitHook, ...]
    effect: RowEffect | None = None
    written: list[str] = field(default_factory=list)
    exchange: ClientExchange = field(default_factory=ClientExchange)
    """What an Iceberg client and its server said to each other, where the actor is one."""
    cached: bool = False
    """Whether versions come from the cache of the process, as long-lived processes have them."""

    def load(self) -> Snapshot:
        """The latest version: read from the store, or brought up to date in the process's cache."""
        return CACHE.latest(self.store) if self.cached else load_snapshot(self.store)

    # Reading

    def rows_in(self, add: AddFile) -> tuple[list[Row], frozenset[int]]:
        """The rows of a file, and the positions that its deletion vector hides."""
        hidden = read_dv(self.store, add.deletion_vector) if add.deletion_vector else ()
        return decode_rows(self.store.read(add.path)), frozenset(hidden)

    def live_rows(self, add: AddFile) -> list[Row]:
        """The rows of a file that no vector hides."""
        rows, hidden = self.rows_in(add)
        return [row for position, row in enumerate(rows) if position not in hidden]

    def matching(
        self, adds: Iterable[AddFile], wanted: Callable[[Row], bool], *, delete: bool
    ) -> tuple[list[TouchedFile], dict[str, list[Row]]]:
        """The files with what matched in them, and the rows of each file that was read."""
        found, contents = [], {}
        for add in adds:
            rows, hidden = self.rows_in(add)
            contents[add.path] = rows
            hits = [n for n, row in enumerate(rows) if n not in hidden and wanted(row)]
            found.append(
                touched(add, hidden=hidden, delete=hits)
                if delete
                else touched(add, hidden=hidden, update=hits)
            )
        return found, contents

    # Writing

    def write_file(
        self, snapshot: Snapshot, rows: Sequence[Row], *, change: bool = True
    ) -> AddFile:
        """One new data file with these rows, all of one partition."""
        key = f"part-{self.runtime.ids.uuid()}.parquet"
        data = encode_rows(rows)
        self.written.append(key)
        self.store.put(key, data)
        return add_of(
            snapshot.metadata,
            key,
            rows,
            size=len(data),
            now=self.runtime.clock.now_ms(),
            change=change,
        )

    def write_by_partition(self, snapshot: Snapshot, rows: Iterable[Row]) -> tuple[AddFile, ...]:
        """New data files, one a partition where the table has partitions."""
        groups: dict[str, list[Row]] = {}
        for row in rows:
            groups.setdefault(row[0] if snapshot.metadata.partition_columns else "", []).append(row)
        return tuple(self.write_file(snapshot, group) for _, group in sorted(groups.items()))

    def execute_plan(
        self,
        snapshot: Snapshot,
        plan: RowPlan,
        contents: Mapping[str, list[Row]],
        updated: Callable[[Row], Row],
        inserted: Sequence[Row] = (),
    ) -> Outcome:
        """Write what a plan asks for: kept rows, new values, vectors; then what to commit."""
        new = [updated(row) for row in _chosen(plan, contents, "update")]
        rows = [*_copied(plan, contents), *new, *inserted]
        vectors = {}
        for step in plan.steps:
            if isinstance(step, WriteDeletionVector):
                uuid = self.runtime.ids.uuid()
                data, (descriptor,) = write_dv_file([step.positions], uuid)
                self.written.append(dv_key(uuid))
                self.store.put(dv_key(uuid), data)
                vectors[step.file.add.path] = descriptor
        files = self.write_by_partition(snapshot, rows)
        gone = [row for kind in ("delete", "update") for row in _chosen(plan, contents, kind)]
        self.effect = RowEffect(
            read_version=snapshot.version, removed=tuple(gone), added=(*new, *inserted)
        )
        return plan.finish(Written(files=files, vectors=vectors), now=self.runtime.clock.now_ms())

    def commit(
        self, snapshot: Snapshot, operation: Operation, outcome: Outcome, *, application: str = ""
    ) -> StatementResult:
        """Commit an outcome as the data engine does; the version, or None if nothing was to do.

        Files of a commit that failed are deleted, unless it may have happened all the same. With
        the name of an ``application`` the commit is made once, however often it is tried.
        """
        if not outcome.actions:
            return None
        options = CommitOptions(user_metadata=self.tag, tags=outcome.tags, trusted_files=True)
        txn = Transaction(snapshot, operation, self.runtime, self.hooks, options=options)
        txn.record(outcome.reads).add(*outcome.actions)
        if application and (already := txn.set_transaction(application, 1)) is not None:
            return already
        try:
            done = txn.commit(metrics=outcome.metrics)
            if self.cached:
                CACHE.offer(done.snapshot)
            return done.version
        except CommitUnknown:
            raise
        except TwinlakeError:
            self.discard()
            raise

    def commit_actions(
        self, snapshot: Snapshot, operation: Operation, *actions: Action
    ) -> StatementResult:
        """Commit a change of the table itself, which leaves the rows as they are."""
        self.effect = RowEffect(read_version=snapshot.version)
        options = CommitOptions(user_metadata=self.tag)
        txn = Transaction(snapshot, operation, self.runtime, self.hooks, options=options)
        return txn.add(*actions).commit().version

    def commit_untold(self, operation: Operation, *actions: Action) -> None:
        """Commit on top of the latest version without saying who it was."""
        Transaction(self.load(), operation, self.runtime, self.hooks).add(*actions).commit()

    def discard(self) -> None:
        """Delete the files that were written for nothing, as far as the store lets us."""
        try:
            self.store.delete(self.written)
        except TwinlakeError:
            return


def add_of(
    metadata: Metadata, key: str, rows: Sequence[Row], *, size: int, now: int, change: bool = True
) -> AddFile:
    """The action that adds a data file, with the statistics of its rows."""
    names = {f.name: physical_name(f) for f in metadata.schema}
    partitions: dict[str, str | None] = {
        names[name]: str(rows[0][COLUMNS.index(name)]) for name in metadata.partition_columns
    }
    columns = {
        names[name]: [row[n] for row in rows]
        for n, name in enumerate(COLUMNS)
        if names[name] not in partitions
    }
    stats = {
        "numRecords": len(rows),
        "minValues": {name: min(values) for name, values in columns.items()},
        "maxValues": {name: max(values) for name, values in columns.items()},
        "nullCount": dict.fromkeys(columns, 0),
    }
    return AddFile(
        path=key,
        partition_values=partitions,
        size=size,
        modification_time=now,
        data_change=change,
        stats=msgspec.json.encode(stats).decode(),
    )


def _copied(plan: RowPlan, contents: Mapping[str, list[Row]]) -> Iterator[Row]:
    for step in plan.steps:
        if isinstance(step, RewriteFile):
            yield from (contents[step.file.add.path][n] for n in step.keep)


def _chosen(plan: RowPlan, contents: Mapping[str, list[Row]], kind: str) -> Iterator[Row]:
    """The rows that a plan deletes or updates."""
    for step in plan.steps:
        rows = contents[step.file.add.path]
        yield from (rows[position] for position in getattr(step.file, kind))
