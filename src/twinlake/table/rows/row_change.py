"""DELETE, UPDATE and MERGE in this process: from matched rows to a commit.

Which file is dropped, gets a deletion vector or is rewritten is decided by ``commit.plans``; here
rows are found, and what the plan asks for is written.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
import pyarrow as pa

from twinlake.commit import CommitOptions, ReadSet
from twinlake.commit.plans import (
    ChangeType,
    RewriteFile,
    TableRules,
    Written,
    touched,
)
from twinlake.files import (
    ROW_COMMIT_VERSION,
    ROW_ID,
    ROW_INDEX,
    DataFileReader,
    WriteTask,
    map_ahead,
    positions_array,
    row_id_fields,
    row_tracking_columns,
)
from twinlake.log import read_dv, read_footer
from twinlake.schema import to_arrow
from twinlake.storage import resolve
from twinlake.table.rows.row_commit import (
    CHANGE_FIELDS,
    CHANGE_FOLDER,
    UncommittedFiles,
    change_actions,
    commit_change,
    table_target,
    write_vectors,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyroaring import AbstractBitMap64 as Positions

    from twinlake.actions import AddCDCFile, AddFile
    from twinlake.commit import CommitResult, Operation
    from twinlake.commit.plans import Outcome, RowPlan, TouchedFile
    from twinlake.log import Snapshot
    from twinlake.protocol import Metadata
    from twinlake.schema.predicates import Expr
    from twinlake.table.view import TableView

__all__ = ["LocalRowChange"]


@dataclass(slots=True)
class LocalRowChange:
    """One operation that changes rows of a table without Spark."""

    table: TableView
    operation: Operation
    metadata: Metadata
    """The metadata that new files are written for."""
    options: CommitOptions = field(default_factory=CommitOptions)
    txn: tuple[str, int] | None = None
    started: float = field(default_factory=time.monotonic)
    made: UncommittedFiles = field(init=False)

    def __enter__(self) -> LocalRowChange:
        self.made = UncommittedFiles(self.snapshot.store)
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self.made.__exit__(kind, error, trace)

    @property
    def snapshot(self) -> Snapshot:
        """The version the operation stands on."""
        return self.table.snapshot

    @property
    def rules(self) -> TableRules:
        """What the table asks of those who change its rows."""
        return TableRules.of(self.metadata)

    # Finding rows

    def reader(self, **wanted: Any) -> DataFileReader:
        """How files of the version are read."""
        return DataFileReader(store=self.snapshot.store, metadata=self.snapshot.metadata, **wanted)

    def matches(self, files: Sequence[AddFile], where: Expr) -> list[Any]:
        """For each file the positions of the rows for which the condition is true, sorted."""
        reader = self.reader(columns=(), where=where, positions=True)

        def found(add: AddFile) -> Any:
            parts = [b.column(ROW_INDEX).to_numpy() for b in reader.readable_batches(add)]
            return np.concatenate(parts) if parts else np.empty(0, np.int64)

        return list(map_ahead(found, files))

    def touched_file(
        self, add: AddFile, *, delete: Iterable[int] = (), update: Iterable[int] = ()
    ) -> TouchedFile:
        """A file of which rows are deleted or updated."""
        vector = add.deletion_vector
        hidden = () if vector is None else read_dv(self.snapshot.store, vector)
        rows = add.num_records
        if rows is None:
            rows = int(read_footer(*resolve(self.snapshot.store, add.path)).metadata.num_rows)
        return touched(add, delete=delete, update=update, hidden=hidden, physical_rows=rows)

    def rows_at(
        self, rows: Mapping[str, Positions], adds: Mapping[str, AddFile], *, row_ids: bool = False
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The rows at positions of files, by path, with their row ids and positions behind."""
        ids = row_tracking_columns(self.snapshot.metadata) if row_ids else None
        reader = self.reader(row_ids=ids, positions=True)
        for path, kept in rows.items():
            wanted = positions_array(kept)
            for batch in reader.readable_batches(adds[path]):
                mask = np.isin(batch.column(ROW_INDEX).to_numpy(), wanted, assume_unique=True)
                if mask.any():
                    yield path, batch.filter(pa.array(mask))

    # Writing

    def write_files(
        self,
        batches: Iterable[pa.RecordBatch],
        *,
        row_ids: bool = False,
        target_file_size: int | None = None,
    ) -> tuple[AddFile, ...]:
        """Data files of batches with the table's columns, row ids and commit versions behind."""
        ids = row_tracking_columns(self.snapshot.metadata)
        extra = row_id_fields(self.metadata, ids) if row_ids else ()
        return self._written(batches, extra=extra, target_file_size=target_file_size)

    def _written(self, batches: Iterable[pa.RecordBatch], **target: Any) -> tuple[AddFile, ...]:
        where = table_target(self.table, self.metadata, **target)
        files = WriteTask(target=where, job=str(uuid4())).write(batches)
        self.made.add(*files)
        return files

    def write(
        self,
        plan: RowPlan,
        *,
        updated: Callable[[str, pa.RecordBatch], pa.RecordBatch] | None = None,
        inserted: Sequence[pa.RecordBatch] = (),
    ) -> Written:
        """Everything that the plan asks for.

        ``updated`` gives rows of a file, by its path, their new values; their positions are the
        last column it is given, and only the columns of the table are taken from its result.
        """
        adds = {step.file.add.path: step.file.add for step in plan.steps}
        keep_ids = plan.materialise_row_ids
        posts: list[pa.RecordBatch] = []

        def rows() -> Iterator[pa.RecordBatch]:
            kept = {s.file.add.path: s.keep for s in plan.steps if isinstance(s, RewriteFile)}
            for _, batch in self.rows_at(kept, adds, row_ids=keep_ids):
                yield self._with_ids(batch, batch, keep_ids, is_changed=False)
            changed = {s.file.add.path: s.file.update for s in plan.steps if len(s.file.update)}
            for path, batch in self.rows_at(changed, adds, row_ids=keep_ids):
                assert updated is not None
                new = updated(path, batch)
                if plan.needs_change_files:
                    posts.append(new)
                yield self._with_ids(new, batch, keep_ids, is_changed=True)
            for batch in inserted:
                yield self._with_ids(batch, None, keep_ids, is_changed=True)

        vectors = write_vectors(plan, self.table, self.made)
        files = self.write_files(rows(), row_ids=keep_ids) if plan.output_rows else ()
        changes = self._write_changes(plan, adds, posts, inserted)
        return Written(files=files, vectors=vectors, changes=changes)

    def _with_ids(
        self, rows: pa.RecordBatch, old: pa.RecordBatch | None, keep_ids: bool, *, is_changed: bool
    ) -> pa.RecordBatch:
        """The table's columns, and where rows keep their ids, the two columns of those."""
        arrays = self._columns_of(rows)
        if keep_ids:
            none = pa.nulls(rows.num_rows, pa.int64())
            arrays.append(none if old is None else old.column(ROW_ID))
            # A changed row was last changed by this commit, whatever version it came from.
            arrays.append(none if old is None or is_changed else old.column(ROW_COMMIT_VERSION))
        return pa.RecordBatch.from_arrays(arrays, names=[str(i) for i in range(len(arrays))])

    def _columns_of(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """The columns of the table after the change; those that rows lack are null."""
        there = set(rows.schema.names)
        return [
            rows.column(f.name) if f.name in there else pa.nulls(rows.num_rows, f.type)
            for f in to_arrow(self.metadata.schema)
        ]

    def _write_changes(
        self,
        plan: RowPlan,
        adds: Mapping[str, AddFile],
        posts: Sequence[pa.RecordBatch],
        inserted: Sequence[pa.RecordBatch],
    ) -> tuple[AddCDCFile, ...]:
        if not plan.needs_change_files:
            return ()
        parts: list[pa.RecordBatch] = []
        for kind in (ChangeType.DELETE, ChangeType.UPDATE_PREIMAGE):
            rows = {c.file.add.path: c.positions for c in plan.change_rows if c.change_type is kind}
            parts += [self._labelled(b, kind) for _, b in self.rows_at(rows, adds)]
        parts += [self._labelled(batch, ChangeType.UPDATE_POSTIMAGE) for batch in posts]
        parts += [self._labelled(batch, ChangeType.INSERT) for batch in inserted]
        return self.change_files(parts)

    def _labelled(self, rows: pa.RecordBatch, kind: ChangeType) -> pa.RecordBatch:
        arrays = self._columns_of(rows)
        arrays.append(pa.repeat(pa.scalar(str(kind)), rows.num_rows))
        return pa.RecordBatch.from_arrays(arrays, names=[str(i) for i in range(len(arrays))])

    def inserted_changes(self, rows: Sequence[pa.RecordBatch]) -> tuple[AddCDCFile, ...]:
        """Change files of rows that are new."""
        return self.change_files([self._labelled(batch, ChangeType.INSERT) for batch in rows])

    def change_files(self, parts: Sequence[pa.RecordBatch]) -> tuple[AddCDCFile, ...]:
        """Change files of batches with the table's columns and the type of change behind them."""
        files = self._written(parts, folder=CHANGE_FOLDER, extra=CHANGE_FIELDS)
        return change_actions(files)

    # Committing

    def commit(self, outcome: Outcome) -> CommitResult | None:
        """Commit what the plan came to; None if nothing changes."""
        if not outcome.actions and self.txn is None:
            return None
        spent = str(round((time.monotonic() - self.started) * 1000))
        return self.commit_actions(
            outcome.actions,
            reads=outcome.reads,
            metrics={**outcome.metrics, "executionTimeMs": spent},
            tags=outcome.tags,
        )

    def commit_actions(
        self,
        actions: Sequence[Any],
        *,
        reads: ReadSet | None,
        metrics: Mapping[str, str],
        tags: Mapping[str, str] | None = None,
    ) -> CommitResult | None:
        """Commit these actions as the operation."""
        return commit_change(
            self.table,
            self.operation,
            actions,
            metadata=self.metadata,
            reads=reads,
            metrics=metrics,
            options=self.options,
            tags=tags,
            txn=self.txn,
            made=self.made,
        )
