"""Reports: readable on a terminal and in a notebook, complete for machines, safe to print."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

from tests.support.notebook_page import NotebookPage
from twinlake._html import SHOWN as FOLD
from twinlake.compat import RULES, Profile, Report, Scope, Violation
from twinlake.compat.report import report_groups, report_summary
from twinlake.compat.report_text import SHOWN

FIRST, SECOND = (rule for rule in RULES if rule.id in ("IWC1-05", "IWC1-06"))


def violation(number: int = 0, **changes: Any) -> Violation:
    fields = {
        "rule": SECOND.id,
        "scope": Scope.METADATA,
        "path": f"address.street{number}",
        "found": f"name{number}",
        "wanted": f"col-{number}",
        "message": f"column {number} has another name",
        "fix": "Move it.",
        "delta_class": None,
    }
    return Violation(**(fields | changes))


def report(*violations: Violation, **changes: Any) -> Report:
    fields: dict[str, Any] = {
        "compat": "icebergWriterCompatV1",
        "table": "orders",
        "profile": Profile.SPEC,
        "rules": (FIRST.id, SECOND.id),
        "violations": violations,
    }
    return Report(**(fields | changes))


MODE = violation(
    rule=FIRST.id, path="delta.columnMapping.mode", found="name", wanted="id", fix="Upgrade it."
)


def test_a_clean_report_is_one_sentence() -> None:
    text = "Table orders keeps icebergWriterCompatV1: no rule is broken"
    assert report().ok
    assert str(report()) == f"{text} (2 rules checked, profile spec)."
    assert "would keep" in str(report(enabled=False))
    assert "1,200 files read" in str(report(files=1_200))


def test_violations_stand_together_by_rule_in_the_order_of_asking() -> None:
    found = report(violation(1), MODE, violation(2))
    assert not found.ok
    assert [(group.rule, group.count) for group in report_groups(found)] == [
        (FIRST.id, 1),
        (SECOND.id, 2),
    ]
    lines = str(found).splitlines()
    assert lines[0].startswith("Table orders breaks 2 rules of icebergWriterCompatV1 in 3 places")
    assert [line for line in lines if line.startswith(("IWC1", "ICV2"))] == [
        f"{FIRST.id} {FIRST.title}",
        f"{SECOND.id} {SECOND.title}",
    ]
    row = next(line for line in lines if "address.street2" in line)
    assert row.split() == ["address.street2", "name2", "col-2"]
    assert lines.count("  fix: Move it.") == 1
    assert lines.count("  fix: Upgrade it.") == 1


def test_many_violations_of_one_rule_are_counted() -> None:
    found = report(MODE, *(violation(n) for n in range(SHOWN + 32)), omitted={SECOND.id: 1_000})
    assert found.count == SHOWN + 32 + 1 + 1_000
    text = str(found)
    assert "… and 1,032 more" in text
    assert sum("address.street" in line for line in text.splitlines()) == SHOWN
    assert f"{1_000 + SHOWN + 32 - FOLD:,} more" in NotebookPage(found).text
    assert len(found.to_dict()["violations"]) == SHOWN + 33
    assert found.to_dict()["omitted"] == {SECOND.id: 1_000}


def test_a_feature_that_is_not_enabled_is_named() -> None:
    assert "would break 1 rule of" in report_summary(report(MODE, enabled=False))
    assert "is not enabled yet" in report_summary(report(MODE, enabled=False))
    assert "enabled yet" not in report_summary(report(MODE))


def test_a_rule_that_is_not_in_the_registry_is_shown_by_its_message() -> None:
    text = str(report(violation(rule="XYZ-01", message="something else is wrong")))
    assert "XYZ-01 something else is wrong" in text


def test_lines_stay_narrow_and_cells_keep_both_ends() -> None:
    long = violation(path="begin" + "x" * 500 + "end", fix="word " * 100)
    lines = str(report(long)).splitlines()
    assert max(map(len, lines)) < 200
    assert any("begin" in line and "end" in line and "…" in line for line in lines)


EVIL = "a\x1b[2Jb\nc\u202ed<script>alert('x')</script>&amp;"


@pytest.mark.parametrize("place", ["path", "found", "wanted", "fix"])
def test_a_table_cannot_play_with_the_terminal_or_the_page(place: str) -> None:
    changes: dict[str, Any] = {place: EVIL}
    found = report(violation(**changes), table=EVIL)
    assert all(line.isprintable() for line in str(found).splitlines())
    html = found._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_notebooks_show_a_table_for_each_rule_and_fold_long_ones() -> None:
    found = NotebookPage(report(MODE, *(violation(n) for n in range(FOLD + 1))))
    assert [row for row in found.rows if row[0] == "where"] == [
        ["where", "found", "wanted", "fix"]
    ] * 3
    assert ["delta.columnMapping.mode", "name", "id", "Upgrade it."] in found.rows
    assert found.tags.count("details") == 1
    assert FIRST.title in found.text
    assert FIRST.reason in found.text


def test_repr_is_the_summary() -> None:
    assert repr(report()) == f"<Report: {report_summary(report())}>"


def test_machines_get_everything() -> None:
    found = report(MODE, violation(3, delta_class="X.Y"), files=7)
    data = json.loads(json.dumps(found.to_dict()))
    assert (data["ok"], data["files"], data["enabled"]) == (False, 7, True)
    assert data["rules"] == [FIRST.id, SECOND.id]
    assert data["violations"][1] == {
        "rule": SECOND.id,
        "scope": "metadata",
        "path": "address.street3",
        "found": "name3",
        "wanted": "col-3",
        "message": "column 3 has another name",
        "fix": "Move it.",
        "delta_class": "X.Y",
    }
    assert "omitted" not in data
    assert pickle.loads(pickle.dumps(found)) == copy.deepcopy(found) == found
