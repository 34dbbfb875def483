"""``twinlake verify code``: which workloads run, what is told of them, and single schedules."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

from tests.unit.cli.running import document, grid, lines, run
from twinlake.commit.conflict import rules as conflicts
from twinlake.verify.code import FAULTS, WORKLOADS

if TYPE_CHECKING:
    from pathlib import Path

ANOMALY = "delete-update.shared.vectors"
#: The DELETE reads, the UPDATE runs to its end, the DELETE goes on.
HELD = f"{ANOMALY}~a5b30"


def test_listing_names_every_workload_and_fault() -> None:
    found = document("verify", "code", "--list")
    assert [one["name"] for one in found["workloads"]] == list(WORKLOADS)
    assert found["faults"] == list(FAULTS)
    assert len(grid(lines("verify", "code", "--list"), "workload")) == len(WORKLOADS)


def test_every_interleaving_of_a_workload_is_run() -> None:
    found = document("verify", "code", ANOMALY)
    (one,) = found["explorations"]
    assert (found["ok"], one["workload"], one["complete"]) == (True, ANOMALY, True)
    assert one["schedules"] > 1
    text = " ".join(lines("verify", "code", ANOMALY))
    assert "every order of their storage calls was run, without faults" in text
    assert "Not covered: Spark and what its statements record as read" in text


def test_random_schedules_repeat_by_seed() -> None:
    words = ("verify", "code", ANOMALY, "--sample", "--seed", 3, "--runs", 4)
    outcomes = [
        json.loads(run(*words, "--json").stdout)["explorations"][0]["outcomes"] for _ in range(2)
    ]
    assert run(*words).exit_code == 3
    assert outcomes[0] == outcomes[1]
    assert sum(outcomes[0].values()) == 4


def test_held_delete_is_refused_by_the_rule_it_breaks(tmp_path: Path) -> None:
    page = tmp_path / "held.html"
    found = document("verify", "code", "--replay", HELD, "--html", page)
    assert found["ok"] is True
    assert found["replies"]["w1"].startswith("committed")
    assert found["replies"]["w0"].startswith("refused")
    assert found["trace"][-1]["checks"][0]["passed"] is False
    text = lines("verify", "code", "--replay", HELD)
    assert [row[0] for row in grid(text, "step")][-1] == str(len(found["trace"]))
    root = ET.fromstring(page.read_text(encoding="utf-8").removeprefix("<!DOCTYPE html>\n"))
    drawing = next(root.iter("{http://www.w3.org/2000/svg}svg"))
    heads = [one.text for one in drawing.iter() if one.get("class") == "who" and one.text]
    assert heads == ["w0", "w1", "store"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["nonsense"], "There is no workload 'nonsense'."),
        (["--replay", "nonsense~a1"], "nonsense"),
        (["--replay", f"{ANOMALY}~?"], "?"),
        ([ANOMALY, "--fault", "bad luck"], "There is no fault 'bad luck'."),
        (["--sample", "--models"], "--models and --sample cannot go together."),
        ([ANOMALY, "--replay", HELD], "--replay and WORKLOAD cannot go together."),
    ],
)
def test_arguments_that_cannot_be_used_exit_with_2(words: list[str], text: str) -> None:
    result = run("verify", "code", *words)
    assert result.exit_code == 2
    assert result.stderr.startswith("TWIN-INVALID-ARGUMENT  ")
    assert text in result.stderr


def test_counterexamples_of_the_models_are_masked_by_the_code() -> None:
    found = document("verify", "code", "--models")
    assert found["ok"] is True
    assert "seed" in [one["name"] for one in found["replays"]]
    assert all(one["masked"] and one["by"] for one in found["replays"])


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> str:
    """The commit path without its conflict rules, and a workload that shows it."""
    monkeypatch.setattr(
        "twinlake.commit.transaction.check_conflicts",
        lambda ours, winner, ctx, _rules: conflicts.check_conflicts(ours, winner, ctx, ()),
    )
    return "update-update.shared.copy"


def test_a_bug_in_the_code_is_told_with_a_schedule_to_repeat(
    unchecked: str, tmp_path: Path
) -> None:
    page = tmp_path / "bug.html"
    result = run("verify", "code", unchecked, "--html", page, "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    (violation,) = found["explorations"][0]["violations"]
    assert violation["property"] == "FilesComeAndGoOnce"
    assert violation["message"] in page.read_text(encoding="utf-8").replace("&#x27;", "'")
    schedule = violation["schedule"]
    told = run("verify", "code", unchecked).stdout
    assert f"schedule  {schedule}" in told
    assert "The failed comparison" in told
    again = run("verify", "code", "--replay", schedule)
    assert again.exit_code == 1
    assert "VIOLATED: FilesComeAndGoOnce." in again.stdout
    shorter = run("verify", "code", "--shrink", schedule, "--json")
    assert shorter.exit_code == 1
    assert len(json.loads(shorter.stdout)["trace"]) <= len(violation["trace"])
