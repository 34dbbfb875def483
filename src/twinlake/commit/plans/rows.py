"""DELETE, UPDATE and what MERGE shares with them: rows that leave a file or change in it.

For every touched file there is one step:

* no live row stays as it is: the file is dropped whole, without reading it again;
* the table has deletion vectors: the file stays, and a vector hides the rows;
* else the file is rewritten without them.

Updated rows go to new files in all three cases.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from twinlake.commit.plans.file_statistics import (
    loosened_stats,
    rendered,
    total,
    total_size,
)
from twinlake.commit.plans.model import (
    ChangeType,
    Mode,
    Outcome,
    TableRules,
    TouchedFile,
    Written,
    refuse,
)
from twinlake.commit.row_tracking import PRESERVED_TAG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyroaring import AbstractBitMap64 as Positions

    from twinlake.actions import AddCDCFile, AddFile, RemoveFile
    from twinlake.commit.read_set import ReadSet

__all__ = [
    "ChangeRows",
    "DropFile",
    "RewriteFile",
    "RowPlan",
    "Step",
    "WriteDeletionVector",
    "plan_delete",
    "plan_delete_files",
    "plan_rows",
    "plan_update",
]


@dataclass(frozen=True, slots=True)
class DropFile:
    """No row of the file stays as it is: remove it, read nothing for it but updated rows."""

    file: TouchedFile


@dataclass(frozen=True, slots=True)
class WriteDeletionVector:
    """Keep the file and write a vector of these positions, the hidden ones of before included."""

    file: TouchedFile
    positions: Positions


@dataclass(frozen=True, slots=True)
class RewriteFile:
    """Copy the rows at these positions, unchanged, to new files."""

    file: TouchedFile
    keep: Positions


Step = DropFile | WriteDeletionVector | RewriteFile


@dataclass(frozen=True, slots=True)
class ChangeRows:
    """Rows of one file that belong in change files, under one change type."""

    file: TouchedFile
    change_type: ChangeType
    positions: Positions


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPlan:
    """What the engine has to do for a DELETE, UPDATE or MERGE, and then what to commit."""

    operation: str
    rules: TableRules
    steps: tuple[Step, ...]
    reads: ReadSet
    inserted_rows: int = 0
    extra_metrics: Mapping[str, int]

    @property
    def deleted_rows(self) -> int:
        """Rows that leave the table."""
        return sum(len(step.file.delete) for step in self.steps)

    @property
    def updated_rows(self) -> int:
        """Rows that get new values; the engine writes them to new files."""
        return sum(len(step.file.update) for step in self.steps)

    @property
    def copied_rows(self) -> int:
        """Rows that are copied unchanged."""
        return sum(len(step.keep) for step in self.steps if isinstance(step, RewriteFile))

    @property
    def output_rows(self) -> int:
        """Rows in the new data files, all together."""
        return self.copied_rows + self.updated_rows + self.inserted_rows

    @property
    def materialise_row_ids(self) -> bool:
        """Whether rows must carry their row id in the materialised column to their new file.

        Copied rows carry their commit version too; updated rows get that of this commit.
        """
        return self.rules.row_tracking and self.copied_rows + self.updated_rows > 0

    @property
    def needs_change_files(self) -> bool:
        """Whether adds and removes alone would tell a reader of changes something wrong.

        Whole files that come and go need none. As soon as one change file is there, readers look at
        nothing else in the version, so then every change of the operation has to be in them.
        """
        return self.rules.change_data and (
            self.updated_rows > 0 or any(not isinstance(step, DropFile) for step in self.steps)
        )

    @property
    def change_rows(self) -> tuple[ChangeRows, ...]:
        """What to write to change files; inserted rows join them as ``insert``."""
        if not self.needs_change_files:
            return ()
        wanted = (
            ChangeRows(step.file, kind, rows)
            for step in self.steps
            for kind, rows in (
                (ChangeType.DELETE, step.file.delete),
                (ChangeType.UPDATE_PREIMAGE, step.file.update),
                (ChangeType.UPDATE_POSTIMAGE, step.file.update),
            )
        )
        return tuple(change for change in wanted if len(change.positions))

    def finish(self, written: Written, *, now: int) -> Outcome:
        """The commit, given what the engine wrote; refuses results that would lose or add rows."""
        files = _non_empty(written.files)
        if problems := self._problems(files, written):
            raise refuse(f"The results of {self.operation} do not fit its plan.", problems)
        removes, kept = [], []
        for step in self.steps:
            removes.append(step.file.add.remove(deletion_timestamp=now))
            if isinstance(step, WriteDeletionVector):
                kept.append(_with_vector(step, written))
        new = [msgspec.structs.replace(file, data_change=True) for file in files]
        changes = [msgspec.structs.replace(file, data_change=False) for file in written.changes]
        tally = _Tally(
            plan=self,
            new=tuple(new),
            dropped=tuple(s.file.add for s in self.steps if not isinstance(s, WriteDeletionVector)),
            removes=tuple(removes),
            kept=tuple(kept),
            changes=tuple(changes),
        )
        return Outcome(
            operation=self.operation,
            removes=tuple(removes),
            adds=tuple(sorted((*kept, *new), key=_by_path)),
            changes=tuple(sorted(changes, key=_by_path)),
            metrics=rendered({**_METRICS[self.operation](tally), **self.extra_metrics}),
            reads=self.reads,
            tags={PRESERVED_TAG: "true"} if self.rules.row_tracking else {},
        )

    def _problems(self, files: tuple[AddFile, ...], written: Written) -> list[str]:
        found = [*_vector_problems(self.steps, written)]
        old = {step.file.add.path for step in self.steps}
        seen: set[str] = set()
        for file in files:
            if file.path in old or file.path in seen:
                found.append(f"{file.path}: a new file has the path of another one")
            if file.deletion_vector is not None:
                found.append(f"{file.path}: a new file has a deletion vector")
            seen.add(file.path)
        rows = total(file.num_records for file in files)
        if rows is not None and rows != self.output_rows:
            found.append(f"the new files hold {rows} rows, the plan has {self.output_rows}")
        if not files and self.output_rows:
            found.append(f"no new files, the plan has {self.output_rows} rows for them")
        if self.needs_change_files and not written.changes:
            found.append("change files are missing")
        if written.changes and not self.needs_change_files:
            found.append("change files were written where adds and removes say it all")
        return sorted(set(found))


def plan_delete(files: Iterable[TouchedFile], *, rules: TableRules, reads: ReadSet) -> RowPlan:
    """The plan of a DELETE whose matching rows are in ``delete`` of each file."""
    return plan_rows("DELETE", files, rules=rules, reads=reads, allowed=("delete",))


def plan_update(files: Iterable[TouchedFile], *, rules: TableRules, reads: ReadSet) -> RowPlan:
    """The plan of an UPDATE whose matching rows are in ``update`` of each file."""
    return plan_rows("UPDATE", files, rules=rules, reads=reads, allowed=("update",))


def plan_delete_files(
    files: Iterable[AddFile], *, rules: TableRules, reads: ReadSet, now: int
) -> Outcome:
    """The commit of a DELETE that partition values decide alone: no data file is read.

    The same serves DELETE without a predicate and the removal half of an overwrite.
    """
    gone = tuple(sorted(files, key=_by_path))
    if gone:
        rules.refuse_row_loss("DELETE")
    if problems := _repeated(file.path for file in gone):
        raise refuse("DELETE cannot be planned.", problems)
    return Outcome(
        operation="DELETE",
        removes=tuple(file.remove(deletion_timestamp=now) for file in gone),
        metrics=rendered(
            {
                "numRemovedFiles": len(gone),
                "numRemovedBytes": total_size(gone),
                "numAddedFiles": 0,
                "numAddedBytes": 0,
                "numDeletedRows": total(file.num_live_records for file in gone),
                "numCopiedRows": 0,
                "numDeletionVectorsAdded": 0,
                "numDeletionVectorsRemoved": _with_vectors(gone),
                "numDeletionVectorsUpdated": 0,
                "numAddedChangeFiles": 0,
            }
        ),
        reads=reads.with_files(file.path for file in gone),
        tags={PRESERVED_TAG: "true"} if rules.row_tracking else {},
    )


def plan_rows(
    operation: str,
    files: Iterable[TouchedFile],
    *,
    rules: TableRules,
    reads: ReadSet,
    allowed: tuple[str, ...] = ("delete", "update"),
    inserted_rows: int = 0,
    extra_metrics: Mapping[str, int] | None = None,
) -> RowPlan:
    """One step for each file that loses or changes rows; the others were only read."""
    seen = tuple(sorted(files, key=lambda file: file.add.path))
    problems = _repeated(file.add.path for file in seen)
    for file in seen:
        problems += file.problems()
        problems += [
            f"{file.add.path}: {operation} does not {kind} rows"
            for kind in ("delete", "update")
            if kind not in allowed and len(getattr(file, kind))
        ]
    if inserted_rows < 0:
        problems.append(f"{inserted_rows} inserted rows")
    if problems:
        raise refuse(f"{operation} cannot be planned.", problems)
    changed = [file for file in seen if len(file.delete) or len(file.update)]
    if changed:
        rules.refuse_row_loss(operation)
    return RowPlan(
        operation=operation,
        rules=rules,
        steps=tuple(_step(file, rules.mode) for file in changed),
        reads=reads.with_files(file.add.path for file in seen),
        inserted_rows=inserted_rows,
        extra_metrics=extra_metrics or {},
    )


def _step(file: TouchedFile, mode: Mode) -> Step:
    if file.kept_count == 0:
        return DropFile(file)
    if mode is Mode.DELETION_VECTORS:
        return WriteDeletionVector(file, file.hidden | file.delete | file.update)
    return RewriteFile(file, file.kept)


def _with_vector(step: WriteDeletionVector, written: Written) -> AddFile:
    # Everything else about the file stays: tags, row ids, clustering, fields we have no name for.
    add = step.file.add
    return msgspec.structs.replace(
        add,
        data_change=True,
        deletion_vector=written.vectors[add.path],
        stats=loosened_stats(add.stats, step.file.physical_rows),
    )


def _vector_problems(steps: Iterable[Step], written: Written) -> Iterable[str]:
    wanted = {s.file.add.path: s for s in steps if isinstance(s, WriteDeletionVector)}
    for path in sorted(wanted.keys() - written.vectors.keys()):
        yield f"{path}: its deletion vector is missing"
    for path in sorted(written.vectors.keys() - wanted.keys()):
        yield f"{path}: an unexpected deletion vector"
    for path in sorted(wanted.keys() & written.vectors.keys()):
        vector, step = written.vectors[path], wanted[path]
        if vector.cardinality != len(step.positions):
            yield (
                f"{path}: its deletion vector hides {vector.cardinality} rows, "
                f"the plan has {len(step.positions)}"
            )
        old = step.file.add.deletion_vector
        if old is not None and old.unique_id == vector.unique_id:
            yield f"{path}: its deletion vector has the id of the old one"


def _non_empty(files: Iterable[AddFile]) -> tuple[AddFile, ...]:
    return tuple(file for file in files if file.num_records != 0)


def _repeated(paths: Iterable[str]) -> list[str]:
    counts = Counter(paths)
    return [f"{path}: named twice" for path in sorted(counts) if counts[path] > 1]


def _by_path(file: AddFile | RemoveFile | AddCDCFile) -> str:
    return file.path


def _with_vectors(files: Iterable[AddFile | RemoveFile]) -> int:
    return sum(file.deletion_vector is not None for file in files)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tally:
    """What a finished plan made, ready to be counted.

    A file that only got another vector is neither an added nor a removed file to Delta's metrics.
    """

    plan: RowPlan
    new: tuple[AddFile, ...]
    dropped: tuple[AddFile, ...]
    removes: tuple[RemoveFile, ...]
    kept: tuple[AddFile, ...]
    changes: tuple[AddCDCFile, ...]

    def vectors(self, prefix: str) -> dict[str, int]:
        before = {remove.path for remove in self.removes if remove.deletion_vector is not None}
        return {
            f"{prefix}DeletionVectorsAdded": len(self.kept),
            f"{prefix}DeletionVectorsRemoved": len(before),
            f"{prefix}DeletionVectorsUpdated": sum(add.path in before for add in self.kept),
        }

    def files(self) -> dict[str, int]:
        return {
            "numRemovedFiles": len(self.dropped),
            "numRemovedBytes": total_size(self.dropped),
            "numAddedFiles": len(self.new),
            "numAddedBytes": total_size(self.new),
            "numAddedChangeFiles": len(self.changes),
            "numCopiedRows": self.plan.copied_rows,
            **self.vectors("num"),
        }


def _delete_metrics(tally: _Tally) -> dict[str, int | None]:
    return {**tally.files(), "numDeletedRows": tally.plan.deleted_rows}


def _update_metrics(tally: _Tally) -> dict[str, int | None]:
    # Unlike DELETE, Delta counts a file that only got another vector as removed here.
    return {
        **tally.files(),
        "numRemovedFiles": len(tally.removes),
        "numUpdatedRows": tally.plan.updated_rows,
    }


def _merge_metrics(tally: _Tally) -> dict[str, int | None]:
    plan = tally.plan
    return {
        "numTargetRowsInserted": plan.inserted_rows,
        "numTargetRowsUpdated": plan.updated_rows,
        "numTargetRowsDeleted": plan.deleted_rows,
        "numTargetRowsCopied": plan.copied_rows,
        "numOutputRows": plan.output_rows,
        "numTargetFilesAdded": len(tally.new),
        "numTargetFilesRemoved": len(tally.dropped),
        "numTargetBytesAdded": total_size(tally.new),
        "numTargetBytesRemoved": total_size(tally.dropped),
        "numTargetChangeFilesAdded": len(tally.changes),
        "numTargetChangeFileBytes": sum(change.size for change in tally.changes),
        **tally.vectors("numTarget"),
    }


_METRICS: Final[Mapping[str, Callable[[_Tally], dict[str, int | None]]]] = {
    "DELETE": _delete_metrics,
    "UPDATE": _update_metrics,
    "MERGE": _merge_metrics,
}
