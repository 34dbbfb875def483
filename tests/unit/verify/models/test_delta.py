"""The Delta log model: generated and distinct states, depth and verdict of every configuration."""

from __future__ import annotations

from typing import Any

import pytest

from twinlake.verify import check
from twinlake.verify.models import DeltaLog

TWO = ("a", "b")
LOCKED: dict[str, Any] = {"put_if_absent": False, "coordination": True}

#: parameters, generated (the initial state counted), distinct, depth in states
ROWS: dict[str, tuple[dict[str, Any], int, int, int]] = {
    "p1": ({}, 17_001, 7_982, 13),
    "p1n": ({"partitioned": False}, 17_001, 7_982, 13),
    "p2": ({"col1_values": TWO}, 118_937, 50_632, 14),
    "p2n": ({"col1_values": TWO, "partitioned": False}, 103_145, 48_072, 13),
    "c2": ({"col1_values": TWO, **LOCKED}, 135_033, 71_584, 17),
    "c2n": ({"col1_values": TWO, "partitioned": False, **LOCKED}, 109_113, 62_512, 16),
    "p1o4": ({"max_ops": 4}, 270_605, 121_584, 17),
}


@pytest.mark.parametrize("row", ROWS)
def test_safe_configuration_has_the_known_counts(row: str) -> None:
    parameters, generated, distinct, depth = ROWS[row]
    result = check(DeltaLog(**parameters))
    assert (result.generated, result.states, result.depth) == (generated, distinct, depth)
    assert result.ok
    unreached = () if parameters.get("coordination") else ("CoordinatePrepareWrite",)
    assert result.unreached == unreached


def test_blind_overwrite_loses_an_insert_in_8_steps() -> None:
    result = check(DeltaLog(col1_values=TWO, put_if_absent=False))
    assert result.violated == "ConsistentRead"
    assert result.depth == 9
    assert result.trace is not None
    assert len(result.trace) == 8
    assert 6_000 < result.states < 7_000
    commits = [step for step in result.trace.steps if step.action == "TryCommit"]
    assert [(one.arguments["version"], one.arguments["overwritten"]) for one in commits] == [
        (1, False),
        (1, True),
    ]
    starts = [step for step in result.trace.steps if step.action == "StartOperation"]
    assert [one.arguments["operation"] for one in starts] == ["INSERT", "INSERT"]


@pytest.mark.parametrize("row", ["p1", "c2"])
def test_symmetry_of_writers_keeps_the_verdict(row: str) -> None:
    parameters, _, distinct, depth = ROWS[row]
    result = check(DeltaLog(**parameters), symmetry=True)
    assert result.ok
    assert result.depth == depth
    assert distinct / 2 < result.states < distinct * 0.6
