"""Counterexamples of the models on the shipped code: masked, and by what."""

from __future__ import annotations

import json
import sys

import pytest

from twinlake.commit.conflict import rules as conflicts
from twinlake.verify.code import ModelReplay, model_replays, replay
from twinlake.verify.code.workloads import WORKLOADS

#: name of the counterexample, what the model breaks, words of what masks it
MASKED = {
    "seed": ("ConsistentRead", "OCC-07: DELETE lost to version 2 (UPDATE)"),
    "reinsert": ("ConsistentRead", "OCC-07: DELETE lost to version 2 (DELETE)"),
    "u2": ("ConsistentRead", "op1 found 00000000000000000001.json taken"),
    "give-up": ("ReportsAreTrue", "read 00000000000000000001.json back"),
    "retry-blindly": ("ExactlyOnce", "read 00000000000000000001.json back"),
    "non-atomic": ("EntriesAreComplete", "op0 committed 1"),
    "path-only": ("NothingIsDeletedTwice", "OCC-07: DELETE lost to version 1 (DELETE)"),
    "keeps-base-ids": ("RowIdsAreUnique", "op1 found 00000000000000000001.json taken"),
    "accepts-incomplete": ("RetainedVersionsCanBeRebuilt", "op1 deleted nothing"),
    "cleans-too-early": ("RetainedVersionsCanBeRebuilt", "op1 deleted nothing"),
    "cleans-to-newest": ("RetainedVersionsCanBeRebuilt", "op2 deleted nothing"),
    "no-grace": ("NewestVersionIsWhole", "op1 deleted nothing"),
}


@pytest.fixture(scope="module")
def replays() -> dict[str, ModelReplay]:
    return {one.name: one for one in model_replays()}


def test_all_are_replayed(replays: dict[str, ModelReplay]) -> None:
    assert replays.keys() == MASKED.keys()


@pytest.mark.parametrize("name", MASKED)
def test_masked(name: str, replays: dict[str, ModelReplay]) -> None:
    violated, words = MASKED[name]
    one = replays[name]
    sys.stdout.write(f"{one.title}: {one.by}\n")
    assert one.property == violated
    assert one.masked
    assert words in one.by
    assert replay(one.replay.schedule_id).trace == one.replay.trace
    assert json.loads(json.dumps(one.to_dict()))["masked"] is True


def test_the_operations_are_those_of_the_trace(replays: dict[str, ModelReplay]) -> None:
    started = {
        "seed": ["Insert", "Delete", "Update"],
        "reinsert": ["Insert", "Delete", "Delete", "Insert"],
    }
    for name, kinds in started.items():
        starts = [s for s in replays[name].model_trace.steps if s.action.startswith("Start")]
        assert [s.action.removeprefix("Start").removesuffix("Operation") for s in starts] == kinds
        workload = WORKLOADS[f"model-{name}"]
        ours = [one.name.replace("append", "insert") for _, one in workload.actors]
        assert ours == [kind.lower() for kind in kinds]


def test_the_delete_is_held_while_the_update_commits(replays: dict[str, ModelReplay]) -> None:
    steps = replays["seed"].replay.trace.steps
    wrote = [s.number for s in steps if s.actor == "op1" and s.action == "put"]
    won = [s.number for s in steps if "UPDATE by op2" in str(s.changes)]
    tried = [s.number for s in steps if s.actor == "op1" and s.action == "create"]
    assert wrote[-1] < won[0] < tried[0]
    vectors = [s for s in steps if "deletion_vector" in str(s.arguments) and s.action == "put"]
    assert {s.actor for s in vectors} == {"op1", "op2"}


@pytest.mark.parametrize(
    ("without", "seen"),
    [
        (("OCC-07",), "OCC-08"),
        (("OCC-07", "OCC-08"), "OCC-09"),
        (("OCC-07", "OCC-08", "OCC-09"), "commit"),
    ],
    ids=["OCC-07", "OCC-08", "OCC-09"],
)
def test_what_else_would_mask_the_anomaly(
    without: tuple[str, ...], seen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three rules say no, one behind the other; behind them stands the check of the commit."""
    rules = tuple(rule for rule in conflicts.RULES if rule.id not in without)
    monkeypatch.setattr(
        "twinlake.commit.transaction.check_conflicts",
        lambda ours, winner, ctx, _rules: conflicts.check_conflicts(ours, winner, ctx, rules),
    )
    (one,) = model_replays(["seed"])
    assert one.masked
    reply = one.replay.replies["op1"]
    assert reply.startswith("failed" if seen == "commit" else f"refused ({seen}"), reply
