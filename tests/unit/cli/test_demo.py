"""The demo tells the truth: its protocol lines are the ones of the source document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.cli.running import document, lines
from twinlake import Table

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def steps() -> dict[str, dict[str, Any]]:
    return {step["step"]: step for step in document("demo")["steps"]}


def _protocol_line(step: dict[str, Any]) -> dict[str, Any]:
    (found,) = (line["protocol"] for line in step["log"] if "protocol" in line)
    assert found == step["protocol"]
    return dict(found)


def test_a_new_table_starts_at_1_2(steps: dict[str, dict[str, Any]]) -> None:
    assert _protocol_line(steps["create"]) == {"minReaderVersion": 1, "minWriterVersion": 2}


def test_the_change_data_feed_gives_1_4(steps: dict[str, dict[str, Any]]) -> None:
    step = steps["change_data_feed"]
    assert _protocol_line(step) == {"minReaderVersion": 1, "minWriterVersion": 4}


def test_deletion_vectors_give_3_7_with_exactly_these_lists(
    steps: dict[str, dict[str, Any]],
) -> None:
    found = _protocol_line(steps["deletion_vectors"])
    assert (found["minReaderVersion"], found["minWriterVersion"]) == (3, 7)
    assert found["readerFeatures"] == ["deletionVectors"]
    assert set(found["writerFeatures"]) == {
        "deletionVectors", "checkConstraints", "generatedColumns", "invariants",
        "changeDataFeed", "appendOnly",
    }  # fmt: skip


def test_a_new_client_writes_the_first_version_and_is_refused_the_others_by_name(
    steps: dict[str, dict[str, Any]],
) -> None:
    told = {
        (r["version"], r["fields"]["operation"]): r["fields"]["features"]
        for r in steps["clients"]["refusals"]
        if r["client"] == "a new client"
    }
    assert told == {
        (1, "write"): ["changeDataFeed", "checkConstraints", "generatedColumns"],
        (2, "read"): ["deletionVectors"],
        (2, "write"): [
            "changeDataFeed", "checkConstraints", "deletionVectors", "generatedColumns",
        ],
    }  # fmt: skip


def test_the_minimal_policy_lists_only_what_is_needed(steps: dict[str, dict[str, Any]]) -> None:
    assert [p["minWriterVersion"] for p in steps["policies"]["minimal"]] == [2, 7, 7]
    assert steps["policies"]["minimal"][-1]["writerFeatures"] == [
        "appendOnly", "changeDataFeed", "deletionVectors", "invariants",
    ]  # fmt: skip


def test_the_second_writer_is_told_who_won(steps: dict[str, dict[str, Any]]) -> None:
    step = steps["two_writers"]
    assert step["error"]["type"] == "MetadataChangedException"
    assert step["error"]["fields"]["winner"] == step["winner"] == 3
    assert step["settled"] == 4


def test_restoring_keeps_the_protocol(steps: dict[str, dict[str, Any]]) -> None:
    step = steps["restore"]
    assert step["version"] == 5
    assert step["properties"] == {"delta.enableChangeDataFeed": "true"}
    assert step["protocol"] == steps["deletion_vectors"]["protocol"]


def test_a_table_that_breaks_rules_is_upgraded(steps: dict[str, dict[str, Any]]) -> None:
    refused = steps["compat_refused"]
    assert refused["error"]["code"] == "TWIN-COMPAT"
    assert len({v["rule"] for v in refused["report"]["violations"]}) >= 6
    plan = steps["compat_plan"]["plan"]
    assert (plan["done"], plan["refused"]) == (False, False)
    assert [step["kind"] for step in plan["steps"]] == [
        "switch",
        "convert",
        "drop_feature",
        "promise",
    ]
    assert steps["compat_upgrade"]["plan"]["done"] is True
    assert steps["compat_clean"]["report"]["ok"] is True
    assert steps["compat_clean"]["report"]["files"] > 0
    assert steps["compat_clean"]["rows"] == 9_000


def test_pyiceberg_reads_the_same_rows_at_both_versions(steps: dict[str, dict[str, Any]]) -> None:
    assert steps["iceberg"]["iceberg"] == steps["iceberg"]["delta"] == [9_000, 4_000]


def test_the_screen_shows_the_lines_and_keeps_to_100_columns(tmp_path: Path) -> None:
    text = lines("demo", "--keep", tmp_path / "kept")
    assert '  {"protocol":{"minReaderVersion":1,"minWriterVersion":2}}' in text
    assert '  {"protocol":{"minReaderVersion":1,"minWriterVersion":4}}' in text
    assert any(x.startswith("MetadataChangedException") for x in text)
    place = str(tmp_path)
    assert [x for x in text if len(x) > 100 and place not in x] == []
    assert Table.open(tmp_path / "kept" / "orders").version == 5


def test_nothing_is_left_behind_unless_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    document("demo")
    assert list(tmp_path.iterdir()) == []
