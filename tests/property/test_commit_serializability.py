"""Random interleavings of small transactions, on the real commit path, fit a serial order.

A transaction that commits under ``Serializable`` must have read what it would have read just before
its own version: then the log itself is the serial order. Under ``WriteSerializable`` the same holds
once files that blind appends brought in between are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.commit.making import add, begin, create_table, dv, remove, runtime
from twinlake.actions import AddFile, CommitInfo, RemoveFile
from twinlake.errors import ConflictError
from twinlake.log import Snapshot, load_snapshot, read_commit
from twinlake.schema.predicates import Column, Comparison, Expr, Literal, Op
from twinlake.schema.types import STRING
from twinlake.storage import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from twinlake.commit import Transaction

Files = dict[str, tuple[str, str | None]]
"""Path to partition and deletion vector: the table as opaque keys."""

PARTS = ("a", "b")


def in_part(part: str) -> Expr:
    return Comparison(Op.EQ, Column(("p",), STRING), Literal(part, STRING))


@dataclass(frozen=True)
class Plan:
    """What one transaction does: read, then add, remove or mark deleted what it read."""

    read: str  # "", "a", "b", "all" or "one"
    adds: tuple[str, ...]
    change: str  # "", "remove", "vector" or "rewrite"
    begins: int
    ends: int


@dataclass
class Running:
    plan: Plan
    txn: Transaction
    observed: Files = field(default_factory=dict)
    selects: Callable[[str, str], bool] = lambda _path, _part: False
    blind: bool = True


plans = st.builds(
    Plan,
    read=st.sampled_from(["", "", "a", "b", "all", "one"]),
    adds=st.lists(st.sampled_from(PARTS), max_size=2).map(tuple),
    change=st.sampled_from(["", "", "remove", "vector", "rewrite"]),
    begins=st.integers(0, 6),
    ends=st.integers(0, 8),
)


def live(snapshot: Snapshot) -> Files:
    return {a.path: (a.partition_values["p"] or "", a.key[1]) for a in snapshot.adds()}


def start(table: Snapshot, plan: Plan, number: int) -> Running:
    operation = "OPTIMIZE" if plan.change == "rewrite" else "UPDATE" if plan.change else "WRITE"
    txn = begin(table, operation, ports=runtime(seed=number))
    state = live(table)
    running = Running(plan, txn)
    if plan.read in PARTS:
        txn.read_files(in_part(plan.read))
        running.selects = lambda _path, part: part == plan.read
    elif plan.read == "all":
        txn.read_whole_table()
        running.selects = lambda _path, _part: True
    elif plan.read == "one" and state:
        one = min(state)
        txn.read_paths([one])
        running.selects = lambda path, _part: path == one
    running.observed = {p: v for p, v in state.items() if running.selects(p, v[0])}
    changes_data = plan.change != "rewrite"
    for index, part in enumerate(plan.adds):
        txn.add(add(f"t{number}-{index}", part, data_change=changes_data))
    for path, (part, vector) in sorted(running.observed.items())[:2]:
        old = dv(vector.removeprefix("i")) if vector else None
        if plan.change:
            txn.add(remove(path, deletion_vector=old, data_change=changes_data))
            running.blind = False
        if plan.change == "vector":
            txn.add(add(path, part, deletion_vector=dv(f"d{number}")))
        elif plan.change == "rewrite":
            txn.add(add(f"{path}-r{number}", part, data_change=False))
    running.blind = running.blind and not txn.reads.reads_data
    return running


def run(level: str, all_plans: list[Plan]) -> tuple[MemoryStore, dict[int, Running]]:
    """Begin and commit in the order of the plans' times; a begun transaction keeps its snapshot."""
    store = MemoryStore()
    options = {"delta.isolationLevel": level, "delta.enableDeletionVectors": "true"}
    table = create_table(store, options, parts=["p"])
    table = begin(table).add(add("f", "a"), add("g", "b")).commit().snapshot
    events = sorted(
        [(plan.begins, 0, n) for n, plan in enumerate(all_plans)]
        + [(max(plan.begins, plan.ends), 1, n) for n, plan in enumerate(all_plans)]
    )
    running: dict[int, Running] = {}
    committed: dict[int, Running] = {}
    for _, kind, number in events:
        if kind == 0:
            running[number] = start(load_snapshot(store), all_plans[number], number + 10)
            continue
        try:
            result = running[number].txn.commit()
        except ConflictError as error:
            assert error.winner is not None
            assert error.rule is not None
            continue
        committed[result.version] = running[number]
        advanced, fresh = live(result.snapshot), live(load_snapshot(store))
        assert advanced == fresh
    return store, committed


def states(store: MemoryStore) -> tuple[list[Files], set[int]]:
    """The table after every version, folded naively, and which versions were blind appends."""
    state: Files = {}
    found: list[Files] = []
    blind = set()
    for version in range(load_snapshot(store).version + 1):
        actions = read_commit(store, version)
        for action in actions:
            if isinstance(action, RemoveFile):
                key = action.key[1]
                assert state.get(action.path, ("", "missing"))[1] == key, "removed what is not live"
                del state[action.path]
        for action in actions:
            if isinstance(action, AddFile):
                assert action.path not in state, "a path is live twice"
                vector = action.key[1]
                state[action.path] = (action.partition_values["p"] or "", vector)
            if isinstance(action, CommitInfo) and action.is_blind_append:
                blind.add(version)
        found.append(dict(state))
    return found, blind


def changes_rows(store: MemoryStore, version: int) -> bool:
    files = (a for a in read_commit(store, version) if isinstance(a, AddFile | RemoveFile))
    return any(a.data_change for a in files)


@settings(max_examples=60)
@given(st.lists(plans, min_size=2, max_size=5))
def test_serializable_histories_are_serial(all_plans: list[Plan]) -> None:
    store, committed = run("Serializable", all_plans)
    history, _ = states(store)
    assert history[-1] == live(load_snapshot(store))
    for version, running in committed.items():
        if not changes_rows(store, version):
            continue  # It fits anywhere: nobody can tell when it happened.
        before = history[version - 1]
        seen_now = {p: v for p, v in before.items() if running.selects(p, v[0])}
        assert seen_now == running.observed


@settings(max_examples=60)
@given(st.lists(plans, min_size=2, max_size=5))
def test_write_serializable_histories_are_serial_but_for_blind_appends(
    all_plans: list[Plan],
) -> None:
    store, committed = run("WriteSerializable", all_plans)
    history, blind = states(store)
    for version, running in committed.items():
        before = history[version - 1]
        brought = {
            action.path
            for other in blind
            if other < version
            for action in read_commit(store, other)
            if isinstance(action, AddFile)
        }
        seen_now = {p: v for p, v in before.items() if running.selects(p, v[0])}
        # Whatever was read is still there unchanged ...
        if running.plan.change:
            touched = dict(sorted(running.observed.items())[:2])
            assert all(seen_now.get(path) == value for path, value in touched.items())
        # ... and what came on top came from blind appends only.
        if running.plan.change != "rewrite":
            extra = seen_now.keys() - running.observed.keys()
            assert extra <= brought


@settings(max_examples=60)
@given(st.lists(plans, min_size=2, max_size=5))
def test_rows_are_never_lost_by_rearranging(all_plans: list[Plan]) -> None:
    """A path that was removed without its rows changing has its replacement in the same commit."""
    store, _ = run("WriteSerializable", all_plans)
    for version in range(load_snapshot(store).version + 1):
        actions = read_commit(store, version)
        moved = {a.path for a in actions if isinstance(a, RemoveFile) and not a.data_change}
        kept = {
            a.path.rsplit("-r", 1)[0]
            for a in actions
            if isinstance(a, AddFile) and not a.data_change and "-r" in a.path
        }
        assert moved <= kept
