"""What all commands share: their options, and how they fail.

An error is three lines on standard error and exit status 1; ``--debug`` adds a stack trace. Click
handles wrong usage (exit status 2).
"""

from __future__ import annotations

import errno
import functools
import os
import sys
import traceback
from typing import TYPE_CHECKING, Any, Final, Literal

import click
from click.shell_completion import CompletionItem

from twinlake.cli.json_output import JsonOutput
from twinlake.cli.output import allow_any_text
from twinlake.cli.table_reference import TableReference
from twinlake.errors import Code, TwinlakeError, UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from twinlake.cli.output import Output

__all__ = [
    "PAIR",
    "Command",
    "command",
    "complete_path",
    "limit_option",
    "shown_rows",
    "store_option",
    "yes_option",
]

_TERMINAL_ROWS = 50


class PairType(click.ParamType[tuple[str, str]]):
    """``KEY=VALUE``; an equals sign within backticks belongs to the key."""

    name = "key=value"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Both halves."""
        if isinstance(value, tuple):
            return value[0], value[1]
        text = str(value)
        quoted = False
        for position, character in enumerate(text):
            quoted ^= character == "`"
            if character == "=" and not quoted and text[:position].strip():
                return text[:position].strip(), text[position + 1 :].strip()
        return self.fail(f"{value!r} is not of the form {self.name.upper()}.", param, ctx)


PAIR = PairType()


def _open_output(*, as_json: bool) -> Output:
    """The renderer for the console or for JSON."""
    allow_any_text()
    if as_json:
        return JsonOutput()
    # Rich takes longer to load than `--help` takes to print.
    from twinlake.cli.console import ConsoleOutput

    return ConsoleOutput()


class Command(click.Command):
    """A command whose errors are three lines."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run it."""
        debug, as_json = bool(ctx.params.pop("debug")), bool(ctx.params.pop("as_json"))
        output = _open_output(as_json=as_json)
        try:
            ctx.params["output"] = output
            result = super().invoke(ctx)
            # A closed pipe must raise here, not when the interpreter exits.
            sys.stdout.flush()
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                raise
            if debug:
                traceback.print_exc()
            output.error(error if isinstance(error, TwinlakeError) else _bug(error))
            ctx.exit(self.failure_status(error))
        return result

    def failure_status(self, error: Exception) -> int:
        """The exit status for an error."""
        del error
        return 1


#: By the library that is missing, the extra that has it.
_EXTRAS: Final = {
    "duckdb": "duckdb",
    "granian": "server",
    "pandas": "pandas",
    "polars": "polars",
    "py4j": "spark",
    "pyiceberg": "catalogs",
    "pyspark": "spark",
    "starlette": "server",
}


def _bug(error: Exception) -> TwinlakeError:
    name = type(error).__name__
    if isinstance(error, FileNotFoundError) and _has_no_working_directory():
        # Libraries look for their settings there, such as PyIceberg.
        return UserError(
            Code.INVALID_ARGUMENT,
            "This command needs a working directory.",
            why="the working directory of this process was deleted",
            fix="Change to a folder that exists, and run the command again.",
        )
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    extra = _EXTRAS.get((missing or "").partition(".")[0])
    if extra is not None:
        return UserError(
            Code.SPARK_REQUIRED if extra == "spark" else Code.INVALID_ARGUMENT,
            f"This command needs {missing}, which is not installed.",
            why="twinlake does not install it by itself",
            fix=f"Run `pip install 'twinlake[{extra}]'`.",
            fields={"package": missing},
        )
    return TwinlakeError(
        Code.INTERNAL,
        f"Unexpected error: {name}.",
        why=f"This is a bug in twinlake. {name}: {error}",
        fix="Run the command again with `--debug` and report the output.",
        fields={"type": name, "message": str(error)},
    )


def _has_no_working_directory() -> bool:
    try:
        os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        return True
    return False


def command(
    *,
    table: bool | Literal["optional"] = True,
    time_travel: bool = False,
    policy: bool = False,
    cls: type[Command] = Command,
) -> Callable[[Callable[..., None]], Command]:
    """A command with the shared options; its function gets ``output`` and ``reference``."""

    def decorate(function: Callable[..., None]) -> Command:
        @functools.wraps(function)
        def call(**given: Any) -> None:
            if table:
                path, options = given.pop("path"), dict(given.pop("options"))
                chosen: dict[str, Any] = {
                    "policy": (given.pop("policy") if policy else None) or "bundled",
                    "version": given.pop("version") if time_travel else None,
                    "timestamp": given.pop("timestamp") if time_travel else None,
                }
                given["reference"] = path and TableReference(path=path, options=options, **chosen)
            function(**given)

        shared = [
            *([_table_argument(required=table is True)] if table else ()),
            *(_TIME_TRAVEL if time_travel else ()),
            *(_POLICY if policy else ()),
            *([store_option] if table else ()),
            *_ALWAYS,
        ]
        for decorator in reversed(shared):
            decorator(call)
        made = click.command(cls=cls)(call)
        made.params.sort(key=_rank)
        return made

    return decorate


def _table_argument(*, required: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.argument("path", required=required, shell_complete=complete_path)


def complete_path(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Leave the completion of paths to the shell."""
    del ctx, param
    return [CompletionItem(incomplete, type="file")]


def _rank(parameter: click.Parameter) -> int:
    """The table, other arguments, the command's own options, the shared ones."""
    if isinstance(parameter, click.Argument):
        return 0 if parameter.name == "path" else 1
    return 3 if parameter.name in _SHARED else 2


_SHARED = frozenset({"version", "timestamp", "policy", "options", "as_json", "debug"})

_TIME_TRAVEL = (
    click.option("--version", type=click.IntRange(min=0), metavar="N", help="Read this version."),
    click.option(
        "--timestamp",
        metavar="TIME",
        help="Read the version of this time: ISO 8601 (UTC without a zone) or epoch milliseconds.",
    ),
)
_POLICY = (
    click.option(
        "--policy",
        type=click.Choice(["bundled", "minimal"]),
        help="How the protocol is upgraded: to legacy versions where they suffice (bundled, the "
        "default) or by the required features only (minimal).",
    ),
)
store_option = click.option(
    "--option",
    "options",
    type=PAIR,
    multiple=True,
    help="A setting of the object store, such as region=eu-west-1. Repeatable.",
)
_ALWAYS = (
    click.option("--json", "as_json", is_flag=True, help="Print one JSON document."),
    click.option("--debug", is_flag=True, help="Print the stack trace of an error."),
)


def yes_option(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``--yes``, for commands that print a preview without it."""
    return click.option("--yes", is_flag=True, help=f"Do it. Without this, only show {what}.")


def limit_option(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``--limit``, for listings."""
    return click.option(
        "--limit",
        type=click.IntRange(min=0),
        metavar="N",
        help=f"How many {what} to list. By default all, on a terminal {_TERMINAL_ROWS}.",
    )


def shown_rows(limit: int | None, *, is_terminal: bool) -> int | None:
    """How many rows to list; None for all."""
    return _TERMINAL_ROWS if limit is None and is_terminal else limit
