"""Every plan, applied to a naive table of rows, gives what the statement says.

The engine below does just what a plan asks for, row by row; the expected result is computed over a
flat list of rows, without files, vectors or plans.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from twinlake.actions import AddCDCFile, AddFile, DeletionVectorDescriptor, FileKey, RemoveFile
from twinlake.commit.plans import (
    RESERVED_FOLDERS,
    CompactionPlan,
    MergeClause,
    Mode,
    OptimizeOptions,
    Outcome,
    RewriteFile,
    RowPlan,
    TableRules,
    Then,
    TouchedFile,
    VacuumMode,
    VacuumRules,
    When,
    WriteDeletionVector,
    Written,
    ambiguous_rows,
    only_matched,
    plan_delete,
    plan_delete_files,
    plan_merge,
    plan_optimize,
    plan_reorg_purge,
    plan_restore,
    plan_update,
    plan_vacuum,
    touched,
)
from twinlake.commit.read_set import ReadSet
from twinlake.storage.interface import ObjectMeta

NOW = 1_000
BLOCK = 3  # rows the naive engine puts in one file


class Row(NamedTuple):
    key: int
    value: int


class Stored(NamedTuple):
    """A row in a file, with its row id if that is materialised."""

    row: Row
    row_id: int | None = None


class Seen(NamedTuple):
    """A row as a reader sees it."""

    row_id: int
    row: Row


Change = tuple[str, Row]


@dataclass
class Lake:
    """A table as a dictionary from files to rows, and the log replayed as the protocol says."""

    files: dict[str, list[Stored]] = field(default_factory=dict)
    vectors: dict[str, frozenset[int]] = field(default_factory=dict)
    change_files: dict[str, list[Change]] = field(default_factory=dict)
    live: dict[FileKey, AddFile] = field(default_factory=dict)
    next_row_id: int = 0
    next_name: int = 0

    def name(self, kind: str) -> str:
        self.next_name += 1
        return f"{kind}-{self.next_name:04}"

    def new_file(self, rows: Sequence[Stored], partition: dict[str, str | None]) -> AddFile:
        path = self.name("part")
        self.files[path] = list(rows)
        return AddFile(
            path=path,
            partition_values=partition,
            size=10 * len(rows) + 1,
            modification_time=0,
            data_change=True,
            stats=f'{{"numRecords":{len(rows)},"minValues":{{"d":1.10}}}}',
            tags={"INSERTION_TIME": path},
        )

    def new_vector(self, hidden: Iterable[int]) -> DeletionVectorDescriptor:
        chosen = frozenset(hidden)
        vector = DeletionVectorDescriptor("u", self.name("dv"), 8, len(chosen), 1)
        self.vectors[vector.unique_id] = chosen
        return vector

    def hidden(self, add: AddFile) -> frozenset[int]:
        vector = add.deletion_vector
        return frozenset() if vector is None else self.vectors[vector.unique_id]

    def rows_of(self, add: AddFile) -> dict[int, Seen]:
        base = add.base_row_id
        assert base is not None
        hidden = self.hidden(add)
        return {
            at: Seen(base + at if stored.row_id is None else stored.row_id, stored.row)
            for at, stored in enumerate(self.files[add.path])
            if at not in hidden
        }

    def rows(self) -> Counter[Seen]:
        return Counter(seen for add in self.live.values() for seen in self.rows_of(add).values())

    def commit(self, outcome: Outcome) -> None:
        for actions in (outcome.removes, outcome.adds, outcome.changes):
            paths = [action.path for action in actions]
            assert paths == sorted(set(paths)), "sorted, and each path once"
        for remove in outcome.removes:
            gone = self.live.pop(remove.key)
            assert (remove.base_row_id, remove.tags) == (gone.base_row_id, gone.tags)
            assert remove.deletion_timestamp == NOW
            assert remove.extended_file_metadata
        for add in outcome.adds:
            assert add.path not in {path for path, _ in self.live}, "live under one vector at most"
            assert self.files[add.path], "files without rows stay out of the log"
            self.live[add.key] = self.with_row_ids(add)
        assert {add.data_change for add in outcome.adds} <= {outcome.changes_data}
        assert {remove.data_change for remove in outcome.removes} <= {outcome.changes_data}

    def with_row_ids(self, add: AddFile) -> AddFile:
        if add.base_row_id is not None:
            return add
        base = self.next_row_id
        self.next_row_id += len(self.files[add.path])
        return msgspec.structs.replace(add, base_row_id=base, default_row_commit_version=1)

    def changes(self, outcome: Outcome, before: dict[FileKey, AddFile]) -> Counter[Change]:
        """What a reader of the change feed gets for the commit (protocol, Add CDC File)."""
        if outcome.changes:
            return Counter(c for file in outcome.changes for c in self.change_files[file.path])
        found: Counter[Change] = Counter()
        sides: tuple[tuple[str, Iterable[AddFile]], ...] = (
            ("insert", (self.live[add.key] for add in outcome.adds)),
            ("delete", (before[remove.key] for remove in outcome.removes)),
        )
        for kind, files in sides:
            for add in files:
                found.update((kind, seen.row) for seen in self.rows_of(add).values())
        return found


def run(lake: Lake, plan: RowPlan, change: Callable[[Row], Row], inserts: Sequence[Row]) -> Outcome:
    """The naive engine for DELETE, UPDATE and MERGE."""
    out: list[Stored] = []
    vectors = {}
    for step in plan.steps:
        add = step.file.add
        seen = lake.rows_of(add)
        carry = plan.materialise_row_ids
        if isinstance(step, RewriteFile):
            assert set(step.keep) <= set(seen)
            out += [Stored(seen[at].row, seen[at].row_id if carry else None) for at in step.keep]
        if isinstance(step, WriteDeletionVector):
            vectors[add.path] = lake.new_vector(step.positions)
        out += [
            Stored(change(seen[at].row), seen[at].row_id if carry else None)
            for at in step.file.update
        ]
    out += [Stored(row) for row in inserts]
    changed: list[Change] = []
    for rows in plan.change_rows:
        seen = lake.rows_of(rows.file.add)
        after = change if rows.change_type == "update_postimage" else lambda row: row
        changed += [(str(rows.change_type), after(seen[at].row)) for at in rows.positions]
    cdc = []
    if plan.needs_change_files:
        changed += [("insert", row) for row in inserts]
        path = lake.name("_change_data/cdc")
        lake.change_files[path] = changed
        cdc = [AddCDCFile(path=path, partition_values={}, size=7, data_change=False)]
    blocks = [out[at : at + BLOCK] for at in range(0, len(out), BLOCK)]
    blocks += [[]]  # an engine's empty task: its file must not reach the log
    files = tuple(lake.new_file(block, {"p": "x"}) for block in blocks)
    return plan.finish(Written(files=files, vectors=vectors, changes=tuple(cdc)), now=NOW)


ROWS = st.builds(Row, st.integers(0, 5), st.integers(0, 3))


@st.composite
def lakes(draw: st.DrawFn) -> Lake:
    lake = Lake()
    for rows in draw(st.lists(st.lists(ROWS, min_size=1, max_size=5), max_size=5)):
        partition: dict[str, str | None] = {"p": draw(st.sampled_from(["x", "y", None]))}
        add = lake.new_file([Stored(row) for row in rows], partition)
        hidden = draw(st.frozensets(st.integers(0, len(rows) - 1)))
        if hidden:
            add = msgspec.structs.replace(add, deletion_vector=lake.new_vector(hidden))
        add = lake.with_row_ids(add)
        lake.live[add.key] = add
    return lake


RULES = st.builds(
    TableRules,
    mode=st.sampled_from(Mode),
    change_data=st.booleans(),
    row_tracking=st.booleans(),
)
Predicate = Callable[[Row], bool]
PREDICATES: st.SearchStrategy[Predicate] = st.frozensets(ROWS, max_size=12).map(
    lambda chosen: lambda row: row in chosen
) | st.frozensets(st.integers(0, 5)).map(lambda keys: lambda row: row.key in keys)


def find(lake: Lake, add: AddFile, predicate: Predicate) -> list[int]:
    return [at for at, seen in lake.rows_of(add).items() if predicate(seen.row)]


def check_files(lake: Lake, outcome: Outcome, before: dict[FileKey, AddFile], prefix: str) -> None:
    """The metrics on files and vectors, counted again from the two states of the table."""
    metrics = {name: int(value) for name, value in outcome.metrics.items()}
    old = {add.path: add for add in before.values()}
    new = {add.path: add for add in lake.live.values()}
    both = [p for p in old.keys() & new.keys() if old[p].key != new[p].key]
    names = ("numRemovedFiles", "numAddedFiles", "numRemovedBytes", "numAddedBytes")
    if prefix == "numTarget":
        names = (
            "numTargetFilesRemoved",
            "numTargetFilesAdded",
            "numTargetBytesRemoved",
            "numTargetBytesAdded",
        )
    gone, come = old.keys() - new.keys(), new.keys() - old.keys()
    # UPDATE counts files that only got another vector as removed; so does Delta.
    counted = len(gone) + (len(both) if outcome.operation == "UPDATE" else 0)
    assert [metrics[name] for name in names] == [
        counted,
        len(come),
        sum(old[path].size for path in gone),
        sum(new[path].size for path in come),
    ]
    removed = [a for a in (*(old[p] for p in gone), *(old[p] for p in both)) if a.deletion_vector]
    assert metrics[f"{prefix}DeletionVectorsAdded"] == len(both)
    assert metrics[f"{prefix}DeletionVectorsRemoved"] == len(removed)
    assert metrics[f"{prefix}DeletionVectorsUpdated"] == sum(
        old[path].deletion_vector is not None for path in both
    )
    for path in both:
        assert new[path] == msgspec.structs.replace(
            old[path],
            deletion_vector=new[path].deletion_vector,
            stats=f'{{"numRecords":{len(lake.files[path])},"minValues":{{"d":1.10}},'
            '"tightBounds":false}',
            data_change=True,
        )


def without_ids(rows: Iterable[Seen]) -> Counter[Row]:
    return Counter(seen.row for seen in rows)


def check_rows(lake: Lake, expected: Counter[Seen], rules: TableRules) -> None:
    if rules.row_tracking:
        assert lake.rows() == expected
    assert without_ids(lake.rows().elements()) == without_ids(expected.elements())


@settings(max_examples=100)
@given(lakes(), RULES, PREDICATES)
def test_delete_is_a_filter(lake: Lake, rules: TableRules, predicate: Predicate) -> None:
    before, rows = dict(lake.live), lake.rows()
    files = [
        touched(a, delete=find(lake, a, predicate), hidden=lake.hidden(a)) for a in before.values()
    ]
    plan = plan_delete(files, rules=rules, reads=ReadSet())
    assert plan.reads.files == {add.path for add in before.values()}
    outcome = run(lake, plan, lambda row: row, [])
    lake.commit(outcome)

    gone = Counter({seen: n for seen, n in rows.items() if predicate(seen.row)})
    check_rows(lake, rows - gone, rules)
    check_files(lake, outcome, before, "num")
    assert outcome.metrics["numDeletedRows"] == str(gone.total())
    new = [add for add in outcome.adds if add.path not in {a.path for a in before.values()}]
    assert outcome.metrics["numCopiedRows"] == str(sum(len(lake.files[a.path]) for a in new))
    if rules.change_data:
        changes = {("delete", row): n for row, n in without_ids(gone.elements()).items()}
        assert lake.changes(outcome, before) == changes
    else:
        assert not outcome.changes
    untouched = {a.key for a in before.values() if not find(lake, a, predicate)}
    assert untouched <= lake.live.keys()


@settings(max_examples=50)
@given(lakes(), RULES, st.sampled_from(["x", "y", None]))
def test_delete_by_partition_reads_nothing(lake: Lake, rules: TableRules, part: str | None) -> None:
    before, rows = dict(lake.live), lake.rows()
    chosen = [add for add in before.values() if add.partition_values["p"] == part]
    gone = Counter(seen for add in chosen for seen in lake.rows_of(add).values())
    outcome = plan_delete_files(chosen, rules=rules, reads=ReadSet(), now=NOW)
    lake.commit(outcome)
    assert lake.rows() == rows - gone
    assert outcome.metrics["numDeletedRows"] == str(gone.total())
    check_files(lake, outcome, before, "num")
    assert lake.changes(outcome, before) == {
        ("delete", row): n for row, n in without_ids(gone.elements()).items()
    }


@settings(max_examples=100)
@given(lakes(), RULES, PREDICATES)
def test_update_is_a_map(lake: Lake, rules: TableRules, predicate: Predicate) -> None:
    before, rows = dict(lake.live), lake.rows()
    files = [
        touched(a, update=find(lake, a, predicate), hidden=lake.hidden(a)) for a in before.values()
    ]
    outcome = run(lake, plan_update(files, rules=rules, reads=ReadSet()), merged, [])
    lake.commit(outcome)

    old = Counter({seen: n for seen, n in rows.items() if predicate(seen.row)})
    new = Counter({Seen(seen.row_id, merged(seen.row)): n for seen, n in old.items()})
    check_rows(lake, rows - old + new, rules)
    check_files(lake, outcome, before, "num")
    assert outcome.metrics["numUpdatedRows"] == str(old.total())
    if rules.change_data:
        assert lake.changes(outcome, before) == Counter(
            [("update_preimage", row) for row in without_ids(old.elements()).elements()]
            + [("update_postimage", row) for row in without_ids(new.elements()).elements()]
        )


Condition = Callable[[Row | None, Row | None], bool | None]


def target_even(target: Row | None, source: Row | None) -> bool | None:
    return None if target is None else target.value % 2 == 0


def source_even(target: Row | None, source: Row | None) -> bool | None:
    return None if source is None else source.value % 2 == 0


def key_small(target: Row | None, source: Row | None) -> bool | None:
    return (source or target or Row(0, 0)).key < 3


def null(target: Row | None, source: Row | None) -> bool | None:
    return None


def always(target: Row | None, source: Row | None) -> bool | None:
    return True


CONDITIONS: tuple[Condition, ...] = (target_even, source_even, key_small, null)
Clause = tuple[MergeClause, Condition]


@st.composite
def clause_lists(draw: st.DrawFn) -> list[Clause]:
    found: list[Clause] = []
    for when, actions in (
        (When.MATCHED, [Then.UPDATE, Then.DELETE]),
        (When.NOT_MATCHED, [Then.INSERT]),
        (When.NOT_MATCHED_BY_SOURCE, [Then.UPDATE, Then.DELETE]),
    ):
        for _ in range(draw(st.integers(0, 2))):
            clause = MergeClause(when, draw(st.sampled_from(actions)), conditional=True)
            found.append((clause, draw(st.sampled_from(CONDITIONS))))
        if draw(st.booleans()):
            then = draw(st.sampled_from(actions))
            found.append((MergeClause(when, then), always))
    return found or [(MergeClause(When.NOT_MATCHED, Then.INSERT), always)]


def plain_merge(
    target: Counter[Seen], source: list[Row], clauses: list[Clause]
) -> tuple[Counter[Seen], Counter[Change], Counter[Row]] | None:
    """MERGE over flat rows: those that stay, the changes, the inserted; None if ambiguous."""
    kept: Counter[Seen] = Counter()
    changes: Counter[Change] = Counter()
    only = [clause for clause, _ in clauses if clause.when is When.MATCHED]
    kinds = {clause.when for clause, _ in clauses}
    for seen in target.elements():
        pairs: list[Row | None] = [row for row in source if row.key == seen.row.key]
        decided, unknown = [], 0
        for row in pairs or [None]:
            when = When.MATCHED if pairs else When.NOT_MATCHED_BY_SOURCE
            held = [(c.then, holds(seen.row, row)) for c, holds in clauses if c.when is when]
            decided += [then for then, holds in held if holds][:1]
            unknown += {holds for _, holds in held} in ({None}, {None, False})
        counted = len(pairs) - (unknown if kinds == {When.MATCHED} else 0)
        harmless = only == [MergeClause(When.MATCHED, Then.DELETE)] or kinds == {When.NOT_MATCHED}
        if counted > 1 and not harmless:
            return None
        if not decided:
            kept[seen] += 1
        elif decided[0] is Then.DELETE:
            changes["delete", seen.row] += 1
        else:
            new = merged(seen.row)
            kept[Seen(seen.row_id, new)] += 1
            changes["update_preimage", seen.row] += 1
            changes["update_postimage", new] += 1
    keys = {seen.row.key for seen in target}
    inserts = Counter(
        row
        for row in source
        if row.key not in keys
        and any(c.when is When.NOT_MATCHED and holds(None, row) for c, holds in clauses)
    )
    for row, count in inserts.items():
        changes["insert", row] += count
    return kept, changes, inserts


def merged(row: Row) -> Row:
    return Row(row.key, row.value + 50)


def first_clause(shapes: list[MergeClause], when: When, held: list[bool | None]) -> int | None:
    """The first clause of the kind whose condition is true; null is not true."""
    for index, (clause, holds) in enumerate(zip(shapes, held, strict=True)):
        if clause.when is when and (not clause.conditional or holds is True):
            return index
    return None


def match_counts(shapes: list[MergeClause], held: list[bool | None]) -> bool:
    """Whether a match counts towards a target row being ambiguous, as in Delta Spark."""
    if not only_matched(shapes):
        return True
    pairs = zip(shapes, held, strict=True)
    known = [holds if clause.conditional else True for clause, holds in pairs]
    return True in known or None not in known


def merge_files(
    lake: Lake, source: list[Row], clauses: list[Clause]
) -> tuple[list[TouchedFile], list[tuple[tuple[str, int], int]]]:
    """What an engine finds: rows of each file by clause, and how often each row matched."""
    shapes = [clause for clause, _ in clauses]
    files, counts = [], []
    for add in lake.live.values():
        taken: dict[Then, set[int]] = {Then.UPDATE: set(), Then.DELETE: set()}
        for at, seen in lake.rows_of(add).items():
            pairs: list[Row | None] = [row for row in source if row.key == seen.row.key]
            when = When.MATCHED if pairs else When.NOT_MATCHED_BY_SOURCE
            hits = 0
            for row in pairs or [None]:
                held = [holds(seen.row, row) for _, holds in clauses]
                index = first_clause(shapes, when, held)
                if index is not None:
                    taken[shapes[index].then].add(at)
                hits += when is When.MATCHED and match_counts(shapes, held)
            counts.append(((add.path, at), hits))
        files.append((add, taken))
    if ambiguous_rows(shapes, counts):
        return [], counts
    return [
        touched(a, update=t[Then.UPDATE], delete=t[Then.DELETE], hidden=lake.hidden(a))
        for a, t in files
    ], counts


@settings(max_examples=200)
@given(lakes(), RULES, st.lists(ROWS, max_size=5), clause_lists())
def test_merge_is_the_plain_merge(
    lake: Lake, rules: TableRules, source: list[Row], clauses: list[Clause]
) -> None:
    before, rows = dict(lake.live), lake.rows()
    expected = plain_merge(rows, source, clauses)
    files, counts = merge_files(lake, source, clauses)
    shapes = [clause for clause, _ in clauses]
    assert bool(ambiguous_rows(shapes, counts)) == (expected is None)
    if expected is None:
        return
    kept, changes, inserts = expected
    plan = plan_merge(
        files,
        clauses=shapes,
        source_rows=len(source),
        inserted_rows=inserts.total(),
        rules=rules,
        reads=ReadSet(),
    )
    outcome = run(lake, plan, merged, list(inserts.elements()))
    lake.commit(outcome)

    after = lake.rows()
    assert without_ids(after.elements()) == without_ids(kept.elements()) + inserts
    if rules.row_tracking:
        assert not kept - after, "rows that stayed or were updated kept their ids"
        assert without_ids((after - kept).elements()) == inserts
    if rules.change_data:
        assert lake.changes(outcome, before) == changes
    check_files(lake, outcome, before, "numTarget")
    by_kind: Counter[str] = Counter()
    for (kind, _), count in changes.items():
        by_kind[kind] += count
    for name, kind in (
        ("numTargetRowsInserted", "insert"),
        ("numTargetRowsUpdated", "update_preimage"),
        ("numTargetRowsDeleted", "delete"),
    ):
        assert outcome.metrics[name] == str(by_kind[kind])
    assert outcome.metrics["numSourceRows"] == str(len(source))


def compact(lake: Lake, plan: CompactionPlan) -> Outcome:
    written = []
    for packed in plan.bins:
        rows = [
            Stored(seen.row, seen.row_id if plan.materialise_row_ids else None)
            for add in packed.files
            for seen in lake.rows_of(add).values()
        ]
        written.append([lake.new_file(rows, packed.partition_values)])
    return plan.finish(written, now=NOW)


@settings(max_examples=100)
@given(lakes(), RULES, st.integers(1, 120), st.integers(0, 120), st.floats(0, 1), st.data())
def test_optimize_moves_rows_and_changes_none(
    lake: Lake, rules: TableRules, target: int, smallest: int, ratio: float, data: st.DataObject
) -> None:
    before, rows = dict(lake.live), lake.rows()
    options = OptimizeOptions(target_size=target, min_file_size=smallest, max_deleted_ratio=ratio)
    files = list(before.values())
    plan = plan_optimize(files, rules=rules, options=options)
    shuffled = data.draw(st.permutations(files))
    assert plan_optimize(shuffled, rules=rules, options=options) == plan, "order does not matter"
    for packed in plan.bins:
        assert len({add.partition_values["p"] for add in packed.files}) == 1
        assert packed.size <= target or len(packed.files) == 1
        assert len(packed.files) > 1 or packed.files[0].deletion_vector is not None
        for add in packed.files:
            share = len(lake.hidden(add)) / len(lake.files[add.path])
            assert add.size < smallest or share > ratio
    outcome = compact(lake, plan)
    assert not outcome.changes_data
    lake.commit(outcome)
    check_rows(lake, rows, rules)
    removed = {remove.path for remove in outcome.removes}
    assert outcome.metrics["numRemovedFiles"] == str(len(removed))
    assert outcome.reads.files == removed
    assert outcome.metrics["numAddedBytes"] == str(sum(add.size for add in outcome.adds))


@settings(max_examples=50)
@given(lakes(), RULES)
def test_purge_leaves_no_vector(lake: Lake, rules: TableRules) -> None:
    rows = lake.rows()
    plain = {key for key, add in lake.live.items() if add.deletion_vector is None}
    lake.commit(compact(lake, plan_reorg_purge(lake.live.values(), rules=rules)))
    check_rows(lake, rows, rules)
    assert all(add.deletion_vector is None for add in lake.live.values())
    assert plain <= lake.live.keys()
    assert plan_reorg_purge(lake.live.values(), rules=rules).bins == ()


@settings(max_examples=100)
@given(lakes(), RULES, st.lists(st.tuples(st.booleans(), PREDICATES), max_size=3))
def test_restore_brings_back_rows_and_ids(
    lake: Lake, rules: TableRules, history: list[tuple[bool, Predicate]]
) -> None:
    target, rows = dict(lake.live), lake.rows()
    for deletes, predicate in history:
        files = []
        for add in lake.live.values():
            rows_found, hidden = find(lake, add, predicate), lake.hidden(add)
            files.append(
                touched(add, delete=rows_found, hidden=hidden)
                if deletes
                else touched(add, update=rows_found, hidden=hidden)
            )
        make = plan_delete if deletes else plan_update
        plan = make(files, rules=replace(rules, change_data=False), reads=ReadSet())
        lake.commit(run(lake, plan, lambda row: Row(row.key, row.value + 1), []))
    plan_back = plan_restore(lake.live.values(), target.values())
    assert set(plan_back.needed_paths) <= {path for path, _ in target}
    outcome = plan_back.finish(now=NOW)
    lake.commit(outcome)
    assert lake.live.keys() == target.keys()
    assert lake.rows() == rows
    assert outcome.reads.whole_table
    assert outcome.metrics["numOfFilesAfterRestore"] == str(len(target))
    assert plan_restore(lake.live.values(), target.values()).finish(now=NOW).actions == ()


# --- VACUUM ------------------------------------------------------------------------------------


@dataclass
class History:
    """Versions of a table: when each was made, and which files (path, vector) it needs."""

    times: list[int]
    states: list[frozenset[FileKey]]
    written: dict[str, int]
    adds: dict[FileKey, AddFile]
    tombstones: dict[FileKey, RemoveFile]


@st.composite
def histories(draw: st.DrawFn) -> History:
    history = History([0], [frozenset()], {}, {}, {})
    time = 0
    for number in range(draw(st.integers(0, 8))):
        time += draw(st.integers(1, 20))
        live = set(history.states[-1])
        kind = draw(st.sampled_from(["add", "remove", "hide", "bring back"]))
        key: FileKey | None = None
        if kind == "add" or not live:
            key = (f"p=1/f {number}", None)
        elif kind == "remove":
            _bury(history, live, draw(st.sampled_from(sorted(live, key=str))), time)
        elif kind == "hide":
            old = draw(st.sampled_from(sorted(live, key=str)))
            _bury(history, live, old, time)
            key = (old[0], f"uv{number}@1")
        else:
            paths = {path for path, _ in live}
            dead = sorted((k for k in history.tombstones if k[0] not in paths), key=str)
            key = draw(st.sampled_from(dead)) if dead else None
        if key is not None:
            _raise(history, live, key, time)
        history.times.append(time)
        history.states.append(frozenset(live))
    return history


def _bury(history: History, live: set[FileKey], key: FileKey, time: int) -> None:
    live.discard(key)
    history.tombstones[key] = history.adds[key].remove(deletion_timestamp=time)


def _raise(history: History, live: set[FileKey], key: FileKey, time: int) -> None:
    live.add(key)
    history.tombstones.pop(key, None)
    for name in names_of(key):
        history.written.setdefault(name, time)
    vector = None
    if key[1] is not None:
        vector = DeletionVectorDescriptor("u", key[1].removeprefix("u").removesuffix("@1"), 5, 1, 1)
    history.adds[key] = AddFile(
        path=key[0].replace(" ", "%20"),
        partition_values={"p": "1"},
        size=3,
        modification_time=time,
        data_change=True,
        deletion_vector=vector,
    )


def names_of(key: FileKey) -> set[str]:
    return {key[0]} | ({f"deletion_vector_{key[1][1:-2]}.bin"} if key[1] else set())


def vector_path(vector: DeletionVectorDescriptor) -> str | None:
    return f"deletion_vector_{vector.path_or_inline_dv}.bin"


NOISE = {
    "orphan.parquet": True,
    "p=1/orphan": True,
    "_change_data/p=1/cdc-0": True,
    "_delta_index/i": True,
    "_hidden=2/x": True,
    "_delta_log/0.json": False,
    "_iceberg/metadata/v1.json": False,
    "metadata/v1.json": False,
    "deep/metadata/x": True,
    ".tmp/x": False,
    "p=1/.crc": False,
    "_spark/x": False,
    "inner/_delta_log/0.json": False,
    "inner/part-0": False,
    "mine/x": False,
}


@settings(max_examples=200)
@given(histories(), st.integers(0, 60), st.data())
def test_vacuum_takes_all_that_is_not_needed_and_nothing_else(
    history: History, later: int, data: st.DataObject
) -> None:
    now = history.times[-1] + later
    cutoff = data.draw(st.sampled_from(history.times) | st.integers(0, now))
    ends = [*history.times[1:], now + 1]
    needed = {
        name
        for state, end in zip(history.states, ends, strict=True)
        if end >= cutoff
        for key in state
        for name in names_of(key)
    }
    noise = {name: data.draw(st.integers(0, now)) for name in NOISE}
    listing = [ObjectMeta(name, 1, at) for name, at in (history.written | noise).items()]
    rules = VacuumRules(
        retention_ms=now - cutoff,
        tombstone_retention_ms=30,
        partition_columns=("p", "_hidden"),
        protected=frozenset({"mine"}),
        force=True,
    )

    def plan(mode: VacuumMode) -> tuple[str, ...]:
        return plan_vacuum(
            live=[history.adds[key] for key in history.states[-1]],
            tombstones=history.tombstones.values(),
            listing=data.draw(st.permutations(listing)),
            vector_path=vector_path,
            rules=replace(rules, mode=mode),
            now=now,
        ).delete

    old = {entry.key for entry in listing if entry.modified_ms < cutoff}
    full = plan(VacuumMode.FULL)
    assert list(full) == sorted(name for name in old - needed if NOISE.get(name, True)), (
        "everything old that no version within the retention needs, and nothing more"
    )
    assert not any(name.split("/")[0] in RESERVED_FOLDERS for name in full)
    lite = plan(VacuumMode.LITE)
    assert list(lite) == sorted(set(full) & {n for k in history.tombstones for n in names_of(k)})
