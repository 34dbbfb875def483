"""Groups that import the module of a command when the command is used.

The module may therefore import at its top whatever the command needs: help and the other commands
do not pay for it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CommandGroup"]


class CommandGroup(click.Group):
    """Commands in the order of ``modules``, which is the order of use.

    ``modules`` maps the name of a command to its ``MODULE:ATTRIBUTE`` in `twinlake.cli.commands`
    and the first sentence of its help.
    """

    def __init__(self, *args: Any, modules: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names."""
        del ctx
        return list(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        del ctx
        if cmd_name not in self._modules:
            return None
        module, _, attribute = self._modules[cmd_name][0].partition(":")
        command: click.Command = getattr(
            import_module(f"twinlake.cli.commands.{module}"), attribute
        )
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands that begin so, without importing them, and the options of the group."""
        return [
            *(
                CompletionItem(name, help=summary)
                for name, (_, summary) in self._modules.items()
                if name.startswith(incomplete)
            ),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in self._modules.items()])
