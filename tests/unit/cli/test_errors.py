"""What happens when a command fails: three lines, a code, an exit status, no trace."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.cli.running import check_golden, normalised, run
from twinlake import Table
from twinlake.actions import AddFile
from twinlake.cli.error_text import error_lines
from twinlake.errors import Code, TwinlakeError, UserError

if TYPE_CHECKING:
    from pathlib import Path

FAILURES: dict[str, list[str]] = {
    "no_table": ["show", "PATH/nowhere"],
    "no_log": ["log", "PATH/nowhere"],
    "no_version": ["show", "PATH/orders", "--version", "99"],
    "no_commit": ["log", "PATH/orders", "99"],
    "bad_time": ["history", "PATH/orders", "--timestamp", "yesterday"],
    "bad_predicate": ["files", "PATH/orders", "--where", "id >"],
    "no_column": ["alter", "PATH/orders", "--drop-column", "nope"],
    "bad_property": ["alter", "PATH/orders", "--set", "delta.enableChangeDataFed=true"],
    "no_feature": ["features", "--explain", "deletionVector"],
    "after_a_step": ["alter", "PATH/orders", "--set", "a=1", "--add-column", "id INT"],
    "options_for_a_folder": ["show", "PATH/orders", "--option", "region=eu"],
}


@pytest.mark.parametrize("name", FAILURES)
def test_wording(orders: Path, name: str) -> None:
    words = [word.replace("PATH", str(orders.parent)) for word in FAILURES[name]]
    result = run(*words)
    assert (result.exit_code, result.stdout) == (1, "")
    first, why, fix = result.stderr.splitlines()
    assert first.split("  ")[0] in set(Code)
    assert why.startswith("  why: ")
    assert fix.startswith("  fix: ")
    check_golden(name, normalised(result.stderr, orders.parent))


@pytest.mark.parametrize("name", FAILURES)
def test_json_errors_are_one_document_beside_the_text(orders: Path, name: str) -> None:
    words = [word.replace("PATH", str(orders.parent)) for word in FAILURES[name]]
    result = run(*words, "--json")
    assert result.exit_code == 1
    error = json.loads(result.stdout)["error"]
    assert {"code", "what", "why", "fix", "type"} <= set(error)
    assert result.stderr.startswith(error["code"])


def _broken(*_: Any, **__: Any) -> Table:
    raise ZeroDivisionError("by nothing")


def test_a_path_that_is_not_unicode_is_an_error_of_three_lines() -> None:
    result = run("show", "a/\udcff", "--json")
    assert (result.exit_code, len(result.stderr.splitlines())) == (1, 3)
    assert json.loads(result.stdout)["error"]["code"] == "TWIN-PATH-UNSAFE"


def test_an_unexpected_error_is_called_a_bug(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Table, "open", _broken)
    result = run("show", empty)
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "TWIN-INTERNAL  Unexpected error: ZeroDivisionError.",
        "  why: This is a bug in twinlake. ZeroDivisionError: by nothing",
        "  fix: Run the command again with `--debug` and report the output.",
    ]
    assert "Traceback" in run("show", empty, "--debug").stderr
    assert json.loads(run("show", empty, "--json").stdout)["error"]["fields"] == {
        "type": "ZeroDivisionError",
        "message": "by nothing",
    }


def test_debug_shows_the_trace_and_the_three_lines(tmp_path: Path) -> None:
    found = run("show", tmp_path, "--debug").stderr
    assert "Traceback" in found
    assert found.splitlines()[-3].startswith("TWIN-TABLE-NOT-FOUND")


@pytest.mark.parametrize(
    "error",
    [
        TwinlakeError(Code.STORAGE, "what"),
        UserError(Code.STORAGE, "what\nin two lines", why="a\nb"),
    ],
    ids=["bare", "line breaks"],
)
def test_errors_always_have_three_lines(error: TwinlakeError) -> None:
    found = error_lines(error)
    assert len(found) == 3
    assert not any("\n" in line for line in found)


@pytest.mark.parametrize(
    "words",
    [
        ["nonsense"],
        ["show"],
        ["show", "x", "--nonsense"],
        ["log", "x", "--raw", "-1"],
        ["diff", "x"],
    ],
    ids=["command", "argument", "option", "number", "version"],
)
def test_wrong_usage_is_exit_status_2(words: list[str]) -> None:
    assert run(*words).exit_code == 2


@pytest.mark.process
def test_a_closed_pipe_is_no_error(orders: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "twinlake", "log", str(orders), "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


@pytest.mark.process
@pytest.mark.parametrize("words", ["files", "files --json", "history", "schema", "stats", "log 1"])
def test_head_ends_a_command_quietly(empty: Path, words: str) -> None:
    # More than a pipe holds, so that the command is still writing when the reader goes.
    paths = [f"{'x' * 200}-{number}.parquet" for number in range(2000)]
    adds = [
        AddFile(path=path, partition_values={}, size=1, modification_time=0, data_change=True)
        for path in paths
    ]
    Table.open(empty, durable=False).commit("WRITE", adds, parameters={"mode": "Append"})
    name, *more = words.split()
    program = shlex.join([sys.executable, "-m", "twinlake", name, str(empty), *more])
    done = subprocess.run(
        ["sh", "-c", f"{program} | head -1"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.process
def test_the_module_runs_as_a_program(orders: Path) -> None:
    environment = {**os.environ, "NO_COLOR": "1"}
    command = [sys.executable, "-m", "twinlake"]
    done = subprocess.run(
        [*command, "show", str(orders), "--json"],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    assert json.loads(done.stdout)["version"] == 4
    failed = subprocess.run(
        [*command, "show", str(orders / "nowhere")], capture_output=True, text=True, check=False
    )
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr.startswith("TWIN-TABLE-NOT-FOUND")
