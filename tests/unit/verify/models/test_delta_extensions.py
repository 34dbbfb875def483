"""What the extensions of the Delta model show beyond the rows of the catalogue."""

from __future__ import annotations

import itertools

import pytest

from twinlake.verify import check
from twinlake.verify.checker import ModelError
from twinlake.verify.models.delta import DeltaVacuum, Isolation, LogStore, safe_retention
from twinlake.verify.models.delta.conflict_rules import (
    ADDED_FILES,
    EVERYTHING,
    REMOVED_FILES,
    CheckedCommit,
    PartitionedPath,
    conflict,
)
from twinlake.verify.models.delta.isolation import (
    COMMIT_ORDER,
    SERIALIZABLE,
    WRITE_SERIALIZABLE,
    IsolationOperation,
    Rows,
    applied,
    explained,
)

# --- vacuum -----------------------------------------------------------------------------------


@pytest.mark.parametrize("longest", [0, 1, 2, 3])
def test_vacuum_is_safe_from_one_tick_more_than_the_longest_operation(longest: int) -> None:
    assert safe_retention(longest=longest) == longest + 1


@pytest.mark.parametrize(("longest", "restorable"), [(0, 2), (1, 1), (1, 2), (2, 1)])
def test_vacuum_must_keep_what_may_be_restored_while_it_is_restored(
    longest: int, restorable: int
) -> None:
    found = safe_retention(longest=longest, restorable=restorable, max_writes=1, max_ticks=6)
    assert found == max(longest + 1, longest + restorable)


def test_vacuum_takes_files_from_a_long_reader() -> None:
    result = check(DeltaVacuum(retention=1, longest=2, max_writes=1), stop_at_first=False)
    assert result.verdicts["ReadersFinish"] == "violated"


# --- isolation --------------------------------------------------------------------------------


def test_shortest_history_without_a_serial_order_needs_a_blind_append() -> None:
    result = check(Isolation(isolation=WRITE_SERIALIZABLE), symmetry=True)
    assert result.violations[0].message == ("no serial order explains append a, count a, delete a")
    assert result.trace is not None
    starts = [step for step in result.trace.steps if step.action == "Start"]
    read = {step.arguments["operation"]: step.arguments["read"] for step in starts}
    # The delete did not see what was appended, and the count saw what is deleted.
    assert read == {
        "append": (),
        "delete": (("first", 0),),
        "count": (("append", 1), ("first", 0)),
    }


def test_write_serializable_order_is_not_the_order_of_versions() -> None:
    model = Isolation(isolation=WRITE_SERIALIZABLE, order=COMMIT_ORDER, partitions=("a",))
    result = check(model, symmetry=True)
    assert result.violations[0].message == (
        "the order of versions does not explain append a, count a"
    )


def test_search_for_an_order_agrees_with_trying_them_all() -> None:
    rows: Rows = (("a", (("first", 0),)),)
    ends: tuple[Rows, ...] = (rows, ())
    works = tuple(
        IsolationOperation(kind, "a", seen)
        for kind, seen in (
            ("append", ()),
            ("delete", (("first", 0),)),
            ("delete", ()),
            ("delete", (("append", 1),)),
        )
    )
    compared = 0
    for count in range(4):
        for chosen in itertools.permutations(works, count):
            for end in ends:
                wanted = any(_ends_in(rows, order, end) for order in itertools.permutations(chosen))
                assert explained(rows, chosen, end, strict=False) == wanted
                assert explained(rows, chosen, end, strict=True) == _ends_in(rows, chosen, end)
                compared += wanted
    assert compared


def _ends_in(rows: Rows, order: tuple[IsolationOperation, ...], end: Rows) -> bool:
    now = rows
    for operation in order:
        after = applied(dict(now), operation)
        if after is None:
            return False
        now = after
    return now == end


@pytest.mark.parametrize(
    "wrong", [{"isolation": "typo"}, {"order": "typo"}, {"max_ops": 6}, {"writers": 0}]
)
def test_wrong_parameter_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ModelError):
        Isolation(**wrong)  # type: ignore[arg-type]
    with pytest.raises(ModelError):
        LogStore(writers=0)


# --- the rules that models ask ----------------------------------------------------------------

BLIND = CheckedCommit("WRITE", added=(PartitionedPath("new", "a"),))
DELETE_A = CheckedCommit("DELETE", removed=("old",), files=frozenset({"old"}), asked="a")
OPTIMIZE = CheckedCommit(
    "OPTIMIZE",
    added=(PartitionedPath("merged", "a"),),
    removed=("old",),
    data_change=False,
    files=frozenset({"old"}),
    asked=EVERYTHING,
)


@pytest.mark.parametrize(
    ("mine", "winner", "isolation", "rule"),
    [
        (BLIND, DELETE_A, SERIALIZABLE, None),
        (DELETE_A, BLIND, SERIALIZABLE, "OCC-07"),
        (DELETE_A, BLIND, WRITE_SERIALIZABLE, None),
        (DELETE_A, BLIND._replace(added=(PartitionedPath("new", "b"),)), SERIALIZABLE, None),
        (DELETE_A, DELETE_A, WRITE_SERIALIZABLE, "OCC-08"),
        (DELETE_A._replace(files=frozenset()), DELETE_A, WRITE_SERIALIZABLE, "OCC-09"),
        (OPTIMIZE, BLIND, SERIALIZABLE, None),
        (OPTIMIZE._replace(data_change=True, operation="UPDATE"), BLIND, SERIALIZABLE, "OCC-07"),
    ],
    ids=[
        "append after delete",
        "delete after append",
        "delete after append, relaxed",
        "delete after append elsewhere",
        "two deletes",
        "two deletes, files not read",
        "compaction after append",
        "update after append",
    ],
)
def test_shipped_rule_refuses(
    mine: CheckedCommit, winner: CheckedCommit, isolation: str, rule: str | None
) -> None:
    lost = conflict(mine, 4, (winner,), isolation=isolation)
    assert (lost.rule if lost else None) == rule
    assert lost is None or lost.version == 5


def test_rules_can_be_left_out() -> None:
    both = ADDED_FILES | REMOVED_FILES
    assert conflict(DELETE_A, 0, (BLIND, DELETE_A), isolation=SERIALIZABLE, without=both) is None
