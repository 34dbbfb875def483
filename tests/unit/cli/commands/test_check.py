"""``check`` and ``features --explain``: verdicts for people, for programs, and as exit status."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.cli.running import document, grid, lines, run
from twinlake import Table
from twinlake.compat import RULES, find_compat, rules_of

if TYPE_CHECKING:
    from pathlib import Path

WRITER = "icebergWriterCompatV1"


@pytest.fixture
def twin(tmp_path: Path) -> Path:
    """A table that keeps icebergWriterCompatV1."""
    path = tmp_path / "twin"
    properties = {"delta.enableIcebergWriterCompatV1": "true"}
    Table.create(path, "id INT, tags ARRAY<STRING>", properties=properties, durable=False)
    return path


def failing(*words: object) -> dict[str, Any]:
    """The JSON document of a check that finds something."""
    result = run("check", *words, "--json")
    assert result.exit_code == 1
    assert result.stderr == ""
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_clean_table_is_exit_status_0(twin: Path) -> None:
    text = lines("check", twin)
    assert f"Table {twin} keeps {WRITER}" in " ".join(" ".join(text).split())
    found = document("check", twin, "--files")
    assert set(found) == {"location", "version", "ok", "reports"}
    # The compat feature that it requires is checked with it, not once more.
    (report,) = found["reports"]
    assert (found["ok"], report["compat"], report["enabled"]) == (True, WRITER, True)


def test_violations_are_exit_status_1_and_no_error(orders: Path) -> None:
    result = run("check", orders)
    assert (result.exit_code, result.stderr) == (1, "")
    text = result.stdout.splitlines()
    start = next(n for n, line in enumerate(text) if line.startswith("IWC1-05  "))
    assert text[start + 1].split() == ["where", "found", "wanted"]
    assert text[start + 2].split() == ["delta.columnMapping.mode", "name", "id"]
    assert text[start + 3].startswith("fix: ")


def test_the_document_has_every_violation(orders: Path) -> None:
    found = failing(orders)
    assert (found["ok"], found["version"]) == (False, 4)
    (report,) = found["reports"]
    assert (report["compat"], report["enabled"]) == (WRITER, False)
    assert set(report["violations"][0]) >= {"rule", "path", "found", "wanted", "message", "fix"}
    rules = {violation["rule"] for violation in report["violations"]}
    assert {"IWC1-05", "IWC1-10", "ICV2-06"} <= rules


def test_promises_are_asked_for_by_name(orders: Path) -> None:
    found = failing(orders, "--for", "icebergcompatv2", "--for", "icebergCompatV1")
    assert [report["compat"] for report in found["reports"]] == [
        "icebergCompatV2",
        "icebergCompatV1",
    ]
    result = run("check", orders, "--for", "deletionVectors")
    assert result.exit_code == 1
    assert "TWIN-FEATURE-UNKNOWN" in result.stderr


def test_footers_are_looked_at_when_asked(orders: Path) -> None:
    (short,), (full,) = failing(orders)["reports"], failing(orders, "--files")["reports"]
    assert (short["files"], full["files"]) == (0, 2)
    assert "the file is not there" in json.dumps(full)
    assert "the file is not there" not in json.dumps(short)


def test_profile_and_version(orders: Path) -> None:
    (report,) = failing(orders, "--profile", "kernel", "--version", 0)["reports"]
    assert report["profile"] == "kernel"
    assert run("check", orders, "--profile", "lax").exit_code == 2


def test_a_limit_holds_for_each_rule(tmp_path: Path) -> None:
    columns = ", ".join(f"c{n} TINYINT" for n in range(30))
    Table.create(tmp_path / "t", columns, durable=False)
    text = run("check", tmp_path / "t", "--limit", 3).stdout
    start = text.index("IWC1-07")
    assert "3 of 30." in text[start:]
    assert "c3 " not in text[start : text.index("IWC1-08")] if "IWC1-08" in text else True
    assert "c29" in run("check", tmp_path / "t").stdout


def test_a_registered_name_will_do(
    tmp_path: Path, twin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from twinlake.table import Catalog

    monkeypatch.setenv("TWINLAKE_CATALOG", str(tmp_path / "catalog.db"))
    Catalog(tmp_path / "catalog.db").register("twins", twin)
    assert document("check", "twins")["ok"]


def test_no_table_is_an_error(tmp_path: Path) -> None:
    result = run("check", tmp_path / "nothing", "--json")
    assert result.exit_code == 1
    assert "error" in json.loads(result.stdout)


def test_explain_lists_the_rules_of_the_registry() -> None:
    expected = [rule.id for rule in rules_of(find_compat(WRITER))]
    rows = grid(lines("features", "--explain", WRITER), "rule")
    assert [row[0] for row in rows] == expected
    found = document("features", "--explain", WRITER)["rules"]
    by_id = {rule.id: rule for rule in RULES}
    assert [rule["id"] for rule in found] == expected
    for rule in found:
        assert (rule["title"], rule["reason"]) == (
            by_id[rule["id"]].title,
            by_id[rule["id"]].reason,
        )
        assert "here" not in rule


def test_explain_tells_where_a_table_stands(orders: Path, twin: Path) -> None:
    def here(path: Path) -> dict[str, str]:
        words = ("features", path, "--explain", WRITER)
        return {rule["id"]: rule["here"] for rule in document(*words)["rules"]}

    assert here(orders)["IWC1-05"] == "broken: 1 violation"
    assert here(orders)["IWC1-09"] == "not checked"
    assert set(here(twin).values()) == {"kept", "not checked"}
    text = lines("features", orders, "--explain", WRITER)
    assert any(line.startswith("IWC1-05") and "broken: 1 violation" in line for line in text)


def test_explain_of_another_feature_has_no_rules() -> None:
    assert "rules" not in document("features", "--explain", "columnMapping")
