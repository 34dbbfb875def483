"""The demo tells the truth: its protocol lines are the ones of the source document."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import twinlake
from tests.unit.cli.running import document, lines, run
from twinlake import Table

ROOT = Path(__file__).parents[4]

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def steps() -> dict[str, dict[str, Any]]:
    return {step["step"]: step for step in document("demo", "--no-spark")["steps"]}


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


def test_anomaly_is_found_with_its_trace(steps: dict[str, dict[str, Any]]) -> None:
    step = steps["verify_anomaly"]
    assert step["violated"] == "ConsistentRead"
    assert len(step["trace"]) == 14


def test_fix_is_proved(steps: dict[str, dict[str, Any]]) -> None:
    step = steps["verify_fix"]
    assert (step["ok"], step["states"]) == (True, 2741)


def test_code_masks_the_anomaly(steps: dict[str, dict[str, Any]]) -> None:
    step = steps["verify_code"]
    assert (step["property"], step["masked"]) == ("ConsistentRead", True)
    assert "OCC-07" in step["by"]


def test_the_screen_shows_the_lines_and_keeps_to_100_columns(tmp_path: Path) -> None:
    text = lines("demo", "--no-spark", "--keep", tmp_path / "kept")
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
    document("demo", "--no-spark")
    assert list(tmp_path.iterdir()) == []


def test_missing_examples_are_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("twinlake.examples")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(twinlake, "__file__", str(tmp_path / "lib" / "twinlake" / "__init__.py"))
    result = run("demo", "--no-spark")
    assert result.exit_code == 1
    assert result.stderr.startswith("TWIN-INVALID-ARGUMENT  The examples that this command runs")
    assert str(tmp_path / "examples") in result.stderr


def test_wheel_has_the_examples_and_runs_them(tmp_path: Path) -> None:
    build = ["-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q", "-w", tmp_path, ROOT]
    subprocess.run([sys.executable, *map(str, build)], check=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    done = subprocess.run(
        [sys.executable, "-m", "twinlake", "demo", "--no-spark", "--json"],
        cwd=tmp_path,
        # The compiled files show below which examples ran, so this process may write them.
        env={
            **os.environ,
            "PYTHONPATH": str(tmp_path / "site"),
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": "",
        },
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert [step["step"] for step in json.loads(done.stdout)["steps"]][-1] == "next"
    assert (tmp_path / "site" / "twinlake" / "examples" / "__pycache__").is_dir()
