"""``twinlake completion``: scripts for shells, and what they get to complete."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
from click.shell_completion import ShellComplete

from tests.unit.cli.running import document, run
from twinlake.cli import main
from twinlake.cli.commands import COMMANDS

SHELLS = ("bash", "zsh", "fish")


def completed(*words: str) -> list[tuple[str, str]]:
    """What a shell gets for the last word: values and their types."""
    *before, last = words
    found = ShellComplete(main, {}, "twinlake", "_TWINLAKE_COMPLETE").get_completions(before, last)
    return [(item.value, item.type) for item in found]


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts(shell: str) -> None:
    result = run("completion", shell)
    assert result.exit_code == 0
    assert f"_TWINLAKE_COMPLETE={shell}_complete" in result.stdout
    assert document("completion", shell)["script"].strip() == result.stdout.strip()


def test_another_shell_is_wrong_usage() -> None:
    assert run("completion", "tcsh").exit_code == 2
    assert run("completion").exit_code == 2


def test_commands_are_completed() -> None:
    assert [value for value, _ in completed("")] == list(COMMANDS)
    assert [value for value, _ in completed("h")] == ["head", "history"]


def test_options_choices_and_paths_are_completed() -> None:
    assert ("--ids", "plain") in completed("schema", "--i")
    assert completed("completion", "z") == [("zsh", "plain")]
    assert completed("show", "./or") == [("./or", "file")]
    assert completed("sync", "a", "./or") == [("./or", "file")]
    assert completed("show", "--version", "") == []


@pytest.mark.process
def test_commands_are_completed_without_loading_them() -> None:
    code = (
        "import sys\n"
        "from click.shell_completion import ShellComplete\n"
        "from twinlake.cli import main\n"
        "assert ShellComplete(main, {}, 'twinlake', 'X').get_completions([], 's')\n"
        "print(*{'pyarrow', 'rich', 'sqlglot'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.process
@pytest.mark.parametrize("shell", SHELLS)
def test_shells_accept_their_scripts(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = run("completion", shell).stdout
    done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
