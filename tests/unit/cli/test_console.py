"""Colours and fitted tables on a terminal, plain text everywhere else."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import pytest

from tests.unit.cli.running import run
from twinlake.cli.command import shown_rows
from twinlake.cli.console import ConsoleOutput, _folded
from twinlake.cli.view import Bars, View

if TYPE_CHECKING:
    from pathlib import Path

COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-9]")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.mark.parametrize(
    "command", ["show", "schema", "stats", "history", "files", "features", "log"]
)
def test_not_a_terminal_gets_no_escapes(orders: Path, command: str) -> None:
    assert "\x1b" not in run(command, orders).output


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("command", ["show", "stats", "history", "files", "features"])
def test_a_terminal_gets_colours_and_lines_that_fit(orders: Path, command: str) -> None:
    text = run(command, orders).stdout
    assert COLOUR.search(text)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert [line for line in plain.splitlines() if len(line.rstrip()) > 80] == []


@pytest.mark.usefixtures("terminal")
def test_no_color_is_honoured(orders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    for words in (["show", orders], ["log", orders, 1, "--raw"], ["show", orders / "nowhere"]):
        assert not COLOUR.search(run(*words).output)


@pytest.mark.usefixtures("terminal")
def test_json_is_never_coloured(orders: Path) -> None:
    assert "\x1b" not in run("show", orders, "--json").output


@pytest.mark.parametrize(
    ("limit", "is_terminal", "rows"),
    [(None, False, None), (None, True, 50), (0, True, 0), (7, False, 7)],
)
def test_listings_are_cut_on_a_terminal_only(
    limit: int | None, is_terminal: bool, rows: int | None
) -> None:
    assert shown_rows(limit, is_terminal=is_terminal) == rows


@pytest.mark.parametrize("text", ["  " + "a" * 250, "  " + "ab, " * 80, " " * 300, "short"])
def test_folding_loses_nothing(text: str) -> None:
    parts = _folded(text, 100)
    assert all(len(part) <= 100 for part in parts[:-1])
    assert "".join("".join(parts).split()) == "".join(text.split())


@pytest.mark.parametrize(("encoding", "sign"), [("utf-8", "█"), ("ascii", "#")])
def test_bars_are_as_long_as_their_numbers(
    encoding: str, sign: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr("sys.stdout", stream)
    bars = Bars((("a", 3000, "many"), ("bb", 1000, "some"), ("c", 1, "one"), ("d", 0, "none")))
    ConsoleOutput().show(View(data={}, blocks=[bars]))
    stream.seek(0)
    assert [len(line) - len(line.replace(sign, "")) for line in stream] == [30, 10, 1, 0]
