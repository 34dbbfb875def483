"""``twinlake verify all``: what must be, what is, and what happens where they differ."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import click
import pytest

from tests.support.scale import is_full_scale
from tests.unit.cli.running import document, grid, lines, run
from twinlake.cli.commands.verify_all import verify_all
from twinlake.cli.verify.models import base_of, extensions
from twinlake.cli.verify.report import PARTS, VerifyReport


def test_parts_can_be_chosen_and_come_out_as_they_must() -> None:
    found = document("verify", "all", "--only", "schedules", "--only", "fixes")
    assert set(found) == {"ok", "unexpected", "schedules", "fixes"}
    assert (found["ok"], found["unexpected"]) == (True, [])
    assert [(one["schedule"], one["fix"], one["outcome"]) for one in found["schedules"]] == [
        ("document", None, "breaks ConsistentRead"),
        ("document", "A", "is refused"),
        ("serial", None, "all hold"),
    ]
    aborts = {one["fix"]: one["delete_aborts"]["row"] for one in found["fixes"]}
    assert aborts["C"] < aborts["B"] < aborts["A"]


def test_mutants_are_listed_with_smallest_configuration_and_length_of_trace() -> None:
    text = lines("verify", "all", "--only", "delta")
    rows = {(row[0], row[1]): row for row in grid(text[text.index("Delta: with a mistake in it") :],
                                                  "model")}  # fmt: skip
    assert rows["store", "give up on unknown"][2:] == [
        "mutant", "breaks ReportsAreTrue", "3", "yes", "defaults",
    ]  # fmt: skip
    wanted = {
        (one.name, case.name)
        for one in extensions("delta")
        for case in (*one.mutants, *one.controls)
        if not case.large
    }
    assert rows.keys() == wanted
    assert any(line.endswith("all as expected.") for line in text)
    # The last words say what none of it covers.
    assert text[-1].startswith("not covered")


def test_a_difference_is_told_and_makes_the_report_fail() -> None:
    report = VerifyReport()
    base = base_of("iceberg")
    case = replace(base.case("with the fix"), states=2_740)
    said = report._compared("iceberg", base, case, base.run(case))
    assert said == "NO: states: expected 2740, found 2741"
    assert not report.ok
    data = report.summary().data
    assert data["unexpected"] == ["writers, with the fix: states: expected 2740, found 2741"]


def test_parts_are_those_of_the_option() -> None:
    (option,) = (one for one in verify_all.params if one.name == "only")
    assert isinstance(option.type, click.Choice)
    assert tuple(option.type.choices) == PARTS


def test_bounds_are_one_tick_more_than_the_longest_operation() -> None:
    found = document("verify", "all", "--only", "bounds")
    assert found["ok"] is True
    assert {(one["longest"], one["least"]) for one in found["bounds"]} == {(1, 2), (2, 3)}


def test_unknown_part_is_wrong_usage() -> None:
    assert run("verify", "all", "--only", "luck").exit_code == 2


@pytest.mark.skipif(not is_full_scale(), reason="large: run with TWINLAKE_SCALE=full")
def test_everything_is_as_it_must_be() -> None:
    result = run("verify", "all", "--json")
    found: dict[str, Any] = json.loads(result.stdout)
    assert found["unexpected"] == []
    assert result.exit_code == 0
    assert set(PARTS) <= set(found)
