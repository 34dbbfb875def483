"""Running commands in process, and making what they print the same on every machine."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from twinlake.cli import main

GOLDEN = Path(__file__).parent / "golden"


def children(group: click.Group) -> dict[str, click.Command]:
    """The commands of a group, in their order."""
    context = click.Context(group)
    names = group.list_commands(context)
    return {name: made for name in names if (made := group.get_command(context, name))}


def run(*words: object) -> Result:
    """The result of ``twinlake words...``; an exception that gets through fails the test."""
    return CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)


def lines(*words: object) -> list[str]:
    """The lines of a command that must succeed."""
    result = run(*words)
    assert result.exit_code == 0, result.stderr
    return result.stdout.splitlines()


def document(*words: object) -> dict[str, Any]:
    """The JSON document of a command that must succeed."""
    result = run(*words, "--json")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def grid(text: list[str], first: str) -> list[list[str]]:
    """The cells of the grid whose header starts with a word, header left out."""
    start = next(n for n, line in enumerate(text) if line.split("  ")[0].strip() == first)
    rows: list[list[str]] = []
    for line in text[start + 1 :]:
        if not line.strip():
            break
        rows.append(re.split(r" {2,}", line.strip()))
    return rows


def normalised(text: str, path: Path) -> str:
    """Text without what differs from run to run."""
    text = text.replace(str(path), "PATH")
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "UUID", text)
    return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", "TIME", text)


def check_golden(name: str, text: str) -> None:
    """Compare with the stored wording; delete the file and run twice to accept a new one."""
    stored = GOLDEN / f"{name}.txt"
    if not stored.exists():
        stored.write_text(text, encoding="utf-8")
        pytest.fail(f"{stored.name} was not there; it is written now, look at it")
    assert text == stored.read_text(encoding="utf-8")
