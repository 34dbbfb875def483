"""Row tracking on Delta: fresh row ids under concurrent appends, stable ids under rewrites."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from twinlake.verify.checker import Failure, InitialState, Next, action, always
from twinlake.verify.models.mutation import WriterModel

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DeltaRowTracking"]

#: Mutants: a commit that lost a version keeps the ids it had assigned; a rewrite assigns new ids.
KEEPS_BASE_IDS, NEW_IDS_ON_REWRITE = "keeps-base-ids", "new-ids-on-rewrite"

IDLE, COMMIT = "IDLE", "COMMIT"
INSERT, UPDATE, OPTIMIZE = "INSERT", "UPDATE", "OPTIMIZE"


class _Row(NamedTuple):
    """A row as a reader sees it: who it is, its stable id, the version that changed it last."""

    name: int
    row_id: int
    commit_version: int


class _Version(NamedTuple):
    """A version: its rows, the high-water mark, the files a rewrite of it would replace."""

    rows: tuple[_Row, ...] = ()
    mark: int = -1
    #: Which version last replaced files: a rewrite that read an earlier one conflicts.
    rewritten: int = 0


class _Tracker(NamedTuple):
    """A writer and its operation."""

    state: str = IDLE
    kind: str = ""
    name: int = 0
    read_version: int = 0
    #: The mark from which ids are assigned.
    mark: int = -1


Log = tuple[_Version, ...]


@dataclass(frozen=True, kw_only=True)
class DeltaRowTracking(WriterModel):
    """Inserts, updates and optimizes that race for versions and for row ids."""

    title: ClassVar[str] = "Delta row tracking"
    mutants: ClassVar[tuple[str | None, ...]] = (None, KEEPS_BASE_IDS, NEW_IDS_ON_REWRITE)
    append_only: ClassVar[tuple[str, ...]] = ("log",)
    only_grows: ClassVar[tuple[str, ...]] = ("started",)

    max_ops: int = 3

    def initial(self) -> Iterator[InitialState]:
        """An empty table."""
        yield InitialState({"log": (_Version(),), "started": (0,)}, (_Tracker(),) * self.writers)

    @action(at=IDLE, writes=("started",))
    def start(self, _writer: _Tracker, log: Log, started: tuple[int]) -> Iterator[Next]:
        """Insert a new row, update a row, or rewrite all rows; ids follow the mark read."""
        if started[0] >= self.max_ops:
            return
        choices = [(INSERT, started[0] + 1)]
        choices += [(UPDATE, row.name) for row in log[-1].rows]
        choices += [(OPTIMIZE, 0)] if log[-1].rows else []
        for kind, name in choices:
            opened = _Tracker(COMMIT, kind, name, len(log) - 1, log[-1].mark)
            yield Next(opened, {"started": (started[0] + 1,)}, {"operation": kind, "row": name})

    @action(at=COMMIT, writes=("log",))
    def commit(self, writer: _Tracker, log: Log) -> Iterator[Next]:
        """Put the next version; after losing one, ids are assigned above the winner's mark."""
        newest, version = log[-1], len(log)
        if writer.kind != INSERT and newest.rewritten > writer.read_version:
            yield Next(_Tracker(), arguments={"conflict": True})
            return
        mark = writer.mark if self.mutant == KEEPS_BASE_IDS else newest.mark
        if writer.kind == INSERT:
            rows = (*newest.rows, _Row(writer.name, mark + 1, version))
            after = _Version(rows, max(mark + 1, newest.mark), newest.rewritten)
        else:
            rows = tuple(self._rewritten(row, writer, mark, version) for row in newest.rows)
            # The new file has a base id of its own, whether its rows need fresh ids or not.
            after = _Version(rows, max(mark + len(rows), newest.mark), version)
        yield Next(_Tracker(), {"log": (*log, after)}, {"version": version, "mark": after.mark})

    def _rewritten(self, row: _Row, writer: _Tracker, mark: int, version: int) -> _Row:
        if self.mutant == NEW_IDS_ON_REWRITE:
            row = row._replace(row_id=mark + 1 + row.name)
        if writer.kind == UPDATE and row.name == writer.name:
            return row._replace(commit_version=version)
        return row

    @always
    def row_ids_are_unique(self, log: Log) -> Failure | None:
        """No two rows of a version share an id."""
        ids = [row.row_id for row in log[-1].rows]
        twice = sorted({one for one in ids if ids.count(one) > 1})
        if not twice:
            return None
        return Failure(f"version {len(log) - 1} has row id {twice[0]} twice", {"ids": ids})

    @always
    def row_ids_are_stable(self, log: Log) -> Failure | None:
        """A row keeps its id as long as it lives, and the mark covers every id and never falls."""
        newest, before = log[-1], log[-2] if len(log) > 1 else _Version()
        kept = {row.name: row.row_id for row in before.rows}
        for row in newest.rows:
            if kept.get(row.name, row.row_id) != row.row_id:
                return Failure(f"row {row.name} had id {kept[row.name]} and has {row.row_id}")
            if row.row_id > newest.mark:
                return Failure(f"row id {row.row_id} is above the mark {newest.mark}")
        return Failure("the mark falls") if newest.mark < before.mark else None

    @always
    def commit_versions_are_right(self, log: Log) -> Failure | None:
        """A row's commit version changes only with the row."""
        if len(log) < 2:
            return None
        before = {row.name: row.commit_version for row in log[-2].rows}
        changed = [
            row
            for row in log[-1].rows
            if before.get(row.name) not in (None, row.commit_version)
            and row.commit_version != len(log) - 1
        ]
        return Failure(f"row {changed[0].name} has a wrong commit version") if changed else None
