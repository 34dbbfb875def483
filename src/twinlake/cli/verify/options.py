"""The options of ``twinlake verify``: one for every parameter of the models, and how to search.

The options of parameters are derived from the models when a command runs or is asked for help,
so that nothing of `twinlake.verify` is loaded before.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import click

from twinlake.cli.command import Command
from twinlake.cli.verify.models import base_of, extensions, parameters_of
from twinlake.errors import Code, UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.cli.verify.models import Parameter

__all__ = ["ModelCommand", "VerifyCommand", "given_parameters", "search_options"]

_PREFIX: Final = "parameter_"
_NONE: Final = "none"
_EXTENSION: Final = "twinlake.verify.extension"

#: What parameters mean whose name and comment do not say it.
_MEANING: Final = {
    "update_mode": "How UPDATE changes rows.",
    "delete_mode": "How DELETE takes rows out.",
    "isolation": "The isolation level of the table.",
    "writers": "How many writers there are.",
    "allow_updates": "Whether writers run UPDATE.",
    "allow_deletes": "Whether writers run DELETE.",
    "max_write_ops": "How many statements are started in all.",
    "max_compaction_ops": "How many compactions are started in all.",
    "max_ops": "How many operations are started in all.",
    "col1_values": "The keys that rows may have, apart by commas.",
    "col2_values": "The values of the second column, apart by commas.",
    "col3_values": "The values of the third column, apart by commas.",
    "fix": "The rule added for merge-on-read DELETE: A, any new delete file is a conflict (what "
    "--fix alone means); B, one that shares a position; C, as B, if its commit also added rows.",
    "history": "What a DELETE is held to: the key it named, or the rows it saw.",
    "identity": "What makes two states one: names of files count (faithful), or not (canonical).",
    "partition_by": "The column of the first partition spec: 0, 1 or 2.",
    "evolve_to": "The column that a new partition spec goes over to.",
    "starting_sequence": "Whether a compaction keeps the sequence number of its scan.",
    "max_delete_compactions": "How many compactions of delete files are started in all.",
    "faults": "How many replies of the store are lost.",
    "stale_list": "Whether a listing may lack the newest entry.",
    "max_versions": "How many versions there are in all.",
    "parts": "Of how many parts a checkpoint is.",
    "retained": "How many versions have to stay readable.",
    "retention": "How many ticks VACUUM keeps a file that is out of use.",
    "longest": "How many ticks the longest read or write takes.",
    "max_ticks": "How long the clock runs.",
    "max_writes": "How many writes there are in all.",
    "files": "How many data files there are.",
    "rows": "How many rows a file has.",
    "row_level": "Whether deletes of different rows of one file both win.",
    "grace": "How many ticks old a file must be to count as an orphan.",
    "pause": "How many ticks the cleaner takes between its two looks.",
    "max_crashes": "How many crashes there are in all.",
    "expirers": "How many actors expire snapshots.",
    "readers": "How many readers there are.",
    "operators": "How many operators roll back.",
    "age_from": "From when on the age of a snapshot counts.",
    "max_rollbacks": "How many rollbacks there are in all.",
    "keys": "The keys that rows may have, apart by commas.",
    "reading": "How a reader looks at two tables.",
    "servers": "How many servers there are.",
    "max_delta_ops": "How many operations direct Delta clients start in all.",
    "delta_operations": "What direct Delta clients do, apart by commas.",
    "file_check": "Since when a server looks whether files have changed: none, base or scan.",
    "wait": "How many ticks a file stays after the last version that has it.",
    "max_restores": "How many restores there are in all.",
    "restorable": "For how many ticks a version that was replaced can be restored.",
    "max_clones": "How many shallow clones are made in all.",
    "order": "The order that must explain everything; by default what the isolation promises.",
    "partitions": "The partitions, apart by commas.",
    "instances": "How many instances of the application there are.",
    "batches": "How many batches it writes.",
}


class VerifyCommand(Command):
    """A command that exits with 2 if what was asked for cannot be run at all.

    Exit status 1 says that a property is violated, so an argument that cannot be used, which is 1
    with other commands, has to be described apart.
    """

    def failure_status(self, error: Exception) -> int:
        """2 for arguments that cannot be used."""
        is_argument = isinstance(error, UserError) and error.code is Code.INVALID_ARGUMENT
        return 2 if is_argument else super().failure_status(error)


class ModelCommand(VerifyCommand):
    """A command with an option for every parameter of the models of a table format."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note which extension is asked for: help shows its options and no other's."""
        ctx.meta[_EXTENSION] = _named_extension(args)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The options of the models' parameters, then the command's own."""
        family, named = str(self.name), ctx.meta.get(_EXTENSION)
        known = {one.name: one for one in extensions(family)}
        shown = known.get(named, base_of(family)) if named else base_of(family)
        wanted = {_PREFIX + one.name for one in parameters_of(shown.model)}
        options = _parameter_options(family)
        for option in options:
            option.hidden = option.name not in wanted
        return [*options, *super().get_params(ctx)]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Where the other options are."""
        super().format_epilog(ctx, formatter)
        if not ctx.meta.get(_EXTENSION):
            formatter.write_paragraph()
            formatter.write_text(
                "These are the parameters of the base model; --extension NAME --help shows those"
                " of another."
            )


def _named_extension(args: list[str]) -> str | None:
    """The value of --extension in the arguments, before they are parsed."""
    for place, text in enumerate(args):
        if text == "--extension" and place + 1 < len(args):
            return args[place + 1]
        if text.startswith("--extension="):
            return text.partition("=")[2]
    return None


@cache
def _parameter_options(family: str) -> tuple[click.Option, ...]:
    found: dict[str, Parameter] = {}
    owners: dict[str, list[str]] = {}
    for extension in extensions(family):
        for one in parameters_of(extension.model):
            found[one.name] = _together(found.get(one.name), one)
            owners.setdefault(one.name, []).append(extension.name)
    base = {one.name for one in parameters_of(base_of(family).model)}
    return tuple(
        _option(one, () if name in base else tuple(owners[name])) for name, one in found.items()
    )


def _together(known: Parameter | None, one: Parameter) -> Parameter:
    """A parameter that several models have: an option takes what any of them does."""
    if known is None:
        return one
    if (known.kind, known.several) != (one.kind, one.several):
        raise TypeError(f"parameter {one.name} is of different types in different models")
    open_ended = not known.choices or not one.choices
    choices = () if open_ended else tuple(dict.fromkeys((*known.choices, *one.choices)))
    return replace(known, choices=choices, optional=known.optional or one.optional)


def _option(one: Parameter, owners: tuple[str, ...]) -> click.Option:
    flag = one.name.replace("_", "-")
    meaning = one.comment or _MEANING.get(one.name) or f"Parameter {one.name} of the model."
    described = f"{meaning} By default {_shown(one.default)}."
    if owners:
        described = f"{meaning} Of {', '.join(owners)}."
    names = [f"--{flag}/--no-{flag}" if one.kind == "bool" else f"--{flag}", _PREFIX + one.name]
    if one.kind == "bool":
        return click.Option(names, default=None, help=described)
    # The published model's fix is what is meant where none is named.
    alone: dict[str, Any] = {"is_flag": False, "flag_value": "A"} if one.name == "fix" else {}
    return click.Option(names, type=_ValueType(one), default=None, help=described, **alone)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return _NONE if value is None else str(value)


class _ValueType(click.ParamType[Any]):
    """The value of a parameter: a number, one of some words, or several apart by commas."""

    def __init__(self, parameter: Parameter) -> None:
        self._parameter = parameter
        self.name = "list" if parameter.several else parameter.kind

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """The choices where there are any."""
        del param, ctx
        one = self._parameter
        words = "|".join(_NONE if choice is None else str(choice) for choice in one.choices)
        if words:
            return f"[{words}]"
        return {"int": "N", "str": "NAME"}.get(self.name, "A,B")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value as the model takes it."""
        one = self._parameter
        if not isinstance(value, str):
            return value
        if one.several and value.lower() == _NONE:
            return ()
        if one.several:
            return tuple(self._item(part.strip(), param, ctx) for part in value.split(","))
        return self._item(value, param, ctx)

    def _item(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        one = self._parameter
        if one.optional and text.lower() == _NONE:
            return _Nothing
        if one.kind == "int":
            return int(text) if text.lstrip("-").isdigit() else self.fail(_wrong(text), param, ctx)
        if not text:
            return self.fail("an empty text is no value.", param, ctx)
        for choice in one.choices:
            if choice is not None and str(choice).lower() == text.lower():
                return choice
        if one.choices:
            return self.fail(f"{text!r} is none of {self.get_metavar_text()}.", param, ctx)
        return text

    def get_metavar_text(self) -> str:
        """The choices in words."""
        choices = self._parameter.choices
        return ", ".join(_NONE if choice is None else str(choice) for choice in choices)


class _Nothing:
    """Stands for ``None`` where that was said, not left out."""


def _wrong(text: str) -> str:
    return f"{text!r} is not a whole number."


def given_parameters(arguments: dict[str, Any]) -> Mapping[str, Any]:
    """Take the parameters of the model out of a command's arguments: those that were given."""
    taken = {
        name.removeprefix(_PREFIX): arguments.pop(name)
        for name in list(arguments)
        if name.startswith(_PREFIX)
    }
    return {
        name: None if value is _Nothing else value
        for name, value in taken.items()
        if value is not None
    }


def search_options(arguments: dict[str, Any]) -> Mapping[str, Any]:
    """Take the arguments of the check out of a command's arguments: those that were given."""
    names = ("symmetry", "value_symmetry", "reduction", "max_states", "engine")
    chosen = {name: arguments.pop(name) for name in names}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    without = arguments.pop("without")
    if without:
        chosen["without"] = without
    if arguments.pop("keep_going"):
        chosen["stop_at_first"] = False
    return chosen
