"""``twinlake sync``: several tables, failures, names, and watching."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.data_files import append
from tests.support.iceberg.both_sides import iceberg_rows, twin
from tests.unit.cli.running import document, lines, run
from twinlake import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[4]


@pytest.fixture(autouse=True)
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWINLAKE_CATALOG", str(tmp_path / "names.db"))


def made(folder: Path) -> Table:
    return append(twin(folder, "id LONG"), folder, [{"id": 1}])


def ids(folder: Path) -> list[int]:
    return sorted(row["id"] for row in iceberg_rows(folder))


def test_several_tables_are_brought_up_to_date(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    made(one)
    made(two)
    found = document("sync", one, two)["tables"]
    assert [(t["path"], t["version"], t["rebuilt"]) for t in found] == [
        (str(one), 1, "there was none"),
        (str(two), 1, "there was none"),
    ]
    assert found[0]["metadata_location"] == Table.open(one).iceberg.metadata_location
    assert (ids(one), ids(two)) == ([1], [1])
    append(Table.open(one), one, [{"id": 2}])
    text = lines("sync", one, two)
    assert text == [
        f"{one}  Iceberg metadata at version 2, 1 commit converted",
        f"{two}  Iceberg metadata at version 1, nothing to do",
    ]


def test_one_failure_does_not_keep_the_others_back(tmp_path: Path) -> None:
    plain, good = tmp_path / "plain", tmp_path / "good"
    Table.create(plain, "id LONG", durable=False)
    made(good)
    result = run("sync", plain, tmp_path / "missing", good, "--json")
    assert result.exit_code == 1
    first, second, third = json.loads(result.stdout)["tables"]
    assert first["error"]["code"] == "TWIN-COMPAT"
    assert second["error"]["code"] == "TWIN-TABLE-NOT-FOUND"
    assert third["version"] == 1
    assert len(result.stderr.splitlines()) == 6
    assert run("sync").exit_code == 2


def test_a_table_is_published_and_then_found_by_its_name(tmp_path: Path) -> None:
    made(tmp_path / "t")
    (found,) = document("sync", tmp_path / "t", "--publish", "orders")["tables"]
    assert found["name"] == "twinlake.default.orders"
    (again,) = document("sync", "orders")["tables"]
    assert again["location"] == found["location"]
    made(tmp_path / "u")
    result = run("sync", tmp_path / "t", tmp_path / "u", "--publish", "x")
    assert (result.exit_code, "one name" in result.stderr) == (1, True)


def test_the_lag_shows(tmp_path: Path) -> None:
    table = made(tmp_path / "t")

    def shown() -> str:
        (line,) = (x for x in lines("show", tmp_path / "t") if x.startswith("Iceberg"))
        return line.removeprefix("Iceberg").strip()

    assert shown() == "no metadata yet: no sync has run for this version"
    table.iceberg.sync()
    assert shown() == "at version 1"
    append(table, tmp_path / "t", [{"id": 2}])
    assert shown() == "at version 1, 1 version behind: no sync has run for this version"
    lag = document("show", tmp_path / "t")["iceberg"]
    assert (lag["delta_version"], lag["iceberg_version"], lag["versions"]) == (2, 1, 1)
    assert lag["why"] == "no sync has run for this version"


def test_a_table_without_a_promise_has_no_lag_to_show(empty: Path) -> None:
    assert document("show", empty)["iceberg"] is None
    assert not any(line.startswith("Iceberg") for line in lines("show", empty))


@pytest.fixture
def watching(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """``twinlake sync --watch`` as a process of its own."""
    running: list[subprocess.Popen[str]] = []

    def start(*words: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "twinlake", "sync", "--watch", "--interval", "0.05"]
        process = subprocess.Popen(
            [*command, *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def eventually(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_watch_follows_what_others_write_survives_errors_and_ends_cleanly(
    tmp_path: Path, watching: Callable[..., subprocess.Popen[str]], number: signal.Signals
) -> None:
    good, late = tmp_path / "good", tmp_path / "late"
    table = made(good)
    process = watching(late, good, "--json")
    eventually(lambda: table.iceberg.version == 1)
    table = append(table, good, [{"id": 2}])
    eventually(lambda: table.iceberg.version == 2)
    made(late)
    eventually(lambda: Table.open(late).iceberg.version == 1)
    assert ids(good) == [1, 2]
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    told = [json.loads(line) for line in out.splitlines()]
    assert [one["error"]["code"] for one in told if "error" in one] == ["TWIN-TABLE-NOT-FOUND"]
    versions = [(Path(one["path"]).name, one["version"]) for one in told if "error" not in one]
    assert versions == [("good", 1), ("good", 2), ("late", 1)]
