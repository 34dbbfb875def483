"""Every pair of operations, ours against the winner, at the default level."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.unit.commit.making import CONTEXT, add, base, change, dv, metadata, remove
from twinlake.actions import Action, CommitInfo, SetTransaction
from twinlake.commit import (
    Change,
    Conflicting,
    IsolationLevel,
    ReadSet,
    Rebased,
    Winner,
    check_conflicts,
)
from twinlake.protocol import Protocol
from twinlake.schema.predicates import Column, Comparison, Literal, Op
from twinlake.schema.types import STRING

ALL = ReadSet(whole_table=True)


def where(part: str, *files: str) -> ReadSet:
    expr = Comparison(Op.EQ, Column(("p",), STRING), Literal(part, STRING))
    return ReadSet(predicates=(expr,), files=frozenset(files))


@dataclass(frozen=True, kw_only=True)
class Kind:
    """An operation that can be ours or the winner's; the table has f in p=a and g in p=b."""

    name: str
    operation: str
    reads: ReadSet
    actions: tuple[Action, ...]


def kind(name: str, operation: str, reads: ReadSet, *actions: Action) -> Kind:
    return Kind(name=name, operation=operation, reads=reads, actions=actions)


def moved(path: str) -> tuple[Action, ...]:
    return add(f"{path}-new", "a", data_change=False), remove(path, data_change=False)


KINDS = {
    k.name: k
    for k in (
        kind("append", "WRITE", ReadSet(), add("n", "a")),
        kind("insert-select", "WRITE", where("a", "f"), add("n", "a")),
        kind("delete-a", "DELETE", where("a", "f"), remove("f")),
        kind("delete-b", "DELETE", where("b", "g"), remove("g")),
        kind("update-a", "UPDATE", where("a", "f"), remove("f"), add("u", "a")),
        kind("update-b", "UPDATE", where("b", "g"), remove("g"), add("u", "b")),
        kind(
            "dv-a",
            "DELETE",
            where("a", "f"),
            remove("f"),
            add("f", "a", deletion_vector=dv("d")),
        ),
        kind("merge", "MERGE", ALL, remove("f"), add("u", "a")),
        kind("optimize-a", "OPTIMIZE", ReadSet(files=frozenset({"f"})), *moved("f")),
        kind("set", "SET TBLPROPERTIES", ReadSet(), metadata({"k": "v"}, parts=["p"])),
        kind("constrain", "ADD CONSTRAINT", ALL, metadata({"c": "v"}, parts=["p"])),
        kind("upgrade", "UPGRADE PROTOCOL", ReadSet(), Protocol(1, 2)),
        kind("stream", "STREAMING UPDATE", ReadSet(), SetTransaction(app_id="s", version=1)),
        kind("empty", "Empty Commit", ReadSet()),
    )
}

# Rows: ours. Columns: the winner. ``.`` passes; else the rule that refuses.
#  P protocol, M metadata, T application, A append, R delete-read, D delete-delete
COLUMNS = (
    "append", "insert-select", "delete-a", "delete-b", "update-a", "update-b", "dv-a", "merge",
    "optimize-a", "set", "constrain", "upgrade", "stream", "empty",
)  # fmt: skip
MATRIX = {
    # ours:          app ins d-a d-b u-a u-b dv  mer opt set con upg str emp
    "append":        ". . . . . . . . . M M . . .",
    "insert-select": ". A R . A . A A A M M . . .",
    "delete-a":      ". A R . A . A A A M M . . .",
    "delete-b":      ". . . R . A . . . M M . . .",
    "update-a":      ". A R . A . A A A M M . . .",
    "update-b":      ". . . R . A . . . M M . . .",
    "dv-a":          ". A R . A . A A A M M . . .",
    "merge":         ". A R R A A A A A M M . . .",
    "optimize-a":    ". . R . R . R R R M M . . .",
    "set":           ". . . . . . . . . M M . . .",
    "constrain":     "A A R R A A A A A M M . . .",
    "upgrade":       ". . . . . . . . . M M P . .",
    "stream":        ". . . . . . . . . M M . T .",
    "empty":         ". . . . . . . . . M M . . .",
}  # fmt: skip
RULES = {"P": "OCC-01", "M": "OCC-02", "T": "OCC-04", "A": "OCC-07", "R": "OCC-08", "D": "OCC-09"}
CELLS = [
    (ours, theirs, cell)
    for ours, row in MATRIX.items()
    for theirs, cell in zip(COLUMNS, row.split(), strict=True)
]


def as_change(name: str, isolation: IsolationLevel | None = None) -> Change:
    k = KINDS[name]
    state = base(protocol=Protocol(1, 2), meta=metadata(parts=["p"]))
    return change(*k.actions, operation=k.operation, reads=k.reads, on=state, isolation=isolation)


def as_winner(name: str) -> Winner:
    ours = as_change(name)
    info = CommitInfo(operation=ours.operation.name, is_blind_append=ours.is_blind_append)
    return Winner(version=5, actions=(info, *ours.actions))


def verdict(ours: str, theirs: str, isolation: IsolationLevel | None = None) -> str:
    outcome = check_conflicts(as_change(ours, isolation), as_winner(theirs), CONTEXT)
    return outcome.rule.id if isinstance(outcome, Conflicting) else "."


def test_the_matrix_is_complete() -> None:
    assert set(MATRIX) == set(COLUMNS) == set(KINDS)


@pytest.mark.parametrize(("ours", "theirs", "cell"), CELLS, ids=[f"{o}/{t}" for o, t, _ in CELLS])
def test_pair(ours: str, theirs: str, cell: str) -> None:
    assert verdict(ours, theirs) == RULES.get(cell, ".")


@pytest.mark.parametrize(("ours", "theirs", "cell"), CELLS, ids=[f"{o}/{t}" for o, t, _ in CELLS])
def test_serializable_refuses_whatever_write_serializable_refuses(
    ours: str, theirs: str, cell: str
) -> None:
    stricter = verdict(ours, theirs, IsolationLevel.SERIALIZABLE)
    if cell != ".":
        assert stricter != "."
    elif stricter != ".":
        # The one difference: blind appends into what was read.
        assert (stricter, theirs) == ("OCC-07", "append")


@pytest.mark.parametrize("left", COLUMNS)
@pytest.mark.parametrize("right", COLUMNS)
def test_pairs_that_both_remove_never_both_win(left: str, right: str) -> None:
    both = as_change(left).summary.removed_paths & as_change(right).summary.removed_paths
    if both:
        assert verdict(left, right) != "."
        assert verdict(right, left) != "."


def test_removal_on_both_sides_is_seen_without_any_read() -> None:
    """The delete-delete rule stands alone: a DELETE that recorded no read still loses."""
    ours = change(remove("f"), operation="DELETE")
    outcome = check_conflicts(ours, as_winner("delete-a"), CONTEXT)
    assert isinstance(outcome, Conflicting)
    assert outcome.rule.id == "OCC-09"


def test_two_deletes_by_deletion_vector_on_one_file_conflict() -> None:
    """The anomaly of Iceberg's merge-on-read, a row that comes back, cannot happen here."""
    ours = change(remove("f"), add("f", "a", deletion_vector=dv("e")), operation="UPDATE")
    winner = Winner(version=5, actions=(remove("f"), add("f", "a", deletion_vector=dv("d"))))
    outcome = check_conflicts(ours, winner, CONTEXT)
    assert isinstance(outcome, Conflicting)
    assert not isinstance(check_conflicts(ours, as_winner("delete-b"), CONTEXT), Conflicting)
    assert isinstance(check_conflicts(as_change("append"), as_winner("append"), CONTEXT), Rebased)
