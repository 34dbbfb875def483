"""``twinlake completion``: scripts for shells, and what they get to complete."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from tests.support.not_run import not_run
from tests.unit.cli.running import document, run
from twinlake.cli import main
from twinlake.cli.commands import COMMANDS

SHELLS = ("bash", "zsh", "fish")


def find(shell: str) -> str:
    """Where the shell is; without it a test is not run."""
    found = shutil.which(shell)
    return found or not_run(f"{shell} is not installed", required_by="TWINLAKE_REQUIRE_SHELLS")


def environment() -> dict[str, str]:
    """That of a person: ``twinlake`` is found, and nothing of this terminal is."""
    scripts = str(Path(sys.executable).parent)
    kept = {name: os.environ[name] for name in ("HOME", "PYTHONPATH") if name in os.environ}
    return {**kept, "PATH": f"{scripts}:{os.environ['PATH']}", "TERM": "xterm", "LC_ALL": "C.UTF-8"}


def bash_completed(script: Path, line: str) -> list[str]:
    """What bash offers for the last word, by the function that it calls on TAB."""
    code = (
        'source "$1"; COMP_WORDS=($2); [[ $2 == *" " ]] && COMP_WORDS+=("")\n'
        "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); set -- $(complete -p twinlake)\n"
        # complete ... -F function command
        '"${@: -2:1}" twinlake; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    words = [find("bash"), "--norc", "-c", code, "bash", str(script), line]
    return _lines(words)


def fish_completed(script: Path, line: str) -> list[str]:
    """What fish offers for the end of the line."""
    code = "source $argv[1]; complete --do-complete $argv[2]"
    return _lines([find("fish"), "--no-config", "-c", code, str(script), line])


def _lines(words: list[str]) -> list[str]:
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return [line.partition("\t")[0] for line in done.stdout.splitlines() if line]


def zsh_line(script: Path, line: str) -> str:
    """The line after TAB in an interactive zsh, which prints it instead of running it."""
    shell, (parent, child) = find("zsh"), pty.openpty()
    setup = (
        "autoload -Uz compinit; compinit -u -D; unsetopt beep zle_bracketed_paste; "
        'eval "$(<$SCRIPT)"; finished() { print -r -- "<$BUFFER>"; zle .kill-whole-line; exit }; '
        "zle -N finished; bindkey '^X' finished; print -r -- ready-$((1 + 1))\n"
    )
    process = subprocess.Popen(
        [shell, "-f", "-i"],
        env={**environment(), "SCRIPT": str(script)},
        stdin=child,
        stdout=child,
        stderr=child,
        start_new_session=True,
    )
    try:
        os.close(child)
        os.write(parent, setup.encode())
        _read_until(parent, b"ready-2")
        os.write(parent, f"{line}\t".encode())
        os.write(parent, b"\x18")
        shown = _read_until(parent, b">\r\n").decode()
    finally:
        process.kill()
        process.wait()
        os.close(parent)
    return str(re.findall(r"<([^<>]*)>\r\n", shown)[-1])


def _read_until(terminal: int, mark: bytes) -> bytes:
    found, until = b"", time.monotonic() + 60
    while mark not in found:
        left = until - time.monotonic()
        assert left > 0, found
        if select.select([terminal], [], [], left)[0]:
            found += os.read(terminal, 4096)
    return found


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
    find(shell)
    script = run("completion", shell).stdout
    done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the script of each shell, and with something to complete a path to."""
    folder = tmp_path_factory.mktemp("scripts")
    for shell in SHELLS:
        (folder / shell).write_text(run("completion", shell).stdout)
    (folder / "orders").mkdir()
    return folder


@pytest.mark.process
@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_shells_offer_commands_options_and_choices(scripts: Path, shell: str) -> None:
    offered = {"bash": bash_completed, "fish": fish_completed}[shell]
    script = scripts / shell
    assert sorted(offered(script, "twinlake h")) == ["head", "history"]
    assert offered(script, "twinlake schema --i") == ["--ids"]
    assert offered(script, "twinlake completion z") == ["zsh"]
    assert set(offered(script, "twinlake ")) == set(COMMANDS)


@pytest.mark.process
@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("twinlake sche", "twinlake schema"),
        ("twinlake schema --i", "twinlake schema --ids"),
        ("twinlake completion z", "twinlake completion zsh"),
    ],
)
def test_zsh_completes_the_line(scripts: Path, line: str, after: str) -> None:
    assert zsh_line(scripts / "zsh", line).strip() == after


@pytest.mark.process
def test_shells_complete_paths(scripts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(scripts)
    assert fish_completed(scripts / "fish", "twinlake show ./or") == ["./orders/"]
    assert zsh_line(scripts / "zsh", "twinlake show ./or").strip() == "twinlake show ./orders/"
