"""``twinlake completion``: the script by which a shell completes commands and options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import ShellComplete, get_completion_class

from twinlake.cli.command import command
from twinlake.cli.view import Lines, View

if TYPE_CHECKING:
    from twinlake.cli.output import Output

__all__ = ["completion"]

_PROGRAM: Final = "twinlake"
_VARIABLE: Final = "_TWINLAKE_COMPLETE"


@command(table=False)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(output: Output, shell: str) -> None:
    """Print the completion script of a shell.

    With bash, put the line eval "$(twinlake completion bash)" into ~/.bashrc; with zsh, the same
    with zsh into ~/.zshrc, after compinit; with fish, write the script to
    ~/.config/fish/completions/twinlake.fish.
    """
    found = get_completion_class(shell)
    assert found is not None
    root = click.get_current_context().find_root().command
    # Not the method of the class: the one of bash runs bash to see its version.
    script = ShellComplete.source(found(root, {}, _PROGRAM, _VARIABLE))
    output.show(
        View(
            data={"shell": shell, "script": script},
            blocks=[Lines(tuple(script.strip("\n").splitlines()), verbatim=True)],
        )
    )
