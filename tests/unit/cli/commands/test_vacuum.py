"""``twinlake vacuum``: a preview unless told to do it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.unit.cli.running import document, grid, lines, run
from twinlake import Table

if TYPE_CHECKING:
    from pathlib import Path

ZERO = ("--retention-hours", "0", "--no-retention-check")


def _orphans(table: Path, *names: str) -> None:
    for name in names:
        (table / name).write_bytes(b"12345")
        os.utime(table / name, (1, 1))


def test_vacuum_previews_unless_told_to_do_it(empty: Path) -> None:
    _orphans(empty, "a", "b")
    text = lines("vacuum", empty)
    assert "2 files with 10 bytes would be deleted. Nothing was" in text[0]
    assert grid(text, "file") == [["a"], ["b"]]
    preview = document("vacuum", empty)
    assert (preview["dry_run"], preview["num_files"], preview["version"]) == (True, 2, None)
    assert (empty / "a").exists()
    assert Table.open(empty).version == 0
    done = document("vacuum", empty, "--yes")
    assert (done["dry_run"], done["num_deleted"], done["version"]) == (False, 2, 2)
    assert done["files"] == ["a", "b"]
    assert not (empty / "a").exists()
    assert (
        "Files and folders deleted: 0, recorded in version 4" in lines("vacuum", empty, "--yes")[0]
    )


def test_vacuum_lists_as_many_files_as_asked_for(empty: Path) -> None:
    _orphans(empty, "a", "b", "c")
    found = document("vacuum", empty, "--limit", "1")
    assert (found["files"], found["num_files"]) == (["a"], 3)


def test_vacuum_lite_looks_at_the_log_alone(empty: Path) -> None:
    _orphans(empty, "a")
    found = document("vacuum", empty, "--lite", *ZERO)
    assert (found["mode"], found["num_files"]) == ("lite", 0)


def test_vacuum_refuses_a_short_retention(empty: Path) -> None:
    result = run("vacuum", empty, "--retention-hours", "1", "--yes")
    assert result.exit_code == 1
    assert "--no-retention-check" in result.stderr
    assert run("vacuum", empty, "--retention-hours", "-1").exit_code == 2
    assert document("vacuum", empty, *ZERO)["num_files"] == 0
