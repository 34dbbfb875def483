"""``upgrade``: a look at the plan, the doing of it, and what the exit status says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.unit.cli.running import document, lines, run
from tests.unit.table.making import data_file
from twinlake import Table
from twinlake.actions import DeletionVectorDescriptor

if TYPE_CHECKING:
    from pathlib import Path

WRITER = "icebergWriterCompatV1"
VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """An empty table, so that no engine is needed."""
    path = tmp_path / "t"
    Table.create(path, "id INT, b TINYINT", properties={**VECTORS, **FEED}, durable=False)
    return path


@pytest.fixture
def used(table: Path) -> Path:
    """The same after its only file, with a deletion vector, came and went."""
    vector = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 36, 1, 1)
    add = data_file("a.parquet", 10, vector=vector)
    opened = Table.open(table).commit("WRITE", [add])
    opened.commit("DELETE", [add.remove(deletion_timestamp=1)])
    return table


def test_without_yes_only_the_plan_is_told(table: Path) -> None:
    text = "\n".join(lines("upgrade", table))
    assert "Nothing was changed; run the command again with --yes" in text
    assert "IWC1-05" in text
    found = document("upgrade", table, "--to", WRITER)
    assert (found["dry_run"], found["done"], found["refused"]) == (True, False, False)
    assert [step["kind"] for step in found["steps"]] == [
        "switch",
        "convert",
        "drop_feature",
        "enable",
    ]
    assert Table.open(table).version == 0


def test_with_yes_it_is_done(table: Path) -> None:
    found = document("upgrade", table, "--yes")
    assert (found["dry_run"], found["done"], found["waiting_until"]) == (False, True, None)
    assert {step["state"] for step in found["steps"]} == {"done"}
    assert found["version"] == Table.open(table).version
    assert run("check", table, "--files").exit_code == 0
    again = document("upgrade", table, "--yes")
    assert again["steps"] == []
    assert again["done"] is True
    assert any("The upgrade is complete." in line for line in lines("upgrade", table, "--yes"))


def test_shared_leaves_the_flag_out(table: Path) -> None:
    assert document("upgrade", table, "--mode", "shared", "--yes")["done"] is True
    assert not Table.open(table).protocol.is_supported(WRITER)
    assert Table.open(table).check("icebergCompatV2").ok


def test_waiting_is_exit_status_3(used: Path) -> None:
    result = run("upgrade", used, "--yes")
    assert (result.exit_code, result.stderr) == (3, "")
    assert "Waiting until 2" in result.stdout
    result = run("upgrade", used, "--yes", "--json")
    assert result.exit_code == 3
    found = json.loads(result.stdout)
    assert found["done"] is False
    assert found["waiting_until"] > Table.open(used).snapshot.timestamp_ms
    assert [step["state"] for step in found["steps"]] == ["waiting", "planned"]
    # Looking at it is no failure.
    assert run("upgrade", used).exit_code == 0
    version = Table.open(used).version
    run("upgrade", used, "--yes")
    assert Table.open(used).version == version


def test_no_way_is_exit_status_1(tmp_path: Path) -> None:
    path = tmp_path / "t"
    Table.create(path, "id INT, v VOID", properties=FEED, durable=False)
    for words in ((), ("--yes",)):
        result = run("upgrade", path, *words)
        assert (result.exit_code, result.stderr) == (1, "")
        assert "IWC1-08" in result.stdout
        assert "Nothing was changed." in result.stdout
    assert Table.open(path).version == 0


def test_constraints_can_be_given_up(tmp_path: Path) -> None:
    path = tmp_path / "t"
    Table.create(path, "id INT", durable=False).add_constraint("c", "id > 0")
    result = run("upgrade", path, "--yes")
    assert result.exit_code == 1
    assert "give_up=['constraints']" in result.stdout
    assert run("upgrade", path, "--yes", "--give-up", "constraints").exit_code == 0
    assert Table.open(path).check(WRITER).ok


def test_unknown_promises_are_errors_of_three_lines(table: Path) -> None:
    result = run("upgrade", table, "--to", "icebergCompatV9")
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 3
