"""OPTIMIZE and REORG PURGE: which files are written together into which new ones.

Neither changes a row, so everything is ``dataChange=false``: streams and change feeds pass over it,
and the commit may run under snapshot isolation.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from twinlake.commit.plans.file_statistics import (
    file_size_metrics,
    rendered,
    total,
    total_size,
)
from twinlake.commit.plans.model import (
    Outcome,
    TableRules,
    refuse,
)
from twinlake.commit.read_set import ReadSet
from twinlake.commit.row_tracking import PRESERVED_TAG

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from twinlake.actions import AddFile

__all__ = ["Bin", "CompactionPlan", "OptimizeOptions", "plan_optimize", "plan_reorg_purge"]

_GIB = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizeOptions:
    """Which files are rewritten, and how large the new ones are to be."""

    target_size: int = _GIB
    min_file_size: int | None = None
    """Files from this size on are left alone; the target size unless given."""
    max_deleted_ratio: float = 0.05
    """Files of any size are taken when more than this share of their rows is hidden."""
    lone_files: bool = True
    """Whether a file that finds no other is rewritten for its deleted rows (Delta 4.4: no)."""

    def __post_init__(self) -> None:
        problems = [
            *(["target_size must be positive"] if self.target_size <= 0 else []),
            *(["min_file_size must not be negative"] if (self.min_file_size or 0) < 0 else []),
            *(
                []
                if 0 <= self.max_deleted_ratio <= 1
                else ["max_deleted_ratio must be between 0 and 1"]
            ),
        ]
        if problems:
            raise refuse(
                "The options of OPTIMIZE cannot be used.", problems, fix="Correct these options."
            )

    def takes(self, add: AddFile) -> bool:
        """Whether the file is a candidate."""
        limit = self.target_size if self.min_file_size is None else self.min_file_size
        return add.size < limit or self._too_hollow(add)

    def _too_hollow(self, add: AddFile) -> bool:
        if add.deletion_vector is None:
            return False
        rows = add.num_records
        # Without a row count the vector may mark nearly every row: only a rewrite tells.
        return not rows or add.deletion_vector.cardinality / rows > self.max_deleted_ratio


@dataclass(frozen=True, slots=True)
class Bin:
    """Files of one partition that become new ones together; hidden rows are left behind."""

    files: tuple[AddFile, ...]

    @property
    def partition_values(self) -> dict[str, str | None]:
        """The partition the new files belong to."""
        return self.files[0].partition_values

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return total_size(self.files)

    @property
    def live_rows(self) -> int | None:
        """Rows the new files must hold; None where statistics do not say."""
        return total(file.num_live_records for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan:
    """Bins to write, and then what to commit."""

    operation: str
    bins: tuple[Bin, ...]
    rules: TableRules
    reads: ReadSet
    considered: int
    skipped: int

    @property
    def materialise_row_ids(self) -> bool:
        """Whether the rows must carry their ids and commit versions with them."""
        return self.rules.row_tracking and bool(self.bins)

    def finish(self, written: Sequence[Sequence[AddFile]], *, now: int) -> Outcome:
        """The commit, given the new files of each bin in the order of ``bins``."""
        if len(written) != len(self.bins):
            raise refuse(
                f"The results of {self.operation} do not fit its plan.",
                [f"{len(self.bins)} bins were planned, {len(written)} written"],
            )
        old = {file.path for packed in self.bins for file in packed.files}
        removes, adds, problems = [], [], []
        seen = set(old)
        for packed, files in zip(self.bins, written, strict=True):
            new = [file for file in files if file.num_records != 0]
            problems += _bin_problems(packed, new, seen)
            seen.update(file.path for file in new)
            adds += [msgspec.structs.replace(file, data_change=False) for file in new]
            removes += [f.remove(deletion_timestamp=now, data_change=False) for f in packed.files]
        if problems:
            raise refuse(f"The results of {self.operation} do not fit its plan.", problems)
        return Outcome(
            operation=self.operation,
            removes=tuple(sorted(removes, key=lambda file: file.path)),
            adds=tuple(sorted(adds, key=lambda file: file.path)),
            metrics=rendered(
                {
                    "numRemovedFiles": len(removes),
                    "numRemovedBytes": sum(packed.size for packed in self.bins),
                    "numAddedFiles": len(adds),
                    "numAddedBytes": total_size(adds),
                    "numDeletionVectorsRemoved": sum(
                        remove.deletion_vector is not None for remove in removes
                    ),
                    **file_size_metrics(file.size for file in adds),
                }
            ),
            reads=self.reads,
            changes_data=False,
            tags={PRESERVED_TAG: "true"} if self.rules.row_tracking else {},
        )


def plan_optimize(
    files: Iterable[AddFile],
    *,
    rules: TableRules,
    options: OptimizeOptions | None = None,
) -> CompactionPlan:
    """Small files together up to the target size, partition by partition.

    ``files`` are those the (partition) predicate left. A bin of one file is only worth it if that
    file has hidden rows to shed.
    """
    options = options or OptimizeOptions()
    seen = _distinct("OPTIMIZE", files)
    bins = _pack(filter(options.takes, seen), options.target_size)
    worth = [
        b
        for b in bins
        if len(b.files) > 1 or (options.lone_files and b.files[0].deletion_vector is not None)
    ]
    return _compaction("OPTIMIZE", worth, seen, rules)


def plan_reorg_purge(
    files: Iterable[AddFile],
    *,
    rules: TableRules,
    stale: Collection[str] = (),
    target_size: int = _GIB,
) -> CompactionPlan:
    """Rewrite every file with a deletion vector, so that deleted rows leave the current files.

    ``stale`` names more files to rewrite: those whose Parquet still holds dropped columns.
    """
    seen = _distinct("REORG", files)
    wanted = [f for f in seen if f.deletion_vector is not None or f.path in stale]
    return _compaction("REORG", _pack(wanted, target_size), seen, rules)


def _compaction(
    operation: str,
    bins: Sequence[Bin],
    seen: Sequence[AddFile],
    rules: TableRules,
) -> CompactionPlan:
    paths = tuple(sorted(file.path for packed in bins for file in packed.files))
    return CompactionPlan(
        operation=operation,
        bins=tuple(bins),
        rules=rules,
        # Only the rewritten files matter: an append to the same partition is no conflict.
        reads=ReadSet(files=frozenset(paths)),
        considered=len(seen),
        skipped=len(seen) - len(paths),
    )


def _pack(files: Iterable[AddFile], target_size: int) -> list[Bin]:
    """Next-fit by ascending size: neighbours in size come together, and the order is fixed."""
    groups: dict[tuple[tuple[str, str], ...], list[AddFile]] = {}
    for file in files:
        groups.setdefault(_partition(file), []).append(file)
    bins: list[Bin] = []
    for _, group in sorted(groups.items()):
        current: list[AddFile] = []
        filled = 0
        for file in sorted(group, key=lambda file: (file.size, file.path)):
            if current and filled + file.size > target_size:
                bins.append(Bin(tuple(current)))
                current, filled = [], 0
            current.append(file)
            filled += file.size
        bins.append(Bin(tuple(current)))
    return bins


def _partition(file: AddFile) -> tuple[tuple[str, str], ...]:
    # The empty string means null in partition values, so the two are one partition.
    return tuple(sorted((name, value or "") for name, value in file.partition_values.items()))


def _bin_problems(packed: Bin, new: Sequence[AddFile], seen: set[str]) -> list[str]:
    found = []
    taken = set(seen)
    for file in new:
        if file.path in taken:
            found.append(f"{file.path}: a new file has the path of another one")
        if file.deletion_vector is not None:
            found.append(f"{file.path}: a new file has a deletion vector")
        if _partition(file) != _partition(packed.files[0]):
            found.append(f"{file.path}: it is not in the partition of the files it replaces")
        taken.add(file.path)
    expected, rows = packed.live_rows, total(file.num_records for file in new)
    if expected is not None and rows is not None and expected != rows:
        found.append(
            f"{packed.files[0].path} and the rest of its bin have {expected} rows, "
            f"the new files {rows}"
        )
    if not new and expected is None:
        found.append(f"{packed.files[0].path} and the rest of its bin came out without files")
    return found


def _distinct(operation: str, files: Iterable[AddFile]) -> tuple[AddFile, ...]:
    seen = tuple(sorted(files, key=lambda file: file.path))
    problems = [f"{a.path}: named twice" for a, b in pairwise(seen) if a.path == b.path]
    if problems:
        raise refuse(f"{operation} cannot be planned.", problems)
    return seen
