"""Laws of the conflict rules, without any store."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.commit.making import CONTEXT, add, base, change, features, metadata, remove
from twinlake.actions import Action, AddFile, CommitInfo, SetTransaction
from twinlake.commit import (
    Change,
    Conflicting,
    IsolationLevel,
    ReadSet,
    Rebased,
    Winner,
    assemble,
    check_all_conflicts,
    check_conflicts,
)
from twinlake.commit.row_tracking import mark_of
from twinlake.schema.predicates import Column, Comparison, Expr, Literal, Op
from twinlake.schema.types import STRING

PATHS = ("f", "g", "h")
PARTS = ("a", "b")


def in_part(part: str) -> Expr:
    return Comparison(Op.EQ, Column(("p",), STRING), Literal(part, STRING))


reads = st.builds(
    ReadSet,
    files=st.frozensets(st.sampled_from(PATHS)),
    predicates=st.lists(st.sampled_from(PARTS).map(in_part), max_size=1).map(tuple),
    whole_table=st.booleans(),
    app_ids=st.frozensets(st.sampled_from(["s", "t"])),
)
actions: st.SearchStrategy[list[Action]] = st.lists(
    st.one_of(
        st.builds(lambda n, p: add(f"new{n}", p), st.integers(0, 99), st.sampled_from(PARTS)),
        st.sampled_from(PATHS).map(remove),
        st.sampled_from(["s", "t"]).map(lambda app: SetTransaction(app_id=app, version=1)),
        st.sampled_from(["k", "l"]).map(lambda key: metadata({key: "v"}, parts=["p"])),
    ),
    max_size=4,
)
changes = st.builds(
    lambda acts, read, level: change(*acts, reads=read, operation="UPDATE", isolation=level),
    actions,
    reads,
    st.sampled_from([IsolationLevel.SERIALIZABLE, IsolationLevel.WRITE_SERIALIZABLE]),
)


def as_winner(ours: Change, version: int = 5) -> Winner:
    info = CommitInfo(operation="UPDATE", is_blind_append=ours.is_blind_append)
    return Winner(version=version, actions=(info, *ours.actions))


def rule(ours: Change, theirs: Change) -> str | None:
    outcome = check_conflicts(ours, as_winner(theirs), CONTEXT)
    return outcome.rule.id if isinstance(outcome, Conflicting) else None


@settings(max_examples=100)
@given(changes, changes)
def test_write_write_rules_are_symmetric(one: Change, other: Change) -> None:
    """What both sides write is a conflict whichever comes first."""
    both_remove = one.summary.removed_paths & other.summary.removed_paths
    both_metadata = one.summary.metadatas and other.summary.metadatas
    apps = [{t.app_id for t in c.summary.transactions} for c in (one, other)]
    if both_remove or both_metadata or apps[0] & apps[1]:
        assert rule(one, other) is not None
        assert rule(other, one) is not None


@settings(max_examples=100)
@given(changes, changes)
def test_a_stricter_level_never_lets_more_pass(ours: Change, theirs: Change) -> None:
    strict = replace(ours, isolation=IsolationLevel.SERIALIZABLE)
    relaxed = replace(ours, isolation=IsolationLevel.WRITE_SERIALIZABLE)
    # A commit that changes no rows is let through more easily by Serializable: it fits anywhere.
    if strict.level is not IsolationLevel.SNAPSHOT and rule(relaxed, theirs) is not None:
        assert rule(strict, theirs) is not None


@settings(max_examples=100)
@given(changes, changes)
def test_reading_more_never_lets_more_pass(ours: Change, theirs: Change) -> None:
    more = replace(ours, reads=replace(ours.reads, whole_table=True))
    if rule(ours, theirs) is not None:
        assert rule(more, theirs) is not None


@settings(max_examples=100)
@given(changes)
def test_nothing_conflicts_with_an_empty_commit(ours: Change) -> None:
    outcome = check_conflicts(ours, Winner(version=5, actions=()), CONTEXT)
    assert isinstance(outcome, Rebased)
    assert outcome.change.actions == ours.actions
    assert outcome.change.version == 6


@settings(max_examples=60)
@given(changes, st.lists(changes, max_size=3))
def test_following_all_is_following_one_by_one(ours: Change, others: list[Change]) -> None:
    winners = [as_winner(other, 5 + n) for n, other in enumerate(others)]
    together = check_all_conflicts(ours, winners, CONTEXT)
    current: Change | Conflicting = ours
    for winner in winners:
        if isinstance(current, Conflicting):
            break
        outcome = check_conflicts(current, winner, CONTEXT)
        current = outcome if isinstance(outcome, Conflicting) else outcome.change
    if isinstance(together, Conflicting):
        assert isinstance(current, Conflicting)
        assert together.winner == current.winner
        assert together.rule == current.rule
    else:
        assert together.change == current


sizes = st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=3), min_size=1, max_size=5)


@settings(max_examples=60)
@given(sizes)
def test_row_ids_of_racing_appends_never_overlap(commits: list[list[int]]) -> None:
    """All start from one version; each follows those that came first."""
    start = base(meta=metadata(parts=["p"]), protocol=features("rowTracking", "domainMetadata"))
    winners: list[Winner] = []
    taken: list[tuple[int, int]] = []
    for number, rows in enumerate(commits):
        ours = change(*(add(f"{number}-{i}", "a", rows=n) for i, n in enumerate(rows)), on=start)
        outcome = check_all_conflicts(ours, winners, CONTEXT)
        assert isinstance(outcome, Rebased)
        body = assemble(outcome.change, txn_id=str(number), engine_info="test")
        assert body.version == 5 + number
        for action, n in zip(
            (a for a in body.actions if isinstance(a, AddFile)), rows, strict=True
        ):
            assert action.base_row_id is not None
            assert action.default_row_commit_version == body.version
            taken.append((action.base_row_id, n))
        winners.append(Winner(version=body.version, actions=body.actions))
        assert body.row_id_mark == sum(sum(c) for c in commits[: number + 1]) - 1
        stated = winners[-1].summary.domains
        assert all(mark_of([d]) == body.row_id_mark for d in stated)
    ids = [i for first, n in taken for i in range(first, first + n)]
    assert len(ids) == len(set(ids))


@settings(max_examples=60)
@given(st.lists(st.integers(0, 1000), min_size=1, max_size=6))
def test_in_commit_timestamps_only_grow(clocks: list[int]) -> None:
    start = base(
        meta=metadata({"delta.enableInCommitTimestamps": "true"}, parts=["p"]),
        protocol=features("inCommitTimestamp"),
        timestamp_ms=100,
    )
    winners: list[Winner] = []
    stamps = [100]
    for number, now in enumerate(clocks):
        ours = change(add(str(number), "a"), on=start, timestamp_ms=now)
        outcome = check_all_conflicts(ours, winners, CONTEXT)
        assert isinstance(outcome, Rebased)
        body = assemble(outcome.change, txn_id=str(number), engine_info="test")
        assert body.in_commit_timestamp is not None
        stamps.append(body.in_commit_timestamp)
        winners.append(Winner(version=body.version, actions=body.actions))
    assert stamps == sorted(set(stamps))
    assert all(stamp >= now for stamp, now in zip(stamps[1:], clocks, strict=True))
