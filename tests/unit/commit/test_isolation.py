from __future__ import annotations

import pytest

from tests.unit.commit.making import add, change, domain, metadata, remove
from twinlake.actions import Action, SetTransaction
from twinlake.commit import (
    IsolationLevel,
    Operation,
    ReadSet,
    effective_level,
    summarize,
    table_level,
)
from twinlake.commit.row_tracking import ROW_TRACKING_DOMAIN
from twinlake.errors import UserError

SER, WSER, SNAP = (
    IsolationLevel.SERIALIZABLE,
    IsolationLevel.WRITE_SERIALIZABLE,
    IsolationLevel.SNAPSHOT,
)
MOVE: tuple[Action, ...] = (add("b", data_change=False), remove("a", data_change=False))


@pytest.mark.parametrize(
    ("asked", "actions", "operation", "expected"),
    [
        (WSER, MOVE, "OPTIMIZE", SNAP),
        (SER, MOVE, "OPTIMIZE", SNAP),
        (SER, MOVE, "WRITE", SNAP),
        (WSER, MOVE, "WRITE", WSER),
        (WSER, (add("b"), remove("a")), "OPTIMIZE", WSER),
        (SER, (*MOVE, metadata()), "OPTIMIZE", SER),
        (WSER, (*MOVE, domain(ROW_TRACKING_DOMAIN)), "OPTIMIZE", SNAP),
        (WSER, (*MOVE, domain("mine")), "OPTIMIZE", WSER),
        (WSER, (*MOVE, SetTransaction(app_id="a", version=1)), "OPTIMIZE", WSER),
    ],
    ids=[
        "optimize",
        "optimize-serializable",
        "unchanged-write-serializable",
        "unchanged-write-is-not-declared",
        "optimize-that-changes-rows",
        "metadata",
        "row-tracking-domain-tolerated",
        "own-domain",
        "application-transaction",
    ],
)
def test_effective_level(
    asked: IsolationLevel,
    actions: tuple[Action, ...],
    operation: str,
    expected: IsolationLevel,
) -> None:
    assert effective_level(asked, summarize(actions), Operation(name=operation)) is expected


@pytest.mark.parametrize(
    ("text", "expected"), [(None, WSER), ("Serializable", SER), ("writeserializable", WSER)]
)
def test_table_level(text: str | None, expected: IsolationLevel) -> None:
    assert table_level(metadata({} if text is None else {"delta.isolationLevel": text})) is expected


def test_snapshot_isolation_cannot_be_chosen_for_a_table() -> None:
    with pytest.raises(UserError, match="SnapshotIsolation"):
        table_level(metadata({"delta.isolationLevel": "SnapshotIsolation"}))


@pytest.mark.parametrize(
    ("actions", "reads", "blind"),
    [
        ((add("a"),), ReadSet(), True),
        ((), ReadSet(), True),
        ((metadata(),), ReadSet(), True),
        ((add("a"), remove("b")), ReadSet(), False),
        ((add("a"),), ReadSet(files=frozenset({"b"})), False),
        ((add("a"),), ReadSet(whole_table=True), False),
        ((add("a"),), ReadSet(app_ids=frozenset({"app"})), True),
    ],
    ids=["append", "empty", "metadata", "remove", "read-file", "read-all", "read-application"],
)
def test_blind_append(actions: tuple[Action, ...], reads: ReadSet, blind: bool) -> None:
    assert change(*actions, reads=reads).is_blind_append is blind
