"""What DELETE, UPDATE and MERGE share: from matched rows to a commit.

The engine's part is three things: find which rows of which files are meant, write what
``commit.plans`` asks for, and commit. Which file is dropped, gets a vector or is rewritten is
decided there, not here.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from pyroaring import BitMap64
from pyspark.sql import functions as F

from twinlake.commit import CommitOptions, Operation
from twinlake.commit.plans import (
    ChangeType,
    RewriteFile,
    RowPlan,
    TableRules,
    TouchedFile,
    Written,
    positions,
    touched,
)
from twinlake.files import row_id_fields, row_tracking_columns
from twinlake.log import read_footer
from twinlake.spark.files.file_writer import write_files
from twinlake.spark.read.packed_positions import read_deletion_vectors
from twinlake.spark.read.table_scan import (
    FILE_NUMBER,
    ROW_COMMIT_VERSION,
    ROW_ID,
    ROW_INDEX,
    Scan,
    files_at,
    union,
)
from twinlake.spark.rows.projection import project_rows
from twinlake.spark.spark_types import quoted
from twinlake.storage import resolve
from twinlake.table.rows import (
    CHANGE_FIELDS,
    CHANGE_FOLDER,
    CHANGE_TYPE,
    UncommittedFiles,
    change_actions,
    commit_change,
    table_target,
    write_vectors,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyroaring import AbstractBitMap64 as Positions
    from pyspark.sql import DataFrame, SparkSession

    from twinlake.actions import Action, AddCDCFile, AddFile
    from twinlake.commit import CommitResult, ReadSet
    from twinlake.commit.plans import Outcome
    from twinlake.files import FileTarget
    from twinlake.log import Snapshot
    from twinlake.protocol import Metadata
    from twinlake.schema import StructField
    from twinlake.table import Table

__all__ = ["CHANGE_TYPE", "RowChange", "collect_positions", "positions_by_file"]


def collect_positions(matched: DataFrame) -> dict[int, Positions]:
    """The rows of a frame with ``FILE_NUMBER`` and ``ROW_INDEX``, by file."""
    found = matched.select(FILE_NUMBER, ROW_INDEX).toArrow()
    files, rows = found[FILE_NUMBER].to_numpy(), found[ROW_INDEX].to_numpy()
    order = np.argsort(files, kind="stable")
    return positions_by_file(files[order], rows[order])


def positions_by_file(files: Any, rows: Any) -> dict[int, Positions]:
    """Arrays of files' numbers, sorted, and of rows in them, as positions by file."""
    numbers, starts = np.unique(files, return_index=True)
    if not len(numbers):
        return {}
    pieces = np.split(rows, starts[1:])
    return {
        int(number): BitMap64(piece.tolist()) for number, piece in zip(numbers, pieces, strict=True)
    }


@dataclass(slots=True)
class RowChange:
    """One operation that changes rows of a table, from the files it looks at to its commit."""

    spark: SparkSession
    table: Table
    operation: Operation
    metadata: Metadata | None = None
    """The metadata after the commit, where the operation changes it too."""
    options: CommitOptions = field(default_factory=CommitOptions)
    times: dict[str, int] = field(default_factory=dict)
    """Milliseconds by stage: ``scan`` and ``rewrite``."""
    made: UncommittedFiles = field(init=False)
    """Files written so far, for the case that the operation fails."""

    @property
    def snapshot(self) -> Snapshot:
        """The version the operation stands on."""
        return self.table.snapshot

    @property
    def after(self) -> Metadata:
        """The metadata the new files are written for."""
        return self.metadata or self.snapshot.metadata

    @property
    def rules(self) -> TableRules:
        """What the table asks of those who change its rows."""
        return TableRules.of(self.after)

    def touched_files(
        self,
        files: pa.Table,
        *,
        delete: Mapping[int, Positions] | None = None,
        update: Mapping[int, Positions] | None = None,
    ) -> list[TouchedFile]:
        """The files, by number in ``files``, whose rows are deleted or updated."""
        delete, update = delete or {}, update or {}
        numbers = sorted(delete.keys() | update.keys())
        if not numbers:
            return []
        chosen = files.take(numbers)
        adds = self.snapshot.live_files(chosen["path"].to_pylist())
        hidden = read_deletion_vectors(self.snapshot.store, chosen)
        return [
            touched(
                adds[path],
                delete=delete.get(number, ()),
                update=update.get(number, ()),
                hidden=hidden.get(path, ()),
                physical_rows=self._rows_in(adds[path]),
            )
            for number, path in zip(numbers, chosen["path"].to_pylist(), strict=True)
        ]

    def _rows_in(self, add: AddFile) -> int:
        known = add.num_records
        if known is not None:
            return known
        return int(read_footer(*resolve(self.snapshot.store, add.path)).metadata.num_rows)

    def target(self, *, folder: str = "", extra: Sequence[StructField] = ()) -> FileTarget:
        """Where new files of this operation go."""
        return table_target(self.table, self.after, folder=folder, extra=extra)

    def rows_at(self, rows: Mapping[str, Positions], *, row_ids: bool = False) -> DataFrame:
        """The rows at these positions, by path in the log, with their positions."""
        files = self.only(rows.keys())
        counts = self.snapshot.live_files(rows.keys())
        hidden = {
            path: positions(range(self._rows_in(counts[path]))) - kept
            for path, kept in rows.items()
        }
        scan = Scan(
            snapshot=self.snapshot, files=files, hidden=hidden, positions=True, row_ids=row_ids
        )
        return scan.frame(self.spark)

    def only(self, paths: Iterable[str]) -> pa.Table:
        """These files of the version, by path in the log."""
        return files_at(self.snapshot, paths)

    def copied(self, plan: RowPlan) -> DataFrame | None:
        """The unchanged rows of the files that a plan rewrites."""
        kept = {s.file.add.path: s.keep for s in plan.steps if isinstance(s, RewriteFile)}
        if not kept:
            return None
        return self.projected(self.rows_at(kept, row_ids=plan.materialise_row_ids))

    def write(
        self,
        plan: RowPlan,
        *,
        changed: Sequence[DataFrame] = (),
        change_rows: DataFrame | None = None,
        changed_holds_copied: bool = False,
    ) -> Written:
        """Everything the plan asks for.

        ``changed`` holds updated and inserted rows with the table's columns (and ``ROW_ID`` where
        row ids are to be kept; null for inserted ones), and copied rows too where
        ``changed_holds_copied``; ``change_rows`` the rows of change files that are not found in
        the table: the table's columns and ``_change_type``.
        """
        vectors = write_vectors(plan, self.table, self.made)
        copied = None if changed_holds_copied else self.copied(plan)
        parts = list(changed) if copied is None else [copied, *changed]
        files = self.write_rows(parts, row_ids=plan.materialise_row_ids)
        changes = self._write_changes(plan, change_rows)
        return Written(files=files, vectors=vectors, changes=changes)

    def write_rows(self, parts: Sequence[DataFrame], *, row_ids: bool) -> tuple[AddFile, ...]:
        """Data files of frames that have the table's columns, and row ids where asked for."""
        if not parts:
            return ()
        names = [quoted(f.name) for f in self.after.schema]
        extra: tuple[StructField, ...] = ()
        frames = [part.select(*names) for part in parts]
        if row_ids:
            ids = row_tracking_columns(self.snapshot.metadata)
            extra = row_id_fields(self.after, ids)
            frames = [
                part.select(
                    *names,
                    *(
                        (F.col(ours) if ours in part.columns else F.lit(None).cast("bigint")).alias(
                            theirs
                        )
                        for ours, theirs in zip((ROW_ID, ROW_COMMIT_VERSION), ids, strict=True)
                    ),
                )
                for part in parts
            ]
        files = write_files(union(frames), self.target(extra=extra))
        self.made.add(*files)
        return files

    def _write_changes(self, plan: RowPlan, given: DataFrame | None) -> tuple[AddCDCFile, ...]:
        if not plan.needs_change_files:
            return ()
        parts = [] if given is None else [given]
        for kind in (ChangeType.DELETE, ChangeType.UPDATE_PREIMAGE):
            rows = {c.file.add.path: c.positions for c in plan.change_rows if c.change_type is kind}
            if rows:
                found = self.projected(self.rows_at(rows))
                parts.append(found.withColumn(CHANGE_TYPE, F.lit(str(kind))))
        return self.write_change_files(parts)

    def write_change_files(self, parts: Sequence[DataFrame]) -> tuple[AddCDCFile, ...]:
        """Change files of frames that have the table's columns and ``_change_type``."""
        names = [*(quoted(f.name) for f in self.after.schema), CHANGE_TYPE]
        whole = union([part.select(*names) for part in parts])
        files = write_files(whole, self.target(folder=CHANGE_FOLDER, extra=CHANGE_FIELDS))
        self.made.add(*files)
        return change_actions(files)

    def projected(self, frame: DataFrame) -> DataFrame:
        """Rows of the version before with the columns of the version after: new ones are null."""
        if self.metadata is None:
            return frame
        positional = (FILE_NUMBER, ROW_INDEX, ROW_ID, ROW_COMMIT_VERSION)
        keep = [name for name in positional if name in frame.columns]
        return project_rows(frame, self.after, own_rows=True, keep=keep)

    def commit(
        self,
        outcome: Outcome,
        *,
        started: float | None = None,
        txn: tuple[str, int] | None = None,
    ) -> CommitResult | None:
        """Commit what the plan came to; None if there is nothing to commit."""
        if not outcome.actions and self.metadata is None and txn is None:
            return None
        metrics = dict(outcome.metrics)
        if started is not None:
            metrics["executionTimeMs"] = str(round((time.monotonic() - started) * 1000))
            for stage in ("scan", "rewrite"):
                metrics[f"{stage}TimeMs"] = str(self.times.get(stage, 0))
        return self.commit_actions(
            outcome.actions, reads=outcome.reads, metrics=metrics, tags=outcome.tags, txn=txn
        )

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Count what happens inside as time of a stage."""
        began = time.monotonic()
        yield
        spent = round((time.monotonic() - began) * 1000)
        self.times[stage] = self.times.get(stage, 0) + spent

    def commit_actions(
        self,
        actions: Sequence[Action],
        *,
        reads: ReadSet,
        metrics: Mapping[str, str],
        tags: Mapping[str, str] | None = None,
        txn: tuple[str, int] | None = None,
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
            txn=txn,
            made=self.made,
        )

    def __enter__(self) -> RowChange:
        self.made = UncommittedFiles(self.snapshot.store)
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self.made.__exit__(kind, error, trace)
