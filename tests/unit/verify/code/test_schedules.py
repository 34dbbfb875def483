"""Schedules as text, replays, samples by seed, and what a trace tells."""

from __future__ import annotations

import json

import pytest

from twinlake.errors import Code, UserError
from twinlake.verify.checker import Trace
from twinlake.verify.code import (
    FaultName,
    PlacedFault,
    Schedule,
    explore,
    find_workload,
    parse_schedule,
    replay,
    sample,
    shrink,
    sweep,
)


@pytest.mark.parametrize(
    "text",
    [
        "append-append.shared.copy",
        "append-append.shared.copy~a2b5",
        "append-append.shared.copy~b3:crash~a2b5a12",
        "everybody~a1:error,d12:stale-list~a1b1c1d1",
        "everybody~d12:stale-list",
    ],
)
def test_ids_read_back_as_they_were_written(text: str) -> None:
    assert parse_schedule(text).id == text


def test_a_schedule_is_its_workload_its_faults_and_its_moves() -> None:
    schedule = parse_schedule("delete-update.shared.vectors~b7:lost-reply~a2b1a1")
    assert schedule.choices == (0, 0, 1, 0)
    assert schedule.switches == 2
    assert schedule.faults == (PlacedFault(1, 7, FaultName.LOST_REPLY),)
    assert schedule == Schedule(
        find_workload("delete-update.shared.vectors"), (0, 0, 1, 0), schedule.faults
    )


@pytest.mark.parametrize(
    "text",
    [
        "no-such-workload~a1",
        "append-append.shared.copy~c1",
        "append-append.shared.copy~a1b",
        "append-append.shared.copy~a1:melts~a1",
        "append-append.shared.copy~x:crash~a1",
        "append-append.shared.copy~a1~a2~a3",
    ],
)
def test_what_is_no_schedule_is_refused(text: str) -> None:
    with pytest.raises(UserError) as refused:
        parse_schedule(text)
    assert refused.value.code is Code.INVALID_ARGUMENT
    assert refused.value.fix


def test_a_replay_is_the_same_every_time_and_tells_every_call() -> None:
    text = "delete-update.shared.vectors~a9b14"
    one, other = replay(text), replay(text)
    assert one == other
    assert isinstance(one.trace, Trace)
    first = one.trace.steps[0]
    assert (first.actor, first.action) == ("w0", "read")
    assert first.arguments["key"] == "_delta_log/_last_checkpoint"
    commits = [step for step in one.trace.steps if "DELETE by w0" in str(step.changes)]
    assert len(commits) == 1
    assert commits[0].action == "create"
    last = {step.actor: step for step in one.trace.steps}
    assert last["w0"].state == ("delete", "committed")
    assert json.loads(json.dumps(one.to_dict()))["replies"] == dict(one.replies)
    for step in one.trace.steps:
        assert f"{step.action:<10} {step.arguments['key']}" in str(one)


def test_a_lost_race_is_told_with_the_rule_that_refused() -> None:
    # The delete is held after its scan, the update commits, the delete loses.
    run = replay("delete-update.shared.copy~a6b40a20")
    assert run.replies["w1"] == "committed 1"
    refused = [check for step in run.trace.steps for check in step.checks if not check.passed]
    assert [check.name for check in refused] == ["OCC-07"]


@pytest.mark.parametrize(
    ("fault", "reply"),
    [("crash", "crashed"), ("lost-reply", "committed 1"), ("error", "committed 1")],
)
def test_faults_at_the_commit_itself(fault: str, reply: str) -> None:
    plain = replay("append-append.shared.copy~a30")
    own = [step for step in plain.trace.steps if step.actor == "w0"]
    call = next(n for n, step in enumerate(own, 1) if step.action == "create")
    run = replay(f"append-append.shared.copy~a{call}:{fault}~a30")
    assert run.replies["w0"] == reply
    assert own[call - 1].arguments["key"].endswith("00000000000000000001.json")
    assert run.trace.steps[call - 1].arguments["fault"] == fault
    assert not run.violations


def test_samples_of_one_seed_are_the_same_and_of_another_are_not() -> None:
    one = sample("append-delete.shared.copy", seed=5, runs=8)
    again = sample("append-delete.shared.copy", seed=5, runs=8)
    other = sample("append-delete.shared.copy", seed=6, runs=8)
    assert (one.ends, one.outcomes, one.steps) == (again.ends, again.outcomes, again.steps)
    assert other.ends != one.ends
    assert not one.complete


def test_an_exploration_is_plain_data() -> None:
    result = explore("append-append.shared.copy", limit=2)
    data = json.loads(json.dumps(result.to_dict()))
    assert data["workload"] == "append-append.shared.copy"
    assert (data["schedules"], data["complete"], data["ok"]) == (2, False, False)
    assert data["violations"] == []


def test_an_unknown_fault_is_refused() -> None:
    with pytest.raises(UserError, match="no fault 'melts'") as refused:
        sweep("append-append.shared.copy", kinds=("melts",))
    assert refused.value.code is Code.INVALID_ARGUMENT


def test_a_schedule_that_holds_is_not_shrunk() -> None:
    assert shrink("append-append.shared.copy~a2b5") == "append-append.shared.copy~a2b5"
