"""``twinlake alter``: change a table without moving rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from twinlake.cli.command import PAIR, command
from twinlake.cli.text import protocol_text
from twinlake.cli.view import Fields, Grid, Lines, Paragraph, View
from twinlake.errors import TwinlakeError
from twinlake.protocol.properties import redact_property

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from twinlake.cli.output import Output
    from twinlake.cli.table_reference import TableReference
    from twinlake.cli.view import Block
    from twinlake.table import Table

__all__ = ["STEPS", "alter"]

Pair = tuple[str, str]


class _VersionsType(click.ParamType[tuple[int, int]]):
    """``R,W``: a reader and a writer version."""

    name = "reader,writer"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value[0], value[1]
        reader, _, writer = str(value).partition(",")
        if not (reader.strip().isdecimal() and writer.strip().isdecimal()):
            self.fail(f"{value!r} is not a pair of versions such as 1,4.", param, ctx)
        return int(reader), int(writer)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterStep:
    """One kind of change: its option, and what it does to a table."""

    option: str
    type: click.ParamType[Any] | None = None
    metavar: str
    help: str
    apply: Callable[[Table, Any, Settings], Table]
    together: bool = False
    """Whether all values given make one commit."""

    @property
    def parameter(self) -> str:
        """The name click passes the values under."""
        return self.option.removeprefix("--").replace("-", "_")

    def decorate(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Add the option to the command."""
        return click.option(
            self.option,
            self.parameter,
            type=self.type or click.STRING,
            multiple=True,
            metavar=self.metavar,
            help=self.help,
        )(function)

    def batches(self, values: tuple[Any, ...]) -> Iterator[Any]:
        """What is committed at once."""
        yield from [values] if self.together and values else values

    def described(self, value: Any) -> str:
        """The step as it could have been typed, secrets masked."""
        given = value if self.together else (value,)
        return " ".join(f"{self.option} {self._spelled(item)}" for item in given)

    def _spelled(self, item: Any) -> str:
        if not isinstance(item, tuple):
            return str(item)
        if self.type is not PAIR:
            return ",".join(str(part) for part in item)
        return f"{item[0]}={redact_property(str(item[0]), str(item[1]))}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The flags that several steps look at."""

    truncate_history: bool
    if_exists: bool


def _set(table: Table, pairs: tuple[Pair, ...], _: Settings) -> Table:
    return table.set_properties(dict(pairs))


def _unset(table: Table, keys: tuple[str, ...], settings: Settings) -> Table:
    return table.unset_properties(keys, if_exists=settings.if_exists)


def _drop_constraint(table: Table, name: str, settings: Settings) -> Table:
    return table.drop_constraint(name, if_exists=settings.if_exists)


def _drop_feature(table: Table, name: str, settings: Settings) -> Table:
    return table.drop_feature(name, truncate_history=settings.truncate_history)


STEPS = (
    AlterStep(
        option="--upgrade-protocol",
        type=_VersionsType(),
        metavar="R,W",
        help="Raise the reader and the writer version.",
        apply=lambda table, versions, _: table.upgrade_protocol(*versions),
    ),
    AlterStep(
        option="--add-feature",
        metavar="NAME",
        help="Add a table feature and what it requires, without enabling it.",
        apply=lambda table, name, _: table.add_feature(name),
    ),
    AlterStep(
        option="--set",
        type=PAIR,
        metavar="KEY=VALUE",
        help="Set a table property; all that are given make one commit.",
        apply=_set,
        together=True,
    ),
    AlterStep(
        option="--drop-constraint",
        metavar="NAME",
        help="Drop a CHECK constraint.",
        apply=_drop_constraint,
    ),
    AlterStep(
        option="--rename",
        type=PAIR,
        metavar="COLUMN=NAME",
        help="Rename a column; needs column mapping.",
        apply=lambda table, pair, _: table.rename_column(*pair),
    ),
    AlterStep(
        option="--drop-column",
        metavar="COLUMN",
        help="Drop a column; needs column mapping.",
        apply=lambda table, column, _: table.drop_column(column),
    ),
    AlterStep(
        option="--add-column",
        metavar="DDL",
        help="Add a column, such as \"m.value.w INT COMMENT 'width'\".",
        apply=lambda table, ddl, _: table.add_column(ddl),
    ),
    AlterStep(
        option="--type",
        type=PAIR,
        metavar="COLUMN=TYPE",
        help="Give a column a wider type; needs type widening.",
        apply=lambda table, pair, _: table.widen_column(*pair),
    ),
    AlterStep(
        option="--nullable",
        metavar="COLUMN",
        help="Drop NOT NULL from a column.",
        apply=lambda table, column, _: table.alter_column(column, nullable=True),
    ),
    AlterStep(
        option="--comment",
        type=PAIR,
        metavar="COLUMN=TEXT",
        help="Set the comment of a column; an empty one removes it.",
        apply=lambda table, pair, _: table.alter_column(pair[0], comment=pair[1]),
    ),
    AlterStep(
        option="--default",
        type=PAIR,
        metavar="COLUMN=EXPRESSION",
        help="Set the default that new rows get; an empty one removes it.",
        apply=lambda table, pair, _: table.alter_column(pair[0], default=pair[1]),
    ),
    AlterStep(
        option="--constraint",
        type=PAIR,
        metavar="NAME=EXPRESSION",
        help="Add a CHECK constraint.",
        apply=lambda table, pair, _: table.add_constraint(*pair),
    ),
    AlterStep(
        option="--unset",
        metavar="KEY",
        help="Unset a table property; all that are given make one commit.",
        apply=_unset,
        together=True,
    ),
    AlterStep(
        option="--drop-feature",
        metavar="NAME",
        help="Drop a table feature, which may take several commits.",
        apply=_drop_feature,
    ),
)
"""The changes in the order in which they are made: first what others may need, last what goes."""


def _with_steps(function: Callable[..., Any]) -> Callable[..., Any]:
    for step in reversed(STEPS):
        step.decorate(function)
    return function


@command(policy=True)
@_with_steps
@click.option(
    "--truncate-history",
    is_flag=True,
    help="With --drop-feature: delete the history that uses the feature.",
)
@click.option(
    "--if-exists",
    is_flag=True,
    help="With --unset and --drop-constraint: ignore what does not exist.",
)
def alter(
    output: Output, reference: TableReference, truncate_history: bool, if_exists: bool, **given: Any
) -> None:
    """Change properties, columns, constraints, features, protocol.

    Every option can be repeated. Several changes are made in the order in which the options are
    listed below, whatever their order on the command line, each in its own commit; a change sees
    the column names of the changes before it. If one fails, the changes before it stay committed,
    and the error names their versions. Nested columns have dotted names, with element, key and
    value for array elements, map keys and map values.
    """
    settings = Settings(truncate_history=truncate_history, if_exists=if_exists)
    steps = [
        (step, batch) for step in STEPS for batch in step.batches(given.get(step.parameter, ()))
    ]
    if not steps:
        raise click.UsageError("No change was given; see --help for the options.")
    table = reference.open()
    start = table
    done: list[dict[str, Any]] = []
    warnings: list[str] = []
    for step, batch in steps:
        before = table.version
        try:
            table = step.apply(table, batch, settings)
        except TwinlakeError as error:
            _add_committed(error, start, before, done)
            raise
        warnings += map(str, table.warnings if table.version > before else ())
        done.append(
            {
                "step": step.described(batch),
                "versions": list(range(before + 1, table.version + 1)),
            }
        )
    output.show(_view(start, table, done, warnings))


def _add_committed(
    error: TwinlakeError, start: Table, version: int, done: list[dict[str, Any]]
) -> None:
    if done:
        error.fields["done"] = done
        made = ", ".join(str(number) for number in range(start.version + 1, version + 1))
        error.why += f" (The changes before this one are committed; versions: {made or 'none'}.)"


def _view(start: Table, table: Table, done: list[dict[str, Any]], warnings: list[str]) -> View:
    rows = [(step["step"], _versions(step["versions"])) for step in done]
    blocks: list[Block] = [
        Grid.of("change versions", rows),
        Fields(
            (
                ("version", f"{start.version} -> {table.version}"),
                ("protocol", f"{protocol_text(start.protocol)} -> {protocol_text(table.protocol)}"),
            )
        ),
    ]
    if table.version == start.version:
        blocks.append(Paragraph("The table already has these settings; nothing was committed."))
    if warnings:
        blocks.append(Lines(tuple(warnings), style="yellow"))
    return View(
        data={
            "location": table.location,
            "from": start.version,
            "version": table.version,
            "steps": done,
            "protocol": table.protocol.to_dict(),
            "properties": dict(table.properties),
            "warnings": warnings,
        },
        blocks=blocks,
    )


def _versions(versions: list[int]) -> str:
    if not versions:
        return "none needed"
    return ", ".join(str(version) for version in versions)
