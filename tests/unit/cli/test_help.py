"""Help: every command is documented, and asking for help costs nothing."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from tests.unit.cli.running import children, run
from twinlake.cli import main

NOW = [
    "show",
    "schema",
    "head",
    "query",
    "sql",
    "stats",
    "history",
    "files",
    "features",
    "check",
    "upgrade",
    "diff",
    "log",
    "append",
    "alter",
    "restore",
    "optimize",
    "reorg",
    "vacuum",
    "sync",
    "verify-twin",
    "import",
    "serve",
    "catalog",
    "verify",
    "demo",
    "completion",
]
#: Every group, and every command that can be run, by the words that name it.
GROUPS = {"": main} | {
    name: made for name, made in children(main).items() if isinstance(made, click.Group)
}
EVERY = {
    f"{words} {name}".strip(): command
    for words, group in GROUPS.items()
    for name, command in children(group).items()
    if not isinstance(command, click.Group)
}


def test_the_commands_are_these() -> None:
    assert list(children(main)) == NOW


@pytest.mark.parametrize("words", GROUPS)
def test_help_lists_every_command_with_its_first_sentence(words: str) -> None:
    listing = run(*words.split(), "--help").stdout.partition("Commands:")[2]
    for name, command in children(GROUPS[words]).items():
        assert command.name == name
        (line,) = (x for x in listing.splitlines() if x.split()[:1] == [name])
        assert line.split(maxsplit=1)[1] == (command.help or "").splitlines()[0]
        assert line.endswith(".")


def test_unknown_command_is_wrong_usage() -> None:
    assert run("nothing").exit_code == 2


@pytest.mark.parametrize("words", EVERY)
def test_every_command_and_option_is_documented(words: str) -> None:
    command = EVERY[words]
    assert command.help
    found = command.get_params(click.Context(command))
    options = [p for p in found if isinstance(p, click.Option) and p.name != "help"]
    assert [o.name for o in options if not o.help] == []
    assert {"--json", "--debug"} <= {name for option in options for name in option.opts}
    assert run(*words.split(), "--help").exit_code == 0


@pytest.mark.process
@pytest.mark.parametrize(
    "words", [["--help"], ["alter", "--help"], ["verify", "--help"], ["--version"]]
)
def test_help_loads_nothing_slow(words: list[str]) -> None:
    code = (
        "import sys\n"
        "from twinlake.cli import main\n"
        f"main({words!r}, standalone_mode=False)\n"
        "print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert loaded & {"pyarrow", "rich", "sqlglot", "obstore", "pyspark"} == set()


@pytest.mark.process
def test_models_are_loaded_only_by_the_commands_that_need_them() -> None:
    code = (
        "import sys\n"
        "from twinlake.cli import main\n"
        "main(['verify', '--help'], standalone_mode=False)\n"
        "print(*(name for name in sys.modules if name.startswith('twinlake.verify')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == ""
