"""Manifests: fast appends, merging appends, and rewrites that only move entries about.

Rows are keys, every data file has one row, and deletes go by key and sequence number, so that a
manifest entry that loses its sequence number brings a deleted row back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from twinlake.verify.checker import (
    ActionCheck,
    CompareAndSwap,
    Failure,
    InitialState,
    Next,
    action,
    always,
    eventually_always,
)
from twinlake.verify.models.mutation import WriterModel

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

__all__ = ["FAST_APPEND", "MERGING_APPEND", "ManifestRewriting"]

#: Mutants: rewritten entries take the sequence number of their new manifest; they are marked as
#: added; a rewrite puts its manifest in the place of all that are there when it commits; it does
#: not look whether what it replaces is still there; an append that lost its swap uses the merged
#: manifest of its first attempt again.
LOSES_SEQUENCE_NUMBERS, MARKS_ADDED = "loses-sequence-numbers", "marks-added"
REPLACES_ALL_MANIFESTS, UNCHECKED_MANIFESTS = "replaces-all-manifests", "unchecked-manifests"
REUSES_MERGED = "reuses-merged"

IDLE, READ, BUILD, COMMIT = "IDLE", "READ", "BUILD", "COMMIT"
FAST_APPEND, MERGING_APPEND = "fast append", "merge append"
DELETE_KEY, DROP_FILES, REWRITE = "delete key", "drop files", "rewrite manifests"
ADDED, EXISTING, DELETED = "ADDED", "EXISTING", "DELETED"


class _Entry(NamedTuple):
    """A manifest entry; without a sequence number of its own it has that of its manifest."""

    status: str
    path: str
    key: str
    sequence_number: int | None = None


class _Manifest(NamedTuple):
    """A manifest and the sequence number of the commit that added it."""

    path: str
    sequence_number: int
    entries: tuple[_Entry, ...]

    def kept(self) -> Iterator[_Entry]:
        """Its live entries as another manifest takes them over."""
        for entry in self.entries:
            if entry.status != DELETED:
                number = entry.sequence_number or self.sequence_number
                yield _Entry(EXISTING, entry.path, entry.key, number)


class _Version(NamedTuple):
    """A version: its manifests, its deletes by key, and what its commit did."""

    manifests: tuple[_Manifest, ...] = ()
    deletes: tuple[tuple[str, int], ...] = ()
    operation: str = ""
    key: str = ""


class _Editor(NamedTuple):
    """A writer and its operation."""

    state: str = IDLE
    operation: str = ""
    key: str = ""
    read_version: int = -1
    base: int = -1
    #: What a rewrite replaces, and the entries it found there; what an append had merged before.
    replaced: tuple[str, ...] = ()
    entries: tuple[_Entry, ...] = ()
    failed: bool = False


Table = tuple[_Version, ...]
#: How many operations have started and how many have aborted.
Counts = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class ManifestRewriting(WriterModel):
    """Appends of both kinds, deletes by key, dropped files, and rewrites of manifests."""

    title: ClassVar[str] = "Iceberg manifests"
    mutants: ClassVar[tuple[str | None, ...]] = (
        None,
        LOSES_SEQUENCE_NUMBERS,
        MARKS_ADDED,
        REPLACES_ALL_MANIFESTS,
        UNCHECKED_MANIFESTS,
        REUSES_MERGED,
    )
    append_only: ClassVar[tuple[str, ...]] = ("table",)
    only_grows: ClassVar[tuple[str, ...]] = ("counts",)

    #: The kinds of append that writers use.
    appends: tuple[str, ...] = (FAST_APPEND, MERGING_APPEND)
    keys: tuple[str, ...] = ("a",)
    max_ops: int = 4

    def initial(self) -> Iterator[InitialState]:
        """An empty table."""
        shared: dict[str, Hashable] = {"table": (_Version(),), "counts": (0, 0)}
        yield InitialState(shared, (_Editor(),) * self.writers)

    def interchangeable(self) -> tuple[tuple[Hashable, ...], ...]:
        """The keys."""
        return (self.keys,)

    @action(at=IDLE, writes=("counts",))
    def start(self, _editor: _Editor, table: Table, counts: Counts) -> Iterator[Next]:
        """Choose an operation; only a rewrite reads."""
        if counts[0] >= self.max_ops:
            return
        kinds = (*self.appends, *((DELETE_KEY, DROP_FILES) if len(table) > 1 else ()))
        chosen = [(kind, key) for kind in kinds for key in self.keys]
        if table[-1].manifests:
            chosen.append((REWRITE, ""))
        for kind, key in chosen:
            state = READ if kind == REWRITE else BUILD
            opened = _Editor(state, kind, key, len(table) - 1)
            after = {"counts": (counts[0] + 1, counts[1])}
            yield Next(opened, after, {"operation": kind, "key": key})

    @action(at=READ, frozen={"table": "read_version"})
    def read_manifests(self, editor: _Editor, table: Table) -> Iterator[Next]:
        """Read the manifests that a rewrite will replace."""
        found = table[-1].manifests
        read = editor._replace(
            state=BUILD,
            replaced=tuple(one.path for one in found),
            entries=tuple(entry for one in found for entry in one.kept()),
        )
        yield Next(read, arguments={"manifests": read.replaced})

    @action(at=BUILD)
    def write_metadata(self, editor: _Editor, table: Table) -> Iterator[Next]:
        """Refresh; a rewrite goes on only if all it replaces is still there."""
        checks = self._checks(editor, table)
        if all(check.passed for check in checks):
            ready = editor._replace(state=COMMIT, base=len(table) - 1)
            if self.mutant == REUSES_MERGED and not editor.failed:
                ready = ready._replace(entries=tuple(_merged(table[-1].manifests)))
            yield Next(ready, arguments={"base version": ready.base}, checks=checks)

    @action(at=BUILD, writes=("counts",), name="WriteMetadata (abort)")
    def abort(self, editor: _Editor, table: Table, counts: Counts) -> Iterator[Next]:
        """Give up: a manifest that was to be replaced is gone."""
        checks = self._checks(editor, table)
        if not all(check.passed for check in checks):
            yield Next(_Editor(), {"counts": (counts[0], counts[1] + 1)}, checks=checks)

    def _checks(self, editor: _Editor, table: Table) -> tuple[ActionCheck, ...]:
        if editor.operation != REWRITE or self.mutant == UNCHECKED_MANIFESTS:
            return ()
        there = {one.path for one in table[-1].manifests}
        gone = [path for path in editor.replaced if path not in there]
        return (ActionCheck("replaced manifests are there", not gone, ", ".join(gone)),)

    @action(
        at=COMMIT,
        writes=("table",),
        swap=CompareAndSwap(variable="table", base="base", otherwise="retry"),
    )
    def commit(self, editor: _Editor, table: Table) -> Iterator[Next]:
        """Swap the register to the new version."""
        version = self.build(editor, table)
        paths = [one.path for one in version.manifests]
        yield Next(_Editor(), {"table": (*table, version)}, {"manifests": paths})

    def retry(self, editor: _Editor) -> _Editor:
        """The swap failed: refresh and build again."""
        return editor._replace(state=BUILD, base=-1, failed=self.mutant == REUSES_MERGED)

    def build(self, editor: _Editor, table: Table) -> _Version:
        """The version an operation makes on top of the newest one."""
        parent, number = table[-1], len(table)
        manifests, deletes = parent.manifests, parent.deletes
        added = _Entry(ADDED, f"data-{number}", editor.key)
        if editor.operation == FAST_APPEND:
            manifests = (*manifests, _Manifest(f"manifest-{number}", number, (added,)))
        elif editor.operation == MERGING_APPEND:
            old = editor.entries if self.mutant == REUSES_MERGED else _merged(manifests)
            manifests = (_Manifest(f"manifest-{number}", number, (*old, added)),)
        elif editor.operation == DELETE_KEY:
            deletes = (*deletes, (editor.key, number))
        elif editor.operation == DROP_FILES:
            manifests = tuple(_dropped(manifests, editor.key, number))
        else:
            manifests = self._rewritten(editor, manifests, number)
        return _Version(manifests, deletes, editor.operation, editor.key)

    def _rewritten(
        self, editor: _Editor, manifests: tuple[_Manifest, ...], number: int
    ) -> tuple[_Manifest, ...]:
        entries = editor.entries
        if self.mutant == LOSES_SEQUENCE_NUMBERS:
            entries = tuple(entry._replace(sequence_number=None) for entry in entries)
        if self.mutant == MARKS_ADDED:
            entries = tuple(entry._replace(status=ADDED) for entry in entries)
        others = tuple(one for one in manifests if one.path not in editor.replaced)
        if self.mutant == REPLACES_ALL_MANIFESTS:
            others = ()
        return (_Manifest(f"manifest-{number}", number, entries), *others)

    # --- what must hold ---------------------------------------------------------------------------

    @always
    def consistent_read(self, table: Table) -> Failure | None:
        """A version has the rows that its commits, one after the other, leave."""
        wanted = _replayed(table)
        found = sorted(_rows(table[-1]))
        if wanted == found:
            return None
        return Failure(
            f"version {len(table) - 1}: expected {wanted}, read {found}",
            {"version": len(table) - 1, "expected": wanted, "actual": found},
        )

    @always
    def only_appends_add(self, table: Table) -> Failure | None:
        """Reading only what was added since a version finds what was appended, and no more."""
        if len(table) < 2:
            return None
        before = {one.path for one in table[-2].manifests}
        added = [
            entry.path
            for one in table[-1].manifests
            if one.path not in before
            for entry in one.entries
            if entry.status == ADDED
        ]
        appended = table[-1].operation in (FAST_APPEND, MERGING_APPEND)
        wanted = [f"data-{len(table) - 1}"] if appended else []
        if added == wanted:
            return None
        return Failure(f"version {len(table) - 1} adds {added} instead of {wanted}")

    @always
    def fast_appends_leave_manifests_alone(self, table: Table) -> Failure | None:
        """A fast append adds one manifest to those that are there."""
        if table[-1].operation != FAST_APPEND:
            return None
        if table[-1].manifests[:-1] == table[-2].manifests:
            return None
        return Failure(f"version {len(table) - 1} changes manifests of the one before it")

    @always
    def no_file_is_listed_twice(self, table: Table) -> Failure | None:
        """A live data file is in one manifest only."""
        paths = [entry.path for entry in _merged(table[-1].manifests)]
        twice = sorted({path for path in paths if paths.count(path) > 1})
        return Failure(f"{twice[0]} is listed twice") if twice else None

    @eventually_always
    def everything_ends(self, table: Table, counts: Counts) -> bool:
        """In the end every operation has committed or aborted."""
        return len(table) - 1 + counts[1] == counts[0]

    def show_change(self, variable: str, before: Any, after: Any) -> Any:
        """A new version as its operation and the entries of its manifests."""
        if variable != "table":
            return super().show_change(variable, before, after)
        return {
            "version": len(after) - 1,
            "operation": after[-1].operation,
            "manifests": {
                one.path: {entry.path: entry.status for entry in one.entries}
                for one in after[-1].manifests
            },
        }


def _merged(manifests: Iterable[_Manifest]) -> Iterator[_Entry]:
    for one in manifests:
        yield from one.kept()


def _dropped(manifests: Iterable[_Manifest], key: str, number: int) -> Iterator[_Manifest]:
    """Manifests without the files of a key; those that have none are taken over as they are."""
    for index, one in enumerate(manifests):
        kept = tuple(one.kept())
        if all(entry.key != key for entry in kept):
            yield one
            continue
        entries = tuple(
            entry._replace(status=DELETED) if entry.key == key else entry for entry in kept
        )
        yield _Manifest(f"manifest-{number}.{index}", number, entries)


def _rows(version: _Version) -> Iterator[str]:
    """The keys that can be read; a delete hides what has a smaller sequence number."""
    for entry in _merged(version.manifests):
        number = entry.sequence_number or 0
        if all(key != entry.key or at <= number for key, at in version.deletes):
            yield entry.key


def _replayed(table: Table) -> list[str]:
    rows: list[str] = []
    for version in table[1:]:
        if version.operation in (FAST_APPEND, MERGING_APPEND):
            rows.append(version.key)
        elif version.operation != REWRITE:
            rows = [key for key in rows if key != version.key]
    return sorted(rows)
